//! Gathers spans and has them posted to a collector, many at a time.
//!
//! Not a post itself (`post`), nor what is told of it (`fate`).
//!
//! Invariant: a post that fails for a reason that may pass is tried again a few times; once it is told to stop, what there
//! is has as long as one post may take, and none of that if nobody listens where it is to go.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use http::header::{HeaderName, HeaderValue};
use prost::Message;
use rustls::ClientConfig;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::fate::{Fate, Listener, Loss};
use crate::message::{ExportTraceServiceRequest, InstrumentationScope, Resource, ResourceSpans, ScopeSpans};
use crate::post::{self, Outcome, Presence};
use crate::span::{Attribute, Span, key_value};

/// Attempts at a post, and the pause before the second, which doubles.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);
/// A collector may ask for a longer one, and not for any.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Where spans go, how many at a time, and whose they are.
#[derive(Clone, Debug)]
pub struct Destination {
    /// `http://host:port/v1/traces`, or `https`.
    pub endpoint: Uri,
    /// Sent with each post.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What handshakes are made with, where the endpoint wants them.
    pub tls: Option<Arc<ClientConfig>>,
    /// How a post is written.
    pub coding: Coding,
    /// For a post, and for the last ones at the end.
    pub timeout: Duration,
    /// Between two posts, if there are fewer than `batch` spans.
    pub delay: Duration,
    /// Spans of a post.
    pub batch: usize,
    /// Spans that may wait.
    pub queue: usize,
    /// Of the resource: `service.name` and others.
    pub resource: Vec<(String, String)>,
    /// Of Bridgehead.
    pub version: String,
}

/// Whether posts are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// They are not.
    Plain,
    /// By gzip.
    Gzip,
}

/// Until it is told to stop, which the end of `stop`'s other side does.
pub(crate) async fn run(
    destination: Destination,
    mut waiting: mpsc::Receiver<Span>,
    stop: watch::Receiver<()>,
    listener: Arc<dyn Listener>,
) {
    let patience = destination.timeout;
    let exporter = Exporter { fate: Fate::new(listener, &destination), destination, posting: Cell::new(0) };
    let mut stopped = stop.clone();
    let late = async {
        let _ = stopped.changed().await;
        sleep(patience).await;
    };
    tokio::select! {
        biased;
        () = exporter.work(&mut waiting, stop) => exporter.fate.ended(0),
        () = late => exporter.fate.ended(exporter.posting.get() + waiting.len() as u64),
    }
}

struct Exporter {
    destination: Destination,
    fate: Fate,
    /// How many are being posted.
    posting: Cell<u64>,
}

impl Exporter {
    /// Until nothing is left, once it is to stop.
    async fn work(&self, waiting: &mut mpsc::Receiver<Span>, mut stop: watch::Receiver<()>) {
        let most = self.destination.batch;
        let mut batch = Vec::with_capacity(most);
        let mut stops = false;
        while !stops || !waiting.is_empty() {
            let due = Instant::now() + self.destination.delay;
            while !stops && batch.len() < most {
                let room = most - batch.len();
                tokio::select! {
                    biased;
                    _ = stop.changed() => stops = true,
                    came = waiting.recv_many(&mut batch, room) => stops = came == 0,
                    () = sleep_until(due), if !batch.is_empty() => break,
                }
            }
            while batch.len() < most
                && let Ok(span) = waiting.try_recv()
            {
                batch.push(span);
            }
            if !batch.is_empty() {
                self.post(std::mem::take(&mut batch), &mut stop).await;
            }
        }
    }

    async fn post(&self, spans: Vec<Span>, stop: &mut watch::Receiver<()>) {
        let count = spans.len() as u64;
        self.posting.set(count);
        let body = self.encoded(spans);
        let mut pause = PAUSE;
        for attempt in 1..=ATTEMPTS {
            match post::send(&self.destination, body.clone()).await {
                Outcome::Taken { rejected } => {
                    self.fate.taken(count, rejected.min(count));
                    break;
                }
                Outcome::Never(why) => {
                    self.fate.refused(&why);
                    self.fate.lost(count, Loss::Refused);
                    break;
                }
                Outcome::Later { why, collector } => {
                    self.fate.failed(&why);
                    if attempt == ATTEMPTS || self.is_hopeless(collector, stop) {
                        self.fate.lost(count, Loss::Unreachable);
                        break;
                    }
                    rest(collector, pause, stop).await;
                    pause *= 2;
                }
            }
        }
        self.posting.set(0);
    }

    /// Whether nobody is there, as is known, and none will be before the end.
    fn is_hopeless(&self, collector: Presence, stop: &watch::Receiver<()>) -> bool {
        collector == Presence::None && self.fate.is_away() && stop.has_changed().is_err()
    }

    fn encoded(&self, spans: Vec<Span>) -> Bytes {
        let plain = self.request(spans).encode_to_vec();
        match self.destination.coding {
            Coding::Plain => plain.into(),
            Coding::Gzip => post::gzip(&plain),
        }
    }

    fn request(&self, spans: Vec<Span>) -> ExportTraceServiceRequest {
        let Destination { resource, version, .. } = &self.destination;
        let attribute =
            |(key, value): &(String, String)| key_value(key.clone(), Attribute::Text(value.clone()));
        let scope = InstrumentationScope { name: "bridgehead".to_owned(), version: version.clone() };
        ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(Resource { attributes: resource.iter().map(attribute).collect() }),
                scope_spans: vec![ScopeSpans {
                    scope: Some(scope),
                    spans: spans.into_iter().map(Span::message).collect(),
                }],
            }],
        }
    }
}

/// Before the next attempt. Whether anybody is there by now is seen at once when it is to stop.
async fn rest(collector: Presence, pause: Duration, stop: &mut watch::Receiver<()>) {
    let stops = stop.has_changed().is_err();
    match collector {
        Presence::Busy(asked) => sleep(asked.map_or(pause, |asked| asked.clamp(pause, LONGEST_PAUSE))).await,
        Presence::None if stops => sleep(pause).await,
        Presence::None => {
            tokio::select! {
                _ = stop.changed() => {}
                () = sleep(pause) => {}
            }
        }
    }
}
