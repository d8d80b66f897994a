//! What is measured of requests, connections and WebSockets, where somebody may read it.
//!
//! Not what is refused, which is always counted (`tally`): that is known here so that it is told from what is answered. Without meters none of this costs more than a look whether there
//! are any.
//!
//! Invariant: what went up goes down again, however its connection ends.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bridgehead_metrics::{Closing, Counter, Gauge, Protocol, Series, Sheet, SlowRequest, Timing};
use bridgehead_proxies::Scheme;
use http::{StatusCode, Uri, Version, request};

use crate::refusal::Refusal;
use crate::story::Story;

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
        self.sheet.turn_slowest(since_1970().as_secs());
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
#[derive(Debug)]
pub(crate) struct Course {
    story: Arc<Story>,
    series: Series,
    /// Why it was not answered by the application, if it was not.
    refusal: Option<Refusal>,
    /// For the slowest.
    target: Uri,
}

impl Course {
    pub(crate) fn begin(meters: &Meters, head: &request::Parts, scheme: Scheme, story: &Arc<Story>) -> Self {
        let protocol = match head.version {
            Version::HTTP_2 => Protocol::Http2,
            Version::HTTP_10 => Protocol::Http10,
            _ => Protocol::Http11,
        };
        let scheme = match scheme {
            Scheme::Http | Scheme::Ws => bridgehead_metrics::Scheme::Http,
            Scheme::Https | Scheme::Wss => bridgehead_metrics::Scheme::Https,
        };
        let series = Series::new(head.method.as_str(), CLIENT_LEFT, protocol).by(scheme);
        meters.sheet.enter(series);
        Self { story: Arc::clone(story), series, refusal: None, target: head.uri.clone() }
    }

    /// It was the question whether clients are welcome, and was told this: nobody's request, and not measured as one.
    pub(crate) fn was_a_probe(self, meters: &Meters, told: StatusCode) {
        meters.sheet.leave(self.series);
        let counter = if told.is_success() { Counter::ProbesWelcomed } else { Counter::ProbesTurnedAway };
        meters.sheet.add(counter, 1);
    }

    /// It gets no answer of the application.
    pub(crate) fn refused(&mut self, refusal: Refusal) {
        self.refusal = Some(refusal);
    }

    /// The head of its answer is complete.
    pub(crate) fn answered(&mut self, meters: &Meters, status: StatusCode) {
        self.series = self.series.answered(status.as_u16());
        // Who is turned away is so at once: with those answers would seem to come the sooner the fewer there are.
        if !self.refusal.is_some_and(Refusal::is_overload) {
            meters.sheet.record(Timing::FirstByte, self.story.began().elapsed());
        }
    }

    pub(crate) fn end(self, meters: &Meters) {
        let time = self.story.began().elapsed();
        let series = self.refusal.map_or(self.series, |refusal| self.series.refused(refusal as usize));
        meters.sheet.leave(series);
        meters.sheet.request(series, time);
        if meters.sheet.is_slow(time) {
            meters.sheet.keep_slow(&SlowRequest {
                time,
                at: since_1970().as_millis().try_into().unwrap_or_default(),
                series,
                path: self.target.path().to_owned(),
                route: self.story.route().unwrap_or_default().to_owned(),
            });
        }
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
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
