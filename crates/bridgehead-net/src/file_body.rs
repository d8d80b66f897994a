//! A file's bytes as an answer's body, read as its client takes them.
//!
//! What is in memory is read at once, the rest on the blocking pool: a thread is taken for a read, and not for a client.
//!
//! Invariant: of a file no more than one piece is in memory here, and what keeps it open is let go with its last piece, or
//! with its client.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bridgehead_admission::Permit;
use bridgehead_static::Reading;
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::client_half::BrokenOff;
use crate::static_files::settled;

/// Bytes that are read at once before others have their turn.
const SHARE: usize = 256 * 1024;

/// What is left of a file.
#[derive(Debug)]
pub(crate) struct FileBody {
    state: State,
    pool: Handle,
    left: u64,
    at_once: usize,
}

#[derive(Debug)]
enum State {
    Resting(Box<Open>),
    Reading(JoinHandle<(Box<Open>, io::Result<Bytes>)>),
    Over,
}

#[derive(Debug)]
struct Open {
    reading: Reading,
    _permit: Permit,
}

impl FileBody {
    pub(crate) fn new(reading: Reading, permit: Permit, pool: Handle) -> Self {
        let left = reading.left();
        let open = Box::new(Open { reading, _permit: permit });
        Self { state: State::Resting(open), pool, left, at_once: 0 }
    }

    /// How many bytes are still to come.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// The next piece, while any is left.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, BrokenOff>> {
        loop {
            match std::mem::replace(&mut self.state, State::Over) {
                State::Over => return Poll::Ready(Err(BrokenOff)),
                State::Resting(mut open) => {
                    if self.at_once >= SHARE {
                        self.at_once = 0;
                        self.state = State::Resting(open);
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    if let Some(piece) = open.reading.read_at_once() {
                        self.at_once += piece.len();
                        return Poll::Ready(Ok(self.passed(piece, open)));
                    }
                    self.state = State::Reading(self.pool.spawn_blocking(move || {
                        let read = open.reading.read();
                        (open, read)
                    }));
                }
                State::Reading(mut errand) => {
                    let polled = Pin::new(&mut errand).poll(cx);
                    if polled.is_pending() {
                        self.state = State::Reading(errand);
                    }
                    let Some((open, read)) = settled(ready!(polled)) else { return Poll::Pending };
                    return Poll::Ready(read.map(|piece| self.passed(piece, open)).map_err(|_| BrokenOff));
                }
            }
        }
    }

    fn passed(&mut self, piece: Bytes, open: Box<Open>) -> Bytes {
        self.left = open.reading.left();
        if self.left > 0 {
            self.state = State::Resting(open);
        }
        piece
    }
}
