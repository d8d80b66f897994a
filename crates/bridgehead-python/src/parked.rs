//! What an asyncio task holds in its coroutine's place: the coroutine, and where its drive stands.
//!
//! It is a coroutine and a future at once. The task steps it like any coroutine, and is given it as the future to wait
//! for: so the task is parked. It is never done while the request runs, its `cancel()` comes to us, and it does not know
//! that the coroutine goes on meanwhile (`drive.rs`).
//!
//! Invariant: the drive is borrowed only where no Python can run.

use std::cell::RefMut;

use pyo3::exceptions::PyStopIteration;
use pyo3::exceptions::asyncio::CancelledError;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::awaitable::thrown;
use crate::driver::{Current, Driver};
use crate::trace::Trace;
use crate::under_gil::UnderGil;

/// The coroutine of a task, parked.
#[pyclass(frozen, weakref, module = "bridgehead._native")]
pub(crate) struct Parked {
    pub(crate) driver: Py<Driver>,
    pub(crate) coroutine: Py<PyAny>,
    pub(crate) context: Py<PyAny>,
    pub(crate) trace: Option<Box<Trace>>,
    drive: UnderGil<Drive>,
}

/// Where a drive stands.
struct Drive {
    stage: Stage,
    /// Told to end, and the coroutine has not been told yet.
    due: Option<Due>,
    /// The task, and what has it take a step of its own. There once it has been parked, until it ends.
    task: Option<Task>,
    /// What the task's own step is to find.
    last: Option<Last>,
}

pub(crate) enum Stage {
    /// A step is being taken, by us or by the task itself; or the task has yet to begin.
    Stepping,
    /// For this future.
    Waits(Py<PyAny>),
    /// The loop will call.
    Scheduled,
    Ended,
}

/// What a cancellation came with.
pub(crate) struct Due(pub(crate) Option<Py<PyAny>>);

struct Task {
    itself: Py<PyAny>,
    step: Py<PyAny>,
}

/// What only the task itself knows how to handle.
pub(crate) enum Last {
    Yielded(Py<PyAny>),
    Raised(PyErr),
}

impl Parked {
    pub(crate) fn new(
        driver: Py<Driver>,
        coroutine: Py<PyAny>,
        context: Py<PyAny>,
        trace: Option<Box<Trace>>,
    ) -> Self {
        let drive = Drive { stage: Stage::Stepping, due: None, task: None, last: None };
        Self { driver, coroutine, context, trace, drive: UnderGil::new(drive) }
    }

    fn lock<'a, 'py: 'a>(&'a self, py: Python<'py>) -> RefMut<'a, Drive> {
        self.drive.lock(py)
    }

    pub(crate) fn task<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.lock(py).task.as_ref().map(|task| task.itself.bind(py).clone())
    }

    pub(crate) fn set(&self, py: Python<'_>, stage: Stage) {
        let before = std::mem::replace(&mut self.lock(py).stage, stage);
        drop(before);
    }

    /// Its last step is over: nothing of the task is kept any more.
    pub(crate) fn end(&self, py: Python<'_>) {
        let mut drive = self.lock(py);
        let before = (std::mem::replace(&mut drive.stage, Stage::Ended), drive.task.take());
        drop(drive);
        drop(before);
    }

    /// What the coroutine was to be told and has not been.
    pub(crate) fn take_due(&self, py: Python<'_>) -> Option<Due> {
        self.lock(py).due.take()
    }

    pub(crate) fn is_over(&self, py: Python<'_>) -> bool {
        matches!(self.lock(py).stage, Stage::Ended)
    }

    /// A drive begins, of what is not over. An error: this very task takes a step, and was told to go on within that.
    pub(crate) fn begin(&self, py: Python<'_>) -> PyResult<()> {
        let mut drive = self.lock(py);
        if !matches!(drive.stage, Stage::Stepping) {
            let before = std::mem::replace(&mut drive.stage, Stage::Stepping);
            drop(drive);
            drop(before);
            return Ok(());
        }
        drop(drive);
        let driver = self.driver.get();
        let task = self.task(py).map_or_else(|| driver.current_task(py), Ok)?;
        Current::enter(driver, &task).map(drop)
    }

    /// What the coroutine gets: what came of the future, unless the task was told to end.
    pub(crate) fn input(&self, py: Python<'_>, outcome: PyResult<()>) -> PyResult<()> {
        let Some(Due(message)) = self.take_due(py) else { return outcome };
        match outcome {
            Err(error) if error.is_instance_of::<CancelledError>(py) => Err(error),
            _ => Err(match message {
                Some(message) if !message.is_none(py) => CancelledError::new_err((message,)),
                _ => CancelledError::new_err(()),
            }),
        }
    }

    /// Told to end during the step that has just yielded `future`: the future is.
    pub(crate) fn pass_on(&self, future: &Bound<'_, PyAny>) {
        let py = future.py();
        let Some(Due(message)) = self.take_due(py) else { return };
        match cancel(future, message.as_ref()) {
            Ok(true) => return,
            Ok(false) => {}
            // It is waited for all the same.
            Err(error) => self.driver.get().report(py, error),
        }
        self.lock(py).due.get_or_insert(Due(message));
    }

    fn is_current(&self, py: Python<'_>) -> PyResult<bool> {
        let Some(task) = self.task(py) else { return Ok(false) };
        Ok(self.driver.get().current_task(py)?.is(&task))
    }

    /// Has the task take a step of its own, which finds `last`.
    pub(crate) fn hand_over(slf: &Bound<'_, Self>, last: Last) -> PyResult<()> {
        let py = slf.py();
        let step = {
            let mut drive = slf.get().lock(py);
            drive.last = Some(last);
            drive.task.as_ref().map(|task| task.step.clone_ref(py))
        };
        step.map_or(Ok(()), |step| step.call1(py, (slf,)).map(drop))
    }

    pub(crate) fn take_last(&self, py: Python<'_>) -> Option<Last> {
        self.lock(py).last.take()
    }
}

