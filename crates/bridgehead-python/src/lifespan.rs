//! The lifespan protocol's rules for Python.
//!
//! Waiting, deadlines and logs are `lifespan.py`'s; which message may come when is `bridgehead-asgi`'s.

use std::sync::{Mutex, PoisonError};

use bridgehead_asgi::{Lifespan, LifespanMessage, LifespanReceipt, Misuse};
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString};

use crate::message::{type_name, wrong};
use crate::raise;

/// Judges what a lifespan application asks for and sends.
#[pyclass(frozen, module = "bridgehead._native")]
#[derive(Default)]
pub(crate) struct LifespanRules {
    // Only the loop's thread comes here; pyo3 wants classes to be shareable.
    state: Mutex<Lifespan>,
}

impl LifespanRules {
    fn change<T>(&self, change: impl FnOnce(Lifespan) -> (Lifespan, T)) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, given) = change(*state);
        *state = next;
        given
    }
}

#[pymethods]
impl LifespanRules {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// What `receive()` gives now: "startup", "shutdown", or `None` when it has to wait.
    fn receive(&self) -> Option<&'static str> {
        match self.change(Lifespan::receive) {
            LifespanReceipt::Startup => Some("startup"),
            LifespanReceipt::Shutdown => Some("shutdown"),
            LifespanReceipt::Wait => None,
        }
    }

    /// The server begins to shut down.
    fn shut_down(&self) {
        self.change(|state| (state.shut_down(), ()));
    }

    /// Judges a message; what is out of place raises. Gives its type, and what it says of a failure.
    fn send(&self, message: &Bound<'_, PyAny>) -> PyResult<(&'static str, String)> {
        let (kind, said) = read(message)?;
        self.change(|state| match state.send(kind) {
            Ok(next) => (next, Ok((kind.name(), said))),
            Err(misuse) => (state, Err(raise::misuse(misuse))),
        })
    }
}

fn read(message: &Bound<'_, PyAny>) -> PyResult<(LifespanMessage, String)> {
    let Ok(message) = message.cast::<PyMapping>() else {
        return Err(raise::misuse(Misuse::NotADict { came: type_name(message) }));
    };
    let Some(kind) = item(message, "type")? else {
        return Err(raise::misuse(Misuse::MissingType));
    };
    let Ok(kind) = kind.cast::<PyString>() else {
        return Err(wrong("message", "type", &kind, "a str"));
    };
    let kind = LifespanMessage::from_type(&kind.to_string_lossy()).map_err(raise::misuse)?;
    let said = match item(message, "message")? {
        Some(said) if kind.is_failure() => match said.cast::<PyString>() {
            Ok(said) => said.to_string_lossy().into_owned(),
            Err(_) => return Err(wrong(kind.name(), "message", &said, "a str")),
        },
        _ => String::new(),
    };
    Ok((kind, said))
}

fn item<'py>(message: &Bound<'py, PyMapping>, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    if message.contains(key)? { message.get_item(key).map(Some) } else { Ok(None) }
}
