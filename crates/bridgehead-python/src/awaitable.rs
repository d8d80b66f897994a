//! What `receive()` and `send()` return: awaitables that act when they are awaited.
//!
//! They have a coroutine's methods, so that `asyncio.create_task(receive())` works, and nothing happens before the
//! first step: one that is cancelled before has taken nothing. A step that can be answered completes without
//! suspending its task.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyStopIteration};
use pyo3::prelude::*;

use crate::file_send::FileSend;
use crate::http::Http;
use crate::message;
use crate::outcome::Outcome;
use crate::under_gil::UnderGil;

/// `receive()`.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Receive {
    http: Py<Http>,
    // The loop's thread only, both; pyo3 wants classes to be shareable.
    begun: AtomicBool,
    ended: AtomicBool,
}

/// `send(message)`.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Send {
    http: Py<Http>,
    stage: UnderGil<Stage>,
}

enum Stage {
    /// Not yet looked at, but for the file that it brings.
    Fresh(Py<PyAny>, Option<Box<FileSend>>),
    /// Taken; there was no room for more.
    Taken,
    /// Taken; the loop came first.
    Paused,
    /// A file, as far as it has come.
    File(Box<FileSend>),
    Ended,
}

impl Receive {
    pub(crate) fn new(http: Py<Http>) -> Self {
        Self { http, begun: AtomicBool::new(false), ended: AtomicBool::new(false) }
    }
}

impl Send {
    pub(crate) fn new(http: Py<Http>, message: Bound<'_, PyAny>) -> Self {
        let file = message::take_file(&message);
        Self { http, stage: UnderGil::new(Stage::Fresh(message.unbind(), file)) }
    }
}

impl Drop for Receive {
    fn drop(&mut self) {
        if !*self.begun.get_mut() && !*self.ended.get_mut() {
            was_never_awaited(c"coroutine 'receive' was never awaited");
        }
    }
}

impl Drop for Send {
    fn drop(&mut self) {
        if matches!(self.stage.get_mut(), Stage::Fresh(..)) {
            was_never_awaited(c"coroutine 'send' was never awaited");
        }
    }
}

/// As Python says it of a coroutine that nobody keeps any more.
#[cold]
fn was_never_awaited(words: &CStr) {
    // An interpreter that ends has nobody to be told.
    Python::try_attach(|py| {
        let pending = PyErr::take(py);
        if let Err(error) = PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), words, 1) {
            error.write_unraisable(py, None);
        }
        if let Some(pending) = pending {
            pending.restore(py);
        }
    });
}

/// What a step gives: something to wait for, `None` for a turn of the loop, or its end.
type Step = PyResult<Option<Py<PyAny>>>;

fn ended_already(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("cannot reuse an awaited {what}"))
}

/// `throw` as coroutines have it: nothing here catches anything.
pub(crate) fn thrown(kind: &Bound<'_, PyAny>, value: Option<Bound<'_, PyAny>>) -> PyErr {
    match value {
        Some(value) if !value.is_none() => PyErr::from_value(value),
        _ => match kind.call0() {
            // A type was thrown.
            Ok(value) if kind.is_instance_of::<pyo3::types::PyType>() => PyErr::from_value(value),
            _ => PyErr::from_value(kind.clone()),
        },
    }
}

#[pymethods]
impl Receive {
    fn __await__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Step {
        self.begun.store(true, Ordering::Relaxed);
        if self.ended.load(Ordering::Relaxed) {
            return Err(ended_already("receive()"));
        }
        let http = self.http.bind(py);
        match Http::tend(http, || http.get().receive_now(py))? {
            Outcome::Yield | Outcome::File(_) => Ok(Some(py.None())),
            Outcome::Wait(wait) => Ok(Some(wait.into_any())),
            Outcome::Done(message) => {
                self.ended.store(true, Ordering::Relaxed);
                Err(PyStopIteration::new_err(message))
            }
        }
    }

    fn send(&self, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.__next__(value.py())?.ok_or_else(|| PyStopIteration::new_err(()))
    }

    #[pyo3(signature = (kind, value = None, traceback = None))]
    fn throw(
        &self,
        kind: &Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        drop(traceback);
        self.ended.store(true, Ordering::Relaxed);
        Err(thrown(kind, value))
    }

    fn close(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

#[pymethods]
impl Send {
    fn __await__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Step {
        let http = self.http.bind(py);
        // Whoever comes here from within, through an application's iterator, finds it in use.
        let mut stage = std::mem::replace(&mut *self.stage.lock(py), Stage::Ended);
        loop {
            let (outcome, next) = Http::tend(http, || Ok(stage.step(http)))?;
            stage = next;
            let waits_for = match outcome? {
                Outcome::Done(_) => return Ok(None),
                Outcome::File(file) => {
                    stage = Stage::File(file);
                    continue;
                }
                Outcome::Yield => py.None(),
                Outcome::Wait(wait) => wait.into_any(),
            };
            self.advance(py, stage);
            return Ok(Some(waits_for));
        }
    }

    fn send(&self, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.__next__(value.py())?.ok_or_else(|| PyStopIteration::new_err(()))
    }

    #[pyo3(signature = (kind, value = None, traceback = None))]
    fn throw(
        &self,
        kind: &Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        drop(traceback);
        self.advance(kind.py(), Stage::Ended);
        Err(thrown(kind, value))
    }

    fn close(&self, py: Python<'_>) {
        self.advance(py, Stage::Ended);
    }
}

impl Send {
    /// The message goes once it is no longer borrowed from: letting go of it may run Python.
    fn advance(&self, py: Python<'_>, stage: Stage) {
        let last = std::mem::replace(&mut *self.stage.lock(py), stage);
        drop(last);
    }
}

impl Stage {
    /// One attempt, and where it leaves the message.
    fn step(self, http: &Bound<'_, Http>) -> (PyResult<Outcome>, Self) {
        let py = http.py();
        match self {
            Self::Fresh(message, mut file) => match Http::send_now(http, message.bind(py), &mut file) {
                Ok(Outcome::Yield) => (Ok(Outcome::Yield), Self::Paused),
                outcome => (outcome, Self::Taken),
            },
            Self::Taken => (http.get().sent_now(py), Self::Taken),
            Self::Paused => (Ok(Outcome::Done(None)), Self::Ended),
            Self::File(mut file) => (Http::file_now(http, &mut file), Self::File(file)),
            Self::Ended => (Err(ended_already("send()")), Self::Ended),
        }
    }
}
