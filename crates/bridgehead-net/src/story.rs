//! What both sides know of a request that is measured or traced: when it began, by which route the framework answers it, and
//! which span it is.
//!
//! Not how it ends (`meters`, `traced`). The application's side is asked for the route only when somebody will want to read it.
//!
//! Invariant: a route is named once.

use std::sync::OnceLock;
use std::time::Instant;

use bridgehead_metrics::Sheet;
use bridgehead_otel::SpanContext;

/// A request that is measured or traced.
#[derive(Debug)]
pub struct Story {
    began: Instant,
    sheet: Option<Sheet>,
    route: OnceLock<Box<str>>,
    span: Option<Handed>,
}

/// What the handler's own spans are children of.
#[derive(Debug)]
pub struct Handed {
    /// The server's span.
    pub context: SpanContext,
    /// `tracestate`, as it came.
    pub state: String,
}

impl Story {
    pub(crate) fn begin(sheet: Option<Sheet>, span: Option<Handed>) -> Self {
        Self { began: Instant::now(), sheet, route: OnceLock::new(), span }
    }

    /// When its head was complete.
    #[must_use]
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Which span it is, if it is one.
    #[must_use]
    pub fn span(&self) -> Option<&Handed> {
        self.span.as_ref()
    }

    /// Whether its route is worth looking for: it is unknown, and the request is slow or its span is kept.
    #[must_use]
    pub fn wants_route(&self) -> bool {
        let traced = self.span.as_ref().is_some_and(|span| span.context.sampled);
        let slow = || self.sheet.as_ref().is_some_and(|sheet| sheet.is_slow(self.began.elapsed()));
        self.route.get().is_none() && (traced || slow())
    }

    /// It is answered by this route.
    pub fn name_route(&self, route: &str) {
        // The first word is the one that counts.
        let _ = self.route.set(route.into());
    }

    pub(crate) fn route(&self) -> Option<&str> {
        self.route.get().map(|route| &**route)
    }
}
