//! Runs coroutines by the drive of our own, under a task that asyncio takes for one of its own.
//!
//! Invariant: the task is a real one, of `asyncio.Task`'s own making, and is not done while its request runs.

use pyo3::prelude::*;

use crate::driver::Driver;
use crate::real_task::RealTask;
use crate::stepper::Stepper;

/// Makes parked tasks.
pub(crate) struct RequestTask {
    driver: Py<Driver>,
    made: RealTask,
}

impl RequestTask {
    pub(crate) fn new(driver: Py<Driver>, made: RealTask) -> Self {
        Self { driver, made }
    }
}

impl Stepper for RequestTask {
    fn start<'py>(
        &self,
        coroutine: Bound<'py, PyAny>,
        context: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = coroutine.py();
        let parked = Driver::park(self.driver.bind(py), coroutine.unbind(), context.clone().unbind())?;
        self.made.start(parked.into_bound(py).into_any(), context)
    }
}
