//! The bell, and what the loop's thread and the standby know of each other.

use std::sync::Arc as Shared;
use std::task::{Wake, Waker};

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use crate::Kept;
use crate::bell::Bell;
use crate::fused::Fused;
use crate::presence::{CALM, Presence};

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Somebody rings for something that nothing but the bell says.
fn ring(bell: &Shared<Bell>, came: &Arc<AtomicUsize>) -> thread::JoinHandle<()> {
    let (bell, came) = (Shared::clone(bell), Arc::clone(came));
    thread::spawn(move || {
        came.fetch_add(1, Ordering::Relaxed);
        bell.ring();
    })
}

#[test]
fn each_ring_is_followed_by_a_look_and_the_bell_is_quiet_then() {
    for ringers in 1..=2 {
        check(move || {
            let bell = Shared::new(Bell::new(Shared::new(Presence::default())).expect("a descriptor"));
            let came = Arc::new(AtomicUsize::new(0));
            let threads: Vec<_> = (0..ringers).map(|_| ring(&bell, &came)).collect();
            loop {
                bell.quiet();
                if came.load(Ordering::Relaxed) == ringers {
                    break;
                }
                bell.descriptor().wait();
                // Whoever has written, and not said so yet, has a turn meanwhile.
                thread::yield_now();
            }
            threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
            // Another turn, should it have been rung for: after that the loop can sleep.
            bell.quiet();
            assert!(bell.descriptor().is_quiet(), "the loop is woken for ever, and for nothing");
        });
    }
}

#[test]
fn a_loop_that_goes_is_seen_by_a_standby_that_was_about_to_sleep() {
    check(|| {
        let presence = Arc::new(Presence::default());
        let seen = presence.moves();
        let gone = Arc::clone(&presence);
        let the_loop = thread::spawn(move || gone.go());
        while presence.moves() == seen {
            assert!(presence.tick(seen, CALM, None).is_some());
        }
        the_loop.join().expect("it ends");
    });
}

#[test]
fn what_is_kept_back_is_found_by_a_standby_that_was_about_to_sleep() {
    check(|| {
        let presence = Arc::new(Presence::default());
        let keeper = Arc::clone(&presence);
        let the_loop = thread::spawn(move || keeper.keep(Kept));
        while presence.tick(0, CALM, None).expect("nobody stops it").is_empty() {}
        the_loop.join().expect("it ends");
    });
}

#[test]
fn a_task_that_is_woken_beside_a_blocked_loop_is_found_by_a_standby_that_was_about_to_doze() {
    check(|| {
        let presence = Shared::new(Presence::beside_network().expect("a descriptor"));
        let bell = Shared::new(Bell::new(Shared::clone(&presence)).expect("a descriptor"));
        let fused = Arc::new(Fused(Mutex::new(false)));
        let network = Arc::clone(&fused);
        let other = thread::spawn(move || {
            network.push();
            bell.ring();
        });
        while !fused.is_overdue() {
            assert!(presence.tick(0, CALM, Some(&fused)).is_some());
        }
        other.join().expect("it ends");
    });
}

#[test]
fn a_standby_that_sleeps_or_dozes_ends_when_it_is_told_to() {
    for nested in [false, true] {
        check(move || {
            let presence =
                if nested { Presence::beside_network().expect("a descriptor") } else { Presence::default() };
            let presence = Arc::new(presence);
            let fused = Fused(Mutex::new(false));
            let ending = Arc::clone(&presence);
            let worker = thread::spawn(move || ending.stop());
            while presence.tick(0, CALM, nested.then_some(&fused)).is_some() {}
            worker.join().expect("it ends");
        });
    }
}

/// Whoever waits in the runtime.
struct Waiting {
    woken: Mutex<bool>,
    came: Condvar,
}

impl Wake for Waiting {
    fn wake(self: Shared<Self>) {
        *self.woken.lock().expect("no thread panics") = true;
        self.came.notify_one();
    }
}

/// Turns the network until it is asked back, as `standby.rs` does.
fn stand_in(presence: &Presence, runtime: &Mutex<()>, seen: u64) {
    if presence.stands_in(seen) {
        let turning = runtime.lock().expect("no thread panics");
        let waiting = Shared::new(Waiting { woken: Mutex::new(false), came: Condvar::new() });
        loop {
            let mut calls = presence.calls();
            if calls.back {
                break;
            }
            calls.standby = Some(Waker::from(Shared::clone(&waiting)));
            drop(calls);
            let mut woken = waiting.woken.lock().expect("no thread panics");
            while !std::mem::take(&mut *woken) {
                woken = waiting.came.wait(woken).expect("no thread panics");
            }
        }
        drop(turning);
    }
    presence.stands_back();
}

#[test]
fn a_loop_that_comes_back_is_given_the_network() {
    check(|| {
        let (presence, runtime) = (Arc::new(Presence::default()), Arc::new(Mutex::new(())));
        let seen = presence.moves();
        let (coming, turned) = (Arc::clone(&presence), Arc::clone(&runtime));
        let the_loop = thread::spawn(move || {
            coming.come();
            drop(turned.lock().expect("no thread panics"));
        });
        stand_in(&presence, &runtime, seen);
        the_loop.join().expect("it ends");
    });
}
