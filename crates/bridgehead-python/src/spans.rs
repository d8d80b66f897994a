//! Where spans go, as Python says it, and how a handler's own spans become children of the server's.
//!
//! Not the spans, which the network makes.

use std::sync::Arc;
use std::time::Duration;

use bridgehead_net::Story;
use bridgehead_otel::{Destination, Sampler, Tracer};
use http::{HeaderName, HeaderValue, Uri};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::ffi;

/// `bridgehead.spans.Spans`, read once. Times are in seconds.
#[derive(FromPyObject)]
pub(crate) struct Spans {
    endpoint: String,
    headers: Vec<(String, String)>,
    timeout: f64,
    delay: f64,
    batch: usize,
    queue: usize,
    resource: Vec<(String, String)>,
    sampler: (String, String),
    /// Puts a span into a handler's context, if the application can have any of its own.
    attach: Option<Py<PyAny>>,
}

impl Spans {
    pub(crate) fn attacher(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.attach.as_ref().map(|attach| attach.clone_ref(py))
    }

    pub(crate) fn start(&self) -> PyResult<Arc<Tracer>> {
        let wrong = |what: String| PyValueError::new_err(what);
        let (name, argument) = &self.sampler;
        let sampler = Sampler::named(name, argument).ok_or_else(|| wrong(format!("no sampler: {name}")))?;
        let headers = self.headers.iter().map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| wrong(error.to_string()))?;
            let value = HeaderValue::from_str(value).map_err(|error| wrong(error.to_string()))?;
            Ok((name, value))
        });
        let destination = Destination {
            endpoint: self.endpoint.parse::<Uri>().map_err(|error| wrong(error.to_string()))?,
            headers: headers.collect::<PyResult<_>>()?,
            timeout: Duration::try_from_secs_f64(self.timeout)?,
            delay: Duration::try_from_secs_f64(self.delay)?,
            batch: self.batch,
            queue: self.queue,
            resource: self.resource.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        Ok(Arc::new(Tracer::start(sampler, destination, ffi::block_signals)?))
    }
}

/// Has what the handler traces be a part of the server's span.
pub(crate) fn attach(
    attach: Option<&Py<PyAny>>,
    context: &Bound<'_, PyAny>,
    story: Option<&Story>,
) -> PyResult<()> {
    let (Some(attach), Some(span)) = (attach, story.and_then(Story::span)) else { return Ok(()) };
    let named = (span.context.trace.to_string(), span.context.span.get(), span.context.sampled, &span.state);
    attach.call1(context.py(), (context, named)).map(drop)
}
