//! Runs coroutines as asyncio's own tasks, whose first step is taken at once.
//!
//! | Python | how the first step is had |
//! |---|---|
//! | 3.12 and later | `Task(…, eager_start=True)` |
//! | 3.11 | the loop's `call_soon` is ours while the task is made; what it would have scheduled is called instead |
//! | a loop whose attributes cannot be set | it is not had: the task starts in the loop's next turn |
//!
//! Invariant: nothing of a first step reaches the loop's queue of callbacks.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{intern, sync::PyOnceLock};

use crate::ffi::Entered;
use crate::names;
use crate::stepper::Stepper;

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
    pub(crate) fn new(event_loop: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = event_loop.py();
        let keywords = PyDict::new(py);
        keywords.set_item("loop", event_loop)?;
        let first_step = if py.version_info() >= (3, 12) {
            keywords.set_item("eager_start", true)?;
            FirstStep::Eager
        } else {
            let capture = Py::new(py, Capture::default())?;
            let name = names::call_soon(py);
            // A loop with slots, or none of its own attributes, refuses.
            match event_loop.setattr(name, &capture).and_then(|()| event_loop.delattr(name)) {
                Ok(()) => FirstStep::Captured(capture),
                Err(_) => FirstStep::Scheduled,
            }
        };
        Ok(Self {
            task_type: py.import("asyncio")?.getattr("Task")?.unbind(),
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
}

impl Stepper for RealTask {
    fn start<'py>(
        &self,
        coroutine: Bound<'py, PyAny>,
        context: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let FirstStep::Captured(capture) = &self.first_step else { return self.make(coroutine, &context) };
        let py = coroutine.py();
        let event_loop = self.event_loop.bind(py);
        event_loop.setattr(names::call_soon(py), capture)?;
        let made = self.make(coroutine, &context);
        event_loop.delattr(names::call_soon(py))?;
        let task = made?;
        if let Some(step) = capture.get().take() {
            let _entered = Entered::new(&context)?;
            step.call0(py)?;
        }
        Ok(task)
    }
}

/// Stands in for `loop.call_soon` while a task is made, and keeps what the task wanted to have called.
#[pyclass(frozen, module = "bridgehead._native")]
#[derive(Default)]
struct Capture {
    // Set and taken within one call on the loop's thread; pyo3 wants classes to be shareable.
    step: Mutex<Option<Py<PyAny>>>,
}

impl Capture {
    fn take(&self) -> Option<Py<PyAny>> {
        self.step.lock().ok()?.take()
    }
}

#[pymethods]
impl Capture {
    #[pyo3(signature = (callback, *args, context = None))]
    fn __call__(
        &self,
        callback: Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        context: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        // The start runs in the context that the task was given, which is the one that comes back here.
        drop(context);
        let step = if args.is_empty() { callback } else { partial(&callback, args)? };
        if let Ok(mut kept) = self.step.lock() {
            *kept = Some(step.unbind());
        }
        Ok(())
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
