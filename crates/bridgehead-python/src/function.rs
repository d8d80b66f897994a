//! What an application gets as `receive` and `send`: functions, and coroutine functions to whoever asks.
//!
//! What a call of them does is `awaitable`'s. A method of `Http` would do as well, but for those who ask first:
//! `inspect.iscoroutinefunction` takes nothing written in C for one, unless it has all that a Python function has.
//!
//! The collector does not know them. It need not: what an exchange refers to is let go of when the application returns.
//!
//! Invariant: the code that they show has their signature, and never runs.

use std::ffi::CStr;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::awaitable::{Receive, Send};
use crate::flusher::Flusher;
use crate::http::Http;
use crate::resume::{Step, Wakeup};

/// ASGI's `receive`.
#[pyclass(frozen, weakref, name = "receive", module = "bridgehead._native")]
pub(crate) struct ReceiveFunction(Py<Http>);

/// ASGI's `send`.
#[pyclass(frozen, weakref, name = "send", module = "bridgehead._native")]
pub(crate) struct SendFunction(Py<Http>);

/// Makes the types of what requests are given, beforehand: what strikes the thread while one is made, as a signal's handler may
/// in Python's own code for that, would leave it unmade.
pub(crate) fn prepare(py: Python<'_>) {
    py.get_type::<ReceiveFunction>();
    py.get_type::<SendFunction>();
    py.get_type::<Receive>();
    py.get_type::<Send>();
    py.get_type::<Flusher>();
    py.get_type::<Wakeup>();
    py.get_type::<Step>();
}

impl ReceiveFunction {
    pub(crate) fn new(http: Py<Http>) -> Self {
        Self(http)
    }
}

impl SendFunction {
    pub(crate) fn new(http: Py<Http>) -> Self {
        Self(http)
    }
}

/// The code of a coroutine function that is defined like this.
fn code_of(py: Python<'_>, name: &str, definition: &CStr) -> PyResult<Py<PyAny>> {
    let scope = PyDict::new(py);
    py.run(definition, Some(&scope), None)?;
    Ok(scope.as_any().get_item(name)?.getattr("__code__")?.unbind())
}

#[pymethods]
impl ReceiveFunction {
    #[classattr]
    fn __code__(py: Python<'_>) -> PyResult<Py<PyAny>> {
        code_of(py, "receive", c"async def receive(): ...")
    }

    #[classattr]
    fn __defaults__(py: Python<'_>) -> Py<PyAny> {
        py.None()
    }

    #[classattr]
    fn __kwdefaults__(py: Python<'_>) -> Py<PyAny> {
        py.None()
    }

    #[getter]
    fn __name__(&self) -> &'static str {
        "receive"
    }

    fn __call__(&self, py: Python<'_>) -> Receive {
        Receive::new(self.0.clone_ref(py))
    }
}

#[pymethods]
impl SendFunction {
    #[classattr]
    fn __code__(py: Python<'_>) -> PyResult<Py<PyAny>> {
        code_of(py, "send", c"async def send(message): ...")
    }

    #[classattr]
    fn __defaults__(py: Python<'_>) -> Py<PyAny> {
        py.None()
    }

    #[classattr]
    fn __kwdefaults__(py: Python<'_>) -> Py<PyAny> {
        py.None()
    }

    #[getter]
    fn __name__(&self) -> &'static str {
        "send"
    }

    fn __call__(&self, message: Bound<'_, PyAny>) -> Send {
        Send::new(self.0.clone_ref(message.py()), message)
    }
}
