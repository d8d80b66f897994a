//! Python objects that are the same for every request: names, dictionary keys, small constants.
//!
//! Made once; a request takes references.

use pyo3::exceptions::{PyKeyboardInterrupt, PySystemExit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyString};

use crate::ffi;

/// Declares a function for each interned name.
macro_rules! interned {
    ($($name:ident = $text:literal),+ $(,)?) => {
        $(pub(crate) fn $name(py: Python<'_>) -> &Bound<'_, PyString> {
            intern!(py, $text)
        })+
    };
}

interned! {
    body = "body",
    bytes = "bytes",
    call_soon = "call_soon",
    client = "client",
    context = "context",
    headers = "headers",
    http_version = "http_version",
    method = "method",
    more_body = "more_body",
    path = "path",
    query_string = "query_string",
    raw_path = "raw_path",
    server = "server",
    state = "state",
    status = "status",
    text = "text",
    asgi = "asgi",
    kind = "type",
    http_request = "http.request",
    http_disconnect = "http.disconnect",
    websocket_receive = "websocket.receive",
}

/// A copy of the context that the caller is in.
pub(crate) fn copy_context(py: Python<'_>) -> PyResult<Py<PyAny>> {
    Ok(ffi::copy_of_current(py)?.unbind())
}

/// An exception that nobody waits for goes where asyncio puts those: an end of the process through the loop to whoever
/// runs it, any other to the loop's exception handler.
pub(crate) fn report(py: Python<'_>, event_loop: &Py<PyAny>, error: PyErr) {
    let told = if ends_the_process(py, &error) {
        raise_soon(py, event_loop, error.clone_ref(py))
    } else {
        (|| {
            let context = PyDict::new(py);
            context.set_item("message", "Exception in a callback of Bridgehead")?;
            context.set_item("exception", error.value(py))?;
            event_loop.call_method1(py, intern!(py, "call_exception_handler"), (context,)).map(drop)
        })()
    };
    if told.is_err() {
        error.write_unraisable(py, None);
    }
}

fn ends_the_process(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PySystemExit>(py) || error.is_instance_of::<PyKeyboardInterrupt>(py)
}

/// From a callback of the loop's own, which ends its run. Here, what else is in the batch would be lost.
fn raise_soon(py: Python<'_>, event_loop: &Py<PyAny>, error: PyErr) -> PyResult<()> {
    let raise = PyCFunction::new_closure(py, None, None, move |arguments, _| -> PyResult<()> {
        Err(error.clone_ref(arguments.py()))
    })?;
    event_loop.call_method1(py, call_soon(py), (raise,)).map(drop)
}
