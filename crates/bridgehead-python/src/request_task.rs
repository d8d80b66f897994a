//! Runs coroutines by the drive of our own, under a task that asyncio takes for one of its own.
//!
//! Invariant: the task is a real one, of `asyncio.Task`'s own making, and is not done while its request runs.

use pyo3::prelude::*;

use crate::driver::Driver;
use crate::parked::Parked;
use crate::real_task::RealTask;
use crate::stepper::{Request, Stepper};
use crate::trace::{Listener, Trace};

/// Makes parked tasks.
pub(crate) struct RequestTask {
    pub(crate) driver: Py<Driver>,
    pub(crate) tasks: RealTask,
    /// Who is told of each drive, if anybody is.
    pub(crate) listener: Option<Listener>,
}

impl Stepper for RequestTask {
    fn start<'py>(
        &self,
        coroutine: Bound<'py, PyAny>,
        context: Bound<'py, PyAny>,
        request: Request<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = coroutine.py();
        let trace = self.listener.as_ref().map(|listener| Trace::new(request, listener));
        let parked =
            Parked::new(self.driver.clone_ref(py), coroutine.unbind(), context.clone().unbind(), trace);
        self.tasks.begin(Bound::new(py, parked)?.into_any(), context)
    }
}
