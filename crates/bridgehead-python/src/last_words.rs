//! Why a stop is overdue, asked of Python by a thread that can do without the answer.
//!
//! Not what is looked at (`overdue.py`), nor when (`control.rs`).
//!
//! Invariant: the answer is waited for no longer than [`PATIENCE`]. If there is none, the GIL cannot be had, which is the
//! answer as well.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::ffi;

/// Whoever lets go of the GIL at all does so in this time, on a machine that is busy as well.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is said when Python does not tell.
const UNKNOWN: &str = "something blocks the event loop, or does not end when cancelled";
const ENDING: &str = "the event loop is over, and Python itself does not come to its end";
const NO_GIL: &str = "a call that does not let go of Python's lock blocks the event loop";

/// In words, as `witness()` gives them.
pub(crate) fn ask(witness: Py<PyAny>) -> String {
    let (sender, told) = mpsc::channel();
    let asked = thread::Builder::new().name("bridgehead-witness".to_owned()).spawn(move || {
        ffi::block_signals();
        let words = match Python::try_attach(|py| witness.call0(py)?.extract::<String>(py)) {
            // An interpreter that ends already has no more to tell.
            None => Some(ENDING.to_owned()),
            Some(words) => words.ok().filter(|words| !words.is_empty()),
        };
        // Whoever asked may have waited for long enough.
        let _ = sender.send(words);
    });
    match asked.map(|_| told.recv_timeout(PATIENCE)) {
        Ok(Ok(Some(words))) => words,
        Ok(Err(mpsc::RecvTimeoutError::Timeout)) => NO_GIL.to_owned(),
        Ok(Ok(None) | Err(_)) | Err(_) => UNKNOWN.to_owned(),
    }
}
