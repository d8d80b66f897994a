//! What a drain tells whoever looks after the loop: that it began, each event that was handled, and that it is over.
//!
//! The clock is read once for each event, with or without anybody who looks: the drain's share of the loop needs it.

use std::time::{Duration, Instant};

use pyo3::Python;

use crate::drain::Bridge;

/// A drain that runs.
pub(crate) struct Paced<'a> {
    bridge: &'a Bridge,
    began: Instant,
    /// How long it took until the last event was handled.
    before: Duration,
}

impl<'a> Paced<'a> {
    pub(crate) fn begin(bridge: &'a Bridge, py: Python<'_>) -> Self {
        bridge.longest.iter().for_each(|longest| longest.begin(py));
        let began = Instant::now();
        if let Some(pace) = &bridge.pace {
            pace.begin(began);
        }
        Self { bridge, began, before: Duration::ZERO }
    }

    /// An event was handled. Gives how long the drain has taken.
    pub(crate) fn step(&mut self, py: Python<'_>) -> Duration {
        let elapsed = self.began.elapsed();
        let step = elapsed.saturating_sub(self.before);
        if let Some(pace) = &self.bridge.pace {
            pace.step(step, self.began + elapsed);
        }
        self.bridge.longest.iter().for_each(|longest| longest.step(py, step));
        self.before = elapsed;
        elapsed
    }

    pub(crate) fn end(self, py: Python<'_>) {
        if let Some(pace) = &self.bridge.pace {
            pace.end(self.bridge.running(py));
        }
    }
}
