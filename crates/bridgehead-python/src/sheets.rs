//! What a server counts, as Python sees it: memory by its descriptor, and a worker's part of it.
//!
//! Not the figures, which `bridgehead_metrics` has and the network writes while Python blocks.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::time::{SystemTime, UNIX_EPOCH};

use bridgehead_metrics::{Condition, Counter, End, Gauge, Start};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::ffi;
use crate::gate_tally::Showing;

/// One worker's figures.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Sheet(bridgehead_metrics::Sheet);

impl Sheet {
    pub(crate) fn words(&self) -> bridgehead_metrics::Sheet {
        self.0.clone()
    }
}

#[pymethods]
impl Sheet {
    /// For a process that shares its figures with nobody.
    #[new]
    fn new() -> Self {
        Self(bridgehead_metrics::Sheet::own())
    }

    /// How its loop fares; times are in microseconds.
    fn health(&self) -> BTreeMap<&'static str, u64> {
        let gauges = [
            ("loop_lag", Gauge::LoopLag),
            ("blocked_for", Gauge::BlockedFor),
            ("gil_wait", Gauge::GilWait),
            ("gil_wait_longest", Gauge::GilWaitLongest),
        ];
        let gauges = gauges.into_iter().map(|(name, gauge)| (name, self.0.gauge(gauge)));
        let others =
            [("longest_step", self.0.longest_step()), ("slow_steps", self.0.count(Counter::SlowSteps))];
        gauges.chain(others).collect()
    }

    /// Shows the gates of this process that have a name, until what is given is closed.
    fn show_gates(&self) -> ShownGates {
        ShownGates(Showing::begin(self.0.clone()))
    }

    /// Its worker is there, and has not come up yet.
    fn begin(&self) {
        self.0.set(Gauge::Process, std::process::id().into());
        self.0.set(Gauge::Condition, Condition::Starting as u64);
    }
}

/// That a sheet shows gates.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct ShownGates(Showing);

#[pymethods]
impl ShownGates {
    /// It shows nothing new.
    fn close(&self) {
        self.0.end();
    }
}

/// Its worker serves from now on.
pub(crate) fn serve(sheet: &bridgehead_metrics::Sheet) {
    sheet.set(Gauge::Process, std::process::id().into());
    sheet.set(Gauge::StartedAt, milliseconds());
    sheet.set(Gauge::Condition, Condition::Serving as u64);
}

/// Since 1970.
pub(crate) fn milliseconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or_default()
}

/// The figures of all workers of a server.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Sheets(bridgehead_metrics::Sheets);

impl Sheets {
    pub(crate) fn words(&self) -> bridgehead_metrics::Sheets {
        self.0.clone()
    }
}

#[pymethods]
impl Sheets {
    /// How long the file has to be, in bytes. What no worker writes to takes no memory.
    #[classattr]
    const SIZE: usize = bridgehead_metrics::Sheets::WORDS * size_of::<u64>();

    /// On a file that is so long.
    #[new]
    fn new(descriptor: RawFd) -> PyResult<Self> {
        let file = ffi::duplicate(descriptor)?;
        let words = ffi::share_words(&file, bridgehead_metrics::Sheets::WORDS)?;
        Ok(Self(bridgehead_metrics::Sheets::new(words)))
    }

    /// Of the worker at this place.
    fn at(&self, place: usize) -> Sheet {
        Sheet(self.0.at(place))
    }

    /// All workers are about to end, of which their loops may have yet to hear.
    fn last_call(&self) {
        self.0.last_call();
    }

    /// The worker at this place is gone: what it counted is kept, and its place is blank.
    fn give_up(&self, place: usize) {
        self.0.give_up(place, milliseconds());
    }

    /// A worker was started: `initial`, `died`, `stopped`, `reload`, `unresponsive`, `recycled`, `replaced`, `added`.
    fn count_start(&self, reason: &str) -> PyResult<()> {
        let start = Start::ALL.into_iter().find(|start| start.name() == reason);
        let start = start.ok_or_else(|| PyValueError::new_err(format!("no reason for a start: {reason}")))?;
        self.0.count_start(start);
        Ok(())
    }

    /// A worker has ended: `stopped`, `exited`, `killed`, `overdue`, `refused_to_start`.
    fn count_end(&self, reason: &str) -> PyResult<()> {
        let end = End::ALL.into_iter().find(|end| end.name() == reason);
        self.0
            .count_end(end.ok_or_else(|| PyValueError::new_err(format!("no reason for an end: {reason}")))?);
        Ok(())
    }
}
