//! What `receive()` gives for one HTTP request.
//!
//! Not the body itself: `bridgehead-net` reads and bounds it.
//!
//! Invariant: `http.request` is never given after one without more body, nor after `http.disconnect`.
//!
//! | state          | receive    | `Chunk(Follows)` | `Chunk(Ends)`  | `ResponseEnded` | `ClientGone`   |
//! |----------------|------------|------------------|----------------|-----------------|----------------|
//! | `Reading`      | `Chunk`    | `Reading`        | `Read`         | `Disconnected`  | `Disconnected` |
//! | `Read`         | `Wait`     | `Read`           | `Read`         | `Disconnected`  | `Disconnected` |
//! | `Disconnected` | disconnect | `Disconnected`   | `Disconnected` | `Disconnected`  | `Disconnected` |
//!
//! A request without a body is `Reading` too: its one `http.request` is empty and the last. A response that ends
//! early ends the reading: what is left of the body is the server's to drain, not the application's to see.

use crate::message::More;

/// How far the application has read a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Request {
    /// The last piece of the body was not given yet.
    #[default]
    Reading,
    /// All was given; what can still come is the end.
    Read,
    /// The response has ended, or the client is gone.
    Disconnected,
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestEvent {
    /// A `http.request` was given to the application.
    Chunk(More),
    /// The response is complete.
    ResponseEnded,
    /// The connection, or the stream, is lost.
    ClientGone,
}

/// What a call of `receive()` is to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestReceipt {
    /// `http.request` with the next piece of the body, as soon as there is one; then tell it by
    /// [`RequestEvent::Chunk`]. Should another event come first, ask again.
    Chunk,
    /// Nothing before the next event; then ask again.
    Wait,
    /// `http.disconnect`, now, and as often as it is asked for.
    Disconnect,
}

impl Request {
    /// What a call of `receive()` is to be given now.
    pub fn receive(self) -> RequestReceipt {
        match self {
            Self::Reading => RequestReceipt::Chunk,
            Self::Read => RequestReceipt::Wait,
            Self::Disconnected => RequestReceipt::Disconnect,
        }
    }

    /// The state after an event.
    pub fn next(self, event: RequestEvent) -> Self {
        match (self, event) {
            (Self::Disconnected, _) | (_, RequestEvent::ResponseEnded | RequestEvent::ClientGone) => {
                Self::Disconnected
            }
            (Self::Reading, RequestEvent::Chunk(More::Follows)) => Self::Reading,
            (Self::Reading, RequestEvent::Chunk(More::Ends)) | (Self::Read, RequestEvent::Chunk(_)) => {
                Self::Read
            }
        }
    }
}
