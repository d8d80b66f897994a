//! Counts what only Python knows of a loop, on a thread that may wait for the GIL: how long it does is a figure as well.
//!
//! Not when (`health.rs`), and not what is counted (`diagnostics.py` and `slow_steps.py` do, called from here).
//!
//! Invariant: whoever sends an errand never waits for the GIL, nor for this thread.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{io, iter};

use bridgehead_metrics::{BlockingPlace, Cause, Gauge, Sheet, Timing};
use pyo3::prelude::*;

use crate::ffi::{self, ThreadClock};
use crate::lookout::Step;
use crate::pace::{Pace, Said};
use crate::sheets::milliseconds;
use crate::stack::Stack;
use crate::suspicion::{self, Asking, Doing, Evidence, GilWait, Suspect};
use crate::whereabouts::Whereabouts;

/// Errands that may wait: two of a step, and one that counts, behind one that is being done.
const ERRANDS: usize = 3;

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Errand {
    /// Count.
    Look,
    /// A step is about to be slow: whether it lets others have the GIL is to be known when it is.
    Ahead(Step),
    /// A step holds the loop.
    Slow(SlowStep),
    /// The one that was told of last is over, and held it for so long.
    Over(Duration),
    /// Others did for so long, and were over before they were looked at.
    Unseen(Vec<Duration>),
}

/// A step that was noticed.
#[derive(Debug)]
pub(crate) struct SlowStep {
    /// How many were noticed, this one included.
    pub(crate) number: u64,
    /// It holds the loop since then.
    pub(crate) since: Instant,
    /// For so long when it was noticed.
    pub(crate) held: Duration,
    pub(crate) step: Step,
    /// Whose it is.
    pub(crate) said: Said,
    /// What was seen of it, unless it was over by then.
    pub(crate) evidence: Option<Evidence>,
    /// Closed by this thread before it says where that was.
    pub(crate) whereabouts: Arc<Whereabouts>,
}

/// Whom it calls.
pub(crate) struct Inquiry {
    /// Gives how many tasks are not done; and how many calls wait for the default executor, its threads, and how many it may
    /// have, if that is known.
    pub(crate) look: Py<PyAny>,
    /// Gives the place of the step that holds the loop, and the request for which it runs.
    pub(crate) place: Py<PyAny>,
    /// Is told for how many seconds a step holds the loop, by what, in words, its place and request, and whether it had gone on
    /// when that was looked at; nothing, or no place, if it was over by then. And its place, if that was read before. Gives
    /// that in words.
    pub(crate) slow: Py<PyAny>,
    /// Is told for how many seconds it did in all, and the rest again.
    pub(crate) over: Py<PyAny>,
    /// Whose steps they are.
    pub(crate) suspect: Suspect,
    /// Where its thread is, for who looks without the GIL.
    pub(crate) stack: Option<Stack>,
}

/// The thread.
pub(crate) struct Census(JoinHandle<()>);

impl Census {
    /// It ends when the sender is dropped. The clock is that of the loop's thread.
    pub(crate) fn start(
        pace: Arc<Pace>,
        sheet: Sheet,
        inquiry: Inquiry,
        clock: Option<ThreadClock>,
    ) -> io::Result<(Self, SyncSender<Errand>)> {
        let (sender, errands) = sync_channel(ERRANDS);
        let thread = thread::Builder::new().name("bridgehead-census".to_owned()).spawn(move || {
            ffi::block_signals();
            run(&errands, &pace, &sheet, &inquiry, clock.as_ref());
        })?;
        Ok((Self(thread), sender))
    }

    /// To be called without the GIL, once the sender is gone.
    pub(crate) fn join(self) -> thread::Result<()> {
        self.0.join()
    }
}