/// As asyncio's task written in C does it: whatever the future calls the argument.
fn cancel(future: &Bound<'_, PyAny>, message: Option<&Py<PyAny>>) -> PyResult<bool> {
    future.call_method1(intern!(future.py(), "cancel"), (message,))?.is_truthy()
}

#[pymethods]
impl Parked {
    // A coroutine, as the task knows it. Each of these is called within a step of the task's own.

    fn __next__(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyAny>>> {
        Self::step_within(slf, Ok(()))
    }

    #[pyo3(signature = (value, /))]
    fn send(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let _ = value;
        Self::step_within(slf, Ok(()))?.ok_or_else(|| PyStopIteration::new_err(()))
    }

    #[pyo3(signature = (kind, value = None, traceback = None))]
    fn throw(
        slf: &Bound<'_, Self>,
        kind: &Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        drop(traceback);
        Self::step_within(slf, Err(thrown(kind, value)))?.ok_or_else(|| PyStopIteration::new_err(()))
    }

    pub(crate) fn close(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.get().coroutine.bind(slf.py()).call_method0(intern!(slf.py(), "close")).map(drop)
    }

    fn __await__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    // A future, as the parked task knows it.

    #[getter(_asyncio_future_blocking)]
    fn blocking(&self) -> bool {
        true
    }

    #[setter(_asyncio_future_blocking)]
    fn set_blocking(&self, _blocking: bool) {}

    fn get_loop(&self, py: Python<'_>) -> Py<PyAny> {
        self.driver.get().event_loop(py).clone().unbind()
    }

    /// The task parks. `step` would have it take a step, and knows the task.
    #[pyo3(signature = (step, *, context = None))]
    fn add_done_callback(&self, step: &Bound<'_, PyAny>, context: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        drop(context);
        let py = step.py();
        let itself = step.getattr(intern!(py, "__self__"))?.unbind();
        let before = self.lock(py).task.replace(Task { itself, step: step.clone().unbind() });
        drop(before);
        Ok(())
    }

    fn result(&self) {}

    /// The task was told to end. Always true: what cannot be passed on is kept.
    #[pyo3(signature = (msg = None))]
    fn cancel(&self, py: Python<'_>, msg: Option<Py<PyAny>>) -> PyResult<bool> {
        let waited = match &self.lock(py).stage {
            Stage::Waits(future) => Some(future.clone_ref(py)),
            Stage::Ended => return Ok(false),
            _ => None,
        };
        if let Some(future) = waited {
            match cancel(future.bind(py), msg.as_ref()) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                // Told in its first step, and parked since: as `pass_on`.
                Err(error) if self.is_current(py)? => self.driver.get().report(py, error),
                Err(error) => return Err(error),
            }
        }
        let before = self.lock(py).due.replace(Due(msg));
        drop(before);
        Ok(true)
    }

    // For the task's own attributes (`request_task.py`).

    #[getter]
    fn coroutine(&self, py: Python<'_>) -> Py<PyAny> {
        self.coroutine.clone_ref(py)
    }

    /// What is waited for, if the coroutine waits.
    #[getter]
    fn waiter(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        match &self.lock(py).stage {
            Stage::Waits(future) => Some(future.clone_ref(py)),
            _ => None,
        }
    }

    /// Whether a cancellation is still to be thrown.
    #[getter]
    fn must_cancel(&self, py: Python<'_>) -> bool {
        self.lock(py).due.is_some()
    }

    /// The cancellation was taken back.
    fn forget_cancel(&self, py: Python<'_>) {
        drop(self.take_due(py));
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.driver)?;
        visit.call(&self.coroutine)?;
        visit.call(&self.context)?;
        // What is being changed is in use.
        if let Some(drive) = self.drive.visited(&visit) {
            if let Stage::Waits(future) = &drive.stage {
                visit.call(future)?;
            }
            if let Some(task) = &drive.task {
                visit.call(&task.itself)?;
                visit.call(&task.step)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self, py: Python<'_>) {
        self.end(py);
        drop(self.take_due(py));
    }
}
