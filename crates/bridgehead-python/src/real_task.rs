//! Runs coroutines as asyncio's own tasks, whose first step is taken at once.
//!
//! | Python | how the first step is had |
//! |---|---|
//! | 3.12 and later | `Task(…, eager_start=True)` |
//! | 3.11 | the loop's `call_soon` is ours while the task is made; what it would have scheduled is called instead |
//! | a loop whose attributes cannot be set | it is not had: the task starts in the loop's next turn |
//!
//! Up to 3.11 a task prints its name as it is made, with C's `printf`; it is given one that counts on its own.
//!
//! Invariant: nothing of a first step reaches the loop's queue of callbacks.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use pyo3::{intern, sync::PyOnceLock};

use crate::ffi::Entered;
use crate::names;
use crate::stepper::{Request, Stepper};

/// Makes real tasks.
pub(crate) struct RealTask {
    task_type: Py<PyAny>,
    event_loop: Py<PyAny>,
    /// Completed for each task.
    keywords: Py<PyDict>,
    first_step: FirstStep,
    names: Option<Names>,
}

enum FirstStep {
    Eager,
    Captured(Captured),
    Scheduled,
}

struct Captured {
    capture: Py<Capture>,
    /// Its method, which C calls without a tuple or a dictionary.
    call_soon: Py<PyAny>,
}

impl RealTask {
    /// Makes tasks of `task_type`: `asyncio.Task`, or a type derived from it.
    pub(crate) fn new(event_loop: &Bound<'_, PyAny>, task_type: Py<PyAny>) -> PyResult<Self> {
        let py = event_loop.py();
        let keywords = PyDict::new(py);
        keywords.set_item("loop", event_loop)?;
        let is_eager = py.version_info() >= (3, 12);
        let first_step = if is_eager {
            keywords.set_item("eager_start", true)?;
            FirstStep::Eager
        } else {
            let name = names::call_soon(py);
            let capture = Bound::new(py, Capture::new(event_loop.getattr(name)?.unbind()))?;
            let call_soon = capture.getattr(name)?;
            // A loop with slots, or none of its own attributes, refuses.
            match event_loop.setattr(name, &call_soon).and_then(|()| event_loop.delattr(name)) {
                Ok(()) => {
                    FirstStep::Captured(Captured { capture: capture.unbind(), call_soon: call_soon.unbind() })
                }
                Err(_) => FirstStep::Scheduled,
            }
        };
        Ok(Self {
            task_type,
            event_loop: event_loop.clone().unbind(),
            keywords: keywords.unbind(),
            first_step,
            names: (!is_eager).then(Names::default),
        })
    }

    fn make<'py>(
        &self,
        coroutine: Bound<'py, PyAny>,
        context: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = coroutine.py();
        let keywords = self.keywords.bind(py);
        keywords.set_item(names::context(py), context)?;
        if let Some(names) = &self.names {
            keywords.set_item(intern!(py, "name"), names.next(py))?;
        }
        // It takes its own references before it runs anything, so it is the same to it what these become.
        let made = self.task_type.bind(py).call((coroutine,), Some(keywords));
        keywords.set_item(names::context(py), py.None())?;
        made
    }

    /// Makes the task and has its first step taken.
    pub(crate) fn begin<'py>(
        &self,
        coroutine: Bound<'py, PyAny>,
        context: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let FirstStep::Captured(captured) = &self.first_step else { return self.make(coroutine, &context) };
        let py = coroutine.py();
        let event_loop = self.event_loop.bind(py);
        let capture = captured.capture.get();
        capture.expect_from(&context);
        event_loop.setattr(names::call_soon(py), &captured.call_soon)?;
        let made = self.make(coroutine, &context);
        event_loop.delattr(names::call_soon(py))?;
        let step = capture.take();
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
    #[pyo3(signature = (callback, *args, context = None))]
    fn call_soon(
        &self,
        callback: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        context: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        if !self.awaits(context) {
            return self.pass_on(callback, args, context).map(Some);
        }
        let step = if args.is_empty() { callback.clone() } else { partial(callback, args)? };
        drop(self.change(Awaited::Step(step.unbind())));
        Ok(None)
    }
}

impl Capture {
    /// What is none of ours.
    fn pass_on(
        &self,
        callback: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        context: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let py = callback.py();
        let keywords = PyDict::new(py);
        if let Some(context) = context {
            keywords.set_item(names::context(py), context)?;
        }
        self.usual.call(py, with_first(callback, args)?, Some(&keywords))
    }
}

fn partial<'py>(callback: &Bound<'py, PyAny>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    static PARTIAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = callback.py();
    let partial = PARTIAL
        .get_or_try_init(py, || py.import("functools")?.getattr(intern!(py, "partial")).map(Bound::unbind))?;
    partial.bind(py).call1(with_first(callback, args)?)
}

fn with_first<'py>(first: &Bound<'py, PyAny>, rest: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(first.py(), std::iter::once(first.clone()).chain(rest.iter()).collect::<Vec<_>>())
}

/// Names of tasks, as asyncio's own look. Asyncio counts its own from 1, and gets nowhere near these.
// As above: the loop's thread only.
struct Names(Mutex<Vec<u8>>);

const PREFIX: &str = "Task-";
const BEFORE_FIRST: &str = "Task-1000000000";

impl Default for Names {
    fn default() -> Self {
        Self(Mutex::new(BEFORE_FIRST.into()))
    }
}

impl Names {
    fn next<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        count_up(&mut last, PREFIX.len());
        PyString::new(py, &String::from_utf8_lossy(&last))
    }
}

/// Adds one to the number behind so many letters.
fn count_up(text: &mut Vec<u8>, letters: usize) {
    for digit in text[letters..].iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    text.insert(letters, b'1');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_on_as_numbers_do() {
        for (before, after) in [("Task-1", "Task-2"), ("Task-1099", "Task-1100"), ("Task-99", "Task-100")] {
            let mut name = before.into();
            count_up(&mut name, PREFIX.len());
            assert_eq!(String::from_utf8(name).as_deref(), Ok(after));
        }
    }
}
