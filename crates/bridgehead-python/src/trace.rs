//! One line for each drive, if the operator asks: whose it was, its steps, what was yielded last, why it ended.
//!
//! Off, it costs a look at a null pointer for each drive.
//!
//! Invariant: a line is bounded, whatever the client has written into it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bridgehead_asgi::Excerpt;
use pyo3::prelude::*;

use crate::stepper::Request;

/// Who is told, and of how many requests so far.
pub(crate) struct Listener {
    told: Py<PyAny>,
    // Changed on the loop's thread alone, but what a class of Python's has is shareable.
    requests: AtomicU64,
}

impl Listener {
    pub(crate) fn new(told: Py<PyAny>) -> Arc<Self> {
        Arc::new(Self { told, requests: AtomicU64::new(0) })
    }
}

/// The drives of one request.
pub(crate) struct Trace {
    request: String,
    listener: Arc<Listener>,
}

impl Trace {
    pub(crate) fn new(Request { head }: Request<'_>, listener: &Arc<Listener>) -> Box<Self> {
        let number = listener.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let request = format!(
            "request {number} ({} {})",
            Excerpt::of(head.method.as_str()),
            Excerpt::of(head.target.path())
        );
        Box::new(Self { request, listener: Arc::clone(listener) })
    }
}

/// What one drive comes to. Kept up only when somebody listens.
pub(crate) struct Account<'a> {
    trace: Option<&'a Trace>,
    steps: u32,
    yielded: String,
}

impl<'a> Account<'a> {
    pub(crate) fn new(trace: Option<&'a Trace>) -> Self {
        Self { trace, steps: 0, yielded: String::new() }
    }

    pub(crate) fn step(&mut self) {
        self.steps += 1;
    }

    pub(crate) fn yielded(&mut self, value: &Bound<'_, PyAny>) {
        if self.trace.is_some() {
            if value.is_none() {
                self.yielded = "None".into();
                return;
            }
            let name = value.get_type().name();
            self.yielded = name.map_or_else(|_| "?".into(), |name| Excerpt::of(name.to_string()).to_string());
        }
    }

    /// The drive ends, for this reason.
    pub(crate) fn ends(self, py: Python<'_>, why: &str) {
        let Some(trace) = self.trace else { return };
        let (request, steps) = (&trace.request, self.steps);
        let yielded = if self.yielded.is_empty() { "nothing" } else { &self.yielded };
        let line = format!("drive of {request}: steps {steps}, yielded {yielded}, {why}");
        if let Err(error) = trace.listener.told.call1(py, (line,)) {
            error.write_unraisable(py, None);
        }
    }
}
