//! What one attempt of a `receive()` or a `send()` comes to.
//!
//! Not the attempt, which is `http`'s and `websocket`'s, nor what the coroutine then yields, which is `awaitable`'s.
//!
//! Invariant: but for [`Outcome::File`] a `send()` that has come to any of these has taken its message.

use pyo3::prelude::*;

use crate::file_send::FileSend;
use crate::wait::Wait;

/// What a call came to.
pub(crate) enum Outcome {
    /// It is done; `receive` gives a message.
    Done(Option<Py<PyAny>>),
    /// It has to wait for this.
    Wait(Py<Wait>),
    /// A file is to be sent, and has been asked for.
    File(Box<FileSend>),
    /// It has had its share: the loop comes first.
    Yield,
}
