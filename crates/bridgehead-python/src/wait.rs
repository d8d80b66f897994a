//! A future that the drain resolves: what `receive()` and `send()` give when they have to wait.
//!
//! It has asyncio's duck type, so every task can await it. It carries no value: whoever waits looks again when it is
//! resolved, so nothing is lost when a task is cancelled between the two.
//!
//! Invariant: resolved from the drain its callbacks run at once, each in its own context; from anywhere else, where a
//! task may be current, by `call_soon`.

use std::cell::RefMut;

use pyo3::exceptions::asyncio::{CancelledError, InvalidStateError};
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

use crate::ffi::Entered;
use crate::names;
use crate::parked::Parked;
use crate::resume::Wakeup;
use crate::under_gil::UnderGil;

/// The future. A class that Python may derive from, as asyncio's own: CPython's tests of futures come with one that holds
/// a result.
#[pyclass(module = "bridgehead._native", weakref, subclass)]
pub(crate) struct Wait {
    event_loop: Py<PyAny>,
    inner: UnderGil<Inner>,
    /// asyncio's protocol: true while it is being yielded to a task.
    #[pyo3(get, set, name = "_asyncio_future_blocking")]
    blocking: bool,
}

struct Inner {
    state: State,
    callbacks: Vec<Callback>,
}

enum State {
    Pending,
    Resolved,
    Cancelled(Option<Py<PyAny>>),
}

enum Callback {
    /// Anybody's.
    Plain { call: Py<PyAny>, context: Py<PyAny> },
    /// A coroutine that we drive: it goes on without a call of Python's between.
    Drive(Py<Parked>),
}

impl Wait {
    pub(crate) fn new(py: Python<'_>, event_loop: Py<PyAny>) -> PyResult<Py<Self>> {
        Py::new(py, Self { blocking: true, ..Self::of(event_loop) })
    }

    fn lock<'a, 'py: 'a>(&'a self, py: Python<'py>) -> RefMut<'a, Inner> {
        self.inner.lock(py)
    }

    /// Moves on from `Pending`; gives whoever is to be called.
    fn finish(&self, py: Python<'_>, state: State) -> Option<Vec<Callback>> {
        let mut inner = self.lock(py);
        if !matches!(inner.state, State::Pending) {
            return None;
        }
        inner.state = state;
        Some(std::mem::take(&mut inner.callbacks))
    }

    /// It was yielded to be waited for on this loop. False if that is not so.
    pub(crate) fn be_awaited(&mut self, event_loop: &Bound<'_, PyAny>) -> bool {
        event_loop.is(&self.event_loop) && std::mem::take(&mut self.blocking)
    }

    /// Has a coroutine go on when this is resolved; it is not yet.
    pub(crate) fn call_back(&self, py: Python<'_>, parked: Py<Parked>) {
        self.lock(py).callbacks.push(Callback::Drive(parked));
    }

    /// Resolves from the drain, where no task is current: whoever waits goes on right here.
    pub(crate) fn resolve_now(slf: &Bound<'_, Self>) {
        let Some(callbacks) = slf.borrow().finish(slf.py(), State::Resolved) else { return };
        for callback in callbacks {
            if let Err(error) = callback.call_now(slf) {
                names::report(slf.py(), &slf.borrow().event_loop, error);
            }
        }
    }

    /// Resolves from within a task: whoever waits goes on in the loop's next turn.
    pub(crate) fn resolve_soon(slf: &Bound<'_, Self>) -> PyResult<()> {
        let callbacks = slf.borrow().finish(slf.py(), State::Resolved);
        Self::schedule(slf, callbacks)
    }

    fn schedule(slf: &Bound<'_, Self>, callbacks: Option<Vec<Callback>>) -> PyResult<()> {
        let py = slf.py();
        let event_loop = slf.borrow().event_loop.clone_ref(py);
        for callback in callbacks.into_iter().flatten() {
            let (call, context) = callback.parts(py)?;
            let context = [(names::context(py), context)].into_py_dict(py)?;
            event_loop.call_method(py, names::call_soon(py), (call, slf), Some(&context))?;
        }
        Ok(())
    }
}

impl Callback {
    fn call_now(&self, wait: &Bound<'_, Wait>) -> PyResult<()> {
        let py = wait.py();
        match self {
            Self::Drive(parked) => Parked::wake(parked.bind(py), wait),
            Self::Plain { call, context } => {
                let _entered = Entered::new(context.bind(py))?;
                call.call1(py, (wait,)).map(drop)
            }
        }
    }

    /// What `remove_done_callback` may name.
    fn named(&self) -> Option<&Py<PyAny>> {
        match self {
            Self::Plain { call, .. } => Some(call),
            Self::Drive(_) => None,
        }
    }

    /// What the loop is to call, and the context that it is to be called in.
    fn parts(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        Ok(match self {
            Self::Plain { call, context } => (call.clone_ref(py), context.clone_ref(py)),
            Self::Drive(parked) => {
                (Wakeup::of(parked.bind(py))?.unbind(), parked.get().context.clone_ref(py))
            }
        })
    }
}

