//! Which of its sockets a worker lets clients in at, among several workers who share them.
//!
//! Each worker keeps one slot, and stands in at those that nobody keeps: of a worker that is dead, stalled, stopped or
//! not ready, so that no client waits for one that does not come. Its network says for a moment at a time that a slot is
//! kept, as long as its own loop gives signs of life; what a process does not do any more lapses by itself. All of this
//! goes on while Python blocks.
//!
//! Invariant: at a slot that is not kept, every worker whose loop lives lets clients in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use crate::accept::Worker;
use crate::app::App;
use crate::board::Board;
use crate::shutdown::Stage;

/// Between two looks: at the loop, and at what the others keep.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// For so long a slot is kept by what was said last: several looks, since a busy machine makes them late.
const KEPT: Duration = Duration::from_millis(300);

/// After so many looks without a sign of life the loop is stalled.
const STALLED: u32 = 3;

/// What a worker has to know of the others.
#[derive(Clone, Copy, Debug)]
pub struct Rota {
    /// Where all of them tell.
    pub board: Board,
    /// Where this one lets clients in.
    pub slot: usize,
    /// Where it tells how it fares.
    pub place: usize,
}

/// A question whether the loop lives; whoever runs there answers it.
#[derive(Debug)]
pub struct Beat(Arc<AtomicBool>);

impl Beat {
    /// It does.
    pub fn answer(self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whether clients are let in at one listener, as its task sees it.
#[derive(Clone, Debug)]
pub(crate) struct Turn(Option<watch::Receiver<bool>>);

impl Turn {
    /// Of a worker that shares with nobody.
    pub(crate) fn always() -> Self {
        Self(None)
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.0.as_ref().is_none_or(|turn| *turn.borrow())
    }

    /// Waits until it is this worker's. Endless once nobody decides that any more.
    pub(crate) async fn comes(&mut self) {
        self.becomes(true).await;
    }

    /// Waits until it is not.
    pub(crate) async fn goes(&mut self) {
        self.becomes(false).await;
    }

    /// Waits until nobody decides that any more: this worker is to let nobody in again.
    pub(crate) async fn is_given_up(&mut self) {
        match &mut self.0 {
            Some(turn) => while turn.changed().await.is_ok() {},
            None => std::future::pending().await,
        }
    }

    async fn becomes(&mut self, ours: bool) {
        let Some(turn) = &mut self.0 else {
            if !ours {
                std::future::pending::<()>().await;
            }
            return;
        };
        if turn.wait_for(|turn| *turn == ours).await.is_err() && *turn.borrow() != ours {
            std::future::pending::<()>().await;
        }
    }
}

/// Decides for all listeners of a worker.
#[derive(Debug)]
pub(crate) struct Keeper {
    rota: Rota,
    /// Of the slot's own listeners.
    own: Vec<watch::Sender<bool>>,
    /// Of those where it may stand in, each with its slot.
    others: Vec<(usize, watch::Sender<bool>)>,
    life: Life,
}

impl Keeper {
    pub(crate) fn new(rota: Rota) -> Self {
        Self { rota, own: Vec::new(), others: Vec::new(), life: Life::default() }
    }

    /// For a listener of this slot, or of the worker's own.
    pub(crate) fn turn(&mut self, slot: Option<usize>) -> Turn {
        let (sender, turn) = watch::channel(slot.is_none());
        match slot {
            None => self.own.push(sender),
            Some(slot) => self.others.push((slot, sender)),
        }
        Turn(Some(turn))
    }

    /// Looks around until the worker drains, or is called back. Then it keeps its slot no longer than it has said.
    pub(crate) async fn run(mut self, worker: Arc<Worker>) {
        let mut watch = worker.watch.clone();
        loop {
            self.look(&worker);
            tokio::select! {
                biased;
                _ = watch.reached(Stage::Draining) => return,
                () = self.called_back() => break,
                () = worker.executor.sleep(LOOK) => {}
            }
        }
        self.others.iter().for_each(|(_, turn)| tell(turn, false));
    }

    /// Its own listeners end before the worker drains when whoever lent them wants them back.
    async fn called_back(&self) {
        match self.own.first() {
            Some(turn) => turn.closed().await,
            None => std::future::pending().await,
        }
    }

    fn look(&mut self, worker: &Worker) {
        let Rota { board, slot, place } = self.rota;
        let lives = self.life.look(&*worker.app);
        if let (Some(meters), true) = (&worker.config.meters, self.life.has_answered()) {
            meters.beats();
        }
        board.tell(place, LOOK * self.life.silent);
        if lives {
            board.keep(slot, KEPT);
        } else {
            board.give_up(slot);
        }
        self.own.iter().for_each(|turn| tell(turn, lives));
        self.others.iter().for_each(|(slot, turn)| tell(turn, lives && !board.is_kept(*slot)));
    }
}

fn tell(turn: &watch::Sender<bool>, ours: bool) {
    turn.send_if_modified(|turn| std::mem::replace(turn, ours) != ours);
}

/// Whether the loop lives. Counted in looks and not in time: a process that was stopped has not waited for anybody.
#[derive(Debug, Default)]
pub(crate) struct Life {
    asked: Option<Arc<AtomicBool>>,
    silent: u32,
}

impl Life {
    /// Whether it has answered since the look before.
    pub(crate) fn has_answered(&self) -> bool {
        self.silent == 0
    }

    pub(crate) fn look(&mut self, app: &dyn App) -> bool {
        match &self.asked {
            Some(answered) if !answered.load(Ordering::Relaxed) => {
                self.silent = self.silent.saturating_add(1);
            }
            _ => {
                self.silent = 0;
                let answered = Arc::new(AtomicBool::new(false));
                self.asked = Some(Arc::clone(&answered));
                app.show_life(Beat(answered));
            }
        }
        self.silent < STALLED
    }
}
