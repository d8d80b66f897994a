//! What is known of a request when it is over, or of a head that hyper refused, and where that goes.
//!
//! Said when the answer's last byte is handed to the socket, or the request ends without one. How a line looks is
//! `access_layout`'s, what happens when nobody reads it is `log_pipe`'s.
//!
//! Invariant: a request has one record, whatever became of it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bridgehead_proxies::{Peer, escape};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, Uri, Version};

use crate::access_layout::Layout;
use crate::app::{AccessRecord, App, Report};
use crate::client_half::Witness;
use crate::log_pipe::Written;
use crate::outlet::{Outlet, Taker};
use crate::request_id::Trace;

/// What a request that got no answer is logged with, as nginx does.
const CLIENT_LEFT: u16 = 499;

/// In the place of what nobody knows, as nginx has it.
pub(crate) const NONE: &str = "-";

/// Where access lines go, and how they look.
#[derive(Clone, Debug)]
pub struct AccessLog {
    /// Who takes them.
    pub outlet: Arc<Outlet>,
    /// What they look like.
    pub layout: Layout,
    /// In front of every path, as applications see it.
    pub root_path: String,
}

/// What is known of a request, filled in while it is answered.
#[derive(Debug)]
pub(crate) struct Record {
    /// Nobody knows when its head could not be read.
    asked: Option<Asked>,
    kind: Kind,
    status: Option<StatusCode>,
    bytes_out: u64,
    /// What only some layouts show; the usual one pays nothing for it.
    seen: Option<Box<Seen>>,
}

/// What a request is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Http,
    WebSocket,
}

/// What a client asked for.
#[derive(Debug)]
struct Asked {
    method: Method,
    target: Uri,
    version: Version,
}

/// What is measured and kept for layouts that show it.
#[derive(Debug)]
struct Seen {
    began: Instant,
    /// Counts what comes of the body.
    upload: Option<Witness>,
    /// Values of the headers that the layout names, in its order.
    request: Vec<Option<HeaderValue>>,
    response: Vec<Option<HeaderValue>>,
}

impl Record {
    /// Of a request, if somebody takes its line.
    pub(crate) fn begin(log: &AccessLog, request: &http::request::Parts) -> Option<Box<Self>> {
        log.outlet.is_open().then(|| Self::new(log, request))
    }

    fn new(log: &AccessLog, request: &http::request::Parts) -> Box<Self> {
        let asked =
            Asked { method: request.method.clone(), target: request.uri.clone(), version: request.version };
        let seen = (!log.layout.is_usual()).then(|| {
            Box::new(Seen {
                began: Instant::now(),
                upload: None,
                request: values(&request.headers, log.layout.request_headers()),
                response: Vec::new(),
            })
        });
        Box::new(Self { asked: Some(asked), kind: Kind::Http, status: None, bytes_out: 0, seen })
    }

    /// Of a head that was refused before it was a request, by an answer whose body was so long as far as it has left.
    pub(crate) fn unread(status: StatusCode, bytes_out: usize) -> Self {
        let bytes_out = bytes_out as u64;
        Self { asked: None, kind: Kind::Http, status: Some(status), bytes_out, seen: None }
    }

    /// It asks for a WebSocket.
    pub(crate) fn asks_for_websocket(&mut self) {
        self.kind = Kind::WebSocket;
    }

    /// Whose body this is.
    pub(crate) fn counts(&mut self, upload: &Witness) {
        if let Some(seen) = &mut self.seen {
            seen.upload = Some(upload.clone());
        }
    }

    pub(crate) fn answered(&mut self, log: &AccessLog, status: StatusCode, headers: &HeaderMap) {
        self.status = Some(status);
        if let Some(seen) = &mut self.seen {
            seen.response = values(headers, log.layout.response_headers());
        }
    }

    pub(crate) fn wrote(&mut self, bytes: usize) {
        self.bytes_out += bytes as u64;
    }
}

/// What a line is made of.
pub(crate) struct Facts<'a> {
    record: &'a Record,
    root_path: &'a str,
    pub(crate) peer: &'a Peer,
    pub(crate) trace: Option<&'a Arc<Trace>>,
    pub(crate) time: SystemTime,
}

