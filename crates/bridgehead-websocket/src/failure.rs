//! Why no more is read of a client's frames, as the close frame says it that answers them.
//!
//! Not the judgement, which is made where the bytes are: in `frame`, `partial` and `deflate`.
//!
//! Invariant: a reason fits into a close frame, and holds nothing that a client sent.

/// Why no more is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// RFC 6455's code, which closes the WebSocket.
    pub code: u16,
    /// In words, for the client and the log.
    pub reason: &'static str,
}

/// A message is larger than one may be.
pub const TOO_BIG: Failure = Failure { code: 1009, reason: "the message is larger than is allowed" };

/// No more is lent for it.
pub const NO_MEMORY: Failure = Failure { code: 1013, reason: "there is no memory left for the message" };

pub(crate) const NO_TEXT: Failure = Failure { code: 1007, reason: "the text is not UTF-8" };
