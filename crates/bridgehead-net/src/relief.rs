//! Lets clients in at another worker's socket, while nobody else does.
//!
//! Not when that is (`rota`). The socket is known to Tokio for as long only: a client of a slot that is kept wakes its
//! own worker, and no other.

use std::future::poll_fn;
use std::sync::Arc;

use crate::accept::{self, PAUSE, Shortage, Worker};
use crate::listen::{Listener, Open};
use crate::rota::Turn;
use crate::shutdown::Stage;

/// What ended a turn.
enum Relieved {
    /// Whoever keeps the slot is back.
    Over,
    /// The sockets are somebody else's, or the worker drains.
    ForGood,
}

/// Stands in at this listener whenever it is this worker's turn.
pub(crate) async fn relieve(listener: Listener, mut turn: Turn, worker: Arc<Worker>) {
    let _claim = listener.claim();
    let mut watch = worker.watch.clone();
    let mut decided = turn.clone();
    loop {
        tokio::select! {
            biased;
            () = turn.comes() => {}
            _ = watch.reached(Stage::Draining) => {
                // Whoever keeps the slot may not come to itself before it is killed.
                if worker.has_lost_its_parent().await
                    && let Ok(open) = listener.try_clone().and_then(Listener::open)
                {
                    accept::answer_the_last(&open, &mut Shortage::new(&worker)).await;
                }
                return;
            }
            () = decided.is_given_up() => return,
        }
        let silence = worker.config.bounds.download.gap;
        let Ok(open) = listener.try_clone().and_then(Listener::open) else {
            // For want of a descriptor: others stand in as well.
            worker.executor.sleep(PAUSE).await;
            continue;
        };
        if let Relieved::ForGood = stand_in(&open.bears_silence_for(silence), &mut turn, &worker).await {
            return;
        }
    }
}

async fn stand_in(listener: &Open, turn: &mut Turn, worker: &Arc<Worker>) -> Relieved {
    let mut watch = worker.watch.clone();
    let mut shortage = Shortage::new(worker);
    let mut over = turn.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            () = poll_fn(|cx| listener.poll_recalled(cx)) => {
                if worker.has_lost_its_parent().await {
                    break;
                }
                return Relieved::ForGood;
            }
            _ = watch.reached(Stage::Draining) => break,
            () = over.goes() => return Relieved::Over,
            accepted = accept::next(listener, turn, &mut shortage) => accepted,
        };
        shortage.take_in(accepted, listener).await;
    }
    // Nobody else may be there for them.
    accept::answer_the_last(listener, &mut shortage).await;
    Relieved::ForGood
}
