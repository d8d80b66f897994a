//! The thread that stands by while the loop runs Python, so that a handler that blocks holds nobody but those who need
//! Python.
//!
//! It does two things, neither of which needs the GIL. Pieces of an answer that are kept back for more of them leave
//! after a tick at the latest. And in the fused runtime it turns the network: Tokio's current-thread runtime may be
//! turned by any one thread at a time, so when the loop has not come back for a tick, this thread takes over, and gives
//! it back as soon as the loop asks.
//!
//! | the loop | this thread |
//! |---|---|
//! | keeps nothing back, and waits | sleeps, after [`CALM`] ticks of it |
//! | comes and goes | ticks |
//! | has kept something back for a tick | has it leave |
//! | is away from a fused runtime for a tick | turns the network |
//! | the same, and polls by itself (`nested.rs`) | does so when something has waited for a tick |
//! | comes back | leaves the runtime, at its next poll |
//!
//! Invariant: the loop never waits for this thread longer than one poll of a network task.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bridgehead_net::Kept;
use tokio::task::coop::unconstrained;

use crate::ffi;
use crate::fused::Fused;
use crate::health::Pace;
use crate::wake::Descriptor;

/// How long the loop may be away before what it owes goes on without it.
const TICK: Duration = Duration::from_millis(5);

/// Ticks without anything to do before this thread sleeps.
const CALM: u32 = 4;

/// What the loop's thread and the standby know of each other.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    // The loop's thread counts each coming to a fused runtime and each going: odd while it is in a turn.
    moves: AtomicU64,
    // Set by the standby around its turns, read by the loop's thread as it comes.
    standing_in: AtomicBool,
    // Set by the standby before it sleeps, by the loop's thread as it goes or keeps something back.
    asleep: AtomicBool,
    // Between the two, off the path of a plain answer.
    calls: Mutex<Calls>,
    woken: Condvar,
    /// Wakes a sleeper that watches the network beside.
    rouser: Option<Descriptor>,
    /// Who looks after the loop, and is told with the standby. Set once, before the loop turns the network.
    pace: OnceLock<Arc<Pace>>,
}

#[derive(Debug, Default)]
struct Calls {
    /// The loop is there and wants the network back.
    back: bool,
    /// The worker ends.
    stop: bool,
    standby: Option<Waker>,
    /// Kept back since the last tick.
    young: Vec<Kept>,
    /// Kept back before it.
    old: Vec<Kept>,
}

impl Presence {
    /// For a loop that polls by itself: it may be blocked without ever having come.
    pub(crate) fn beside_network() -> io::Result<Self> {
        Ok(Self { rouser: Some(Descriptor::new()?), ..Self::default() })
    }

    /// The loop's thread comes to turn the network.
    pub(crate) fn come(&self) {
        self.moves.fetch_add(1, Ordering::SeqCst);
        if self.standing_in.load(Ordering::SeqCst) {
            self.call(|calls| calls.back = true);
        }
    }

    /// The loop's thread goes to run Python.
    pub(crate) fn go(&self) {
        self.moves.fetch_add(1, Ordering::SeqCst);
        self.rouse();
    }

    /// Pieces of an answer wait for more of them, which may be long in coming.
    pub(crate) fn keep(&self, kept: Kept) {
        self.calls().young.push(kept);
        self.rouse();
    }

    /// This one is roused as well.
    pub(crate) fn rouses(&self, pace: Arc<Pace>) {
        // There is one worker for each.
        let _ = self.pace.set(pace);
    }

    /// There is something to look at: no sleep.
    pub(crate) fn rouse(&self) {
        if self.asleep.load(Ordering::SeqCst) {
            // Through the lock: the sleeper has looked before it, or looks after it.
            let calls = self.calls();
            self.asleep.store(false, Ordering::SeqCst);
            drop(calls);
            self.interrupt();
            if let Some(pace) = self.pace.get() {
                pace.rouse();
            }
        }
    }

    fn stop(&self) {
        self.call(|calls| calls.stop = true);
        self.interrupt();
    }

    fn interrupt(&self) {
        self.woken.notify_all();
        if let Some(rouser) = &self.rouser {
            rouser.signal();
        }
    }

