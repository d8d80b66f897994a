//! The fused runtime under a loop that polls by itself: uvloop.
//!
//! The loop watches Tokio's epoll descriptor, and a callback turns the network without waiting. The loop's poll is of
//! levels, so a turn need not ask Tokio's driver again: what it left there brings the next callback.
//!
//! | what | brings a turn by |
//! |---|---|
//! | a socket is ready, a thread of Tokio's wakes it | Tokio's epoll descriptor |
//! | the standby has something for Python, another thread for the network | the bell's descriptor |
//! | a message is sent, or read, outside a turn | one `call_soon` for all of them |
//! | a deadline of the network's | `call_later` |
//! | a turn was cut | `call_soon` |
//!
//! Invariant: after each turn the bell is what is woken, or another turn is scheduled: no wake is lost between the two.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

use pyo3::intern;
use pyo3::prelude::*;

use crate::bell::Bell;
use crate::drain::Bridge;
use crate::fused::{Fused, Patience};
use crate::under_gil::UnderGil;
use crate::{names, soon};

/// What the loop's callbacks turn.
pub(crate) struct Nested {
    bell: Arc<Bell>,
    waker: Waker,
    fused: UnderGil<Option<Arc<Fused>>>,
    // The loop's thread only; pyo3 wants classes to be shareable.
    scheduled: AtomicBool,
    timer: UnderGil<Option<Timer>>,
}

/// The loop's timer for the network's first deadline.
struct Timer {
    due: Instant,
    handle: Py<PyAny>,
}

impl Nested {
    pub(crate) fn new(fused: Arc<Fused>, bell: Arc<Bell>) -> Self {
        Self {
            waker: Waker::from(Arc::clone(&bell)),
            bell,
            fused: UnderGil::new(Some(fused)),
            scheduled: AtomicBool::new(false),
            timer: UnderGil::new(None),
        }
    }

    /// The loop begins to watch; the first turn is scheduled.
    pub(crate) fn attach(&self, bridge: &Bound<'_, Bridge>) -> PyResult<()> {
        let py = bridge.py();
        let Some(fused) = self.fused(py) else { return Ok(()) };
        let event_loop = bridge.get().event_loop.bind(py);
        for descriptor in fused.poll_descriptor().into_iter().chain([self.bell.descriptor().number()]) {
            event_loop.call_method1(intern!(py, "add_reader"), (descriptor, soon::reader(bridge)?))?;
        }
        self.schedule(bridge)
    }

    /// The loop watches no more. Whoever ends the network has to hold it as well: it must not go here, under the GIL.
    pub(crate) fn detach(&self, bridge: &Bound<'_, Bridge>) -> PyResult<()> {
        let py = bridge.py();
        let Some(fused) = self.fused.lock(py).take() else { return Ok(()) };
        let event_loop = bridge.get().event_loop.bind(py);
        for descriptor in fused.poll_descriptor().into_iter().chain([self.bell.descriptor().number()]) {
            event_loop.call_method1(intern!(py, "remove_reader"), (descriptor,))?;
        }
        let timer = self.timer.lock(py).take();
        if let Some(timer) = timer {
            timer.handle.call_method0(py, intern!(py, "cancel"))?;
        }
        Ok(())
    }

    /// Turns the network, and has Python do what came.
    pub(crate) fn turn(&self, bridge: &Bound<'_, Bridge>, patience: Patience) -> PyResult<()> {
        let py = bridge.py();
        let Some(fused) = self.fused(py) else { return Ok(()) };
        self.bell.quiet();
        bridge.get().push_out(py);
        let due = py.detach(|| fused.turn(patience));
        let mut left = due.work;
        if due.events {
            left |= Bridge::drain(bridge)?;
            bridge.get().next_turn();
            left |= py.detach(|| fused.turn(Patience::Errand)).work;
        } else {
            bridge.get().was_for_nobody(py);
        }
        bridge.get().rest(py);
        // What comes from here on rings the bell.
        left |= fused.hand_to(&self.waker);
        if left {
            self.schedule(bridge)?;
        }
        self.set_timer(bridge, fused.next_deadline())
    }

    /// The turn that was scheduled.
    pub(crate) fn turn_as_scheduled(&self, bridge: &Bound<'_, Bridge>) -> PyResult<()> {
        self.scheduled.store(false, Ordering::Relaxed);
        // If Tokio's driver has anything, the loop's poll says so.
        self.turn(bridge, Patience::Errand)
    }

    /// Has the network turned by the loop's next round.
    pub(crate) fn schedule(&self, bridge: &Bound<'_, Bridge>) -> PyResult<()> {
        if self.scheduled.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let (py, turn) = (bridge.py(), NextTurn { bridge: bridge.clone().unbind() });
        bridge.get().event_loop.call_method1(py, names::call_soon(py), (turn,)).map(drop)
    }

    /// Does what may give the network something to do, outside a turn of it.
    pub(crate) fn tend<T>(
        &self,
        bridge: &Bound<'_, Bridge>,
        work: impl FnOnce() -> PyResult<T>,
    ) -> PyResult<T> {
        let (done, wanted) = self.bell.tend(work);
        if wanted {
            self.schedule(bridge)?;
        }
        done
    }

    fn set_timer(&self, bridge: &Bound<'_, Bridge>, deadline: Option<Instant>) -> PyResult<()> {
        let py = bridge.py();
        let Some(deadline) = deadline else { return Ok(()) };
        // One that comes too early sets the next.
        if self.timer.lock(py).as_ref().is_some_and(|timer| timer.due <= deadline) {
            return Ok(());
        }
        // The loop rounds to milliseconds: to be too early would be to come twice.
        let wait = deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        let arguments = (wait.as_secs_f64(), Tick { bridge: bridge.clone().unbind() });
        let handle = bridge.get().event_loop.call_method1(py, intern!(py, "call_later"), arguments)?;
        let before = self.timer.lock(py).replace(Timer { due: deadline, handle });
        if let Some(before) = before {
            before.handle.call_method0(py, intern!(py, "cancel"))?;
        }
        Ok(())
    }

    fn fused(&self, py: Python<'_>) -> Option<Arc<Fused>> {
        self.fused.lock(py).clone()
    }
}

/// Turns the network once, in the loop's next round.
#[pyclass(frozen, module = "bridgehead._native")]
struct NextTurn {
    bridge: Py<Bridge>,
}

#[pymethods]
impl NextTurn {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let bridge = self.bridge.bind(py);
        bridge.get().nested().map_or(Ok(()), |nested| nested.turn_as_scheduled(bridge))
    }

    /// As the bridge's own: this is called in its place.
    #[getter]
    fn __self__(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.bridge.get().longest_task(py)
    }
}

/// Has the network turned once a deadline of its has passed. Not within itself: uvloop reports an error of its own where a
/// timer's callback, which a handler may be run by, switches debug mode on.
#[pyclass(frozen, module = "bridgehead._native")]
struct Tick {
    bridge: Py<Bridge>,
}

#[pymethods]
impl Tick {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let bridge = self.bridge.bind(py);
        let Some(nested) = bridge.get().nested() else { return Ok(()) };
        let passed = nested.timer.lock(py).take();
        drop(passed);
        bridge.get().event_loop.call_method1(py, names::call_soon(py), (bridge,)).map(drop)
    }
}
