//! The fused runtime: the loop's own thread turns Tokio, in the place where the loop polls.
//!
//! No second thread, no wake, no hand-over of the GIL. One of the two polls is inside the other, so one wait is for both.
//!
//! Invariant: a turn that may wait ends when there is something for Python: an event in the inbox, a descriptor of the
//! loop's, or the loop's next timer. Any ends when its tasks have had their [`Share`], 64 polls or a millisecond, with more
//! that are ready. Tokio's driver is asked in one turn of [`UNASKED`] at the least, however much there is for Python: an
//! answer and a client who keep each other busy hold up nobody else's sockets.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use bridgehead_executor::{Alarm, Executor, Round, Share};
use bridgehead_net::{Config, Listener, Signal, Stage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::unix::AsyncFd;
use tokio::runtime::Runtime;
use tokio::task::coop::unconstrained;

use crate::app::ToLoop;
use crate::bell::Bell;
use crate::ffi;
use crate::inbox::{Event, Inbox};
use crate::own_runtime::OwnRuntime;
use crate::poll_descriptor::{self, NotFound};
use crate::presence::Presence;
use crate::runtime;
use crate::runtime_handle::RuntimeHandle;
use crate::standby::Standby;
use crate::wake::{Descriptor, Wake};

/// How long what is left may take to end.
const LAST_TURN: Duration = Duration::from_secs(1);

/// Turns in a row that may end without Tokio's driver having been asked.
const UNASKED: u32 = 4;

/// What a turn ended for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// A descriptor of the loop's.
    pub(crate) descriptors: bool,
    /// An event in the inbox.
    pub(crate) events: bool,
    /// Tasks that are ready: the turn was cut.
    pub(crate) work: bool,
}

/// How long a turn may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Tasks that are ready, and Tokio's driver is not even asked.
    Errand,
    /// The loop has something to do: whatever is ready is done, and no more.
    None,
    /// The loop has a timer.
    Until(Instant),
    Endless,
}

/// Which of the two polls is inside the other.
#[derive(Debug)]
enum Nesting {
    /// Tokio watches a duplicate of the loop's own epoll descriptor.
    Loop(AsyncFd<OwnedFd>),
    /// The loop watches a duplicate of Tokio's; else it is reached by the bell.
    Tokio(OwnedFd, Arc<Bell>),
}

/// A runtime that is not turned yet, and how it is nested.
pub(crate) struct Nest {
    runtime: OwnRuntime,
    nesting: Nesting,
}

impl Nest {
    /// For a loop whose selector is Tokio.
    pub(crate) fn around(selector: OwnedFd) -> io::Result<Self> {
        let runtime = OwnRuntime::new()?;
        let entered = runtime.enter();
        let nesting = Nesting::Loop(ffi::watch(selector)?);
        drop(entered);
        Ok(Self { runtime, nesting })
    }

    /// For a loop that polls by itself.
    pub(crate) fn inside(bell: Arc<Bell>) -> Result<Self, NotFound> {
        let runtime = OwnRuntime::new()?;
        let poll = poll_descriptor::find(&runtime)?;
        Ok(Self { runtime, nesting: Nesting::Tokio(poll, bell) })
    }
}

/// Tokio, and what it watches for the loop.
#[derive(Debug)]
pub(crate) struct Fused {
    runtime: OwnRuntime,
    inbox: Arc<Inbox>,
    executor: Executor,
    nesting: Nesting,
    // Held by whoever turns the network, for as long.
    alarm: Mutex<Alarm>,
    // Turns since the driver was asked; counted by whoever turns the network.
    unasked: AtomicU32,
    // Set by the network's last task, read by whoever ends the runtime.
    ended: Arc<AtomicBool>,
    signal: Signal,
    presence: Arc<Presence>,
}

