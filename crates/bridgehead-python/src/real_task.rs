//! Runs coroutines as asyncio's own tasks, whose first step is taken at once.
//!
//! | Python | how the first step is had |
//! |---|---|
//! | 3.12 and later | `Task(…, eager_start=True)` |
//! | 3.11 | the loop's `call_soon` is ours while the task is made; what it would have scheduled is called instead |
//! | a loop whose attributes cannot be set | it is not had: the task starts in the loop's next turn |
//!
//! Invariant: nothing of a first step reaches the loop's queue of callbacks.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{intern, sync::PyOnceLock};

use crate::ffi::Entered;
use crate::names;
use crate::stepper::{Request, Stepper};

/// Makes real tasks.
pub(crate) struct RealTask {
    task_type: Py<PyAny>,
    event_loop: Py<PyAny>,
    /// Copied and completed for each task.
    keywords: Py<PyDict>,
    first_step: FirstStep,
}

enum FirstStep {
    Eager,
    Captured(Py<Capture>),
    Scheduled,
}

impl RealTask {
    /// Makes tasks of `task_type`: `asyncio.Task`, or a type derived from it.
    pub(crate) fn new(event_loop: &Bound<'_, PyAny>, task_type: Py<PyAny>) -> PyResult<Self> {
        let py = event_loop.py();
        let keywords = PyDict::new(py);
        keywords.set_item("loop", event_loop)?;
        let first_step = if py.version_info() >= (3, 12) {
            keywords.set_item("eager_start", true)?;
            FirstStep::Eager
        } else {
            let name = names::call_soon(py);
            let capture = Py::new(py, Capture::new(event_loop.getattr(name)?.unbind()))?;
            // A loop with slots, or none of its own attributes, refuses.
            match event_loop.setattr(name, &capture).and_then(|()| event_loop.delattr(name)) {
                Ok(()) => FirstStep::Captured(capture),
                Err(_) => FirstStep::Scheduled,
            }
        };
        Ok(Self {
            task_type,
            event_loop: event_loop.clone().unbind(),
            keywords: keywords.unbind(),
            first_step,
        })
    }

    fn make<'py>(
        &self,
        coroutine: Bound<'py, PyAny>,
        context: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = coroutine.py();
        let keywords = self.keywords.bind(py).copy()?;
        keywords.set_item(names::context(py), context)?;
        self.task_type.bind(py).call((coroutine,), Some(&keywords))
    }

    /// Makes the task and has its first step taken.
    pub(crate) fn begin<'py>(
        &self,
        coroutine: Bound<'py, PyAny>,
        context: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let FirstStep::Captured(capture) = &self.first_step else { return self.make(coroutine, &context) };
        let py = coroutine.py();
        let event_loop = self.event_loop.bind(py);
        capture.get().expect_from(&context);
        event_loop.setattr(names::call_soon(py), capture)?;
        let made = self.make(coroutine, &context);
        event_loop.delattr(names::call_soon(py))?;
        let step = capture.get().take();
        let task = made?;
        if let Some(step) = step {
            let _entered = Entered::new(&context)?;
            step.call0(py)?;
        }
        Ok(task)
    }
}

impl Stepper for RealTask {
    fn start<'py>(
        &self,
        coroutine: Bound<'py, PyAny>,
        context: Bound<'py, PyAny>,
        _request: Request<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.begin(coroutine, context)
    }
}

/// Stands in for `loop.call_soon` while a task is made, and keeps what the task wanted to have called. A finalizer or a
/// signal handler may run meanwhile: what those want goes its usual way.
#[pyclass(frozen, module = "bridgehead._native")]
struct Capture {
    usual: Py<PyAny>,
    // Changed within one call on the loop's thread; pyo3 wants classes to be shareable.
    awaited: Mutex<Awaited>,
}

enum Awaited {
    Nothing,
    /// The first step of the task that has this context, which is no other's.
    StepIn(Py<PyAny>),
    Step(Py<PyAny>),
}

impl Capture {
    fn new(usual: Py<PyAny>) -> Self {
        Self { usual, awaited: Mutex::new(Awaited::Nothing) }
    }

    fn change(&self, next: Awaited) -> Awaited {
        std::mem::replace(&mut self.awaited.lock().unwrap_or_else(PoisonError::into_inner), next)
    }

    fn expect_from(&self, context: &Bound<'_, PyAny>) {
        drop(self.change(Awaited::StepIn(context.clone().unbind())));
    }

    fn take(&self) -> Option<Py<PyAny>> {
        match self.change(Awaited::Nothing) {
            Awaited::Step(step) => Some(step),
            Awaited::Nothing | Awaited::StepIn(_) => None,
        }
    }

    fn awaits(&self, context: Option<&Bound<'_, PyAny>>) -> bool {
        let awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        matches!((&*awaited, context), (Awaited::StepIn(wanted), Some(context)) if context.is(wanted))
    }
}

#[pymethods]
impl Capture {
    #[pyo3(signature = (*args, **keywords))]
    fn __call__(
        &self,
        args: &Bound<'_, PyTuple>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let py = args.py();
        let context = keywords.map(|keywords| keywords.get_item(names::context(py))).transpose()?.flatten();
        if !self.awaits(context.as_ref()) {
            return self.usual.call(py, args, keywords).map(Some);
        }
        let callback = args.get_item(0)?;
        let rest = args.get_slice(1, args.len());
        let step = if rest.is_empty() { callback } else { partial(&callback, &rest)? };
        drop(self.change(Awaited::Step(step.unbind())));
        Ok(None)
    }
}

fn partial<'py>(callback: &Bound<'py, PyAny>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    static PARTIAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = callback.py();
    let partial = PARTIAL
        .get_or_try_init(py, || py.import("functools")?.getattr(intern!(py, "partial")).map(Bound::unbind))?;
    let mut all = vec![callback.clone()];
    all.extend(args.iter());
    partial.bind(py).call1(PyTuple::new(py, all)?)
}
