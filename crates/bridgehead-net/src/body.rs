//! An answer's body as hyper pulls it.
//!
//! Not the exchange, which holds what waits; this is the end that the socket empties.
//!
//! Invariant: a body that the application broke off ends in an error, so hyper closes the connection without the
//! bytes that would make it look complete.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::client_half::{Before, BrokenOff, ClientHalf};
use crate::exchange::After;
use crate::file_body::FileBody;
use crate::socket::Socket;
use crate::turn::Turn;

/// A body, and the turn that ends with it.
#[derive(Debug)]
pub(crate) struct AnswerBody {
    kind: Kind,
    turn: Turn,
    end: BrokenEnd,
    /// How many bytes had left its connection when it was asked last.
    written: u64,
}

/// hyper throws away what it has not written when a body fails: it is given a chance first.
#[derive(Debug, PartialEq, Eq)]
enum BrokenEnd {
    Unsaid,
    WrittenOut,
}

#[derive(Debug)]
enum Kind {
    Whole(Bytes),
    Stream(ClientHalf, Framing),
    File(Box<FileBody>),
    /// Only trailers are left, which are not hyper's to write.
    Trailers,
    Ended,
}

/// How a client sees where a streamed body ends.
#[derive(Debug)]
pub(crate) enum Framing {
    /// By its length, of which this much is still due; hyper drops the body when nothing is.
    Declared(u64),
    /// By chunks.
    Chunked,
    /// By the connection's end (HTTP/1.0): one that breaks off has to be reset.
    UntilClose(Arc<Socket>),
}

impl AnswerBody {
    pub(crate) fn whole(body: Bytes, turn: Turn) -> Self {
        Self {
            kind: if body.is_empty() { Kind::Ended } else { Kind::Whole(body) },
            turn,
            end: BrokenEnd::Unsaid,
            written: 0,
        }
    }

    pub(crate) fn stream(half: ClientHalf, framing: Framing, turn: Turn) -> Self {
        Self { kind: Kind::Stream(half, framing), turn, end: BrokenEnd::Unsaid, written: 0 }
    }

    /// What is read as the client takes it; its head has the length.
    pub(crate) fn file(file: FileBody, turn: Turn) -> Self {
        Self { kind: Kind::File(Box::new(file)), turn, end: BrokenEnd::Unsaid, written: 0 }
    }

    fn settle(&mut self) {
        if let Kind::Stream(half, _) = &self.kind
            && half.is_complete()
        {
            if half.after() == After::Close {
                self.turn.close_after();
            }
            self.tell_late();
            self.kind = Kind::Ended;
        }
    }

    fn tell_late(&self) {
        if let Kind::Stream(half, _) = &self.kind
            && let Some(refusal) = half.take_late()
        {
            self.turn.refused_late(refusal);
        }
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        self.tell_late();
        if let Kind::Stream(half, Framing::Declared(0)) = std::mem::replace(&mut self.kind, Kind::Ended) {
            self.turn.wait_for(half.served());
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = self.get_mut();
        let polled = match &mut this.kind {
            Kind::Ended => None,
            Kind::Whole(body) => {
                let body = std::mem::take(body);
                this.kind = Kind::Ended;
                Some(Ok(Frame::data(body)))
            }
            Kind::Trailers => {
                ready!(this.turn.socket().trailers.poll_due());
                this.kind = Kind::Ended;
                None
            }
            Kind::File(file) => {
                if this.turn.is_held_up(cx) {
                    return Poll::Pending;
                }
                let polled = ready!(file.poll_piece(cx));
                if polled.is_err() && this.end == BrokenEnd::Unsaid {
                    this.end = BrokenEnd::WrittenOut;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                if file.left() == 0 {
                    this.kind = Kind::Ended;
                }
                Some(polled.map(Frame::data))
            }
            Kind::Stream(half, framing) => {
                // hyper would keep as much again for a client that has not taken the last.
                if this.turn.is_held_up(cx) {
                    ready!(half.poll_broken(cx));
                }
                let written = this.turn.socket().written();
                let before = if written == this.written { Before::IsKept } else { Before::HasLeft };
                let polled = ready!(half.poll_frame(cx, before));
                this.written = written;
                if matches!(polled, Some(Err(_))) && this.end == BrokenEnd::Unsaid {
                    this.end = BrokenEnd::WrittenOut;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                match (&polled, framing) {
                    (Some(Err(_)), Framing::UntilClose(socket)) => socket.close_will_reset(),
                    (Some(Ok(frame)), Framing::Declared(due)) => {
                        *due = due.saturating_sub(size(frame) as u64);
                        if *due == 0 {
                            half.has_all();
                        }
                    }
                    _ => {}
                }
                this.settle();
                if let Some(Ok(frame)) = &polled
                    && let Some(trailers) = frame.trailers_ref()
                {
                    this.turn.socket().trailers.ask(trailers);
                    this.kind = Kind::Trailers;
                    return Poll::Pending;
                }
                polled
            }
        };
        if let Some(Ok(frame)) = &polled {
            this.turn.wrote(size(frame));
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Ended)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(body) => SizeHint::with_exact(body.len() as u64),
            Kind::Ended => SizeHint::with_exact(0),
            Kind::File(file) => SizeHint::with_exact(file.left()),
            Kind::Stream(..) | Kind::Trailers => SizeHint::default(),
        }
    }
}

/// Bytes of the body in a frame; trailers have none.
fn size(frame: &Frame<Bytes>) -> usize {
    frame.data_ref().map_or(0, Bytes::len)
}
