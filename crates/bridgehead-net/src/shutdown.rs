//! Ask all to finish, wait for the last.
//!
//! Holds no deadline itself: whoever moves the [`Stage`] on decides when patience ends.
//!
//! Invariant: a stage only ever moves forward, and `Aborting` ends every connection at its next poll.

use tokio::sync::{mpsc, watch};

/// How far a worker's end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Requests are accepted.
    Serving,
    /// So they are still, while word of the end goes round; each answer closes its connection.
    LastCall,
    /// What waits in the backlog is answered, idle connections are closed, running requests finish.
    Draining,
    /// Nothing is waited for.
    Aborting,
}

/// Moves the stage on; owned by whoever runs the worker.
#[derive(Debug)]
pub struct Signal(watch::Sender<Stage>);

impl Signal {
    /// Moves on to `stage`, unless it is already there or further.
    pub fn advance(&self, stage: Stage) {
        self.0.send_if_modified(|current| {
            let forward = stage > *current;
            if forward {
                *current = stage;
            }
            forward
        });
    }
}

/// Sees the stage; every task of the network holds one, and the last one gone ends the wait.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    stage: watch::Receiver<Stage>,
    _alive: mpsc::Sender<()>,
}

/// Resolves when every [`Watch`] is gone.
#[derive(Debug)]
pub(crate) struct LastOne(mpsc::Receiver<()>);

/// A signal, and what sees it.
#[must_use]
pub fn channel() -> (Signal, watch::Receiver<Stage>) {
    let (sender, receiver) = watch::channel(Stage::Serving);
    (Signal(sender), receiver)
}

/// The watch that tasks clone, and the end of all its clones.
pub(crate) fn watch(stage: watch::Receiver<Stage>) -> (Watch, LastOne) {
    let (alive, gone) = mpsc::channel(1);
    (Watch { stage, _alive: alive }, LastOne(gone))
}

impl Watch {
    /// Waits until the worker is at `stage` or further, and gives where it is. A signal that was dropped counts as
    /// aborting.
    pub(crate) async fn reached(&mut self, stage: Stage) -> Stage {
        // An error means that the signal's owner is gone: the worker is over.
        self.stage.wait_for(|current| *current >= stage).await.map_or(Stage::Aborting, |reached| *reached)
    }

    /// Whether the worker is there already.
    pub(crate) fn is_past(&self, stage: Stage) -> bool {
        *self.stage.borrow() >= stage
    }
}

/// How far a connection has heard of its worker's draining.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drain {
    Unasked,
    /// Its next answer is its last.
    Warned,
    /// It has a moment for what is on its way.
    Asked,
    /// hyper knows.
    Begun,
}

impl Drain {
    /// The stage that is waited for.
    pub(crate) fn next_stage(self) -> Stage {
        match self {
            Self::Unasked => Stage::LastCall,
            Self::Warned => Stage::Draining,
            Self::Asked | Self::Begun => Stage::Aborting,
        }
    }
}

impl LastOne {
    pub(crate) async fn gone(mut self) {
        // Nothing is ever sent: `None` comes when the last sender was dropped.
        let _ = self.0.recv().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_never_moves_back() {
        let (signal, seen) = channel();
        signal.advance(Stage::Aborting);
        signal.advance(Stage::Draining);
        assert_eq!(*seen.borrow(), Stage::Aborting);
    }

    #[tokio::test]
    async fn the_last_watch_gone_ends_the_wait() {
        let (_signal, stage) = channel();
        let (watch, last) = watch(stage);
        let other = watch.clone();
        drop(watch);
        let wait = tokio::spawn(last.gone());
        tokio::task::yield_now().await;
        assert!(!wait.is_finished());
        drop(other);
        wait.await.expect("the wait ends");
    }

    #[tokio::test]
    async fn a_lost_signal_counts_as_the_end() {
        let (signal, stage) = channel();
        let (mut watch, _last) = watch(stage);
        drop(signal);
        assert_eq!(watch.reached(Stage::Draining).await, Stage::Aborting);
    }
}
