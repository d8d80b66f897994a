//! Judges the trailers of one HTTP response: the fields that follow its body.
//!
//! Pure, and apart from the body's own machine: whether trailers come changes nothing about a body but that its end is
//! not yet the response's.
//!
//! Invariant: trailers are written only where a client said that it takes them, and where the framing has a place for
//! them; elsewhere they are taken from the application all the same, and dropped.
//!
//! | state          | body ends     | trailers, more follow    | trailers, the last       |
//! |----------------|---------------|--------------------------|--------------------------|
//! | `Unpromised`   | `Unpromised`  | `TrailersUnpromised`     | `TrailersUnpromised`     |
//! | `Promised(f)`  | `Due(f)`      | `TrailersBeforeBodyEnd`  | `TrailersBeforeBodyEnd`  |
//! | `Due(f)`       | `Due(f)`      | `Due(f)`                 | `Sent`                   |
//! | `Sent`         | `Sent`        | `AfterEnd`               | `AfterEnd`               |

use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HOST,
    HeaderMap, MAX_FORWARDS, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING,
};

use crate::headers::{judge_name, judge_value};
use crate::message::{HttpMessage, More};
use crate::misuse::{Excerpt, Misuse};

/// How far a response's trailers have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trailers {
    /// `http.response.start` did not promise any.
    #[default]
    Unpromised,
    /// They follow the body, which has not ended yet.
    Promised(Fate),
    /// The body has ended.
    Due(Fate),
    /// The last came.
    Sent,
}

/// What becomes of trailers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// They go on the wire, and the response ends with them.
    Written,
    /// The client takes none, or the framing has no place for them: the response ends with its body.
    Dropped,
}

impl Trailers {
    /// The state after the last piece of the body.
    #[must_use]
    pub fn body_ended(self) -> Self {
        match self {
            Self::Promised(fate) => Self::Due(fate),
            Self::Unpromised | Self::Due(_) | Self::Sent => self,
        }
    }

    /// Judges a `http.response.trailers`.
    pub fn trailers(self, more: More) -> Result<Self, Misuse> {
        match (self, more) {
            (Self::Unpromised, _) => Err(Misuse::TrailersUnpromised),
            (Self::Promised(_), _) => Err(Misuse::TrailersBeforeBodyEnd),
            (Self::Due(_), More::Follows) => Ok(self),
            (Self::Due(_), More::Ends) => Ok(Self::Sent),
            (Self::Sent, _) => Err(Misuse::AfterEnd { came: HttpMessage::Trailers.name() }),
        }
    }

    /// True while the end of the body is not the end of the response.
    #[must_use]
    pub fn hold_the_end(self) -> bool {
        matches!(self, Self::Promised(Fate::Written) | Self::Due(Fate::Written))
    }
}

/// Judges a trailer and adds it.
pub fn add_trailer(trailers: &mut HeaderMap, name: &[u8], value: &[u8]) -> Result<(), Misuse> {
    let name = judge_name(name)?;
    let value = judge_value(&name, value)?;
    // RFC 9110 §6.5.1: what frames, routes, authenticates or describes a message is known before its body or never.
    let misplaced = [
        AUTHORIZATION,
        CACHE_CONTROL,
        CONTENT_ENCODING,
        CONTENT_LENGTH,
        CONTENT_RANGE,
        CONTENT_TYPE,
        HOST,
        MAX_FORWARDS,
        SET_COOKIE,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
    ]
    .contains(&name);
    if misplaced {
        return Err(Misuse::MisplacedTrailer { name: Excerpt::of(name.as_str()) });
    }
    let held = trailers.len();
    trailers.try_append(name, value).map(drop).map_err(|_| Misuse::TooManyHeaders { held })
}
