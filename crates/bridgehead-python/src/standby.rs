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
//! | keeps nothing back, and waits | sleeps, after a few ticks of it |
//! | comes and goes | ticks |
//! | has kept something back for a tick | has it leave |
//! | is away from a fused runtime for a tick | turns the network |
//! | the same, and polls by itself (`nested.rs`) | does so when something has waited for a tick |
//! | comes back | leaves the runtime, at its next poll |
//!
//! Invariant: the loop never waits for this thread longer than one poll of a network task.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::thread::{self, JoinHandle};

use bridgehead_net::Kept;
use tokio::task::coop::unconstrained;

use crate::ffi;
use crate::fused::Fused;
use crate::presence::{Presence, TICK};

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
    let mut seen = presence.moves();
    let mut calm = 0;
    let mut held_up = false;
    while let Some(overdue) = presence.tick(seen, calm, fused) {
        calm = if overdue.is_empty() { calm + 1 } else { 0 };
        overdue.iter().for_each(Kept::push_out);
        let moves = presence.moves();
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
    if presence.stands_in(seen) {
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
                    calls.overdue()
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
    presence.stands_back();
}
