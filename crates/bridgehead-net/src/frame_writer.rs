//! Frames on their way out: what is ready together leaves together.
//!
//! Large payloads are not copied, small ones are joined. Pongs never pile up: a client that pings faster than it reads
//! gets the answer to its last ping (RFC 6455 §5.5.3).
//!
//! Invariant: a frame that was begun is written whole before another.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bridgehead_websocket::{Message, Opcode};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::AsyncWrite;

use crate::exchange::HIGH_WATER;

/// A payload this large leaves alone: copying it would cost more than a slice of a write.
const JOINED: usize = 16 * 1024;

/// Bytes behind which a pong waits instead of joining them.
const PONGS: usize = 4 * 1024;

/// Slices of one write.
const SLICES: usize = 16;

/// What is to be written.
#[derive(Debug, Default)]
pub(crate) struct FrameWriter {
    pieces: VecDeque<Bytes>,
    /// Behind them.
    tail: BytesMut,
    size: usize,
    /// Waits until there is less.
    pong: Option<Bytes>,
}

impl FrameWriter {
    pub(crate) fn is_empty(&self) -> bool {
        self.size == 0 && self.pong.is_none()
    }

    /// Whether so much waits that no more is taken from the application.
    pub(crate) fn is_full(&self) -> bool {
        self.size >= HIGH_WATER
    }

    pub(crate) fn message(&mut self, message: Message) {
        let opcode = message.opcode();
        let payload = message.into_payload();
        let before = self.tail.len();
        bridgehead_websocket::write_head(opcode, payload.len(), &mut self.tail);
        self.size += self.tail.len() - before;
        self.payload(payload);
    }

    /// A compressed message, or a part of it; of all but the first the opcode is that of a continuation.
    pub(crate) fn compressed(&mut self, opcode: Opcode, is_last: bool, payload: Bytes) {
        let before = self.tail.len();
        bridgehead_websocket::write_compressed_head(opcode, is_last, payload.len(), &mut self.tail);
        self.size += self.tail.len() - before;
        self.payload(payload);
    }

    fn payload(&mut self, payload: Bytes) {
        self.size += payload.len();
        if payload.len() < JOINED {
            self.tail.put_slice(&payload);
        } else {
            self.cut();
            self.pieces.push_back(payload);
        }
    }

    pub(crate) fn ping(&mut self, payload: &[u8]) {
        self.control(Opcode::Ping, payload);
    }

    /// Answers a ping.
    pub(crate) fn pong(&mut self, payload: Bytes) {
        if self.size < PONGS {
            self.control(Opcode::Pong, &payload);
        } else {
            self.pong = Some(payload);
        }
    }

    /// The last frame.
    pub(crate) fn close(&mut self, said: Option<(u16, &str)>) {
        self.pong = None;
        let before = self.tail.len();
        bridgehead_websocket::write_close(said, &mut self.tail);
        self.size += self.tail.len() - before;
    }

    fn control(&mut self, opcode: Opcode, payload: &[u8]) {
        let before = self.tail.len();
        bridgehead_websocket::write_control(opcode, payload, &mut self.tail);
        self.size += self.tail.len() - before;
    }

    fn cut(&mut self) {
        if !self.tail.is_empty() {
            let piece = self.tail.split().freeze();
            self.pieces.push_back(piece);
        }
    }

    /// Writes some of it.
    pub(crate) fn poll_write(
        &mut self,
        io: Pin<&mut impl AsyncWrite>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.size < PONGS
            && let Some(pong) = self.pong.take()
        {
            self.control(Opcode::Pong, &pong);
        }
        self.cut();
        let mut slices = [IoSlice::new(&[]); SLICES];
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(piece);
        }
        let used = self.pieces.len().min(SLICES);
        let written = std::task::ready!(io.poll_write_vectored(cx, &slices[..used]))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.wrote(written);
        Poll::Ready(Ok(written))
    }

    fn wrote(&mut self, mut written: usize) {
        self.size -= written;
        while let Some(piece) = self.pieces.front_mut() {
            if written < piece.len() {
                piece.advance(written);
                return;
            }
            written -= piece.len();
            self.pieces.pop_front();
        }
        if self.tail.capacity() > JOINED {
            // Idle connections keep no memory for what they once said.
            self.tail = BytesMut::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    fn written(writer: &mut FrameWriter) -> Vec<u8> {
        let mut out = std::io::Cursor::new(Vec::new());
        let mut cx = Context::from_waker(Waker::noop());
        while !writer.is_empty() {
            assert!(writer.poll_write(Pin::new(&mut out), &mut cx).is_ready());
        }
        out.into_inner()
    }

    #[test]
    fn frames_leave_in_their_order_whatever_their_size() {
        let mut writer = FrameWriter::default();
        let large = Bytes::from(vec![7; 70_000]);
        writer.message(Message::Text(Bytes::from_static(b"one")));
        writer.message(Message::Binary(large.clone()));
        writer.ping(b"12345678");
        writer.message(Message::Text(Bytes::from(vec![b'x'; 200])));
        assert!(writer.is_full());
        writer.close(Some((1000, "bye")));
        let due = [
            &b"\x81\x03one\x82\x7f\0\0\0\0\0\x01\x11\x70"[..],
            &large,
            b"\x89\x0812345678\x81\x7e\0\xc8",
            &[b'x'; 200],
            b"\x88\x05\x03\xe8bye",
        ]
        .concat();
        assert!(written(&mut writer) == due);
    }

    #[test]
    fn pings_without_end_are_answered_by_bounded_memory() {
        let mut writer = FrameWriter::default();
        for number in 0..100_000u32 {
            writer.pong(Bytes::copy_from_slice(&number.to_be_bytes()));
        }
        assert!(writer.size < PONGS + 200);
        let bytes = written(&mut writer);
        assert!(bytes.starts_with(b"\x8a\x04\0\0\0\0\x8a\x04\0\0\0\x01"));
        assert!(bytes.ends_with(&[&b"\x8a\x04"[..], &99_999u32.to_be_bytes()].concat()));
    }
}
