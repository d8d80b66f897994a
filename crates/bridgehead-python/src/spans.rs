//! Where spans go, as Python says it, and how a handler's own spans become children of the server's.
//!
//! Not the spans, which the network makes.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bridgehead_metrics::{Counter, Sheet};
use bridgehead_net::{Report, Story};
use bridgehead_otel::{Coding, Collector, Destination, Listener, Loss, Sampler, Tracer};
use bridgehead_tls::{Files, Outgoing};
use http::{HeaderName, HeaderValue, Uri};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::ffi;
use crate::inbox::Inbox;
use crate::tls::start_error;

/// What names the files of a client's identity.
const OPTIONS: (&str, &str) = ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_KEY");
const AUTHORITIES: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";

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
    gzip: bool,
    /// Who may have signed the collector's certificate, if not only those whom the machine believes.
    authorities: Option<PathBuf>,
    /// A certificate and its key.
    identity: Option<(PathBuf, PathBuf)>,
    /// Puts a span into a handler's context, if the application can have any of its own.
    attach: Option<Py<PyAny>>,
}

impl Spans {
    pub(crate) fn attacher(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.attach.as_ref().map(|attach| attach.clone_ref(py))
    }

    pub(crate) fn start(&self, py: Python<'_>, watch: Watch) -> PyResult<Arc<Tracer>> {
        let wrong = |what: String| PyValueError::new_err(what);
        let (name, argument) = &self.sampler;
        let sampler = Sampler::named(name, argument).ok_or_else(|| wrong(format!("no sampler: {name}")))?;
        let headers = self.headers.iter().map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| wrong(error.to_string()))?;
            let value = HeaderValue::from_str(value).map_err(|error| wrong(error.to_string()))?;
            Ok((name, value))
        });
        let endpoint = self.endpoint.parse::<Uri>().map_err(|error| wrong(error.to_string()))?;
        let secret = endpoint.scheme_str() == Some("https");
        let tls = secret.then(|| self.outgoing().load()).transpose();
        let destination = Destination {
            endpoint,
            headers: headers.collect::<PyResult<_>>()?,
            tls: tls.map_err(|problem| start_error(py, problem))?,
            coding: if self.gzip { Coding::Gzip } else { Coding::Plain },
            timeout: Duration::try_from_secs_f64(self.timeout)?,
            delay: Duration::try_from_secs_f64(self.delay)?,
            batch: self.batch,
            queue: self.queue,
            resource: self.resource.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        Ok(Arc::new(Tracer::start(sampler, destination, Arc::new(watch), ffi::block_signals)?))
    }

    fn outgoing(&self) -> Outgoing {
        let identity = self.identity.clone().map(|(certificates, key)| Files {
            certificates,
            key: Some(key),
            password: None,
            options: OPTIONS,
        });
        Outgoing { authorities: self.authorities.clone().map(|path| (path, AUTHORITIES)), identity }
    }
}

/// Counts what becomes of spans, and has the loop's thread say what its operator is to know.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) sheet: Sheet,
    // Set once there is one; the thread that exports is there before.
    pub(crate) inbox: Arc<OnceLock<Arc<Inbox>>>,
}

impl Listener for Watch {
    fn exported(&self, spans: u64) {
        self.sheet.add(Counter::SpansExported, spans);
    }

    fn lost(&self, spans: u64, why: Loss) {
        let counter = match why {
            Loss::Full => Counter::SpansCrowdedOut,
            Loss::Unreachable => Counter::SpansUnreachable,
            Loss::Refused => Counter::SpansRefused,
            Loss::Unsent => Counter::SpansUnsent,
        };
        self.sheet.add(counter, spans);
    }

    fn changed(&self, collector: Collector) {
        if let Some(inbox) = self.inbox.get() {
            inbox.report(Report::Collector(collector));
        }
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
