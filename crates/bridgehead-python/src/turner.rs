//! The fused runtime as asyncio's selector calls it: turn the network, drain the inbox, and again, until the loop itself
//! has something to do.
//!
//! A handler that does not wait is answered without the loop's own round of Python: it is started right here, in the
//! loop's thread, with no task current, as it would be in a callback. Where one is current, this poll is of a turn that a
//! handler makes of the loop itself, as nest_asyncio's do: the loop calls then, which such a turn has put that task aside for.
//!
//! Invariant: when anything is left for the loop (a callback, a new timer, a descriptor), this returns; and nothing is
//! started or resumed here while a task is current.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::drain::Bridge;
use crate::fused::{Fused, Patience};
use crate::names;

/// `bridgehead.private_names.LoopNames`: where asyncio's loop has what is asked of it here.
#[derive(FromPyObject)]
pub(crate) struct LoopNames {
    ready: Py<PyString>,
    scheduled: Py<PyString>,
    debug: Py<PyString>,
    stopping: Py<PyString>,
    current_task: Py<PyAny>,
}

/// Given to the selector; see `selector.py`.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Turner {
    bridge: Py<Bridge>,
    // The loop's thread only; pyo3 wants classes to be shareable. Let go of before the network ends.
    fused: Mutex<Option<Arc<Fused>>>,
    event_loop: Py<PyAny>,
    /// The loop's callbacks: CPython's own deque.
    ready: Py<PyAny>,
    names: LoopNames,
    // The loop's thread only, as above. How often the loop has polled: one that a handler has turned meanwhile has taken timers,
    // so that their number says nothing.
    polls: AtomicU64,
}

impl Turner {
    /// For a loop of asyncio's own.
    pub(crate) fn new(
        py: Python<'_>,
        bridge: Py<Bridge>,
        fused: Arc<Fused>,
        names: LoopNames,
    ) -> PyResult<Self> {
        let event_loop = bridge.get().event_loop(py);
        let ready = event_loop.bind(py).getattr(&names.ready)?.unbind();
        Ok(Self {
            bridge,
            fused: Mutex::new(Some(fused)),
            event_loop,
            ready,
            names,
            polls: AtomicU64::new(0),
        })
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
    fn says(&self, py: Python<'_>, flag: &Py<PyString>) -> PyResult<bool> {
        self.event_loop.bind(py).getattr(flag)?.is_truthy()
    }

    /// Whether the loop is polled by a handler.
    fn is_within_a_task(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(!self.names.current_task.bind(py).call1((&self.event_loop,))?.is_none())
    }

    /// The loop's heap of timers. Looked up for each poll: once most timers are cancelled ones, the loop takes another.
    fn timers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        Ok(self.event_loop.bind(py).getattr(&self.names.scheduled)?.cast_into()?)
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
        let before = (timers.len(), self.polls.fetch_add(1, Ordering::Relaxed) + 1);
        let until = Until::new(seconds);
        let mut patience = until.patience();
        loop {
            bridge.get().push_out(py);
            let due = py.detach(|| fused.turn(patience));
            let mut stops = false;
            if due.events {
                if self.says(py, &self.names.debug)? || self.is_within_a_task(py)? {
                    // The loop measures its callbacks, and tells of slow ones: let it be one. Or see above.
                    ready_soon(bridge)?;
                } else {
                    Bridge::drain(bridge)?;
                    stops = self.says(py, &self.names.stopping)?;
                }
            }
            // Either its callbacks come now, or it has none that a request could hold up.
            bridge.get().next_turn();
            let loop_has_work =
                stops || ready.len()? > 0 || (timers.len(), self.polls.load(Ordering::Relaxed)) != before;
            patience = until.patience();
            if due.descriptors || patience == Patience::None || loop_has_work {
                bridge.get().push_out(py);
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