impl Facts<'_> {
    pub(crate) fn kind(&self) -> Kind {
        self.record.kind
    }

    /// Status and its phrase.
    pub(crate) fn status(&self) -> (u16, &'static str) {
        self.record
            .status
            .map_or((CLIENT_LEFT, ""), |status| (status.as_u16(), status.canonical_reason().unwrap_or("")))
    }

    pub(crate) fn method(&self) -> Option<&str> {
        self.record.asked.as_ref().map(|asked| asked.method.as_str())
    }

    pub(crate) fn version(&self) -> Option<&'static str> {
        self.record.asked.as_ref().map(|asked| bridgehead_asgi::http_version(asked.version))
    }

    /// The target as applications see it, below the root path, in parts.
    pub(crate) fn target(&self) -> Option<[Cow<'_, str>; 3]> {
        let target = &self.record.asked.as_ref()?.target;
        Some(match target.path_and_query().map(http::uri::PathAndQuery::as_str) {
            Some("*") => ["".into(), "".into(), "*".into()],
            Some(path) => {
                let slash = if path.starts_with('?') { "/" } else { "" };
                [self.root_path.into(), slash.into(), path.into()]
            }
            None => ["".into(), "".into(), target.to_string().into()],
        })
    }

    pub(crate) fn bytes_out(&self) -> u64 {
        self.record.bytes_out
    }

    pub(crate) fn bytes_in(&self) -> u64 {
        self.record.seen.as_ref().and_then(|seen| seen.upload.as_ref()).map_or(0, Witness::received)
    }

    /// Since the whole head came, if one did.
    pub(crate) fn duration(&self) -> Option<Duration> {
        self.record.seen.as_ref().map(|seen| seen.began.elapsed())
    }

    pub(crate) fn request_header(&self, index: usize) -> Option<&HeaderValue> {
        self.record.seen.as_ref()?.request.get(index)?.as_ref()
    }

    pub(crate) fn response_header(&self, index: usize) -> Option<&HeaderValue> {
        self.record.seen.as_ref()?.response.get(index)?.as_ref()
    }
}

impl AccessLog {
    /// Says what became of a request.
    pub(crate) fn write(
        &self,
        record: &Record,
        peer: &Peer,
        trace: Option<&Arc<Trace>>,
        app: &dyn App,
    ) -> Written {
        let root_path = peer.prefix().unwrap_or(&self.root_path);
        let facts = Facts { record, root_path, peer, trace, time: SystemTime::now() };
        match self.outlet.taker() {
            Taker::Pipe(pipe) => pipe.write(|line| {
                self.layout.write(&facts, line);
                line.push(b'\n');
            }),
            Taker::App => {
                app.report(Report::Access(Box::new(self.report(&facts))));
                Written::Kept
            }
            Taker::Nobody => Written::Kept,
        }
    }

    fn report(&self, facts: &Facts<'_>) -> AccessRecord {
        let (mut line, mut target) = (Vec::new(), Vec::new());
        self.layout.write(facts, &mut line);
        facts.target().iter().flatten().for_each(|part| escape::plain(part.as_bytes(), &mut target));
        AccessRecord {
            client: facts.peer.client.escaped(),
            method: facts.method().unwrap_or(NONE).to_owned(),
            target: facts.target().map_or_else(|| NONE.to_owned(), |_| lossless(target)),
            version: facts.version().unwrap_or(NONE),
            status: facts.status().0,
            line: lossless(line),
            trace: facts.trace.cloned(),
        }
    }
}

/// What is written is ASCII.
fn lossless(written: Vec<u8>) -> String {
    String::from_utf8(written).unwrap_or_default()
}

/// One value for each name; several of one name as RFC 9110 section 5.3 joins them.
fn values(headers: &HeaderMap, names: &[HeaderName]) -> Vec<Option<HeaderValue>> {
    names
        .iter()
        .map(|name| {
            let mut all = headers.get_all(name).iter();
            let first = all.next()?;
            let rest: Vec<_> = all.map(HeaderValue::as_bytes).collect();
            if rest.is_empty() {
                return Some(first.clone());
            }
            HeaderValue::from_bytes(&[&[first.as_bytes()][..], &rest].concat().join(&b", "[..])).ok()
        })
        .collect()
}
