//! What has a coroutine that we drive go on: called by the future that it waits for, or by the loop.
//!
//! Not the `Parked` itself: in debug mode asyncio refuses callbacks that are coroutines.
//!
//! Invariant: as with asyncio's own, the coroutine goes on with whatever calls, and whenever.

use pyo3::exceptions::asyncio::InvalidStateError;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::driver::Current;
use crate::parked::Parked;
use crate::under_gil::UnderGil;

/// What both know.
struct Whose {
    parked: Py<Parked>,
    /// There from the start, unless this was made in the coroutine's first step; then from when it goes on. The `Parked` forgets
    /// it at its end, after which asyncio's debug mode asks whose step it was.
    task: UnderGil<Option<Py<PyAny>>>,
}

impl Whose {
    fn of(parked: &Bound<'_, Parked>) -> Self {
        let task = parked.get().task(parked.py()).map(Bound::unbind);
        Self { parked: parked.clone().unbind(), task: UnderGil::new(task) }
    }

    fn task<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let known = self.task.lock(py).as_ref().map(|task| task.bind(py).clone());
        known.or_else(|| self.parked.get().task(py))
    }

    fn keep_task(&self, py: Python<'_>) {
        let mut kept = self.task.lock(py);
        if kept.is_none() {
            *kept = self.parked.get().task(py).map(Bound::unbind);
        }
    }

    fn go_on(&self, py: Python<'_>, outcome: PyResult<()>) -> PyResult<()> {
        let parked = self.parked.bind(py);
        if !parked.get().is_over(py) {
            self.keep_task(py);
            return Parked::go_on(parked, outcome);
        }
        let Some(task) = self.task(py) else { return Err(already_done(parked.as_any(), outcome)) };
        let _current = Current::enter(parked.get().driver.get(), &task)?;
        Err(already_done(&task, outcome))
    }

    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.parked)?;
        self.task.visited(visit).map_or(Ok(()), |task| visit.call(&*task))
    }
}

/// As asyncio says it.
fn already_done(task: &Bound<'_, PyAny>, outcome: PyResult<()>) -> PyErr {
    let py = task.py();
    let error = outcome.err().map(|error| error.into_value(py));
    let text = (|| {
        let error = error.as_ref().map_or_else(
            || Ok("None".to_owned()),
            |error| Ok::<_, PyErr>(error.bind(py).repr()?.to_string()),
        )?;
        Ok(format!("_step(): already done: {} {error}", task.repr()?))
    })();
    text.map_or_else(|error: PyErr| error, InvalidStateError::new_err)
}

/// A future's callback: made for each wait.
// No freelist: pyo3 does not tell the collector of what it takes from one, and a cycle through it would stay for ever.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Wakeup(Whose);

impl Wakeup {
    pub(crate) fn of<'py>(parked: &Bound<'py, Parked>) -> PyResult<Bound<'py, PyAny>> {
        Ok(Bound::new(parked.py(), Self(Whose::of(parked)))?.into_any())
    }
}

#[pymethods]
impl Wakeup {
    /// Some future calls, in the coroutine's context: not always the one that is waited for, which may hand its callbacks
    /// to another.
    #[pyo3(signature = (future, /))]
    fn __call__(&self, future: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = future.py();
        let outcome = future.call_method0(intern!(py, "result")).map(drop);
        self.0.go_on(py, outcome)
    }

    // As asyncio shows its own in a future's callbacks, and how the waiting task is found from there.

    #[getter]
    fn __name__(&self) -> &'static str {
        "task_wakeup"
    }

    #[getter]
    fn __qualname__(&self) -> &'static str {
        "Task.task_wakeup"
    }

    #[getter]
    fn __self__<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.0.task(py)
    }

    /// All of one task are equal: a future may be asked to forget them.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast_exact::<Self>().is_ok_and(|other| other.get().0.parked.is(&self.0.parked))
    }

    fn __hash__(&self) -> isize {
        self.0.parked.as_ptr().addr().rotate_right(4).cast_signed()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let place = self.0.task(py).map_or(std::ptr::null_mut(), |task| task.as_ptr());
        format!("<built-in method task_wakeup of _asyncio.Task object at {place:p}>")
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.visit(&visit)
    }
}

/// A callback of the loop's next turn.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Step {
    whose: Whose,
    /// What the coroutine is to be thrown.
    error: Option<Py<PyAny>>,
}

impl Step {
    /// Has the loop call.
    pub(crate) fn schedule(parked: &Bound<'_, Parked>, outcome: PyResult<()>) -> PyResult<()> {
        let py = parked.py();
        let error = outcome.err().map(|error| error.into_value(py).into_any());
        let step = Bound::new(py, Self { whose: Whose::of(parked), error })?;
        let this = parked.get();
        this.driver.get().call_soon(&step.into_any(), this.context.bind(py))
    }
}

#[pymethods]
impl Step {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let outcome = match &self.error {
            Some(error) => Err(PyErr::from_value(error.bind(py).clone())),
            None => Ok(()),
        };
        self.whose.go_on(py, outcome)
    }

    /// How asyncio's reports find the task.
    #[getter]
    fn __self__<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.whose.task(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.whose.visit(&visit)?;
        visit.call(&self.error)
    }
}
