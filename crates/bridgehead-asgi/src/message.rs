//! The messages an application may send, by their type.
//!
//! Not their contents, which the bridge converts, nor whether they are due, which the machines know.
//!
//! Invariant: `from_type` and `name` are each other's inverse.

use crate::misuse::{Excerpt, Misuse};

const HTTP: &str = "`http.response.start` or `http.response.body`";
const WEBSOCKET: &str = "`websocket.accept`, `websocket.send`, `websocket.close`, `websocket.http.response.start` or \
                         `websocket.http.response.body`";
const LIFESPAN: &str = "`lifespan.startup.complete`, `lifespan.startup.failed`, `lifespan.shutdown.complete` or \
                        `lifespan.shutdown.failed`";

/// All that can be sent in a scope of any type: to tell a message astray from one that does not exist.
const KNOWN: [&str; 15] = [
    "http.response.early_hint",
    "http.response.start",
    "http.response.body",
    "http.response.pathsend",
    "http.response.zerocopysend",
    "http.response.trailers",
    "websocket.accept",
    "websocket.send",
    "websocket.close",
    "websocket.http.response.start",
    "websocket.http.response.body",
    "lifespan.startup.complete",
    "lifespan.startup.failed",
    "lifespan.shutdown.complete",
    "lifespan.shutdown.failed",
];

/// What an application may send in an `http` scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMessage {
    /// `http.response.early_hint`: links, before the response.
    EarlyHint,
    /// `http.response.start`: status and headers.
    Start,
    /// `http.response.body`: a piece of the body, maybe the last.
    Body,
    /// `http.response.pathsend`: the whole body, as a file's name.
    PathSend,
    /// `http.response.zerocopysend`: a piece of the body, as a file's descriptor.
    ZeroCopySend,
    /// `http.response.trailers`: fields after the body.
    Trailers,
}

impl HttpMessage {
    /// The message of this type.
    pub fn from_type(came: &str) -> Result<Self, Misuse> {
        match came {
            "http.response.early_hint" => Ok(Self::EarlyHint),
            "http.response.start" => Ok(Self::Start),
            "http.response.body" => Ok(Self::Body),
            "http.response.pathsend" => Ok(Self::PathSend),
            "http.response.zerocopysend" => Ok(Self::ZeroCopySend),
            "http.response.trailers" => Ok(Self::Trailers),
            _ => Err(refuse(came, HTTP)),
        }
    }

    /// The type of this message.
    pub fn name(self) -> &'static str {
        match self {
            Self::EarlyHint => "http.response.early_hint",
            Self::Start => "http.response.start",
            Self::Body => "http.response.body",
            Self::PathSend => "http.response.pathsend",
            Self::ZeroCopySend => "http.response.zerocopysend",
            Self::Trailers => "http.response.trailers",
        }
    }
}

/// What an application may send in a `websocket` scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebSocketMessage {
    /// `websocket.accept`: the handshake is answered.
    Accept,
    /// `websocket.send`: a message to the client.
    Send,
    /// `websocket.close`: no more; before `websocket.accept`, a refusal.
    Close,
    /// `websocket.http.response.start`: a refusal in words of the application's own.
    DenialStart,
    /// `websocket.http.response.body`: a piece of that.
    DenialBody,
}

impl WebSocketMessage {
    /// The message of this type.
    pub fn from_type(came: &str) -> Result<Self, Misuse> {
        match came {
            "websocket.accept" => Ok(Self::Accept),
            "websocket.send" => Ok(Self::Send),
            "websocket.close" => Ok(Self::Close),
            "websocket.http.response.start" => Ok(Self::DenialStart),
            "websocket.http.response.body" => Ok(Self::DenialBody),
            _ => Err(refuse(came, WEBSOCKET)),
        }
    }

    /// The type of this message.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accept => "websocket.accept",
            Self::Send => "websocket.send",
            Self::Close => "websocket.close",
            Self::DenialStart => "websocket.http.response.start",
            Self::DenialBody => "websocket.http.response.body",
        }
    }
}

/// What an application may send in a `lifespan` scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifespanMessage {
    /// `lifespan.startup.complete`: requests may come.
    StartupComplete,
    /// `lifespan.startup.failed`: the server is to log the reason and exit.
    StartupFailed,
    /// `lifespan.shutdown.complete`: the process may end.
    ShutdownComplete,
    /// `lifespan.shutdown.failed`: the process may end, but not as if nothing had happened.
    ShutdownFailed,
}

impl LifespanMessage {
    /// The message of this type.
    pub fn from_type(came: &str) -> Result<Self, Misuse> {
        match came {
            "lifespan.startup.complete" => Ok(Self::StartupComplete),
            "lifespan.startup.failed" => Ok(Self::StartupFailed),
            "lifespan.shutdown.complete" => Ok(Self::ShutdownComplete),
            "lifespan.shutdown.failed" => Ok(Self::ShutdownFailed),
            _ => Err(refuse(came, LIFESPAN)),
        }
    }

    /// The type of this message.
    pub fn name(self) -> &'static str {
        match self {
            Self::StartupComplete => "lifespan.startup.complete",
            Self::StartupFailed => "lifespan.startup.failed",
            Self::ShutdownComplete => "lifespan.shutdown.complete",
            Self::ShutdownFailed => "lifespan.shutdown.failed",
        }
    }

    /// Whether it may say, under `message`, what failed.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::StartupFailed | Self::ShutdownFailed)
    }
}

/// ASGI's `more_body`: whether a piece of a body is the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum More {
    /// Another piece follows.
    Follows,
    /// This was the last.
    Ends,
}

impl More {
    /// True if another piece follows: the value of `more_body`.
    pub fn follows(self) -> bool {
        self == Self::Follows
    }
}

impl From<bool> for More {
    /// Reads a `more_body`.
    fn from(more_body: bool) -> Self {
        if more_body { Self::Follows } else { Self::Ends }
    }
}

fn refuse(came: &str, due: &'static str) -> Misuse {
    match KNOWN.into_iter().find(|known| *known == came) {
        Some(came) => Misuse::WrongProtocol { came, due },
        None => Misuse::UnknownType { came: Excerpt::of(came), due },
    }
}
