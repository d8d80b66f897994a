//! Counts what only Python knows of a loop, on a thread that may wait for the GIL: how long it does is a figure as well.
//!
//! Not when (`health.rs`), and not what is counted (`diagnostics.py` and `slow_steps.py` do, called from here).
//!
//! Invariant: whoever sends an errand never waits for the GIL, nor for this thread.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{io, iter};

use bridgehead_metrics::{BlockingPlace, Cause, Gauge, Sheet, Timing};
use pyo3::prelude::*;

use crate::ffi;
use crate::health::{Pace, Step};
use crate::suspicion::{Evidence, GilWait, Suspect};

/// Errands that may wait: one that is told of, behind one that is being done.
const ERRANDS: usize = 2;

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Errand {
    /// Count.
    Look,
    /// A step holds the loop since then; this was seen of it, unless it is over.
    Slow { since: Instant, step: Step, evidence: Option<Evidence> },
}

/// Whom it calls.
pub(crate) struct Inquiry {
    /// Gives how many tasks are not done, how many calls wait for the default executor, its threads, and how many it may have.
    pub(crate) look: Py<PyAny>,
    /// Is told for how many seconds a step holds the loop, by what, in words, and whether it still does. Gives its place and
    /// the request for which it runs.
    pub(crate) slow: Py<PyAny>,
    /// Whose steps they are.
    pub(crate) suspect: Suspect,
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
        pace.asks_for_the_gil();
        let began = Instant::now();
        Python::attach(|py| {
            pace.has_the_gil();
            let wait = GilWait { time: began.elapsed(), ran_on: pace.ran_on(inquiry.suspect) };
            note(sheet, wait.time);
            // Who kept the GIL has let go of it just now: what is to be said of that step is said while it still runs.
            for errand in iter::once(errand).chain(errands.try_iter()) {
                let done = match errand {
                    Errand::Look => look(py, sheet, inquiry),
                    Errand::Slow { since, step, evidence } => {
                        let runs = evidence.is_some() && !step.is_over(pace);
                        let cause = match &evidence {
                            Some(evidence) if runs => evidence.judge(inquiry.suspect, &wait),
                            Some(evidence) => evidence.of_what_is_over(&wait),
                            None => Cause::Unknown,
                        };
                        pace.found(if runs { cause } else { Cause::Unknown });
                        tell(py, sheet, inquiry, Slow { time: since.elapsed(), cause, runs })
                    }
                };
                if let Err(error) = done {
                    error.write_unraisable(py, None);
                }
            }
        });
    }
}

/// A step that was looked at.
struct Slow {
    time: Duration,
    cause: Cause,
    runs: bool,
}

/// Has it said, and keeps it for who asks.
fn tell(py: Python<'_>, sheet: &Sheet, inquiry: &Inquiry, slow: Slow) -> PyResult<()> {
    let Slow { time, cause, runs } = slow;
    sheet.blame(cause);
    let told = (time.as_secs_f64(), cause.in_words(), runs);
    let (place, request): (String, String) = inquiry.slow.call1(py, told)?.extract(py)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    sheet.note_place(&BlockingPlace {
        place,
        request,
        cause,
        count: 1,
        longest: time,
        last: u64::try_from(now.as_millis()).unwrap_or_default(),
    });
    Ok(())
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
