//! What the loop's thread and the standby know of each other: who is there, who is asked back, who sleeps.
//!
//! Not what the standby does meanwhile (`standby.rs`), and no runtime.
//!
//! Two flags are said before the other side's is looked at, on both sides: the loop counts its move and then looks whether
//! somebody sleeps or stands in, the standby says so and then looks at the moves. It looks by writing them as they are
//! ([`Presence::moves`]), so that of two such looks one always sees the other.
//!
//! Invariant: whoever moves, keeps something back or rouses is seen by a standby before it sleeps, or wakes it; and one that
//! stands in was told that the loop is back, or sees it before it begins.

use std::io;
use std::sync::{Arc, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Duration;

#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard};

use bridgehead_net::Kept;
#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};

use crate::fused::Fused;
use crate::pace::Pace;
use crate::wake::Descriptor;

/// How long the loop may be away before what it owes goes on without it.
pub(crate) const TICK: Duration = Duration::from_millis(5);

/// Ticks without anything to do before the standby sleeps.
pub(crate) const CALM: u32 = 4;

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

/// What is asked of the standby.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// The loop is there and wants the network back.
    pub(crate) back: bool,
    /// The worker ends.
    pub(crate) stop: bool,
    pub(crate) standby: Option<Waker>,
    /// Kept back since the last tick.
    young: Vec<Kept>,
    /// Kept back before it.
    old: Vec<Kept>,
}

impl Calls {
    /// A tick is over: what has been kept back for longer than that.
    pub(crate) fn overdue(&mut self) -> Vec<Kept> {
        let young = std::mem::take(&mut self.young);
        std::mem::replace(&mut self.old, young)
    }
}

/// The loop's side.
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

    /// The worker ends.
    pub(crate) fn stop(&self) {
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
}

/// The standby's side.
impl Presence {
    pub(crate) fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often the loop has moved; whoever moves after this sees what was said before it.
    pub(crate) fn moves(&self) -> u64 {
        self.moves.fetch_add(0, Ordering::SeqCst)
    }

    /// Somebody is to turn the network in the loop's place. False if it has moved since it was seen last.
    pub(crate) fn stands_in(&self, seen: u64) -> bool {
        self.standing_in.store(true, Ordering::SeqCst);
        self.moves() == seen
    }

    /// Nobody does any more.
    pub(crate) fn stands_back(&self) {
        self.standing_in.store(false, Ordering::SeqCst);
        self.calls().back = false;
    }

    /// Waits for a tick, or sleeps when it is calm and the loop is where it was `seen`. Gives what has been kept back for
    /// too long, `None` at the end.
    pub(crate) fn tick(&self, seen: u64, calm: u32, fused: Option<&Fused>) -> Option<Vec<Kept>> {
        let mut calls = self.calls();
        if calm >= CALM && calls.young.is_empty() && calls.old.is_empty() {
            self.asleep.store(true, Ordering::SeqCst);
            // Who came between the last look and this has roused nobody.
            if self.moves() == seen && !fused.is_some_and(Fused::is_overdue) {
                calls = match (&self.rouser, fused) {
                    (Some(rouser), Some(fused)) => self.doze(calls, rouser, fused),
                    _ => self.sleep(calls),
                };
            }
            self.asleep.store(false, Ordering::SeqCst);
        }
        if !calls.stop {
            calls = self.wait_a_tick(calls);
        }
        if calls.stop { None } else { Some(calls.overdue()) }
    }

    #[cfg(not(loom))]
    fn wait_a_tick<'a>(&'a self, calls: MutexGuard<'a, Calls>) -> MutexGuard<'a, Calls> {
        self.woken.wait_timeout(calls, TICK).unwrap_or_else(PoisonError::into_inner).0
    }

    /// loom has no clock: others have their turn.
    #[cfg(loom)]
    fn wait_a_tick<'a>(&'a self, calls: MutexGuard<'a, Calls>) -> MutexGuard<'a, Calls> {
        drop(calls);
        loom::thread::yield_now();
        self.calls()
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
