//! Admission as an application has it: the permits, the queue and the deadline that requests have, for its own work.
//!
//! Not the waiting (`admission.py`): an entry that waits is told by a call when to look again.
//!
//! Invariant: an entry that is left before its end gives back what it was given, and its place in the queue.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use bridgehead_admission::{Admission, AdmissionLimits, Permit, TurnedAway};
use bridgehead_metrics::GateOutcome;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::gate_tally::{Tally, Waiting};

create_exception!(bridgehead.admission, NotAdmitted, PyException, "There was no slot for this entry.");
create_exception!(bridgehead.admission, QueueFull, NotAdmitted, "As many wait already as may.");
create_exception!(bridgehead.admission, WaitedTooLong, NotAdmitted, "No slot came free within the patience.");

type Entering = Pin<Box<dyn Future<Output = Result<Permit, TurnedAway>> + Send>>;

/// So many slots, and who waits for them.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Gate {
    admission: Admission,
    tally: Arc<Tally>,
}

/// How many slots are taken, how many wait and how many did at most, what became of how many ([`GateOutcome::ALL`]), and the
/// last waits in seconds.
type Gauges = (usize, usize, usize, [u64; GateOutcome::ALL.len()], Vec<f64>);

#[pymethods]
impl Gate {
    #[new]
    fn new(slots: usize, queue: usize, patience: Option<f64>, name: &str) -> PyResult<Self> {
        if slots == 0 {
            return Err(PyValueError::new_err("a gate needs a slot at least"));
        }
        let patience = patience.map(Duration::try_from_secs_f64).transpose()?;
        let admission = Admission::new(AdmissionLimits { permits: Some(slots), queue, patience });
        Ok(Self { admission, tally: Tally::new(slots, name) })
    }

    /// Takes a slot, if one is there that nobody waits for.
    fn try_enter(&self) -> bool {
        let permit = self.admission.try_enter();
        permit.map(|permit| self.tally.admit(permit, Duration::ZERO)).is_some()
    }

    /// A place in the queue, as soon as it is looked at. `wake` is called when to look again.
    fn line_up(&self, wake: Py<PyAny>) -> Entry {
        let overdue = Arc::<AtomicBool>::default();
        let (admission, passed) = (self.admission.clone(), Arc::clone(&overdue));
        let entering = async move { admission.enter(|_| until(passed)).await };
        let waker = Waker::from(Arc::new(Call(wake)));
        Entry {
            waits: Mutex::new(Some(Waits {
                entering: Box::pin(entering),
                waker,
                _waiting: self.tally.wait(),
            })),
            overdue,
            began: Instant::now(),
            admission: self.admission.clone(),
            tally: Arc::clone(&self.tally),
        }
    }

    /// Gives back a slot: whoever waits the longest has it.
    fn leave(&self) -> PyResult<()> {
        self.tally.leave().map(drop).ok_or_else(|| PyRuntimeError::new_err("nobody is inside"))
    }

    /// How it stands.
    fn gauges(&self) -> Gauges {
        let (running, waiting) = (self.admission.running(), self.admission.waiting());
        let books = self.tally.books();
        let outcomes = GateOutcome::ALL.map(|outcome| books.counted(outcome));
        (running, waiting, books.most_waiting, outcomes, books.waits())
    }
}

/// Somebody who wants a slot.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Entry {
    // One thread at a time looks, and any may have it leave once its loop is closed.
    waits: Mutex<Option<Waits>>,
    // Set by the loop's timer, read when somebody looks.
    overdue: Arc<AtomicBool>,
    began: Instant,
    admission: Admission,
    tally: Arc<Tally>,
}

/// What an entry has until its end. Whom it wakes may hold the entry: Python could not free the two.
struct Waits {
    entering: Entering,
    waker: Waker,
    _waiting: Waiting,
}

#[pymethods]
impl Entry {
    /// Whether it has its slot. Raises when it will not have one.
    fn look(&self) -> PyResult<bool> {
        // Taken out meanwhile: its end may tell others, by calls of Python's.
        let Some(mut waits) = locked(&self.waits).take() else {
            return Err(PyRuntimeError::new_err("this entry has come to its end"));
        };
        match waits.entering.as_mut().poll(&mut Context::from_waker(&waits.waker)) {
            Poll::Pending => {
                *locked(&self.waits) = Some(waits);
                self.tally.saw_waiting(self.admission.waiting());
                Ok(false)
            }
            Poll::Ready(Ok(permit)) => {
                self.tally.admit(permit, self.began.elapsed());
                Ok(true)
            }
            Poll::Ready(Err(TurnedAway::Full)) => {
                self.tally.turn_away(GateOutcome::Full, None);
                Err(QueueFull::new_err("as many wait for a slot as may"))
            }
            Poll::Ready(Err(TurnedAway::Late)) => {
                self.tally.turn_away(GateOutcome::Late, Some(self.began.elapsed()));
                Err(WaitedTooLong::new_err("no slot came free in time"))
            }
        }
    }

    /// Its patience is over; the next look says so, unless it has its slot by then.
    fn expire(&self) {
        self.overdue.store(true, Ordering::Relaxed);
    }

    /// It does not want a slot any more.
    fn leave(&self) {
        let waits = locked(&self.waits).take();
        if let Some(waits) = waits {
            self.tally.turn_away(GateOutcome::Left, Some(self.began.elapsed()));
            drop(waits);
        }
    }

    /// Its loop is closed. How long it has waited nobody knows.
    fn forget(&self) {
        let waits = locked(&self.waits).take();
        if let Some(waits) = waits {
            self.tally.turn_away(GateOutcome::Left, None);
            drop(waits);
        }
    }
}

async fn until(passed: Arc<AtomicBool>) {
    poll_fn(|_| if passed.load(Ordering::Relaxed) { Poll::Ready(()) } else { Poll::Pending }).await;
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something of Python's that wakes. It is called where a slot is given back, which Python does.
struct Call(Py<PyAny>);

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        Python::attach(|py| {
            if let Err(error) = self.0.call0(py) {
                error.write_unraisable(py, Some(self.0.bind(py)));
            }
        });
    }
}