impl Fused {
    /// Begins to serve; clients are let in by the first turn.
    pub(crate) fn start(
        config: Config,
        listeners: Vec<Listener>,
        inbox: Arc<Inbox>,
        Nest { runtime, nesting }: Nest,
        presence: Arc<Presence>,
    ) -> io::Result<Arc<Self>> {
        let (signal, stage) = bridgehead_net::shutdown_channel();
        let executor = Executor::default();
        let app = Arc::new(ToLoop::new(Arc::clone(&inbox), &config));
        let entered = runtime.enter();
        let serving = bridgehead_net::serve(config, listeners, app, stage, &executor)?;
        let (over, ended) = (Arc::clone(&inbox), Arc::new(AtomicBool::new(false)));
        let end = Arc::clone(&ended);
        executor.spawn(async move {
            serving.await;
            end.store(true, Ordering::Release);
            over.push(Event::Finished);
        });
        drop(entered);
        let alarm = Mutex::new(Alarm::default());
        let unasked = AtomicU32::new(0);
        Ok(Arc::new(Self { runtime, inbox, executor, nesting, alarm, unasked, ended, signal, presence }))
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// What a loop that polls by itself has to watch.
    pub(crate) fn poll_descriptor(&self) -> Option<RawFd> {
        match &self.nesting {
            Nesting::Loop(_) => None,
            Nesting::Tokio(poll, _) => Some(poll.as_raw_fd()),
        }
    }

    /// The network's first deadline.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.executor.next_deadline()
    }

    /// Whether the loop's being away holds something up. That of a loop that polls by itself says nothing: it may be
    /// waiting, so there has to be something that it would have come for.
    pub(crate) fn is_held_up(&self) -> bool {
        match &self.nesting {
            Nesting::Loop(_) => true,
            Nesting::Tokio(poll, _) => {
                let late = self.next_deadline().is_some_and(|deadline| deadline <= Instant::now());
                late || self.executor.is_ready() || is_readable(poll)
            }
        }
    }

    /// The same where that says something.
    pub(crate) fn is_overdue(&self) -> bool {
        matches!(self.nesting, Nesting::Tokio(..)) && self.is_held_up()
    }

    /// Waits until a nested network has something to do, or `other` is signalled.
    pub(crate) fn wait_beside(&self, other: &Descriptor) {
        let Nesting::Tokio(descriptor, _) = &self.nesting else { return };
        let wait = self.next_deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        let mut either = [PollFd::new(descriptor, PollFlags::IN), PollFd::new(other, PollFlags::IN)];
        // Interrupted or refused: whoever waits looks again.
        let _ = poll(&mut either, wait.as_ref());
    }

    /// A loop that polls by itself hears that somebody stands in for it, once it is back.
    pub(crate) fn tell_loop(&self) {
        if let Nesting::Tokio(_, bell) = &self.nesting {
            bell.ring();
        }
    }

