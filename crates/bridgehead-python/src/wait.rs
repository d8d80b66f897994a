//! A future that the drain resolves: what `receive()` and `send()` give when they have to wait.
//!
//! It has asyncio's duck type, so every task can await it. It carries no value: whoever waits looks again when it is
//! resolved, so nothing is lost when a task is cancelled between the two.
//!
//! Invariant: resolved from the drain its callbacks run at once, each in its own context; from anywhere else, where a
//! task may be current, by `call_soon`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::asyncio::{CancelledError, InvalidStateError};
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

use crate::ffi::Entered;
use crate::names;
use crate::parked::Parked;
use crate::resume::Wakeup;

/// The future.
#[pyclass(module = "bridgehead._native", weakref)]
pub(crate) struct Wait {
    event_loop: Py<PyAny>,
    // Only the loop's thread comes here; pyo3 wants classes to be shareable.
    inner: Mutex<Inner>,
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
        let inner = Inner { state: State::Pending, callbacks: Vec::new() };
        Py::new(py, Self { event_loop, inner: Mutex::new(inner), blocking: true })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves on from `Pending`; gives whoever is to be called.
    fn finish(&self, state: State) -> Option<Vec<Callback>> {
        let mut inner = self.lock();
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
    pub(crate) fn call_back(&self, parked: Py<Parked>) {
        self.lock().callbacks.push(Callback::Drive(parked));
    }

    /// Resolves from the drain, where no task is current: whoever waits goes on right here.
    pub(crate) fn resolve_now(slf: &Bound<'_, Self>) {
        let Some(callbacks) = slf.borrow().finish(State::Resolved) else { return };
        for callback in callbacks {
            if let Err(error) = callback.call_now(slf) {
                names::report(slf.py(), &slf.borrow().event_loop, error);
            }
        }
    }

    /// Resolves from within a task: whoever waits goes on in the loop's next turn.
    pub(crate) fn resolve_soon(slf: &Bound<'_, Self>) -> PyResult<()> {
        let callbacks = slf.borrow().finish(State::Resolved);
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
    fn get_loop(&self, py: Python<'_>) -> Py<PyAny> {
        self.event_loop.clone_ref(py)
    }

    #[getter]
    fn _loop(&self, py: Python<'_>) -> Py<PyAny> {
        self.event_loop.clone_ref(py)
    }

    pub(crate) fn done(&self) -> bool {
        !matches!(self.lock().state, State::Pending)
    }

    fn cancelled(&self) -> bool {
        matches!(self.lock().state, State::Cancelled(_))
    }

    pub(crate) fn result(&self, py: Python<'_>) -> PyResult<()> {
        match &self.lock().state {
            State::Resolved => Ok(()),
            State::Pending => Err(InvalidStateError::new_err("Result is not set.")),
            State::Cancelled(message) => Err(cancelled(py, message.as_ref())),
        }
    }

    /// For `asyncio.gather`, as the next one.
    #[getter]
    fn _cancel_message(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        match &self.lock().state {
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
        let mut inner = this.lock();
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
            self.lock().callbacks.iter().filter_map(|one| Some(one.named()?.clone_ref(py))).collect();
        let mut equal = Vec::new();
        for call in calls {
            if call.bind(py).eq(callback)? {
                equal.push(call);
            }
        }
        let mut inner = self.lock();
        let removed: Vec<_> = inner
            .callbacks
            .extract_if(.., |one| one.named().is_some_and(|named| equal.iter().any(|call| call.is(named))))
            .collect();
        drop(inner);
        Ok(removed.len())
    }

    #[pyo3(signature = (msg = None))]
    fn cancel(slf: &Bound<'_, Self>, msg: Option<Py<PyAny>>) -> PyResult<bool> {
        let callbacks = slf.borrow().finish(State::Cancelled(msg));
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
        if slf.borrow().done() {
            slf.borrow().result(slf.py())?;
            return Ok(None);
        }
        slf.borrow_mut().blocking = true;
        Ok(Some(slf))
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.event_loop)?;
        // A lock that is held is held by this thread, further down; what it guards is in use.
        if let Ok(inner) = self.inner.try_lock() {
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

    fn __clear__(&self) {
        // Taken first: dropping runs Python, which must not find the lock held.
        let callbacks = std::mem::take(&mut self.lock().callbacks);
        drop(callbacks);
    }
}
