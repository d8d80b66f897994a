//! Admission as an application has it: the permits, the queue and the deadline that requests have, for its own work.
//!
//! Not the waiting (`admission.py`): an entry that waits is told by a call when to look again.
//!
//! Invariant: an entry that is left before its end gives back what it was given, and its place in the queue.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use bridgehead_net::{Admission, AdmissionLimits, Permit, TurnedAway};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Waits that are remembered, for percentiles.
const REMEMBERED: usize = 1024;

create_exception!(bridgehead.admission, NotAdmitted, PyException, "There was no slot for this entry.");
create_exception!(bridgehead.admission, QueueFull, NotAdmitted, "As many wait already as may.");
create_exception!(bridgehead.admission, WaitedTooLong, NotAdmitted, "No slot came free within the patience.");

type Entering = Pin<Box<dyn Future<Output = Result<Permit, TurnedAway>> + Send>>;

/// So many slots, and who waits for them.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Gate {
    admission: Admission,
    shared: Arc<Shared>,
}

/// What the entries of a gate come to. A gate may be used by several threads, each with a loop.
#[derive(Debug, Default)]
struct Shared {
    /// Any of them is as good as another.
    inside: Mutex<Vec<Permit>>,
    waits: Mutex<VecDeque<Duration>>,
    most_waiting: AtomicUsize,
    admitted: AtomicU64,
    full: AtomicU64,
    late: AtomicU64,
}

/// Slots, how many are taken, how many wait and how many did at most, how many were admitted, found the queue full and
/// waited too long, and the last waits in seconds.
type Gauges = (usize, usize, usize, u64, u64, u64, Vec<f64>);

#[pymethods]
impl Gate {
    #[new]
    fn new(slots: usize, queue: usize, patience: Option<f64>) -> PyResult<Self> {
        if slots == 0 {
            return Err(PyValueError::new_err("a gate needs a slot at least"));
        }
        let patience = patience.map(Duration::try_from_secs_f64).transpose()?;
        let admission = Admission::new(AdmissionLimits { permits: Some(slots), queue, patience });
        Ok(Self { admission, shared: Arc::default() })
    }

    /// Takes a slot, if one is there that nobody waits for.
    fn try_enter(&self) -> bool {
        let permit = self.admission.try_enter();
        permit.map(|permit| self.shared.admit(permit, Duration::ZERO)).is_some()
    }

    /// A place in the queue, as soon as it is looked at. `wake` is called when to look again.
    fn line_up(&self, wake: Py<PyAny>) -> Entry {
        let overdue = Arc::<AtomicBool>::default();
        let (admission, passed) = (self.admission.clone(), Arc::clone(&overdue));
        let entering = async move { admission.enter(|_| until(passed)).await };
        Entry {
            entering: Mutex::new(Some(Box::pin(entering))),
            waker: Waker::from(Arc::new(Call(wake))),
            overdue,
            began: Instant::now(),
            admission: self.admission.clone(),
            shared: Arc::clone(&self.shared),
        }
    }

    /// Gives back a slot: whoever waits the longest has it.
    fn leave(&self) -> PyResult<()> {
        let permit = locked(&self.shared.inside).pop();
        // Dropped without the lock: whoever waits is told by a call of Python's.
        permit.map(drop).ok_or_else(|| PyRuntimeError::new_err("nobody is inside"))
    }

    /// How it stands.
    fn gauges(&self) -> Gauges {
        let (shared, admission) = (&self.shared, &self.admission);
        let waits = locked(&shared.waits).iter().map(Duration::as_secs_f64).collect();
        (
            admission.running(),
            admission.waiting(),
            shared.most_waiting.load(Ordering::Relaxed),
            shared.admitted.load(Ordering::Relaxed),
            shared.full.load(Ordering::Relaxed),
            shared.late.load(Ordering::Relaxed),
            waits,
        )
    }
}

/// Somebody who wants a slot.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Entry {
    // One thread at a time looks; pyo3 wants classes to be shareable.
    entering: Mutex<Option<Entering>>,
    waker: Waker,
    // Set by the loop's timer, read when somebody looks.
    overdue: Arc<AtomicBool>,
    began: Instant,
    admission: Admission,
    shared: Arc<Shared>,
}

#[pymethods]
impl Entry {
    /// Whether it has its slot. Raises when it will not have one.
    fn look(&self) -> PyResult<bool> {
        // Taken out meanwhile: its end may tell others, by calls of Python's.
        let Some(mut entering) = locked(&self.entering).take() else {
            return Err(PyRuntimeError::new_err("this entry has come to its end"));
        };
        match entering.as_mut().poll(&mut Context::from_waker(&self.waker)) {
            Poll::Pending => {
                *locked(&self.entering) = Some(entering);
                self.shared.most_waiting.fetch_max(self.admission.waiting(), Ordering::Relaxed);
                Ok(false)
            }
            Poll::Ready(Ok(permit)) => {
                self.shared.admit(permit, self.began.elapsed());
                Ok(true)
            }
            Poll::Ready(Err(TurnedAway::Full)) => {
                self.shared.full.fetch_add(1, Ordering::Relaxed);
                Err(QueueFull::new_err("as many wait for a slot as may"))
            }
            Poll::Ready(Err(TurnedAway::Late)) => {
                self.shared.late.fetch_add(1, Ordering::Relaxed);
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
        let entering = locked(&self.entering).take();
        drop(entering);
    }
}

impl Shared {
    fn admit(&self, permit: Permit, wait: Duration) {
        locked(&self.inside).push(permit);
        self.admitted.fetch_add(1, Ordering::Relaxed);
        let mut waits = locked(&self.waits);
        if waits.len() == REMEMBERED {
            waits.pop_front();
        }
        waits.push_back(wait);
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
