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
//! Invariant: nothing of a first step reaches the loop's queue of callbacks. A `call_soon` that an application has set on its
//! loop is there again as soon as the task is made, and what is not that first step goes through it meanwhile.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use pyo3::{intern, sync::PyOnceLock};

use crate::ffi::Entered;
use crate::names;
use crate::stepper::{Request, Stepper};
use crate::under_gil::UnderGil;

/// Makes real tasks.
pub(crate) struct RealTask {
    task_type: Py<PyAny>,
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
    /// The loop's own attributes. Changed in themselves: what is there has to be known and put back.
    attributes: Py<PyDict>,
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
            // A loop with slots, or none of its own attributes, has none.
            match event_loop.getattr(intern!(py, "__dict__")).map(Bound::cast_into::<PyDict>) {
                Ok(Ok(attributes)) => FirstStep::Captured(Captured::new(event_loop, attributes)?),
                Ok(Err(_)) | Err(_) => FirstStep::Scheduled,
            }
        };
        Ok(Self {
            task_type,
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
        let (made, step) = captured.during(&context, || self.make(coroutine, &context))?;
        let task = made?;
        if let Some(step) = step {
            let _entered = Entered::new(&context)?;
            step.call0(py)?;
        }
        Ok(task)
    }
}

impl Captured {
    fn new(event_loop: &Bound<'_, PyAny>, attributes: Bound<'_, PyDict>) -> PyResult<Self> {
        let (py, name) = (event_loop.py(), names::call_soon(event_loop.py()));
        let set = attributes.get_item(name)?;
        if set.is_some() {
            attributes.del_item(name)?;
        }
        let usual = event_loop.getattr(name);
        put(&attributes, set.as_ref())?;
        let capture = Bound::new(py, Capture::new(usual?.unbind()))?;
        let call_soon = capture.getattr(name)?.unbind();
        Ok(Self { attributes: attributes.unbind(), capture: capture.unbind(), call_soon })
    }

    /// Does `work` while the loop's `call_soon` is ours; gives what that was called with beside.
    fn during<T>(
        &self,
        context: &Bound<'_, PyAny>,
        work: impl FnOnce() -> T,
    ) -> PyResult<(T, Option<Py<PyAny>>)> {
        let (py, name) = (context.py(), names::call_soon(context.py()));
        let (attributes, capture) = (self.attributes.bind(py), self.capture.get());
        let set = attributes.get_item(name)?;
        capture.expect_from(context, set.as_ref());
        attributes.set_item(name, &self.call_soon)?;
        let done = work();
        let step = capture.take(py);
        match &set {
            None => attributes.del_item(name)?,
            Some(_) => put(attributes, set.as_ref())?,
        }
        Ok((done, step))
    }
}

/// Sets the loop's own `call_soon`, if it has one.
fn put(attributes: &Bound<'_, PyDict>, set: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    set.map_or(Ok(()), |set| attributes.set_item(names::call_soon(attributes.py()), set))
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
    /// The loop's.
    usual: Py<PyAny>,
    /// The application's, while a task is made.
    set: UnderGil<Option<Py<PyAny>>>,
    awaited: UnderGil<Awaited>,
}

enum Awaited {
    Nothing,
    /// The first step of the task that has this context, which is no other's.
    StepIn(Py<PyAny>),
    Step(Py<PyAny>),
}

impl Capture {
    fn new(usual: Py<PyAny>) -> Self {
        Self { usual, set: UnderGil::new(None), awaited: UnderGil::new(Awaited::Nothing) }
    }

    fn change(&self, py: Python<'_>, next: Awaited) -> Awaited {
        std::mem::replace(&mut self.awaited.lock(py), next)
    }

    fn expect_from(&self, context: &Bound<'_, PyAny>, set: Option<&Bound<'_, PyAny>>) {
        let py = context.py();
        if let Some(set) = set {
            let before = self.set.lock(py).replace(set.clone().unbind());
            drop(before);
        }
        drop(self.change(py, Awaited::StepIn(context.clone().unbind())));
    }

    fn take(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let set = self.set.lock(py).take();
        drop(set);
        match self.change(py, Awaited::Nothing) {
            Awaited::Step(step) => Some(step),
            Awaited::Nothing | Awaited::StepIn(_) => None,
        }
    }

    fn awaits(&self, py: Python<'_>, context: Option<&Bound<'_, PyAny>>) -> bool {
        let awaited = self.awaited.lock(py);
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
        let py = callback.py();
        if !self.awaits(py, context) {
            return self.pass_on(callback, args, context).map(Some);
        }
        let step = if args.is_empty() { callback.clone() } else { partial(callback, args)? };
        drop(self.change(py, Awaited::Step(step.unbind())));
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
        let set = self.set.lock(py).as_ref().map(|set| set.clone_ref(py));
        let call_soon = set.as_ref().unwrap_or(&self.usual);
        call_soon.call(py, with_first(callback, args)?, Some(&keywords))
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
struct Names(UnderGil<Vec<u8>>);

const PREFIX: &str = "Task-";
const BEFORE_FIRST: &str = "Task-1000000000";

impl Default for Names {
    fn default() -> Self {
        Self(UnderGil::new(BEFORE_FIRST.into()))
    }
}

impl Names {
    fn next<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        let mut last = self.0.lock(py);
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
