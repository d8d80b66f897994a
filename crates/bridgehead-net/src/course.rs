//! Where the connection of a WebSocket stands: how far it has come, whether its client is read and heard.
//!
//! Not what is done about it (`websocket_session`).
//!
//! | course | is left by |
//! |---|---|
//! | `Open` | a close frame; the application's wish; a broken protocol; a deadline; the worker's draining |
//! | `Answering` | the application that hears of the client's close frame, or of its fault, or its time to |
//! | `Closing` | the client's close frame; its time |
//! | `Leaving` | the last byte out and the client's end; its time |
//!
//! Invariant: a course is never gone back.

use std::time::Instant;

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    Open,
    /// The client closes, or breaks the protocol; the application is to hear of it before it is answered.
    Answering(Option<Instant>),
    /// We close; the client is to answer.
    Closing(Instant),
    /// Nothing more is said.
    Leaving(Instant),
}

/// Why what the client sends means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deaf {
    No,
    Closed,
    Failed,
}

/// Whether the client is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    On,
    /// The application has enough to do.
    Paused,
    /// Nothing more comes.
    Over,
}

/// What was asked of the application: it wakes the connection only behind that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    All,
    /// What was taken before has yet to be framed, or written.
    Nothing,
}

/// What a deadline that has passed leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    GoesOn,
    Gone,
}
