//! What is measured of requests, connections and WebSockets, where somebody may read it.
//!
//! Not what is refused, which is always counted (`tally`). Without meters none of this costs more than a look whether there
//! are any.
//!
//! Invariant: what went up goes down again, however its connection ends.

use std::time::{Duration, Instant};

use bridgehead_metrics::{Closing, Counter, Gauge, Protocol, Series, Sheet, Timing};
use http::{StatusCode, Version, request};

/// What a request is counted by that got no answer, as in access lines.
const CLIENT_LEFT: u16 = 499;

/// Where a worker's figures go.
#[derive(Clone, Debug)]
pub struct Meters {
    /// This one's.
    pub sheet: Sheet,
    /// One clock for all processes; it never goes back.
    pub clock: fn() -> Duration,
}

impl Meters {
    /// One more for as long as what is returned is kept.
    pub(crate) fn during(&self, gauge: Gauge) -> During {
        self.sheet.up(gauge);
        During(self.sheet.clone(), gauge)
    }

    /// The loop has given a sign of life.
    pub(crate) fn beats(&self) {
        self.sheet.set(Gauge::Beat, u64::try_from((self.clock)().as_millis()).unwrap_or_default());
    }
}

/// One that is counted in a gauge.
#[derive(Debug)]
pub(crate) struct During(Sheet, Gauge);

impl Drop for During {
    fn drop(&mut self) {
        self.0.down(self.1);
    }
}

/// One request, from its head to the last byte of its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    pub(crate) began: Instant,
    method: &'static str,
    protocol: Protocol,
    status: u16,
}

impl Course {
    pub(crate) fn begin(meters: &Meters, head: &request::Parts) -> Self {
        meters.sheet.up(Gauge::Active);
        let protocol = match head.version {
            Version::HTTP_2 => Protocol::Http2,
            Version::HTTP_10 => Protocol::Http10,
            _ => Protocol::Http11,
        };
        let method = Series::method_of(head.method.as_str());
        Self { began: Instant::now(), method, protocol, status: CLIENT_LEFT }
    }

    /// The head of its answer is complete.
    pub(crate) fn answered(&mut self, meters: &Meters, status: StatusCode) {
        self.status = status.as_u16();
        meters.sheet.record(Timing::FirstByte, self.began.elapsed());
    }

    pub(crate) fn end(self, meters: &Meters) {
        meters.sheet.down(Gauge::Active);
        meters.sheet.request(Series::new(self.method, self.status, self.protocol), self.began.elapsed());
    }
}

/// A WebSocket that was accepted, until it is over.
#[derive(Debug)]
pub(crate) struct Conversation(During);

impl Conversation {
    pub(crate) fn begin(meters: Option<&Meters>) -> Option<Self> {
        let meters = meters?;
        meters.sheet.add(Counter::WebSockets, 1);
        Some(Self(meters.during(Gauge::WebSockets)))
    }

    /// The client has sent a message.
    pub(crate) fn heard(&self) {
        self.0.0.add(Counter::MessagesIn, 1);
    }

    /// The application has sent so many.
    pub(crate) fn said(&self, messages: usize) {
        self.0.0.add(Counter::MessagesOut, messages as u64);
    }

    /// It ended by this code.
    pub(crate) fn end(&self, code: u16) {
        self.0.0.close(Closing::of(code));
    }
}
