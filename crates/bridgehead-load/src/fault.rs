//! What can go wrong with a request, by kind.
//!
//! Not a judge of answers: `expect` is.
//!
//! Invariant: every error of hyper and of the system has exactly one kind.

use std::error::Error as _;
use std::io;

/// A kind of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No connection could be made.
    Connect,
    /// The connection was reset, or broke while we wrote.
    Reset,
    /// The connection was closed before a byte of the answer.
    Closed,
    /// No whole answer within the time.
    Timeout,
    /// The connection ended within an answer.
    ShortBody,
    /// What came was no HTTP.
    Malformed,
    /// A whole answer whose status is 5xx.
    Status5xx,
    /// A whole answer that is not as it should be.
    Assertion,
}

impl Kind {
    /// All of them, in the order they are shown.
    pub const ALL: [Self; 8] = [
        Self::Connect,
        Self::Reset,
        Self::Closed,
        Self::Timeout,
        Self::ShortBody,
        Self::Malformed,
        Self::Status5xx,
        Self::Assertion,
    ];

    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Reset => "reset",
            Self::Closed => "closed",
            Self::Timeout => "timeout",
            Self::ShortBody => "short_body",
            Self::Malformed => "malformed",
            Self::Status5xx => "status_5xx",
            Self::Assertion => "assertion",
        }
    }
}

/// An error, and what was said of it.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

impl Fault {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    pub(crate) fn connect(error: &io::Error) -> Self {
        Self::new(Kind::Connect, error.to_string())
    }

    /// What ended an exchange before its head had come.
    pub(crate) fn of_head(error: &hyper::Error) -> Self {
        // hyper says the same of a connection that ended before a head and of one that ended within.
        let kind = if error.is_parse() { Kind::Malformed } else { of_wire(error).unwrap_or(Kind::Closed) };
        if error.is_parse_too_large() {
            return Self::new(kind, "a head of more than 100 fields, or one that is too long");
        }
        Self::new(kind, said(error))
    }

    /// What ended an answer behind its head.
    pub(crate) fn of_body(error: &hyper::Error) -> Self {
        Self::new(of_wire(error).unwrap_or(Kind::ShortBody), said(error))
    }
}

impl Fault {
    /// What ended a stream of HTTP/2; `otherwise`: the kind, when the connection merely ended.
    pub(crate) fn of_stream(error: &h2::Error, otherwise: Kind) -> Self {
        let kind = match error.get_io() {
            // So h2 calls an end that nobody announced.
            Some(cause) if cause.kind() == io::ErrorKind::BrokenPipe => otherwise,
            Some(cause) => of_cause(cause).unwrap_or(otherwise),
            None if error.is_reset() && error.is_remote() => Kind::Reset,
            None if error.is_library() => Kind::Malformed,
            None => otherwise,
        };
        Self::new(kind, error.to_string())
    }

    /// What ended a WebSocket.
    pub(crate) fn of_message(error: &tungstenite::Error) -> Self {
        use tungstenite::Error::{AlreadyClosed, ConnectionClosed, Io, Protocol};
        use tungstenite::error::ProtocolError::ResetWithoutClosingHandshake;
        let kind = match error {
            Io(cause) => of_cause(cause).unwrap_or(Kind::Closed),
            // An end without a close frame, whoever's.
            ConnectionClosed | AlreadyClosed | Protocol(ResetWithoutClosingHandshake) => Kind::Closed,
            _ => Kind::Malformed,
        };
        Self::new(kind, error.to_string())
    }
}

/// What the system said of the connection, if that is the cause.
fn of_wire(error: &hyper::Error) -> Option<Kind> {
    of_cause(error.source()?.downcast_ref::<io::Error>()?)
}

/// The kind of what the system said; `None` of a mere end.
fn of_cause(cause: &io::Error) -> Option<Kind> {
    match cause.kind() {
        io::ErrorKind::UnexpectedEof => None,
        // hyper's own words for a chunk that is none.
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => Some(Kind::Malformed),
        _ => Some(Kind::Reset),
    }
}

fn said(error: &hyper::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
