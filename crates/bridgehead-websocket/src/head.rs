//! What a server's frames begin with (RFC 6455 §5.2), and its control frames whole.
//!
//! Not when they are written: the network knows. What clients send is read by `frame`.
//!
//! Invariant: a length is written in the shortest way, and nothing is masked.

use bytes::{BufMut, BytesMut};

/// The last frame of a message.
pub(crate) const FIN: u8 = 0x80;

/// RFC 7692 §6: the first reserved bit.
pub(crate) const COMPRESSED: u8 = 0x40;

/// What a server's frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// More of a message that has begun.
    Continuation = 0,
    /// A message, or its beginning, of text.
    Text = 1,
    /// A message, or its beginning, of anything.
    Binary = 2,
    /// The last frame.
    Close = 8,
    /// Asks for a pong.
    Ping = 9,
    /// Answers a ping.
    Pong = 10,
}

/// Writes the head of a frame that is a message by itself, or a control frame.
#[inline]
pub fn write_head(opcode: Opcode, length: usize, out: &mut BytesMut) {
    write_first(FIN | opcode as u8, length, out);
}

/// Writes the head of a frame of a compressed message.
#[inline]
pub fn write_compressed_head(opcode: Opcode, is_last: bool, length: usize, out: &mut BytesMut) {
    let fin = if is_last { FIN } else { 0 };
    let compressed = if opcode == Opcode::Continuation { 0 } else { COMPRESSED };
    write_first(fin | compressed | opcode as u8, length, out);
}

fn write_first(first: u8, length: usize, out: &mut BytesMut) {
    out.put_u8(first);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short <= 125 => out.put_u8(short),
        (_, Ok(length)) => {
            out.put_u8(126);
            out.put_u16(length);
        }
        _ => {
            out.put_u8(127);
            out.put_u64(length as u64);
        }
    }
}

/// Writes a control frame, whose payload fits.
#[inline]
pub fn write_control(opcode: Opcode, payload: &[u8], out: &mut BytesMut) {
    write_head(opcode, payload.len(), out);
    out.put_slice(payload);
}

/// Writes a close frame; without a code it says nothing.
#[inline]
pub fn write_close(said: Option<(u16, &str)>, out: &mut BytesMut) {
    let mut payload = BytesMut::new();
    if let Some((code, reason)) = said {
        payload.put_u16(code);
        payload.put_slice(reason.as_bytes());
    }
    write_control(Opcode::Close, &payload, out);
}
