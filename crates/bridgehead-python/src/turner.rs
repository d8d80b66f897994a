//! The fused runtime as asyncio's selector calls it: turn the network, drain the inbox, and again, until the loop itself
//! has something to do.
//!
//! A handler that does not wait is answered without the loop's own round of Python: it is started right here, in the
//! loop's thread, with no task current, as it would be in a callback.
//!
//! Invariant: when anything is left for the loop (a callback, a new timer, a descriptor), this returns.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::drain::Bridge;
use crate::fused::{Fused, Patience};
use crate::names;

/// Given to the selector; see `selector.py`.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Turner {
    bridge: Py<Bridge>,
    // The loop's thread only; pyo3 wants classes to be shareable. Let go of before the network ends.
    fused: Mutex<Option<Arc<Fused>>>,
    event_loop: Py<PyAny>,
    /// The loop's callbacks: CPython's own deque.
    ready: Py<PyAny>,
}

impl Turner {
    /// For a loop of asyncio's own.
    pub(crate) fn new(py: Python<'_>, bridge: Py<Bridge>, fused: Arc<Fused>) -> PyResult<Self> {
        let event_loop = bridge.get().event_loop(py);
        let ready = event_loop.bind(py).getattr("_ready")?.unbind();
        Ok(Self { bridge, fused: Mutex::new(Some(fused)), event_loop, ready })
    }

    /// The loop turns the network no more. Whoever ends it has to hold it as well: it must not go here, under the GIL.
    pub(crate) fn detach(&self) {
        let fused = self.fused().take();
        drop(fused);
    }

    fn fused(&self) -> MutexGuard<'_, Option<Arc<Fused>>> {
        self.fused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A flag of the loop's.
    fn says(&self, py: Python<'_>, flag: &Bound<'_, PyString>) -> PyResult<bool> {
        self.event_loop.bind(py).getattr(flag)?.is_truthy()
    }

    /// The loop's heap of timers. Looked up for each poll: once most timers are cancelled ones, the loop takes another.
    fn timers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        Ok(self.event_loop.bind(py).getattr(intern!(py, "_scheduled"))?.cast_into()?)
    }
}

#[pymethods]
impl Turner {
    /// Serves for at most `seconds`, endlessly if they are negative. True when the selector has events.
    fn __call__(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let bridge = self.bridge.bind(py);
        let fused = self.fused().clone();
        // The selector has been told to be a plain one; until then it finds whatever it has.
        let Some(fused) = fused else { return Ok(true) };
        let (ready, timers) = (self.ready.bind(py), self.timers(py)?);
        let before = timers.len();
        let until = Until::new(seconds);
        loop {
            bridge.get().push_out();
            let patience = until.patience();
            let due = py.detach(|| fused.turn(patience));
            let mut stops = false;
            if due.events {
                if self.says(py, intern!(py, "_debug"))? {
                    // The loop measures its callbacks, and tells of slow ones: let it be one.
                    ready_soon(bridge)?;
                } else {
                    Bridge::drain(bridge)?;
                    stops = self.says(py, intern!(py, "_stopping"))?;
                }
            }
            let loop_has_work = stops || ready.len()? > 0 || timers.len() != before;
            if due.descriptors || patience == Patience::None || loop_has_work {
                bridge.get().push_out();
                return Ok(due.descriptors);
            }
        }
    }
}

/// Has the inbox drained by a callback of the loop.
fn ready_soon(bridge: &Bound<'_, Bridge>) -> PyResult<()> {
    let py = bridge.py();
    bridge.get().event_loop(py).call_method1(py, names::call_soon(py), (bridge,)).map(drop)
}

/// When the loop's next timer is due.
enum Until {
    Now,
    Instant(Instant),
    Never,
}

impl Until {
    fn new(seconds: f64) -> Self {
        if seconds < 0.0 {
            return Self::Never;
        }
        if seconds == 0.0 {
            return Self::Now;
        }
        let deadline =
            Duration::try_from_secs_f64(seconds).ok().and_then(|wait| Instant::now().checked_add(wait));
        deadline.map_or(Self::Never, Self::Instant)
    }

    fn patience(&self) -> Patience {
        match self {
            Self::Now => Patience::None,
            Self::Never => Patience::Endless,
            Self::Instant(deadline) if *deadline <= Instant::now() => Patience::None,
            Self::Instant(deadline) => Patience::Until(*deadline),
        }
    }
}
