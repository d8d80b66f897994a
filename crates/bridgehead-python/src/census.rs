//! Counts what only Python knows of a loop, on a thread that may wait for the GIL: how long it does is a figure as well.
//!
//! Not when (`health.rs`), and not what is counted (`diagnostics.py` and `slow_steps.py` do, called from here).
//!
//! Invariant: whoever sends an errand never waits for the GIL, nor for this thread.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bridgehead_metrics::{Gauge, Sheet, Timing};
use pyo3::prelude::*;

use crate::ffi;
use crate::health::Pace;

/// Errands that may wait: one that is told of, behind one that is being done.
const ERRANDS: usize = 2;

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Errand {
    /// Count.
    Look,
    /// A step has held the loop for so long already.
    Slow(Duration),
}

/// Whom it calls.
pub(crate) struct Inquiry {
    /// Gives how many tasks are not done, how many calls wait for the default executor, its threads, and how many it may have.
    pub(crate) look: Py<PyAny>,
    /// Is told for how many seconds a step holds the loop, for how many of these the GIL was waited for, and whether
    /// it still does.
    pub(crate) slow: Py<PyAny>,
}

/// The thread.
pub(crate) struct Census(JoinHandle<()>);

impl Census {
    /// It ends when the sender is dropped.
    pub(crate) fn start(
        pace: Arc<Pace>,
        sheet: Sheet,
        inquiry: Inquiry,
    ) -> io::Result<(Self, SyncSender<Errand>)> {
        let (sender, errands) = sync_channel(ERRANDS);
        let thread = thread::Builder::new().name("bridgehead-census".to_owned()).spawn(move || {
            ffi::block_signals();
            run(&errands, &pace, &sheet, &inquiry);
        })?;
        Ok((Self(thread), sender))
    }

    /// To be called without the GIL, once the sender is gone.
    pub(crate) fn join(self) -> thread::Result<()> {
        self.0.join()
    }
}

fn run(errands: &Receiver<Errand>, pace: &Pace, sheet: &Sheet, inquiry: &Inquiry) {
    for errand in errands {
        let began = Instant::now();
        Python::attach(|py| {
            let waited = began.elapsed();
            note(sheet, waited);
            let done = match errand {
                Errand::Look => look(py, sheet, inquiry),
                Errand::Slow(held) => {
                    let seconds = (held + waited).as_secs_f64();
                    inquiry.slow.call1(py, (seconds, waited.as_secs_f64(), pace.is_held())).map(drop)
                }
            };
            if let Err(error) = done {
                error.write_unraisable(py, None);
            }
        });
    }
}

fn note(sheet: &Sheet, waited: Duration) {
    let micros = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
    sheet.record(Timing::GilWait, waited);
    sheet.set(Gauge::GilWait, micros);
    sheet.raise(Gauge::GilWaitLongest, micros);
}

fn look(py: Python<'_>, sheet: &Sheet, inquiry: &Inquiry) -> PyResult<()> {
    let (tasks, queue, threads, most): (u64, u64, u64, u64) = inquiry.look.call0(py)?.extract(py)?;
    sheet.set(Gauge::PendingTasks, tasks);
    sheet.set(Gauge::ExecutorQueue, queue);
    sheet.set(Gauge::ExecutorThreads, threads);
    sheet.set(Gauge::ExecutorMost, most);
    Ok(())
}
