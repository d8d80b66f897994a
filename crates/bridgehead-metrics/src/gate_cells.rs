//! A gate's part of a sheet, for who counts there.
//!
//! Not what is counted (`gates`).

use std::time::Duration;

use crate::gates::{self, GateGauge, GateOutcome, Place};
use crate::sheet::Sheet;

/// Where the gates of one name are counted. Clones are the same.
#[derive(Clone, Debug)]
pub struct GateCells {
    sheet: Sheet,
    /// Among the words of gates.
    start: usize,
}

impl Sheet {
    /// Of the gates of this name; of all that find no room, if it does not. To be asked by one thread at a time.
    #[must_use]
    pub fn gate(&self, name: &str) -> GateCells {
        GateCells { start: gates::find(self.gates(), name), sheet: self.clone() }
    }
}

impl GateCells {
    /// So many more.
    pub fn up(&self, gauge: GateGauge, by: usize) {
        self.place().up(gauge, by as u64);
    }

    /// So many less.
    pub fn down(&self, gauge: GateGauge, by: usize) {
        self.place().down(gauge, by as u64);
    }

    /// This became of one.
    pub fn count(&self, outcome: GateOutcome) {
        self.place().count(outcome, 1);
    }

    /// One has waited for so long.
    pub fn wait(&self, time: Duration) {
        self.place().wait(time);
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place(self.sheet.gates().get(self.start..self.start + gates::EACH).unwrap_or_default())
    }
}
