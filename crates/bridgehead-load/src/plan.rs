//! What to ask for, how often, and how long: everything that a run is told.
//!
//! Complete and without defaults: those are written once, in Python.
//!
//! Invariant: a plan that `check` lets pass can be run.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

use crate::expect::Expect;

/// Where the server listens.
#[derive(Debug, Clone)]
pub enum Address {
    /// A name or an address, and a port.
    Tcp(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

/// What is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1: a request at a time on each connection.
    Http1,
    /// HTTP/2, by ALPN or by prior knowledge.
    Http2 {
        /// Requests at a time on each connection.
        streams: usize,
    },
    /// WebSockets: a message at a time on each, and one that comes back.
    WebSocket,
}

/// When a run is over: at whichever comes first.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// So long after the warm-up no request is begun any more.
    pub duration: Option<Duration>,
    /// As many requests are begun after the warm-up.
    pub requests: Option<u64>,
}

/// A run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Whom to connect to.
    pub address: Address,
    /// By TLS, and the name that the server is asked for by; `None`: in the clear.
    pub tls: Option<String>,
    /// What is spoken there.
    pub protocol: Protocol,
    /// The Host header of those scenarios that have none.
    pub authority: String,
    /// What is asked for; each is chosen as often as its weight says.
    pub scenarios: Vec<Scenario>,
    /// Connections over all threads.
    pub connections: usize,
    /// Threads, each with its share of the connections and of the rate.
    pub threads: usize,
    /// Requests a second that begin whether others have ended or not; `None`: each follows the last.
    pub rate: Option<f64>,
    /// The end.
    pub limits: Limits,
    /// Time at the start that is not measured.
    pub warm_up: Duration,
    /// How long one request may take, its connecting included.
    pub timeout: Duration,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
    /// The start of every random choice.
    pub seed: u64,
}

/// One kind of request.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name in the report.
    pub name: String,
    /// Its share among all.
    pub weight: u32,
    /// GET, POST …
    pub method: String,
    /// Path and query; a template.
    pub path: String,
    /// Values are templates.
    pub headers: Vec<(String, String)>,
    /// What is sent with it.
    pub upload: Upload,
    /// How long the connection pauses afterwards.
    pub think: Option<Think>,
    /// What the answer has to be.
    pub expect: Expect,
}

/// The body of a request.
#[derive(Debug, Clone)]
pub enum Upload {
    /// None.
    Nothing,
    /// The same bytes each time.
    Bytes(Bytes),
    /// A text with templates.
    Template(String),
    /// Bytes that are made as they are sent.
    Stream {
        /// All of them.
        size: u64,
        /// As many at a time.
        chunk: usize,
        /// A pause before each chunk but the first.
        every: Duration,
        /// Whether Content-Length tells the size; else it is sent chunked.
        declared: bool,
    },
}

/// A pause between two bounds, each length as likely as the other.
#[derive(Debug, Clone, Copy)]
pub struct Think {
    /// The shortest.
    pub least: Duration,
    /// The longest.
    pub most: Duration,
}

/// Why a plan cannot be run; the operator's fault.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A scenario that is no request.
    #[error("scenario {scenario:?}: {reason}")]
    Scenario {
        /// Its name.
        scenario: String,
        /// What is wrong.
        reason: String,
    },
    /// Numbers that contradict each other.
    #[error("{0}")]
    Numbers(String),
    /// Nobody was there when the run began.
    #[error("nobody answers at {address}: {source}")]
    Unreachable {
        /// As it was looked for.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Plan {
    /// Whether the numbers go together. Scenarios are judged where they become requests.
    ///
    /// # Errors
    ///
    /// With a sentence for the operator.
    pub fn check(&self) -> Result<(), PlanError> {
        let wrong = |text: &str| Err(PlanError::Numbers(text.to_owned()));
        if self.scenarios.iter().map(|each| u64::from(each.weight)).sum::<u64>() == 0 {
            return wrong("no scenario has a weight above 0, so there is nothing to ask for");
        }
        if self.threads == 0 || self.connections < self.threads {
            return wrong("each thread needs a connection of its own, so there are too few connections");
        }
        if self.limits.duration.is_none() && self.limits.requests.is_none() {
            return wrong("neither a duration nor a number of requests ends the run");
        }
        if self.rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
            return wrong("a rate has to be above 0");
        }
        if self.rate.is_some() && self.scenarios.iter().any(|each| each.think.is_some()) {
            return wrong("a rate says when requests begin, and so does think time: give one of them");
        }
        if let Protocol::Http2 { streams } = self.protocol {
            if streams == 0 {
                return wrong("a connection has at least one stream");
            }
            if streams > 1 && !self.keep_alive {
                return wrong("streams share a connection, so each request cannot have one of its own");
            }
        }
        if self.protocol == Protocol::WebSocket { self.check_messages() } else { Ok(()) }
    }

    /// A connection is asked for once, and then has the messages of every scenario.
    fn check_messages(&self) -> Result<(), PlanError> {
        let first = &self.scenarios[0];
        for each in &self.scenarios {
            let reason = if each.method != "GET" {
                "a WebSocket is asked for by GET"
            } else if (&each.path, &each.headers) != (&first.path, &first.headers) {
                "every message goes by the same connections, so path and headers are those of all scenarios"
            } else if !each.expect.statuses.is_empty() || !each.expect.headers.is_empty() {
                "a message has neither a status nor headers that could be expected"
            } else {
                continue;
            };
            return Err(PlanError::Scenario { scenario: each.name.clone(), reason: reason.to_owned() });
        }
        Ok(())
    }

    /// How many requests each connection has at a time.
    pub(crate) fn streams(&self) -> usize {
        match self.protocol {
            Protocol::Http2 { streams } => streams,
            Protocol::Http1 | Protocol::WebSocket => 1,
        }
    }
}
