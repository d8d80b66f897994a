//! Runs coroutines as tasks that the application's own task factory makes.
//!
//! Not when there is none, which is nearly always (`real_task.rs`, `request_task.rs`). Their first step is the loop's to take, or
//! the factory's.
//!
//! Invariant: the factory is called as by anybody's `create_task`, in the request's context, with nothing that it may not know.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;

use crate::stepper::{Request, Stepper};

/// Has the loop make tasks.
pub(crate) struct FactoryTask(Py<PyAny>);

impl FactoryTask {
    /// If the application has set a factory by now.
    pub(crate) fn of(event_loop: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = event_loop.py();
        // A loop of somebody else's may know of none.
        let factory = event_loop.call_method0(intern!(py, "get_task_factory")).ok();
        let is_set = factory.is_some_and(|factory| !factory.is_none());
        let create_task = || event_loop.getattr(intern!(py, "create_task")).map(|make| Self(make.unbind()));
        is_set.then(create_task).transpose()
    }
}

impl Stepper for FactoryTask {
    fn start<'py>(
        &self,
        coroutine: Bound<'py, PyAny>,
        context: Bound<'py, PyAny>,
        _request: Request<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let task = context.call_method1(intern!(context.py(), "run"), (&self.0, coroutine))?;
        if task.is_none() {
            return Err(PyTypeError::new_err("the loop's task factory returned None; a task was due"));
        }
        Ok(task)
    }
}
