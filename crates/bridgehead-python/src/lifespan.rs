//! The lifespan protocol's rules for Python.
//!
//! Waiting, deadlines and logs are `lifespan.py`'s; which message may come when is `bridgehead-asgi`'s.

use std::sync::{Mutex, PoisonError};

use bridgehead_asgi::{Excerpt, Lifespan, LifespanMessage, LifespanReceipt, Misuse};
use pyo3::prelude::*;

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

    /// Judges a message by its type; what is out of place raises.
    fn send(&self, kind: &str) -> PyResult<()> {
        let message = LifespanMessage::from_type(kind).map_err(raise::misuse)?;
        self.change(|state| match state.send(message) {
            Ok(next) => (next, Ok(())),
            Err(misuse) => (state, Err(raise::misuse(misuse))),
        })
    }

    /// The refusal of something that is no message at all.
    #[staticmethod]
    fn refuse(came: &str) -> PyResult<()> {
        Err(raise::misuse(Misuse::NotADict { came: Excerpt::of(came) }))
    }
}