fn run(
    errands: &Receiver<Errand>,
    pace: &Pace,
    sheet: &Sheet,
    inquiry: &Inquiry,
    clock: Option<&ThreadClock>,
) {
    // What was seen of the last that was about to be slow.
    let mut ahead = None;
    for errand in errands {
        pace.asks_for_the_gil();
        let asking = Asking::begin(clock);
        Python::attach(|py| {
            pace.has_the_gil();
            let (had, wait) = (Instant::now(), asking.had(clock));
            // Before the place, for which Python runs, and may give the GIL back: what it does is of the same moment.
            let doing = inquiry.suspect.does();
            // At once: the longer this has the GIL, the sooner Python gives it back in between, and the step goes on.
            let seen = inquiry.place.call0(py).and_then(|seen| seen.extract(py)).ok();
            let wait = wait.or_ran_on(pace.ran_on(inquiry.suspect));
            note(sheet, wait.time);
            let looked = Looked { suspect: inquiry.suspect, doing, seen, wait, had };
            // Who kept the GIL has let go of it just now: what is to be said of that step is said while it still runs, and
            // before anything is counted, since that may give the GIL back.
            let mut batch: Vec<_> = iter::once(errand).chain(errands.try_iter()).collect();
            batch.sort_by_key(|errand| matches!(errand, Errand::Look));
            for errand in batch {
                let done = match errand {
                    Errand::Look => look(py, sheet, inquiry),
                    Errand::Ahead(step) => {
                        ahead = Some(Ahead::new(step, pace, &looked));
                        Ok(())
                    }
                    Errand::Slow(step) => {
                        let found = step.whereabouts.close();
                        let slow = step.judge(py, pace, &looked, ahead.take().as_ref(), clock).found(found);
                        tell(py, sheet, inquiry, slow).map(|place| pace.just_over.told(step.step, place))
                    }
                    Errand::Unseen(steps) => steps.into_iter().try_for_each(|time| {
                        let (cause, moment) = (Cause::Unknown, Moment::Later);
                        let slow = Slow { number: None, time, cause, moment, seen: None, found: None };
                        tell(py, sheet, inquiry, slow).map(drop)
                    }),
                    Errand::Over(time) => {
                        let all =
                            pace.just_over.awaited().map(|place| BlockingPlace { longest: time, ..place });
                        let done = all.map_or(Ok(()), |place| amend(py, sheet, inquiry, place));
                        pace.just_over.told_all();
                        done
                    }
                };
                if let Err(error) = done {
                    error.write_unraisable(py, None);
                }
            }
        });
    }
}

/// What there was to be seen when the GIL was had.
struct Looked {
    suspect: Suspect,
    doing: Doing,
    /// Place and request of what held the loop then.
    seen: Option<(String, String)>,
    wait: GilWait,
    had: Instant,
}

/// When a place was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    OfTheCause,
    /// The step had gone on.
    Later,
}

impl Moment {
    /// Of a thread that does this now: who waits for the GIL may have it before it can be seen where that was, and who has
    /// kept it may be a line further.
    fn of(cause: Cause, held: Doing) -> Self {
        match cause {
            Cause::CallWithGil | Cause::Unknown => Self::Later,
            Cause::OtherThread if held.has_gone_on() => Self::Later,
            _ => Self::OfTheCause,
        }
    }
}

/// The same of a step that was not slow when the GIL was asked for.
struct Ahead {
    step: Step,
    /// Nothing if the step was over by then.
    seen: Option<(String, String)>,
    wait: GilWait,
    had: Instant,
}

impl Ahead {
    /// For who has the GIL.
    fn new(step: Step, pace: &Pace, looked: &Looked) -> Self {
        let seen = looked.seen.clone().filter(|_| !step.is_over(pace));
        Self { step, seen, wait: looked.wait, had: looked.had }
    }

    /// Whether what holds the GIL held it still when the step was noticed.
    fn caught(&self, step: &SlowStep) -> bool {
        self.wait.was_in_vain() && self.had >= step.since + step.held
    }
}

impl SlowStep {
    /// For who has the GIL: what it is, or was.
    fn judge(
        &self,
        py: Python<'_>,
        pace: &Pace,
        looked: &Looked,
        ahead: Option<&Ahead>,
        clock: Option<&ThreadClock>,
    ) -> Slow {
        let ahead = ahead.filter(|ahead| ahead.step == self.step);
        let caught = ahead.filter(|ahead| ahead.caught(self));
        let of = |cause, moment, time, seen| {
            let number = Some(self.number);
            Slow { number, time, cause, moment, seen, found: None }
        };
        let Some(evidence) = self.evidence.as_ref().filter(|_| !self.step.is_over(pace)) else {
            pace.found(Cause::Unknown);
            let was = |evidence: &Evidence| evidence.of_what_is_over(&looked.wait);
            let cause = self.evidence.as_ref().map_or(Cause::Unknown, was);
            let said = || self.said.get().map(|whose| (whose.place.clone(), whose.request.clone()));
            // What has gone by since it was noticed is not all its.
            return match caught {
                Some(ahead) => {
                    of(Cause::CallWithGil, Moment::Later, self.held, ahead.seen.clone().or_else(said))
                }
                None => of(cause, Moment::of(cause, Doing::Unknown), self.held, said()),
            };
        };
        let of_ahead = |ahead: &Ahead| ahead.seen.clone().or_else(|| looked.seen.clone());
        let (judged, held) = evidence.judge(looked.suspect, looked.doing, &looked.wait);
        let (cause, seen) = match (judged, caught) {
            // What is looked at is behind what made the step slow.
            (Cause::Python | Cause::Unknown, Some(ahead)) => (Cause::CallWithGil, of_ahead(ahead)),
            (Cause::Python, None) => match self.python_or_not(py, pace, looked, evidence, clock) {
                Cause::Unknown if ahead.is_some_and(|ahead| ahead.wait.was_in_vain()) => {
                    (Cause::CallWithGil, ahead.and_then(of_ahead))
                }
                cause => (cause, looked.seen.clone()),
            },
            (cause, _) => (cause, looked.seen.clone()),
        };
        pace.found(cause);
        of(cause, Moment::of(cause, held), self.since.elapsed(), seen)
    }

