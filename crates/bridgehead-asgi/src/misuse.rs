//! What an application can do wrong, one variant a mistake, one sentence a variant.
//!
//! Not the fault of the client, the operator or the server: those have errors of their own. The bridge raises
//! these at the application's own `await`.
//!
//! Invariant: a sentence quotes at most 80 bytes of what the application sent, escaped to printable ASCII, and
//! never quotes a header's value, which may be a secret.

use std::fmt;

use thiserror::Error;

/// Longest quotation, in bytes: enough to recognise a message by, too short to flood a log with.
const QUOTED: usize = 80;

/// Stands where a quotation was cut.
const CUT: &str = "...";

/// A rule of ASGI the application broke: what came, and what was due.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Misuse {
    /// `send` was given something that is no message.
    #[error("a message came as {came}; a dict was due")]
    NotADict {
        /// Name of the type that came.
        came: Excerpt,
    },
    /// A message does not say what it is.
    #[error("a message came without `type`; every message names its type")]
    MissingType,
    /// A message lacks a key that has no default.
    #[error("`{message}` came without `{key}`, which has no default")]
    MissingKey {
        /// Type of the message.
        message: &'static str,
        /// The key that was due.
        key: &'static str,
    },
    /// A key holds a value of the wrong Python type.
    #[error("`{key}` of `{message}` came as {came}; {due} was due")]
    WrongType {
        /// Type of the message.
        message: &'static str,
        /// The key that holds the value.
        key: &'static str,
        /// Name of the type that came.
        came: Excerpt,
        /// Name of the type that was due.
        due: &'static str,
    },
    /// A number of bytes that cannot be one.
    #[error("`{key}` of `{message}` came as {came}; a number of bytes, 0 to {max}, or None, was due", max = i64::MAX)]
    BadSize {
        /// Type of the message.
        message: &'static str,
        /// The key that holds the number.
        key: &'static str,
        /// The number that came.
        came: Excerpt,
    },
    /// No ASGI message of any protocol we speak has this type.
    #[error("a message of unknown type `{came}` came; one of this scope was due: {due}")]
    UnknownType {
        /// The type that came.
        came: Excerpt,
        /// The types of the scope; which of them may come now its machine says.
        due: &'static str,
    },
    /// The message belongs to a scope of another type.
    #[error("`{came}` came, which belongs to another type of scope; one of this scope was due: {due}")]
    WrongProtocol {
        /// The type that came.
        came: &'static str,
        /// The types of the scope; which of them may come now its machine says.
        due: &'static str,
    },
    /// A status that no response can have.
    #[error("status {came} came; 200 to 999 was due")]
    BadStatus {
        /// The status that came.
        came: Excerpt,
    },
    /// An interim response, which `http.response.start` cannot send.
    #[error("informational status {came} came; `http.response.start` sends the final one, 200 to 999")]
    InformationalStatus {
        /// The status that came.
        came: i64,
    },
    /// A header's name is no token.
    #[error("header name `{name}` came; letters, digits and any of !#$%&'*+-.^_`|~ were due")]
    BadHeaderName {
        /// The name that came.
        name: Excerpt,
    },
    /// A header's name is longer than any can be.
    #[error("a header name of {came} bytes came; at most {max} were due")]
    LongHeaderName {
        /// How many bytes it has.
        came: usize,
        /// How many it may have.
        max: usize,
    },
    /// A header's name is one of HTTP/2's own.
    #[error("pseudo-header `{name}` came; the server writes these itself")]
    PseudoHeader {
        /// The name that came.
        name: Excerpt,
    },
    /// A header's value holds a byte that would end it, or is no text.
    #[error("header `{name}` came with byte 0x{byte:02x} at {at}; no control character but tab was due")]
    BadHeaderValue {
        /// The header's name.
        name: Excerpt,
        /// The byte that may not be there.
        byte: u8,
        /// Where it was, counted from 0.
        at: usize,
    },
    /// More headers than a map can hold.
    #[error("one header more came than the {held} that a response can hold")]
    TooManyHeaders {
        /// How many it holds.
        held: usize,
    },
    /// Headers that are longer together than any client reads.
    #[error("headers of more than {max} bytes came; at most so many were due")]
    LongHeaders {
        /// How many they may have together.
        max: usize,
    },
    /// A `content-length` that is no number, or too great a one.
    #[error("`content-length` came as `{came}`; digits, at most {max}, were due", max = u64::MAX)]
    BadContentLength {
        /// The value that came. A length is no secret.
        came: Excerpt,
    },
    /// Two `content-length` headers that cannot both be true.
    #[error("`content-length` {second} came after {first}; one length was due")]
    TwoContentLengths {
        /// The length declared first.
        first: u64,
        /// The length that contradicts it.
        second: u64,
    },
    /// A body has no response to belong to.
    #[error("`http.response.body` came before `http.response.start`")]
    BodyBeforeStart,
    /// A response can start once.
    #[error("`http.response.start` came twice; `http.response.body` was due")]
    StartTwice,
    /// A response had its last body already.
    #[error("`{came}` came after the response had ended; nothing more was due")]
    AfterEnd {
        /// The type of the message.
        came: &'static str,
    },
    /// An extension that the scope does not name.
    #[error("`{came}` came, which `scope[\"extensions\"]` does not name; {due}")]
    NotOffered {
        /// The type of the message.
        came: &'static str,
        /// What would make it be offered, or what was due.
        due: &'static str,
    },
    /// Trailers have to be promised.
    #[error("`http.response.trailers` came; `\"trailers\": True` in `http.response.start` was due before")]
    TrailersUnpromised,
    /// Trailers follow the body.
    #[error("`http.response.trailers` came before the last `http.response.body`")]
    TrailersBeforeBodyEnd,
    /// A descriptor that names no open file.
    #[error("`file` of `http.response.zerocopysend` came as descriptor {came}; one that is open was due")]
    ClosedDescriptor {
        /// Its number.
        came: i32,
    },
    /// A descriptor that is open, but gives no bytes: one for writing alone, or for events.
    #[error(
        "`file` of `http.response.zerocopysend` cannot be read ({reason}); a file, pipe or socket that can was due"
    )]
    UnreadableDescriptor {
        /// What the system says.
        reason: Excerpt,
    },
    /// A field that means nothing after the body.
    #[error("trailer `{name}` came; it belongs into the headers of `http.response.start`")]
    MisplacedTrailer {
        /// The field's name.
        name: Excerpt,
    },
    /// A close code that no frame may hold.
    #[error("close code {came} came; 1000 to 1003, 1007 to 1014 or 3000 to 4999 was due")]
    BadCloseCode {
        /// The code that came.
        came: Excerpt,
    },
    /// A reason that fits no close frame.
    #[error("a close reason of {came} bytes came; at most {max} fit")]
    LongReason {
        /// How many bytes it has.
        came: usize,
        /// How many it may have.
        max: usize,
    },
    /// A subprotocol is no token.
    #[error("subprotocol `{came}` came; letters, digits and any of !#$%&'*+-.^_`|~ were due")]
    BadSubprotocol {
        /// What came.
        came: Excerpt,
    },
    /// A subprotocol among the headers.
    #[error(
        "header `sec-websocket-protocol` came with `websocket.accept`; `subprotocol` was due in its place"
    )]
    SubprotocolAsHeader,
    /// A message over a WebSocket is a text or bytes.
    #[error("`websocket.send` came with {came}; either `bytes` or `text` was due")]
    OnePayload {
        /// What came instead.
        came: &'static str,
    },
    /// A text that UTF-8 cannot hold.
    #[error("`{key}` of `{message}` holds a lone surrogate; text that UTF-8 can hold was due")]
    LoneSurrogate {
        /// Type of the message.
        message: &'static str,
        /// The key that holds the text.
        key: &'static str,
    },
    /// A message at a time when it means nothing.
    #[error("`{came}` came out of place; {due} was due")]
    OutOfPlace {
        /// The type of the message.
        came: &'static str,
        /// What could have come.
        due: &'static str,
    },
}

/// A quotation of what the application sent: printable ASCII, at most 80 bytes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt(Box<str>);

impl Excerpt {
    /// Quotes text or bytes, escaped as Rust escapes a byte string, and cut if long.
    pub fn of(quoted: impl AsRef<[u8]>) -> Self {
        let mut text = String::new();
        for byte in quoted.as_ref() {
            let escaped = byte.escape_ascii();
            // Room for the mark is kept even when the last byte would just fit: a cut must always show.
            if text.len() + escaped.len() > QUOTED - CUT.len() {
                text.push_str(CUT);
                break;
            }
            text.extend(escaped.map(char::from));
        }
        Self(text.into_boxed_str())
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
