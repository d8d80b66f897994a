//! A path of the public port that says whether clients are welcome, without the application.
//!
//! For who can reach no other port. What is told to operators has one of its own.
//!
//! Invariant: the application never sees such a request, and it waits for nothing that Python does.

use std::time::Duration;

use bridgehead_metrics::{Condition, Gauge};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode, request};

use crate::meters::Meters;

/// After so long without a sign of life of the loop clients are not welcome.
const STALE: Duration = Duration::from_secs(1);

/// Where, and by what it is judged.
#[derive(Clone, Debug)]
pub struct HealthPath {
    /// As clients write it.
    pub path: String,
    /// This worker's.
    pub meters: Meters,
}

impl HealthPath {
    /// The answer, if this request asks for it.
    pub(crate) fn answer(&self, head: &request::Parts) -> Option<Response<&'static str>> {
        let asks = matches!(head.method, Method::GET | Method::HEAD) && head.uri.path() == self.path;
        asks.then(|| {
            let (status, text) = if self.is_ready() {
                (StatusCode::OK, "ok\n")
            } else {
                (StatusCode::SERVICE_UNAVAILABLE, "unavailable\n")
            };
            let mut response = Response::new(text);
            *response.status_mut() = status;
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        })
    }

    fn is_ready(&self) -> bool {
        let Meters { sheet, clock } = &self.meters;
        let beat = Duration::from_millis(sheet.gauge(Gauge::Beat));
        // It is asked for its first sign as the first client is let in.
        let lives = beat.is_zero() || clock().saturating_sub(beat) <= STALE;
        Condition::from(sheet.gauge(Gauge::Condition)) == Condition::Serving && lives && !sheet.is_crowded()
    }
}