    /// What lets go of the GIL when it is asked to: Python code, many short calls that do without, or a call that was just over.
    fn python_or_not(
        &self,
        py: Python<'_>,
        pace: &Pace,
        looked: &Looked,
        evidence: &Evidence,
        clock: Option<&ThreadClock>,
    ) -> Cause {
        let is_over = || self.step.is_over(pace);
        // What is asked of a step that ends meanwhile says nothing of it.
        if evidence.runs() && looked.wait.is_mostly_none(py) && !is_over() {
            return Cause::CallWithoutGil;
        }
        // Elsewhere than on Linux the wait for the GIL is all that is known.
        let is_python = clock.is_none_or(|clock| suspicion::obeys(py, clock, is_over));
        if is_python { Cause::Python } else { Cause::Unknown }
    }
}

/// A step that was looked at.
struct Slow {
    /// Of one that was noticed.
    number: Option<u64>,
    time: Duration,
    cause: Cause,
    moment: Moment,
    /// Place and request.
    seen: Option<(String, String)>,
    /// The place where it kept the GIL.
    found: Option<String>,
}

impl Slow {
    /// It was here while it kept the GIL, if that is what it did.
    fn found(self, place: Option<String>) -> Self {
        Self { found: place.filter(|_| self.cause == Cause::CallWithGil), ..self }
    }
}

/// Has it said, and keeps it for who asks. Gives what is kept, and is not to be counted again.
fn tell(py: Python<'_>, sheet: &Sheet, inquiry: &Inquiry, slow: Slow) -> PyResult<BlockingPlace> {
    let Slow { number, time, cause, moment, seen, found } = slow;
    sheet.blame(cause);
    let told = (time.as_secs_f64(), cause.in_words(), seen, moment == Moment::Later, found);
    let (place, request): (String, String) = inquiry.slow.call1(py, told)?.extract(py)?;
    let place = BlockingPlace { place, request, cause, count: 1, longest: time, last: milliseconds() };
    match number {
        Some(number) => sheet.note_place_of(number, &place),
        None => sheet.note_place(&place),
    }
    Ok(BlockingPlace { count: 0, ..place })
}

/// It is known how long it was.
fn amend(py: Python<'_>, sheet: &Sheet, inquiry: &Inquiry, place: BlockingPlace) -> PyResult<()> {
    sheet.note_place(&place);
    inquiry.over.call1(py, in_all(place)).map(drop)
}

/// How long it was in seconds, by what, in words, and its place and request.
pub(crate) type InAll = (f64, String, (String, String));

/// As `slow_steps.py` is told of a step that is over.
pub(crate) fn in_all(place: BlockingPlace) -> InAll {
    (place.longest.as_secs_f64(), place.cause.in_words(), (place.place, place.request))
}

fn note(sheet: &Sheet, waited: Duration) {
    let micros = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
    sheet.record(Timing::GilWait, waited);
    sheet.set(Gauge::GilWait, micros);
    sheet.raise(Gauge::GilWaitLongest, micros);
}

fn look(py: Python<'_>, sheet: &Sheet, inquiry: &Inquiry) -> PyResult<()> {
    let (tasks, executor): (u64, Option<(u64, u64, u64)>) = inquiry.look.call0(py)?.extract(py)?;
    sheet.set(Gauge::PendingTasks, tasks);
    sheet.set(Gauge::ExecutorHidden, executor.is_none().into());
    let (queue, threads, most) = executor.unwrap_or_default();
    sheet.set(Gauge::ExecutorQueue, queue);
    sheet.set(Gauge::ExecutorThreads, threads);
    sheet.set(Gauge::ExecutorMost, most);
    Ok(())
}
