//! A message of a WebSocket, whole, in whichever direction it goes.
//!
//! Not one that is on its way in, which is `partial`'s.
//!
//! Invariant: what is called text is UTF-8; whoever makes it has seen to that.

use bytes::Bytes;

use crate::head::Opcode;

/// One message, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// UTF-8.
    Text(Bytes),
    /// Anything.
    Binary(Bytes),
}

impl Message {
    /// Its bytes.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> &Bytes {
        match self {
            Self::Text(payload) | Self::Binary(payload) => payload,
        }
    }

    /// Its bytes, without it.
    #[must_use]
    #[inline]
    pub fn into_payload(self) -> Bytes {
        match self {
            Self::Text(payload) | Self::Binary(payload) => payload,
        }
    }

    /// What its first frame says.
    #[must_use]
    #[inline]
    pub fn opcode(&self) -> Opcode {
        match self {
            Self::Text(_) => Opcode::Text,
            Self::Binary(_) => Opcode::Binary,
        }
    }
}
