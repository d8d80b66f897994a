//! What the network needs to know, complete: there are no defaults here.
//!
//! Defaults live in `python/bridgehead/config.py`, once.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bridgehead_admission::{Admission, AdmissionLimits};
use bridgehead_heads::HeadLimits;
use bridgehead_metrics::Sheet;
use bridgehead_otel::Tracer;
use bridgehead_proxies::{Forwarding, Proxies};
use http::{HeaderName, HeaderValue};

use crate::access::AccessLog;
use crate::compression::Compression;
use crate::health_path::HealthPath;
use crate::meters::Meters;
use crate::pace::PaceLimits;
use crate::reason::Reasons;
use crate::request_id::RequestIds;
use crate::rota::Rota;
use crate::static_files::StaticFiles;
use crate::tally::Tally;

/// Settings of one worker's network side.
#[derive(Debug)]
pub struct Config {
    /// Idle connections are closed after this long.
    pub keep_alive: Duration,
    /// What a client may cost.
    pub bounds: Limits,
    /// Whether a client may begin in HTTP/2.
    pub http2: Http2,
    /// Whether early hints are offered to clients of HTTP/1.1.
    pub http1_early_hints: bool,
    /// Whether answers carry the time they were made.
    pub date_header: bool,
    /// Sent with each answer that does not carry the same name already.
    pub default_headers: Vec<(HeaderName, Vec<HeaderValue>)>,
    /// What HTTP/1 has behind a status.
    pub reasons: Reasons,
    /// Where a line for each request goes, if anywhere.
    pub access_log: Option<AccessLog>,
    /// Whether whoever answers requests hears of those that were refused.
    pub refusals: Refusals,
    /// Counts what clients were denied.
    pub tally: Tally,
    /// Set once it is served: whoever runs the worker asks how many requests wait for a permit.
    pub admission: Arc<OnceLock<Admission>>,
    /// Present when admission follows how long requests take: the present limit is told here.
    pub adapts: Option<Sheet>,
    /// Measures requests and connections, if somebody may read it.
    pub meters: Option<Meters>,
    /// Has requests traced, if that is wanted.
    pub tracer: Option<Arc<Tracer>>,
    /// Where clients are told whether they are welcome, if anywhere.
    pub health: Option<HealthPath>,
    /// What files answer, if anything.
    pub files: Option<StaticFiles>,
    /// How the application's answers are compressed, if they are.
    pub compression: Option<Compression>,
    /// Whether it hears of connections.
    pub connections: Connections,
    /// Whose word is taken for who a client is, if anybody's.
    pub forwarding: Option<Forwarding>,
    /// Who has to begin a connection with a word of the PROXY protocol, if it is spoken; nobody else is let in.
    pub proxy_protocol: Option<Proxies>,
    /// Gives each request an id, if that is wanted.
    pub request_ids: Option<RequestIds>,
    /// Asks the system how far a client has read.
    pub unconfirmed: Unconfirmed,
    /// Gives the system what is free of our memory.
    pub give_back: fn(),
    /// How WebSockets are spoken, if they are.
    pub websockets: Option<WebSockets>,
    /// Its part among several workers, if there are several.
    pub rota: Option<Rota>,
}

/// What a WebSocket may cost, and how it is kept alive; `None` is never.
#[derive(Clone, Copy, Debug)]
pub struct WebSockets {
    /// The largest message of a client, in bytes.
    pub max_size: usize,
    /// Messages that may wait for the application.
    pub max_queue: usize,
    /// Whether messages are compressed for who offers it.
    pub deflate: bool,
    /// From a handshake until the application has answered it.
    pub acceptance: Option<Duration>,
    /// Between two pings.
    pub ping_interval: Option<Duration>,
    /// For a sign of life after one.
    pub ping_timeout: Option<Duration>,
    /// Without a message in either direction.
    pub idle: Option<Duration>,
    /// From its acceptance.
    pub lifetime: Option<Duration>,
}

/// How many bytes of a socket the other side's system has not confirmed yet, where ours tells.
pub type Unconfirmed = fn(BorrowedFd<'_>) -> Option<u64>;

/// What is said of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// Nothing.
    Silent,
    /// That they are made, and that they are gone, by [`crate::App::report`].
    Reported,
}

/// Whether HTTP/2 is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http2 {
    /// By who begins with its preface.
    Spoken(Pings),
    /// It is not.
    Off,
}

/// How a client is asked whether it is there; `None` is never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pings {
    /// So long after it said something last, while it waits for an answer.
    pub interval: Option<Duration>,
    /// For a sign of life after that.
    pub timeout: Option<Duration>,
}

/// What a client may cost; `None` is anything.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a client may wait with its first byte.
    pub first_byte: Option<Duration>,
    /// How long a head may take, from its first byte.
    pub head_time: Option<Duration>,
    /// How many connections there may be.
    pub connections: Option<usize>,
    /// What one of them may last.
    pub lifetimes: Lifetimes,
    /// How large a head may be.
    pub head: HeadLimits,
    /// How large a body may be, in bytes.
    pub body: Option<u64>,
    /// How slowly one may come.
    pub upload: PaceLimits,
    /// How slowly an answer may be read.
    pub download: PaceLimits,
    /// How long the application may take for a request.
    pub request_time: Option<Duration>,
    /// What becomes of a request whose client has gone.
    pub departures: Departures,
    /// How many requests may be with the application, and how others wait.
    pub admission: AdmissionLimits,
}

/// What a connection may last, before an answer is its last.
#[derive(Clone, Copy, Debug)]
pub struct Lifetimes {
    /// From its beginning, a tenth more or less.
    pub time: Option<Duration>,
    /// Requests that it may carry.
    pub requests: Option<u64>,
}

/// What becomes of a request whose client has gone before its answer was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departures {
    /// Its application is told, when it asks.
    Told,
    /// It is cancelled.
    Cancelled,
}

/// What is said of requests that never reach the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusals {
    /// Nothing, beside their access lines.
    Silent,
    /// Why, by [`crate::App::report`].
    Reported,
}