    fn call(&self, change: impl FnOnce(&mut Calls)) {
        let mut calls = self.calls();
        change(&mut calls);
        let standby = calls.standby.take();
        drop(calls);
        if let Some(standby) = standby {
            standby.wake();
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a tick, or sleeps when it is calm. Gives what has been kept back for too long, `None` at the end.
    fn tick(&self, calm: u32, fused: Option<&Fused>) -> Option<Vec<Kept>> {
        let mut calls = self.calls();
        if calm >= CALM && calls.young.is_empty() && calls.old.is_empty() {
            self.asleep.store(true, Ordering::SeqCst);
            calls = match (&self.rouser, fused) {
                (Some(rouser), Some(fused)) => self.doze(calls, rouser, fused),
                _ => self.sleep(calls),
            };
            self.asleep.store(false, Ordering::SeqCst);
        }
        if !calls.stop {
            let waited = self.woken.wait_timeout(calls, TICK);
            calls = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if calls.stop {
            return None;
        }
        let young = std::mem::take(&mut calls.young);
        Some(std::mem::replace(&mut calls.old, young))
    }

    fn sleep<'a>(&self, mut calls: MutexGuard<'a, Calls>) -> MutexGuard<'a, Calls> {
        while self.asleep.load(Ordering::SeqCst) && !calls.stop {
            calls = self.woken.wait(calls).unwrap_or_else(PoisonError::into_inner);
        }
        calls
    }

    /// Sleeps until the network has something as well, which the loop may be too blocked to come for.
    fn doze<'a>(
        &'a self,
        calls: MutexGuard<'a, Calls>,
        rouser: &Descriptor,
        fused: &Fused,
    ) -> MutexGuard<'a, Calls> {
        let stop = calls.stop;
        drop(calls);
        if !stop {
            fused.wait_beside(rouser);
            rouser.clear();
        }
        self.calls()
    }
}

/// The thread.
pub(crate) struct Standby {
    presence: Arc<Presence>,
    thread: JoinHandle<()>,
}

impl Standby {
    /// Stands by a loop; one that turns a fused runtime is stood in for.
    pub(crate) fn start(presence: Arc<Presence>, fused: Option<Arc<Fused>>) -> io::Result<Self> {
        let watched = Arc::clone(&presence);
        let thread = thread::Builder::new().name("bridgehead-standby".to_owned()).spawn(move || {
            ffi::block_signals();
            watch(&watched, fused.as_deref());
        })?;
        Ok(Self { presence, thread })
    }

    pub(crate) fn stop(self) -> thread::Result<()> {
        self.presence.stop();
        self.thread.join()
    }
}

fn watch(presence: &Presence, fused: Option<&Fused>) {
    let mut seen = presence.moves.load(Ordering::SeqCst);
    let mut calm = 0;
    let mut held_up = false;
    while let Some(overdue) = presence.tick(calm, fused) {
        calm = if overdue.is_empty() { calm + 1 } else { 0 };
        overdue.iter().for_each(Kept::push_out);
        let moves = presence.moves.load(Ordering::SeqCst);
        if moves != seen {
            (seen, calm, held_up) = (moves, 0, false);
        } else if let Some(fused) = fused
            && moves.is_multiple_of(2)
            && fused.is_held_up()
        {
            calm = 0;
            // What came a moment ago is no reason yet.
            if std::mem::replace(&mut held_up, true) || fused.poll_descriptor().is_none() {
                stand_in(fused, presence, moves);
                held_up = false;
            }
        } else {
            held_up = false;
        }
    }
}

/// Turns the network until the loop comes back. Not begun if it has come since it was last looked for.
fn stand_in(fused: &Fused, presence: &Presence, seen: u64) {
    presence.standing_in.store(true, Ordering::SeqCst);
    if presence.moves.load(Ordering::SeqCst) == seen {
        fused.tell_loop();
        let mut until = tokio::time::Instant::now() + TICK;
        fused.runtime().block_on(unconstrained(async {
            let mut tick = std::pin::pin!(tokio::time::sleep_until(until));
            let mut asked = false;
            let mut waiting: Option<Waker> = None;
            poll_fn(|cx| {
                if std::mem::replace(&mut asked, true) {
                    fused.fire();
                }
                let mut calls = presence.calls();
                if calls.back || calls.stop {
                    // Not just whoever waits: without the runtime, too, Tokio polls this.
                    if let Some(waker) = &waiting {
                        fused.retire(waker);
                    }
                    return Poll::Ready(());
                }
                calls.standby = Some(cx.waker().clone());
                waiting = Some(cx.waker().clone());
                // Whatever is kept back while the loop is away is overdue at the next tick.
                let overdue = if tick.as_mut().poll(cx).is_ready() {
                    until += TICK;
                    tick.as_mut().reset(until);
                    cx.waker().wake_by_ref();
                    let young = std::mem::take(&mut calls.young);
                    std::mem::replace(&mut calls.old, young)
                } else {
                    Vec::new()
                };
                drop(calls);
                overdue.iter().for_each(Kept::push_out);
                fused.poll_tasks(cx);
                Poll::Pending
            })
            .await;
        }));
    }
    presence.standing_in.store(false, Ordering::SeqCst);
    presence.calls().back = false;
}
