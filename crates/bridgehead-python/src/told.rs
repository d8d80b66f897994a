//! What is known of a request besides its messages, on the loop's thread, and what is told of it to who measures.
//!
//! Invariant: Python is asked for a route only when somebody will want to read it.

use std::sync::Arc;

use bridgehead_net::{RequestHead, Story, Trace};
use http::Method;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};

use crate::heading::LONGEST;
use crate::http::Http;

/// What a request came with.
pub(crate) struct Known {
    /// What it is called, if ids are given.
    pub(crate) trace: Option<Arc<Trace>>,
    /// Known where somebody looks after the loop.
    pub(crate) asked: Option<Asked>,
    /// Whom its route is told, if it is measured.
    pub(crate) told: Option<Told>,
}

/// What it asks, for who looks after the loop. A copy: the target itself would keep the memory that all of the head was read
/// into, for as long as a stream or a WebSocket lasts.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: Box<str>,
}

impl Asked {
    pub(crate) fn of(head: &RequestHead) -> Self {
        let path = head.target.path();
        Self { method: head.method.clone(), path: path.get(..LONGEST).unwrap_or(path).into() }
    }
}

/// A request that is measured.
pub(crate) struct Told {
    story: Arc<Story>,
    /// Into which frameworks put the route they have found.
    scope: Py<PyDict>,
}

impl Http {
    /// Says by which route the request is answered, if somebody will want to read that.
    pub(crate) fn name_route(&self, py: Python<'_>) {
        let Some(told) = &self.known.told else { return };
        // Of a WebSocket its handshake is told, and nothing that comes after it.
        if !self.lock(py).websocket.as_ref().is_some_and(|websocket| websocket.was_accepted()) {
            told.name_route(py, &self.bridge().callables.route);
        }
    }
}

impl Told {
    pub(crate) fn new(story: Arc<Story>, scope: &Bound<'_, PyDict>) -> Self {
        Self { story, scope: scope.clone().unbind() }
    }

    /// Looks for the route, if it is wanted.
    fn name_route(&self, py: Python<'_>, route_of: &Py<PyAny>) {
        if !self.story.wants_route() {
            return;
        }
        let found = route_of.call1(py, (&self.scope,)).and_then(|route| route.extract::<Option<String>>(py));
        match found {
            Ok(Some(route)) => self.story.name_route(&route),
            Ok(None) => {}
            Err(error) => error.write_unraisable(py, None),
        }
    }

    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.scope)
    }
}