    /// A round of the network's tasks, for whoever stands in; it is polled again when there is more.
    pub(crate) fn poll_tasks(&self, cx: &mut Context<'_>) {
        let cut = self.executor.run(&mut Share::default()) == Round::Cut;
        if cut || self.executor.poll_work(cx).is_ready() || self.poll_alarm(None, cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }

    /// Tokio's driver was asked: the deadlines that have passed are over.
    pub(crate) fn fire(&self) {
        self.executor.fire();
    }

    /// Who stood in does not wait any more. The loop may have come and gone meanwhile, and be the one to wake.
    pub(crate) fn retire(&self, waker: &Waker) {
        self.executor.retire(waker);
    }

    /// Nobody turns the network for now: `waker` hears of what comes. True when something has come already.
    pub(crate) fn hand_to(&self, waker: &Waker) -> bool {
        let mut cx = Context::from_waker(waker);
        // Registered before looking: what is pushed in between is not missed.
        self.watch_inbox(&cx);
        self.executor.poll_work(&mut cx).is_ready() || self.inbox.is_filled()
    }

    /// Turns the network until there is something for Python, or patience ends. To be called without the GIL.
    pub(crate) fn turn(&self, patience: Patience) -> Due {
        self.presence.come();
        let due = self.take_turn(patience);
        self.presence.go();
        due
    }

    fn take_turn(&self, patience: Patience) -> Due {
        let (mut asked, mut share) = (false, Share::default());
        let unasked = self.unasked.fetch_add(1, Ordering::Relaxed);
        let due = self.runtime.block_on(unconstrained(poll_fn(|cx| {
            // Each poll but the first comes after Tokio has asked its driver.
            if asked {
                self.unasked.store(0, Ordering::Relaxed);
                self.executor.fire();
            } else {
                // Whoever was to be woken for a turn has it now.
                self.executor.begin_turn();
            }
            // Registered before looking: what is pushed in between is not missed.
            self.watch_inbox(cx);
            let round = self.executor.run(&mut share);
            let due = Due { work: round == Round::Cut, ..self.due(cx) };
            let found = due.descriptors || due.events;
            let overdue = unasked >= UNASKED && !asked && patience != Patience::Errand;
            if (found || due.work) && !overdue || patience.is_over(asked) {
                return Poll::Ready(due);
            }
            let waits = asked || !(found || patience == Patience::None);
            asked = true;
            let ready = !waits || due.work || self.executor.poll_work(cx).is_ready();
            if ready || self.poll_alarm(patience.end(), cx).is_ready() {
                cx.waker().wake_by_ref();
            } else {
                share = Share::default();
            }
            Poll::Pending
        })));
        self.executor.end_turn();
        due
    }

    fn poll_alarm(&self, end: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let first = [end, self.next_deadline()].into_iter().flatten().min();
        self.alarm.lock().unwrap_or_else(PoisonError::into_inner).poll(first, cx)
    }

    fn due(&self, cx: &mut Context<'_>) -> Due {
        Due { descriptors: self.has_descriptors(cx), events: self.inbox.is_filled(), work: false }
    }

    fn watch_inbox(&self, cx: &Context<'_>) {
        if let Wake::Turn(turn) = self.inbox.wake() {
            turn.wait(cx.waker());
        }
    }

    /// Tokio's readiness is of edges, the selector's of levels: it is cleared only after a look found nothing.
    fn has_descriptors(&self, cx: &mut Context<'_>) -> bool {
        let Nesting::Loop(selector) = &self.nesting else { return false };
        loop {
            match selector.poll_read_ready(cx) {
                Poll::Pending => return false,
                Poll::Ready(Ok(mut ready)) => {
                    if is_readable(selector.get_ref()) {
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

impl Patience {
    fn end(self) -> Option<Instant> {
        match self {
            Self::Until(end) => Some(end),
            Self::Errand | Self::None | Self::Endless => None,
        }
    }

    /// Whether there is none left, once tasks had their round.
    fn is_over(self, asked: bool) -> bool {
        match self {
            Self::Errand => true,
            Self::None => asked,
            Self::Until(end) => asked && Instant::now() >= end,
            Self::Endless => false,
        }
    }
}

/// Whether a read would not wait; an error counts, as reading tells of it.
pub(crate) fn is_readable(descriptor: &impl AsFd) -> bool {
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

impl runtime::Runtime for FusedWorker {
    fn handle(&self) -> RuntimeHandle {
        let tokio = self.fused.runtime.handle().clone();
        RuntimeHandle { executor: self.fused.executor.clone(), tokio }
    }

    fn advance(&self, stage: Stage) {
        self.fused.signal.advance(stage);
    }

    fn join(self: Box<Self>) -> thread::Result<()> {
        let Self { fused, standby } = *self;
        standby.stop()?;
        fused.signal.advance(Stage::Aborting);
        let until = Instant::now() + LAST_TURN;
        fused.runtime.block_on(poll_fn(|cx| {
            // Connections end at their next poll; what does not is dropped with the runtime.
            fused.fire();
            fused.poll_tasks(cx);
            if fused.ended.load(Ordering::Acquire) || Instant::now() >= until {
                return Poll::Ready(());
            }
            if fused.poll_alarm(Some(until), cx).is_ready() {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        }));
        fused.executor.abandon();
        Ok(())
    }
}