fn cancelled(py: Python<'_>, message: Option<&Py<PyAny>>) -> PyErr {
    match message {
        Some(message) => CancelledError::new_err((message.clone_ref(py),)),
        None => CancelledError::new_err(()),
    }
}

#[pymethods]
impl Wait {
    /// One that nobody has been given yet.
    #[new]
    fn of(event_loop: Py<PyAny>) -> Self {
        let inner = Inner { state: State::Pending, callbacks: Vec::new() };
        Self { event_loop, inner: UnderGil::new(inner), blocking: false }
    }

    /// Resolves it from Python's code, where a task may be current.
    fn resolve(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::resolve_soon(slf)
    }

    fn get_loop(&self, py: Python<'_>) -> Py<PyAny> {
        self.event_loop.clone_ref(py)
    }

    #[getter]
    fn _loop(&self, py: Python<'_>) -> Py<PyAny> {
        self.event_loop.clone_ref(py)
    }

    pub(crate) fn done(&self, py: Python<'_>) -> bool {
        !matches!(self.lock(py).state, State::Pending)
    }

    fn cancelled(&self, py: Python<'_>) -> bool {
        matches!(self.lock(py).state, State::Cancelled(_))
    }

    pub(crate) fn result(&self, py: Python<'_>) -> PyResult<()> {
        match &self.lock(py).state {
            State::Resolved => Ok(()),
            State::Pending => Err(InvalidStateError::new_err("Result is not set.")),
            State::Cancelled(message) => Err(cancelled(py, message.as_ref())),
        }
    }

    /// For `asyncio.gather`, as the next one.
    #[getter]
    fn _cancel_message(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        match &self.lock(py).state {
            State::Cancelled(Some(message)) => Some(message.clone_ref(py)),
            _ => None,
        }
    }

    fn _make_cancelled_error(&self, py: Python<'_>) -> Py<PyAny> {
        cancelled(py, self._cancel_message(py).as_ref()).into_value(py).into_any()
    }

    fn exception(&self, py: Python<'_>) -> PyResult<()> {
        self.result(py)
    }

    #[pyo3(signature = (callback, *, context = None))]
    fn add_done_callback(
        slf: &Bound<'_, Self>,
        callback: Py<PyAny>,
        context: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let py = slf.py();
        let context = match context {
            Some(context) => context,
            None => names::copy_context(py)?,
        };
        let callback = Callback::Plain { call: callback, context };
        let this = slf.borrow();
        let mut inner = this.lock(py);
        if matches!(inner.state, State::Pending) {
            inner.callbacks.push(callback);
            return Ok(());
        }
        drop(inner);
        drop(this);
        Self::schedule(slf, Some(vec![callback]))
    }

    fn remove_done_callback(&self, py: Python<'_>, callback: &Bound<'_, PyAny>) -> PyResult<usize> {
        // Compared outside the lock: equality may run Python, and may raise.
        let calls: Vec<_> =
            self.lock(py).callbacks.iter().filter_map(|one| Some(one.named()?.clone_ref(py))).collect();
        let mut equal = Vec::new();
        for call in calls {
            if call.bind(py).eq(callback)? {
                equal.push(call);
            }
        }
        let mut inner = self.lock(py);
        let removed: Vec<_> = inner
            .callbacks
            .extract_if(.., |one| one.named().is_some_and(|named| equal.iter().any(|call| call.is(named))))
            .collect();
        drop(inner);
        Ok(removed.len())
    }

    #[pyo3(signature = (msg = None))]
    fn cancel(slf: &Bound<'_, Self>, msg: Option<Py<PyAny>>) -> PyResult<bool> {
        let callbacks = slf.borrow().finish(slf.py(), State::Cancelled(msg));
        let cancelled = callbacks.is_some();
        Self::schedule(slf, callbacks)?;
        Ok(cancelled)
    }

    fn __await__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Yields itself until it is done, as asyncio's own future does.
    fn __next__<'py>(slf: Bound<'py, Self>) -> PyResult<Option<Bound<'py, Self>>> {
        if slf.borrow().done(slf.py()) {
            slf.borrow().result(slf.py())?;
            return Ok(None);
        }
        slf.borrow_mut().blocking = true;
        Ok(Some(slf))
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.event_loop)?;
        // What is being changed is in use.
        if let Some(inner) = self.inner.visited(&visit) {
            for callback in &inner.callbacks {
                match callback {
                    Callback::Plain { call, context } => {
                        visit.call(call)?;
                        visit.call(context)?;
                    }
                    Callback::Drive(parked) => visit.call(parked)?,
                }
            }
        }
        Ok(())
    }

    fn __clear__(&self, py: Python<'_>) {
        // Taken first: dropping runs Python, which must not find the lock held.
        let callbacks = std::mem::take(&mut self.lock(py).callbacks);
        drop(callbacks);
    }
}
