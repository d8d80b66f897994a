//! The threaded runtime: Tokio on a thread of its own.
//!
//! Works on every event loop, since the loop only has to watch one descriptor.
//!
//! Invariant: the thread never touches Python, so it may be waited for, by a caller that has let go of the GIL.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use bridgehead_executor::Executor;
use bridgehead_net::{Config, Listener, Signal, Stage};
use tokio::task::coop::unconstrained;

use crate::app::ToLoop;
use crate::ffi;
use crate::inbox::{Event, Inbox};
use crate::own_runtime::OwnRuntime;
use crate::presence::Presence;
use crate::runtime::Runtime;
use crate::runtime_handle::RuntimeHandle;
use crate::standby::Standby;

/// A network thread that serves.
pub(crate) struct Threaded {
    handle: RuntimeHandle,
    signal: Signal,
    thread: JoinHandle<()>,
    standby: Standby,
}

impl Threaded {
    /// Starts the thread, and waits until its runtime is there.
    pub(crate) fn start(
        config: Config,
        listeners: Vec<Listener>,
        inbox: Arc<Inbox>,
        presence: Arc<Presence>,
    ) -> io::Result<Self> {
        let (signal, stage) = bridgehead_net::shutdown_channel();
        let (ready, started) = mpsc::channel();
        let executor = Executor::default();
        let tasks = executor.clone();
        let thread = thread::Builder::new().name("bridgehead-net".to_owned()).spawn(move || {
            ffi::block_signals();
            let app = Arc::new(ToLoop::new(Arc::clone(&inbox), &config));
            let opened = OwnRuntime::new().and_then(|runtime| {
                let _entered = runtime.enter();
                let serving = bridgehead_net::serve(config, listeners, app, stage, &executor)?;
                Ok((runtime, serving))
            });
            match opened {
                Ok((runtime, serving)) => {
                    // Whoever started us may have gone; then the signal has too, and serving ends at once.
                    let _ = ready.send(Ok(runtime.handle().clone()));
                    runtime.block_on(unconstrained(executor.drive(serving)));
                    drop(runtime);
                    executor.abandon();
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            }
            inbox.push(Event::Finished);
        })?;
        let tokio = started.recv().map_err(io::Error::other)??;
        let handle = RuntimeHandle { executor: tasks, tokio };
        Ok(Self { handle, signal, thread, standby: Standby::start(presence, None)? })
    }
}

impl Runtime for Threaded {
    fn handle(&self) -> RuntimeHandle {
        self.handle.clone()
    }

    fn advance(&self, stage: Stage) {
        self.signal.advance(stage);
    }

    fn join(self: Box<Self>) -> thread::Result<()> {
        self.signal.advance(Stage::Aborting);
        self.thread.join()?;
        self.standby.stop()
    }
}
