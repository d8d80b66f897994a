//! Judges each message an application sends over one WebSocket, and says what `receive()` gives it.
//!
//! Pure: no clock, no socket, no Python. Not the answer that an application may give instead of a WebSocket: that is a
//! `Response`, which `http` judges. Frames are `bridgehead-net`'s.
//!
//! Invariant: a WebSocket is accepted at most once and closed at most once, and says nothing before the one and after
//! the other.
//!
//! | state        | accept           | send         | close              | response.start | response.body |
//! |--------------|------------------|--------------|--------------------|----------------|---------------|
//! | `Connecting` | `Open`           | `OutOfPlace` | `Closed`: refused  | `Denying`      | `OutOfPlace`  |
//! | `Denying`    | `OutOfPlace`     | `OutOfPlace` | `OutOfPlace`       | `OutOfPlace`   | `Denying`     |
//! | `Denied`     | `Over`           | `Over`       | `Over`             | `Over`         | `Denied`      |
//! | `Open`       | `OutOfPlace`     | `Open`       | `Closed`           | `OutOfPlace`   | `OutOfPlace`  |
//! | `Closed`     | `Over`           | `Over`       | `Over`             | `Over`         | `Over`        |
//!
//! `Over` is no misuse: an application may not know yet that there is nobody to hear it. A body behind the end of a
//! response is `http`'s to judge.

use http::header::{HeaderMap, HeaderValue};

use crate::headers::{judge_name, judge_value};
use crate::message::WebSocketMessage;
use crate::misuse::{Excerpt, Misuse};

/// RFC 6455 §5.5: a control frame holds at most 125 bytes, two of which are the code.
const LONGEST_REASON: usize = 123;

/// What is said of a WebSocket that nobody said how to close.
const NORMAL: u16 = 1000;

/// How far a WebSocket has come, as its application knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WebSocket {
    /// The handshake is not answered.
    #[default]
    Connecting,
    /// It is answered by a response of the application's own.
    Denying,
    /// That response is complete.
    Denied,
    /// Accepted.
    Open,
    /// The application has closed or refused it.
    Closed,
}

/// Why a message is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotTaken {
    /// ASGI does not allow it here.
    Misuse(Misuse),
    /// There is nobody to hear it any more.
    Over,
}

impl WebSocket {
    /// Judges a message of the application.
    pub fn send(self, message: WebSocketMessage) -> Result<Self, NotTaken> {
        match (self, message) {
            (Self::Denied, WebSocketMessage::DenialBody) => Ok(Self::Denied),
            (Self::Closed | Self::Denied, _) => Err(NotTaken::Over),
            (Self::Connecting, WebSocketMessage::Accept) => Ok(Self::Open),
            (Self::Connecting | Self::Open, WebSocketMessage::Close) => Ok(Self::Closed),
            (Self::Connecting, WebSocketMessage::DenialStart)
            | (Self::Denying, WebSocketMessage::DenialBody) => Ok(Self::Denying),
            (Self::Open, WebSocketMessage::Send) => Ok(Self::Open),
            (state, message) => {
                Err(NotTaken::Misuse(Misuse::OutOfPlace { came: message.name(), due: state.due() }))
            }
        }
    }

    fn due(self) -> &'static str {
        match self {
            Self::Connecting => "`websocket.accept`, `websocket.close` or `websocket.http.response.start`",
            Self::Denying => "`websocket.http.response.body`",
            Self::Open => "`websocket.send` or `websocket.close`",
            Self::Closed | Self::Denied => "nothing more",
        }
    }
}

/// How much of a WebSocket `receive()` has given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hearing {
    /// Nothing yet: `websocket.connect` is next, and then it is `Open`.
    #[default]
    Fresh,
    /// What the client sends, then `websocket.disconnect`, and then it is `Over`.
    Open,
    /// `websocket.disconnect`: there is nothing more to be given.
    Over,
}

/// How an application accepts a WebSocket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acceptance {
    /// What it adds to the answer.
    pub headers: HeaderMap,
    /// The one that it chose of those that the client offered.
    pub subprotocol: Option<HeaderValue>,
}

impl Acceptance {
    /// Chooses a subprotocol.
    pub fn choose(&mut self, subprotocol: &str) -> Result<(), Misuse> {
        let bad = || Misuse::BadSubprotocol { came: Excerpt::of(subprotocol) };
        if !is_token(subprotocol.as_bytes()) {
            return Err(bad());
        }
        self.subprotocol = Some(HeaderValue::from_str(subprotocol).map_err(|_| bad())?);
        Ok(())
    }

    /// Judges a header and adds it. Those of the handshake itself are the server's.
    pub fn header(&mut self, name: &[u8], value: &[u8]) -> Result<(), Misuse> {
        let name = judge_name(name)?;
        let value = judge_value(&name, value)?;
        match name.as_str() {
            "sec-websocket-protocol" => Err(Misuse::SubprotocolAsHeader),
            "connection"
            | "content-length"
            | "keep-alive"
            | "proxy-connection"
            | "sec-websocket-accept"
            | "sec-websocket-extensions"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade" => Ok(()),
            _ => {
                let held = self.headers.len();
                self.headers.try_append(name, value).map(drop).map_err(|_| Misuse::TooManyHeaders { held })
            }
        }
    }
}

/// Why a WebSocket is closed: a code that may be sent, and a reason that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closing {
    code: u16,
    reason: String,
}

impl Closing {
    /// Judges what an application says; a code that it leaves out is 1000.
    pub fn new(code: Option<i64>, reason: String) -> Result<Self, Misuse> {
        let came = code.unwrap_or(NORMAL.into());
        let code = u16::try_from(came)
            .ok()
            .filter(|code| is_close_code(*code))
            .ok_or_else(|| Misuse::BadCloseCode { came: Excerpt::of(came.to_string()) })?;
        if reason.len() > LONGEST_REASON {
            return Err(Misuse::LongReason { came: reason.len(), max: LONGEST_REASON });
        }
        Ok(Self { code, reason })
    }

    /// The code.
    pub fn code(&self) -> u16 {
        self.code
    }

    /// The reason, which may be empty.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// Whether a close frame may hold this code: RFC 6455 §7.4, and what IANA has registered since. 1004 means nothing yet,
/// and 1005, 1006 and 1015 are said of a connection, never on it.
pub fn is_close_code(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// RFC 9110 §5.6.2, which RFC 6455 §4.1 asks of a subprotocol.
pub fn is_token(text: &[u8]) -> bool {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(fits)
}
