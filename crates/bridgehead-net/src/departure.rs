//! Sees a client leave, past what it has sent behind its request.
//!
//! Nothing is taken out of the stream: an end, or a reset, is seen behind bytes that wait to be read.
//!
//! Invariant: until a client was seen leaving, the task that looks is woken when it does.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use crate::session::Wire;
use crate::socket::{Layer, Sight, Socket, locked};

/// How a client left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// It sends no more; it may still read.
    HalfClosed,
    /// The connection is broken.
    Broken,
}

/// Waits until the connection of a client that sends no more is broken: readiness to read tells nothing new of it.
pub(crate) struct Breach(Pin<Box<dyn Future<Output = ()> + Send>>);

impl Breach {
    pub(crate) fn of(socket: Arc<Socket>) -> Self {
        Self(Box::pin(async move {
            socket.stream.broken().await;
        }))
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for Breach {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Breach")
    }
}

impl Socket {
    /// Looks whether the client has left, past what it has sent already, and goes on looking.
    pub(crate) fn poll_departure(&self, cx: &mut Context<'_>) -> Poll<Departure> {
        if let Layer::Tls(session) = &self.layer {
            match ready!(locked(session).poll_sight(&mut Wire { socket: self, cx })) {
                Sight::Closed => return Poll::Ready(self.departure()),
                Sight::Broken => return Poll::Ready(Departure::Broken),
                Sight::Bytes => {}
            }
        }
        loop {
            match ready!(self.poll_sight_wire(cx)) {
                Sight::Broken => return Poll::Ready(Departure::Broken),
                Sight::Closed => return Poll::Ready(self.departure()),
                Sight::Bytes if self.is_broken() => return Poll::Ready(Departure::Broken),
                Sight::Bytes if self.stream.is_read_closed() => return Poll::Ready(Departure::HalfClosed),
                Sight::Bytes => {
                    self.was_drained();
                    self.looked_past.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    /// How a client left that sends no more. A Unix socket that was closed can be told apart.
    fn departure(&self) -> Departure {
        if self.is_broken() { Departure::Broken } else { Departure::HalfClosed }
    }

    /// Whether something waits in the stream now.
    pub(crate) fn has_unread(&self) -> bool {
        self.stream.peek().is_ok_and(|count| count > 0)
    }

    /// Whether nothing can be written any more, which is asked by writing nothing.
    fn is_broken(&self) -> bool {
        self.stream.write_nothing().is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock)
    }
}
