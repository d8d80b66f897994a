//! The fused runtime: the loop's own thread turns Tokio, in the place where the loop polls.
//!
//! No second thread, no wake, no hand-over of the GIL. asyncio's selector is watched by Tokio, so one wait is for both.
//!
//! Invariant: a turn that may wait ends when there is something for Python: an event in the inbox, a descriptor of the
//! loop's, or the loop's next timer.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use bridgehead_net::{Config, Executor, Listener, POLLS, Round, Signal, Stage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::unix::AsyncFd;
use tokio::runtime::{self, Builder, Handle};
use tokio::task::coop::unconstrained;
use tokio::time::sleep;

use crate::app::ToLoop;
use crate::ffi;
use crate::inbox::{Event, Inbox};
use crate::runtime::Runtime;
use crate::standby::{Presence, Standby};
use crate::wake::Wake;

/// How long what is left may take to end.
const LAST_TURN: Duration = Duration::from_secs(1);

/// What a turn ended for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// A descriptor of the loop's.
    pub(crate) descriptors: bool,
    /// An event in the inbox.
    pub(crate) events: bool,
}

/// How long a turn may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// The loop has something to do: whatever is ready is done, and no more.
    None,
    /// The loop has a timer.
    For(Duration),
    Endless,
}

/// Tokio, and what it watches for the loop.
#[derive(Debug)]
pub(crate) struct Fused {
    runtime: runtime::Runtime,
    inbox: Arc<Inbox>,
    executor: Executor,
    /// A duplicate of the loop's own epoll descriptor.
    selector: AsyncFd<OwnedFd>,
    signal: Signal,
    presence: Arc<Presence>,
}

impl Fused {
    /// Begins to serve; clients are let in by the first turn.
    pub(crate) fn start(
        config: Config,
        listeners: Vec<Listener>,
        inbox: Arc<Inbox>,
        selector: OwnedFd,
        presence: Arc<Presence>,
    ) -> io::Result<Arc<Self>> {
        let (signal, stage) = bridgehead_net::shutdown_channel();
        let executor = Executor::default();
        let app = Arc::new(ToLoop(Arc::clone(&inbox)));
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let entered = runtime.enter();
        let selector = ffi::watch(selector)?;
        let serving = bridgehead_net::serve(config, listeners, app, stage, &executor)?;
        let over = Arc::clone(&inbox);
        executor.spawn(async move {
            serving.await;
            over.push(Event::Finished);
        });
        drop(entered);
        Ok(Arc::new(Self { runtime, inbox, executor, selector, signal, presence }))
    }

    pub(crate) fn runtime(&self) -> &runtime::Runtime {
        &self.runtime
    }

    /// A round of the network's tasks, for whoever stands in; it is polled again when there is more.
    pub(crate) fn poll_tasks(&self, cx: &mut Context<'_>) {
        if self.executor.run(POLLS) == Round::Cut || self.executor.poll_work(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }

    /// Nobody turns the network for now: what is woken waits for whoever does next.
    pub(crate) fn leave(&self) {
        self.executor.leave();
    }

    /// Turns the network until there is something for Python, or patience ends. To be called without the GIL.
    pub(crate) fn turn(&self, patience: Patience) -> Due {
        self.presence.come();
        let due = self.take_turn(patience);
        self.presence.go();
        due
    }

    fn take_turn(&self, patience: Patience) -> Due {
        let due = self.runtime.block_on(unconstrained(async {
            let mut timer = pin!(async {
                if let Patience::For(time) = patience {
                    sleep(time).await;
                }
            });
            // A turn without patience asks the driver once.
            let mut asked = patience != Patience::None;
            poll_fn(|cx| {
                let round = self.executor.run(POLLS);
                let due = self.due(cx);
                if due != Due::default() || (asked && patience == Patience::None) {
                    return Poll::Ready(due);
                }
                if !asked || round == Round::Cut || self.executor.poll_work(cx).is_ready() {
                    asked = true;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                if matches!(patience, Patience::For(_)) {
                    timer.as_mut().poll(cx).map(|()| due)
                } else {
                    Poll::Pending
                }
            })
            .await
        }));
        self.leave();
        due
    }

    fn due(&self, cx: &mut Context<'_>) -> Due {
        // Registered before looking: what is pushed in between is not missed.
        if let Wake::Turn(turn) = self.inbox.wake() {
            turn.wait(cx.waker());
        }
        Due { descriptors: self.has_descriptors(cx), events: self.inbox.is_filled() }
    }

    /// Tokio's readiness is of edges, the selector's of levels: it is cleared only after a look found nothing.
    fn has_descriptors(&self, cx: &mut Context<'_>) -> bool {
        loop {
            match self.selector.poll_read_ready(cx) {
                Poll::Pending => return false,
                Poll::Ready(Ok(mut ready)) => {
                    if is_readable(self.selector.get_ref()) {
                        return true;
                    }
                    ready.clear_ready();
                }
                // The selector is gone: its loop finds out by itself.
                Poll::Ready(Err(_)) => return true,
            }
        }
    }
}

fn is_readable(descriptor: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

/// The worker's hold on a fused runtime, beside the loop's.
pub(crate) struct FusedWorker {
    fused: Arc<Fused>,
    standby: Standby,
}

impl FusedWorker {
    pub(crate) fn start(fused: Arc<Fused>) -> io::Result<Self> {
        Ok(Self { standby: Standby::start(Arc::clone(&fused.presence), Some(Arc::clone(&fused)))?, fused })
    }
}

impl Runtime for FusedWorker {
    fn handle(&self) -> &Handle {
        self.fused.runtime.handle()
    }

    fn advance(&self, stage: Stage) {
        self.fused.signal.advance(stage);
    }

    fn join(self: Box<Self>) -> thread::Result<()> {
        let Self { fused, standby } = *self;
        standby.stop()?;
        fused.signal.advance(Stage::Aborting);
        fused.runtime.block_on(async {
            // Connections end at their next poll; what does not is dropped with the runtime.
            let _ = tokio::time::timeout(
                LAST_TURN,
                poll_fn(|cx| {
                    if let Wake::Turn(turn) = fused.inbox.wake() {
                        turn.wait(cx.waker());
                    }
                    fused.poll_tasks(cx);
                    if fused.inbox.is_filled() { Poll::Ready(()) } else { Poll::Pending }
                }),
            )
            .await;
        });
        Ok(())
    }
}
