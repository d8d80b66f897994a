//! The seam between requests and what runs their coroutines.
//!
//! A stepper makes a task of a coroutine and runs its first step before it returns, so that a handler that does not
//! wait is over by then.
//!
//! Invariant: called on the loop's thread, in a callback, with no task current.

use bridgehead_net::RequestHead;
use pyo3::prelude::*;

/// Whose coroutine it is.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) head: &'a RequestHead,
}

/// Runs coroutines.
pub(crate) trait Stepper: Send + Sync {
    /// Starts `coroutine` in `context` and takes its first step. Gives the task, which the caller keeps: asyncio
    /// itself holds tasks weakly.
    fn start<'py>(
        &self,
        coroutine: Bound<'py, PyAny>,
        context: Bound<'py, PyAny>,
        request: Request<'_>,
    ) -> PyResult<Bound<'py, PyAny>>;
}
