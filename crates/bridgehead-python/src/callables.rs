//! What the bridge needs of Python to answer requests.
//!
//! Invariant: called on the loop's thread only.

use pyo3::prelude::*;

/// Kept as long as the server.
pub(crate) struct Callables {
    /// The ASGI application.
    pub(crate) application: Py<PyAny>,
    /// `bridgehead.asgi.answer`: the coroutine of one request.
    pub(crate) answer: Py<PyAny>,
    /// Called once everything is over.
    pub(crate) finished: Py<PyAny>,
    /// Called with a sentence about the application.
    pub(crate) complain: Py<PyAny>,
    /// Gives the route by which the framework answers a request, of its scope.
    pub(crate) route: Py<PyAny>,
    /// Gives place and request, in words, of a slow step: by a scope, a task, or by the current task.
    pub(crate) whose: Py<PyAny>,
    /// Puts a span into a handler's context, if requests are traced and the application can have spans.
    pub(crate) attach: Option<Py<PyAny>>,
    /// Takes the lines that Python's loggers are to have.
    pub(crate) reports: Py<PyAny>,
}
