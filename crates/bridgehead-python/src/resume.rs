//! What the loop and futures call to have a parked coroutine go on.
//!
//! Not the `Parked` itself: in debug mode asyncio refuses callbacks that are coroutines.

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::parked::Parked;

/// Made for each wait; does nothing once what it was made for has come by another way.
// No freelist: pyo3 does not tell the collector of what it takes from one, and a cycle through it would stay for ever.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Resume {
    parked: Py<Parked>,
}

impl Resume {
    pub(crate) fn of<'py>(parked: &Bound<'py, Parked>) -> PyResult<Bound<'py, PyAny>> {
        Ok(Bound::new(parked.py(), Self { parked: parked.clone().unbind() })?.into_any())
    }
}

#[pymethods]
impl Resume {
    /// The loop calls, or the future that is waited for. Whoever calls has entered the context.
    #[pyo3(signature = (future = None))]
    fn __call__(&self, future: Option<Bound<'_, PyAny>>, py: Python<'_>) -> PyResult<()> {
        let parked = self.parked.bind(py);
        let Some(outcome) = parked.get().begin(future.as_ref()) else { return Ok(()) };
        let outcome = match &future {
            Some(future) => future.call_method0(intern!(py, "result")).map(drop),
            None => outcome,
        };
        Parked::go_on(parked, outcome)
    }

    /// As asyncio shows its own in a future's callbacks, and how the waiting task is found from there.
    #[getter]
    fn __qualname__(&self) -> &'static str {
        "Task.task_wakeup"
    }

    #[getter]
    fn __self__<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.parked.get().task(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.parked)
    }
}
