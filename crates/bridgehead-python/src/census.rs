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
use crate::health::Pace;
use crate::lookout::Step;
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
    /// The one that was told of last is over, and held it for so long.
    Over(Duration),
}

/// Whom it calls.
pub(crate) struct Inquiry {
    /// Gives how many tasks are not done, how many calls wait for the default executor, its threads, and how many it may have.
    pub(crate) look: Py<PyAny>,
    /// Gives the place of the step that holds the loop, and the request for which it runs.
    pub(crate) place: Py<PyAny>,
    /// Is told for how many seconds a step holds the loop, by what, in words, and what was given as its place; nothing if it
    /// was over by then. Gives that in words.
    pub(crate) slow: Py<PyAny>,
    /// Is told for how many seconds it did in all.
    pub(crate) over: Py<PyAny>,
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
    // The step that was told of last.
    let mut told = None;
    for errand in errands {
        pace.asks_for_the_gil();
        let began = Instant::now();
        Python::attach(|py| {
            pace.has_the_gil();
            let time = began.elapsed();
            // At once: the longer this has the GIL, the sooner Python gives it back in between, and the step goes on.
            let place = inquiry.place.call0(py);
            let wait = GilWait { time, ran_on: pace.ran_on(inquiry.suspect) };
            note(sheet, wait.time);
            // Who kept the GIL has let go of it just now: what is to be said of that step is said while it still runs, and
            // before anything is counted, since that may give the GIL back.
            let mut batch: Vec<_> = iter::once(errand).chain(errands.try_iter()).collect();
            batch.sort_by_key(|errand| matches!(errand, Errand::Look));
            for errand in batch {
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
                        let place = place.as_ref().ok().filter(|_| runs);
                        let slow = Slow { time: since.elapsed(), cause, place };
                        tell(py, sheet, inquiry, &slow).map(|place| told = Some(place))
                    }
                    Errand::Over(time) => match told.take() {
                        Some(place) => amend(py, sheet, inquiry, BlockingPlace { longest: time, ..place }),
                        None => Ok(()),
                    },
                };
                if let Err(error) = done {
                    error.write_unraisable(py, None);
                }
            }
        });
    }
}

/// A step that was looked at.
struct Slow<'a> {
    time: Duration,
    cause: Cause,
    place: Option<&'a Py<PyAny>>,
}

/// Has it said, and keeps it for who asks. Gives what is kept, and is not to be counted again.
fn tell(py: Python<'_>, sheet: &Sheet, inquiry: &Inquiry, slow: &Slow<'_>) -> PyResult<BlockingPlace> {
    let Slow { time, cause, place } = *slow;
    sheet.blame(cause);
    let told = (time.as_secs_f64(), cause.in_words(), place);
    let (place, request): (String, String) = inquiry.slow.call1(py, told)?.extract(py)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let place = BlockingPlace {
        place,
        request,
        cause,
        count: 1,
        longest: time,
        last: u64::try_from(now.as_millis()).unwrap_or_default(),
    };
    sheet.note_place(&place);
    Ok(BlockingPlace { count: 0, ..place })
}

/// It is known how long it was.
fn amend(py: Python<'_>, sheet: &Sheet, inquiry: &Inquiry, place: BlockingPlace) -> PyResult<()> {
    sheet.note_place(&place);
    inquiry.over.call1(py, (place.longest.as_secs_f64(),)).map(drop)
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
