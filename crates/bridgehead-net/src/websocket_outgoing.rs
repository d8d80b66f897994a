//! What the application says to one WebSocket, on its way to the socket: compressed, framed and written.
//!
//! Not when, and not what the session says by itself: pings and close frames are `websocket_session`'s.
//!
//! Invariant: messages leave in their order, each whole before the next begins, and no more is compressed in one go than
//! others can wait for.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bridgehead_websocket::{Deflater, Message, Opcode, SLICE};
use bytes::{Buf, Bytes};
use tokio::io::AsyncWrite;

use crate::frame_writer::FrameWriter;
use crate::pace::{Pace, PaceLimits};

pub(crate) struct Outgoing {
    /// Taken from the application, and not in frames yet.
    pub(crate) messages: VecDeque<Message>,
    /// What is left of the one that is being compressed.
    rest: Option<(Opcode, Bytes)>,
    pub(crate) frames: FrameWriter,
    deflater: Option<Box<Deflater>>,
    pace: Pace,
}

impl Outgoing {
    pub(crate) fn new(deflater: Option<Box<Deflater>>, pace: PaceLimits) -> Self {
        Self {
            messages: VecDeque::new(),
            rest: None,
            frames: FrameWriter::default(),
            deflater,
            pace: Pace::new(pace),
        }
    }

    /// Whether all that was taken from the application is in frames.
    pub(crate) fn is_framed(&self) -> bool {
        self.rest.is_none() && self.messages.is_empty()
    }

    /// Nobody is to have what is not in frames. One that was begun is left unfinished, so nothing but its end may follow.
    pub(crate) fn forget(&mut self) {
        self.messages.clear();
        self.rest = None;
    }

    /// Frames what was taken, or as much of it as there is time for.
    pub(crate) fn frame(&mut self) {
        let mut time = SLICE;
        while time > 0 && !self.frames.is_full() {
            let Some(used) = self.frame_next(time) else { return };
            time = time.saturating_sub(used);
        }
    }

    /// Gives how many bytes were compressed; None if there is nothing to frame.
    fn frame_next(&mut self, most: usize) -> Option<usize> {
        let (opcode, mut payload) = match (self.rest.take(), &mut self.deflater) {
            (Some(rest), _) => rest,
            (None, deflater) => {
                let message = self.messages.pop_front()?;
                let size = message.payload().len();
                if !deflater.as_mut().is_some_and(|deflater| deflater.takes(size)) {
                    self.frames.message(message);
                    return Some(0);
                }
                (message.opcode(), message.into_payload())
            }
        };
        let part = payload.split_to(payload.len().min(most));
        let is_last = !payload.has_remaining();
        let deflated = self.deflater.as_mut().and_then(|deflater| deflater.deflate(&part, is_last))?;
        let is_nothing = deflated.is_empty() && !is_last;
        if !is_nothing {
            self.frames.compressed(opcode, is_last, deflated);
        }
        if !is_last {
            self.rest = Some((if is_nothing { opcode } else { Opcode::Continuation }, payload));
        }
        Some(part.len())
    }

    /// Ready when every frame is written.
    pub(crate) fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        io: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if self.frames.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while !self.frames.is_empty() {
            match self.frames.poll_write(Pin::new(io), cx) {
                Poll::Ready(Ok(count)) => self.pace.progress(count),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.pace.wait();
                    return Poll::Pending;
                }
            }
        }
        ready!(Pin::new(io).poll_flush(cx))?;
        self.pace.rest();
        Poll::Ready(Ok(()))
    }

    /// Keeps nothing that was not used since this was asked last.
    pub(crate) fn rest(&mut self) {
        if let Some(deflater) = &mut self.deflater {
            deflater.rest();
        }
    }

    /// When a client that reads too slowly is given up.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.pace.deadline()
    }
}
