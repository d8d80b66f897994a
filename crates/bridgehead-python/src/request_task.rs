//! Runs coroutines by the drive of our own, under a task that asyncio takes for one of its own.
//!
//! Invariant: the task is a real one, of `asyncio.Task`'s own making, and is not done while its request runs.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::driver::Driver;
use crate::factory_task::FactoryTask;
use crate::parked::Parked;
use crate::real_task::RealTask;
use crate::stepper::{Request, Stepper};
use crate::trace::{Listener, Trace};

/// `bridgehead.request_task.Chosen`: a type of task that parks, and what drives its coroutines.
#[derive(FromPyObject)]
pub(crate) struct Chosen {
    task_type: Py<PyAny>,
    driver: Py<Driver>,
}

/// What runs a request's coroutine: the application's own tasks if it has a factory, or else what is chosen, or asyncio's own task.
pub(crate) fn stepper(
    event_loop: &Bound<'_, PyAny>,
    chosen: Option<Chosen>,
    trace: Option<Py<PyAny>>,
) -> PyResult<Box<dyn Stepper>> {
    if let Some(tasks) = FactoryTask::of(event_loop)? {
        return Ok(Box::new(tasks));
    }
    let Some(Chosen { task_type, driver }) = chosen else {
        let task_type = event_loop.py().import("asyncio")?.getattr("Task")?.unbind();
        return Ok(Box::new(RealTask::new(event_loop, task_type)?));
    };
    let tasks = RealTask::new(event_loop, task_type)?;
    Ok(Box::new(RequestTask { driver, tasks, listener: trace.map(Listener::new) }))
}

/// Makes parked tasks.
struct RequestTask {
    driver: Py<Driver>,
    tasks: RealTask,
    /// Who is told of each drive, if anybody is.
    listener: Option<Arc<Listener>>,
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
