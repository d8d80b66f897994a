//! What all drives of one loop share: the loop, and those names of asyncio's that a task's own code uses.
//!
//! Which names those are, and whether they still mean what we take them for, is `private_names.py`'s.
//!
//! Invariant: a task is current from `Current::enter` until the guard is dropped, whatever comes between.

use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};
use pyo3::{PyTraverseError, PyVisit};

use crate::parked::Parked;
use crate::{ffi, names};

/// `bridgehead.private_names.TaskNames`, read once.
#[derive(FromPyObject)]
pub(crate) struct TaskNames {
    enter_task: Py<PyAny>,
    leave_task: Py<PyAny>,
    current_task: Py<PyAny>,
    future: Py<PyType>,
    task: Py<PyType>,
    set_result: Py<PyAny>,
    cancel: Py<PyAny>,
    blocking: Py<PyString>,
    loop_of_future: Py<PyString>,
}

/// Drives coroutines on one loop.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Driver {
    event_loop: Py<PyAny>,
    names: TaskNames,
}

impl Driver {
    pub(crate) fn event_loop<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.event_loop.bind(py)
    }

    /// Whether this is asyncio's own future or task, and nothing derived from them.
    pub(crate) fn is_plain_future(&self, value: &Bound<'_, PyAny>) -> bool {
        let kind = value.get_type();
        kind.is(&self.names.future) || kind.is(&self.names.task)
    }

    pub(crate) fn current_task<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.names.current_task.bind(py).call1((&self.event_loop,))
    }

    /// The attribute by which a future says that it was yielded to be waited for.
    pub(crate) fn blocking<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        self.names.blocking.bind(py)
    }

    /// The attribute that has the loop of a future without a `get_loop`.
    pub(crate) fn loop_of_future<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        self.names.loop_of_future.bind(py)
    }

    /// `callback()` in the loop's next turn, in `context`.
    pub(crate) fn call_soon(&self, callback: &Bound<'_, PyAny>, context: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = callback.py();
        ffi::call_in(self.event_loop.bind(py), names::call_soon(py), callback, context).map(drop)
    }

    /// An error that nobody waits for.
    pub(crate) fn report(&self, py: Python<'_>, error: PyErr) {
        names::report(py, &self.event_loop, error);
    }

    /// Ends a task well.
    pub(crate) fn set_result(&self, task: &Bound<'_, PyAny>, result: &Bound<'_, PyAny>) -> PyResult<()> {
        self.names.set_result.bind(task.py()).call1((task, result)).map(drop)
    }

    /// Ends a task that was told to end after its last step had begun.
    pub(crate) fn cancel(&self, task: &Bound<'_, PyAny>, message: Option<Py<PyAny>>) -> PyResult<()> {
        self.names.cancel.bind(task.py()).call1((task, message)).map(drop)
    }
}

#[pymethods]
impl Driver {
    #[new]
    fn new(event_loop: Py<PyAny>, names: TaskNames) -> Self {
        Self { event_loop, names }
    }

    /// What a task is given in a coroutine's place.
    fn park(slf: &Bound<'_, Self>, coroutine: Py<PyAny>, context: Py<PyAny>) -> PyResult<Py<Parked>> {
        Py::new(slf.py(), Parked::new(slf.clone().unbind(), coroutine, context, None))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)
    }
}

/// A task that is current until the guard is dropped. A guard and nothing else: an early return between enter and leave
/// would make every later task of this thread collide with this one.
pub(crate) struct Current<'a, 'py> {
    driver: &'a Driver,
    task: &'a Bound<'py, PyAny>,
}

impl<'a, 'py> Current<'a, 'py> {
    pub(crate) fn enter(driver: &'a Driver, task: &'a Bound<'py, PyAny>) -> PyResult<Self> {
        driver.names.enter_task.bind(task.py()).call1((&driver.event_loop, task))?;
        Ok(Self { driver, task })
    }
}

impl Drop for Current<'_, '_> {
    fn drop(&mut self) {
        let py = self.task.py();
        let left = self.driver.names.leave_task.bind(py).call1((&self.driver.event_loop, self.task));
        if let Err(error) = left {
            error.write_unraisable(py, Some(self.task));
        }
    }
}
