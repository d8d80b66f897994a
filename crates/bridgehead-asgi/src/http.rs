//! Judges each message an application sends for one HTTP response.
//!
//! Pure: no clock, no socket, no Python. `bridgehead-net` owns the wire.
//!
//! Invariant: the bytes taken never exceed the declared length, and a response that is `Complete` has had all of
//! it.
//!
//! | state                        | start                     | body, more follows       | body, the last      |
//! |------------------------------|---------------------------|--------------------------|---------------------|
//! | `AwaitingStart`              | `Streaming` or `Bodiless` | `BodyBeforeStart`        | `BodyBeforeStart`   |
//! | `Streaming`, fits            | `StartTwice`              | `Streaming`, continue    | `Ended`, complete   |
//! | `Streaming`, bytes missing   | `StartTwice`              | (more may follow)        | `Ended`, short      |
//! | `Streaming`, bytes in excess | `StartTwice`              | `Discarding`, overflow   | `Ended`, overflow   |
//! | `Bodiless`                   | `StartTwice`              | `Bodiless`, take none    | `Ended`, complete   |
//! | `Discarding`                 | `StartTwice`              | `Discarding`, take none  | `Ended`, take none  |
//! | `Ended`                      | `AfterEnd`                | `AfterEnd`               | `AfterEnd`          |
//!
//! `Bodiless` is what answers HEAD, and every 204 and 304 (RFC 9110 §6.4.1). `Discarding` lets an application that
//! wrote too much stream on to its end, for it learns nothing from an exception in every chunk.

use http::{Method, StatusCode};

use crate::headers::ResponseHead;
use crate::length::{Excess, Length, Missing};
use crate::message::{HttpMessage, More};
use crate::misuse::Misuse;

/// How far a response has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    /// `http.response.start` is due.
    AwaitingStart {
        /// How much of the response the request asked for.
        reply: Reply,
    },
    /// The body is being sent.
    Streaming {
        /// What is still due of it.
        left: Length,
    },
    /// A head without a body was sent: whatever body comes is not written.
    Bodiless,
    /// More came than was declared. The response is complete; the application does not know it yet.
    Discarding,
    /// The last `http.response.body` came.
    Ended,
}

/// How much of a response a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Head and body.
    Whole,
    /// The head alone: the method was HEAD.
    HeadOnly,
}

/// What to do with the bytes of an accepted `http.response.body`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// So many of them, from the first, go on the wire.
    pub take: usize,
    /// What follows.
    pub then: Then,
}

/// What to do once the bytes were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Nothing.
    Continue,
    /// Complete the response.
    Complete,
    /// More came than was declared: log it, complete the response, close the connection.
    Overflow {
        /// How many bytes were cut off this chunk. Never 0.
        excess: u64,
    },
    /// Less came than was declared: log it and abort the connection, lest the client take what follows for body.
    Short {
        /// How many bytes were still due. Never 0.
        missing: u64,
    },
}

impl Response {
    /// The response to a request of this method.
    pub fn to(method: &Method) -> Self {
        let reply = if *method == Method::HEAD { Reply::HeadOnly } else { Reply::Whole };
        Self::AwaitingStart { reply }
    }

    /// Judges a `http.response.start`.
    pub fn start(self, head: &ResponseHead) -> Result<Self, Misuse> {
        match self {
            Self::AwaitingStart { reply: Reply::HeadOnly } => Ok(Self::Bodiless),
            Self::AwaitingStart { reply: Reply::Whole } if is_bodiless(head.status()) => Ok(Self::Bodiless),
            Self::AwaitingStart { reply: Reply::Whole } => {
                Ok(Self::Streaming { left: head.declared().into() })
            }
            Self::Streaming { .. } | Self::Bodiless | Self::Discarding => Err(Misuse::StartTwice),
            Self::Ended => Err(Misuse::AfterEnd { came: HttpMessage::Start.name() }),
        }
    }

    /// Judges a `http.response.body` of so many bytes.
    pub fn body(self, offered: usize, more: More) -> Result<(Self, Write), Misuse> {
        match (self, more) {
            (Self::AwaitingStart { .. }, _) => Err(Misuse::BodyBeforeStart),
            (Self::Streaming { left }, _) => Ok(stream(left, offered, more)),
            (Self::Bodiless | Self::Discarding, More::Follows) => Ok((self, Write::nothing(Then::Continue))),
            (Self::Bodiless, More::Ends) => Ok((Self::Ended, Write::nothing(Then::Complete))),
            // The response was completed when it overflowed.
            (Self::Discarding, More::Ends) => Ok((Self::Ended, Write::nothing(Then::Continue))),
            (Self::Ended, _) => Err(Misuse::AfterEnd { came: HttpMessage::Body.name() }),
        }
    }

    /// Whether a body may come, of whatever kind, before its bytes are known.
    pub fn expects_body(self, came: HttpMessage) -> Result<(), Misuse> {
        match self {
            Self::AwaitingStart { .. } => {
                Err(Misuse::OutOfPlace { came: came.name(), due: "`http.response.start`" })
            }
            Self::Streaming { .. } | Self::Bodiless | Self::Discarding => Ok(()),
            Self::Ended => Err(Misuse::AfterEnd { came: came.name() }),
        }
    }

    /// Whether a hint of what is to come may come.
    pub fn expects_hint(self) -> Result<(), Misuse> {
        let came = HttpMessage::EarlyHint.name();
        match self {
            Self::AwaitingStart { .. } => Ok(()),
            Self::Streaming { .. } | Self::Bodiless | Self::Discarding => {
                Err(Misuse::OutOfPlace { came, due: "`http.response.body`" })
            }
            Self::Ended => Err(Misuse::AfterEnd { came }),
        }
    }

    /// True once `http.response.start` was accepted.
    pub fn has_started(self) -> bool {
        !matches!(self, Self::AwaitingStart { .. })
    }

    /// True once nothing more goes on the wire, whether or not the application knows it.
    pub fn is_ended(self) -> bool {
        matches!(self, Self::Discarding | Self::Ended)
    }
}

impl Write {
    fn nothing(then: Then) -> Self {
        Self { take: 0, then }
    }
}

/// True for a status whose responses end with their head, whatever their headers say.
fn is_bodiless(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

fn stream(left: Length, offered: usize, more: More) -> (Response, Write) {
    let left = match left.spend(offered) {
        Ok(left) => left,
        Err(Excess { fits, excess }) => {
            let next = if more.follows() { Response::Discarding } else { Response::Ended };
            return (next, Write { take: fits, then: Then::Overflow { excess } });
        }
    };
    let (next, then) = match (more, left.settle()) {
        (More::Follows, _) => (Response::Streaming { left }, Then::Continue),
        (More::Ends, Ok(())) => (Response::Ended, Then::Complete),
        (More::Ends, Err(Missing(missing))) => (Response::Ended, Then::Short { missing }),
    };
    (next, Write { take: offered, then })
}
