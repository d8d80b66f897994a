//! What a client may cost, as Python says it.

use std::time::Duration;

use bridgehead_admission::AdmissionLimits;
use bridgehead_heads::HeadLimits;
use bridgehead_metrics::{Gauge, Sheet};
use bridgehead_net::{Departures, Http2, Lifetimes, Limits, PaceLimits, Pings};
use pyo3::prelude::*;

use crate::inbox::ARRIVALS;

/// `bridgehead.bounds.Bounds`. Times are in seconds; 0 is none where a bound may be left out.
#[derive(FromPyObject)]
pub(crate) struct Bounds {
    timeout_first_byte: f64,
    timeout_header: f64,
    timeout_body: f64,
    timeout_write: f64,
    min_rate: u64,
    limit_target: usize,
    limit_headers: usize,
    limit_header_bytes: usize,
    limit_body: u64,
    limit_concurrency: Concurrency,
    limit_queue: usize,
    timeout_queue: f64,
    timeout_request: f64,
    cancel_on_disconnect: bool,
    connection_lifetime: f64,
    limit_connection_requests: u64,
    http2_ping_interval: f64,
    http2_ping_timeout: f64,
}

/// A number, or `auto`.
#[derive(FromPyObject)]
enum Concurrency {
    Number(usize),
    Auto(#[expect(dead_code, reason = "there is but one word")] String),
}

impl Bounds {
    /// Whether the limit follows how long requests take.
    pub(crate) fn adapts(&self) -> bool {
        matches!(self.limit_concurrency, Concurrency::Auto(_))
    }

    /// Whether a request may be cancelled while the server goes on.
    pub(crate) fn cancels_requests(&self) -> bool {
        self.timeout_request > 0.0 || self.cancel_on_disconnect
    }

    /// How a client of HTTP/2 is asked whether it is there.
    pub(crate) fn http2(&self) -> PyResult<Http2> {
        let (interval, timeout) = (time(self.http2_ping_interval)?, time(self.http2_ping_timeout)?);
        Ok(Http2::Spoken(Pings { interval, timeout }))
    }

    /// How many requests may be with the application, if not any number.
    pub(crate) fn permits(&self) -> Option<usize> {
        match self.limit_concurrency {
            Concurrency::Number(0) => None,
            Concurrency::Number(number) => Some(number),
            // Whoever finds the number begins somewhere.
            Concurrency::Auto(_) => Some(1),
        }
    }

    /// How many requests may run and wait, but for what is found out.
    pub(crate) fn tell(&self, sheet: &Sheet) {
        sheet.set(Gauge::InboxLimit, ARRIVALS as u64);
        if !self.adapts() {
            let permits = self.permits().unwrap_or_default();
            sheet.set(Gauge::Limit, permits as u64);
            sheet.set(Gauge::QueueLimit, if permits > 0 { self.limit_queue as u64 } else { 0 });
        }
    }

    pub(crate) fn read(&self, connections: Option<usize>) -> PyResult<Limits> {
        let rate = (self.min_rate > 0).then(|| u32::try_from(self.min_rate).unwrap_or(u32::MAX));
        Ok(Limits {
            first_byte: time(self.timeout_first_byte)?,
            head_time: time(self.timeout_header)?,
            connections,
            lifetimes: Lifetimes {
                time: time(self.connection_lifetime)?,
                requests: (self.limit_connection_requests > 0).then_some(self.limit_connection_requests),
            },
            head: HeadLimits {
                target: self.limit_target,
                bytes: self.limit_header_bytes,
                fields: self.limit_headers,
            },
            body: (self.limit_body > 0).then_some(self.limit_body),
            upload: PaceLimits { gap: time(self.timeout_body)?, rate },
            download: PaceLimits { gap: time(self.timeout_write)?, rate },
            request_time: time(self.timeout_request)?,
            departures: if self.cancel_on_disconnect { Departures::Cancelled } else { Departures::Told },
            admission: AdmissionLimits {
                permits: self.permits(),
                queue: self.limit_queue,
                patience: time(self.timeout_queue)?,
            },
        })
    }
}

/// `bridgehead.websocket_options.WebSocketOptions`, likewise.
#[derive(FromPyObject)]
pub(crate) struct WebSockets {
    ws_max_size: usize,
    ws_max_queue: usize,
    ws_per_message_deflate: bool,
    ws_accept_timeout: f64,
    ws_ping_interval: Option<f64>,
    ws_ping_timeout: Option<f64>,
    ws_idle_timeout: f64,
    ws_lifetime: f64,
}

impl WebSockets {
    pub(crate) fn read(&self) -> PyResult<bridgehead_net::WebSockets> {
        Ok(bridgehead_net::WebSockets {
            max_size: self.ws_max_size,
            max_queue: self.ws_max_queue,
            deflate: self.ws_per_message_deflate,
            acceptance: time(self.ws_accept_timeout)?,
            ping_interval: time(self.ws_ping_interval.unwrap_or_default())?,
            ping_timeout: time(self.ws_ping_timeout.unwrap_or_default())?,
            idle: time(self.ws_idle_timeout)?,
            lifetime: time(self.ws_lifetime)?,
        })
    }
}

fn time(seconds: f64) -> PyResult<Option<Duration>> {
    Ok(if seconds > 0.0 { Some(Duration::try_from_secs_f64(seconds)?) } else { None })
}
