//! Rust's refusals as exceptions at the application's own `await`.

use bridgehead_asgi::Misuse;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::{PyErr, create_exception};

create_exception!(
    bridgehead,
    ClientDisconnected,
    PyOSError,
    "The client has gone: what is sent reaches nobody. Raised by `send()`; never logged when it bubbles out."
);

create_exception!(
    bridgehead,
    MisuseError,
    PyRuntimeError,
    "A message that ASGI does not allow here. Says what came and what was due; nothing was sent."
);

/// The client's leaving, as its application sees it.
pub(crate) fn disconnected() -> PyErr {
    ClientDisconnected::new_err("the client has gone, and this message with it")
}

/// The same where it is not the client that has gone: what the application has left behind sends, and it has returned.
pub(crate) fn returned() -> PyErr {
    ClientDisconnected::new_err(
        "the application has returned, so its answer is over, and this message is not sent",
    )
}

/// A WebSocket's end, as its application sees it that has heard of it already.
pub(crate) fn closed() -> PyErr {
    ClientDisconnected::new_err("the WebSocket is closed: nothing more comes, and nothing is sent")
}

/// Not `From`, which coherence forbids.
pub(crate) fn misuse(misuse: Misuse) -> PyErr {
    MisuseError::new_err(misuse.to_string())
}
