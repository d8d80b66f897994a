//! The threaded runtime: Tokio on a thread of its own.
//!
//! Works on every event loop, since the loop only has to watch one descriptor.
//!
//! Invariant: the thread never touches Python, so it may be waited for, by a caller that has let go of the GIL.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use bridgehead_net::{Config, Listener, Signal, Stage};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::app::ToLoop;
use crate::ffi;
use crate::inbox::{Event, Inbox};

/// A network thread that serves.
pub(crate) struct Threaded {
    pub(crate) handle: Handle,
    signal: Signal,
    thread: JoinHandle<()>,
}

impl Threaded {
    /// Starts the thread, and waits until its runtime is there.
    pub(crate) fn start(config: Config, listeners: Vec<Listener>, inbox: Arc<Inbox>) -> io::Result<Self> {
        let (signal, stage) = bridgehead_net::shutdown_channel();
        let (ready, started) = mpsc::channel();
        let thread = thread::Builder::new().name("bridgehead-net".to_owned()).spawn(move || {
            ffi::block_signals();
            let app = Arc::new(ToLoop(Arc::clone(&inbox)));
            let opened = runtime().and_then(|runtime| {
                let _entered = runtime.enter();
                let serving = bridgehead_net::serve(config, listeners, app, stage)?;
                Ok((runtime, serving))
            });
            match opened {
                Ok((runtime, serving)) => {
                    // Whoever started us may have gone; then the signal has too, and serving ends at once.
                    let _ = ready.send(Ok(runtime.handle().clone()));
                    runtime.block_on(serving);
                    drop(runtime);
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            }
            inbox.push(Event::Finished);
        })?;
        let handle = started.recv().map_err(io::Error::other)??;
        Ok(Self { handle, signal, thread })
    }

    pub(crate) fn advance(&self, stage: Stage) {
        self.signal.advance(stage);
    }

    /// Ends whatever is left and waits for the thread; to be called without the GIL.
    pub(crate) fn join(self) -> thread::Result<()> {
        self.signal.advance(Stage::Aborting);
        self.thread.join()
    }
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_io().enable_time().build()
}
