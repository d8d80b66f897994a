//! Messages compressed and inflated (RFC 7692 §7.2), over zlib-rs.
//!
//! Not whether they are (`deflate_offer`), and not the frames that carry them. An inflater has its memory from the
//! handshake on, since it may not refuse a message; a compressor has it as long as it is used, and without it messages
//! leave as they are, which is always allowed.
//!
//! Invariant: what is inflated is never larger than a message may be, whatever it was inflated from.

use std::fmt::Debug;

use bytes::{BufMut, Bytes, BytesMut};
use zlib_rs::{Deflate, DeflateConfig, DeflateFlush, Inflate, InflateFlush, Status};

use crate::deflate_offer::Agreement;
use crate::failure::{Failure, TOO_BIG};
use crate::memory::{Loan, Memory};

/// What each message ends with, and leaves out (§7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// What zlib-rs takes to inflate: a window, whatever its bits, and tables.
const INFLATER: usize = 48 * 1024;

/// What it takes to compress with 12 bits; most is a table of hashes.
const DEFLATER: usize = 176 * 1024;

/// A tenth fewer instructions than zlib's usual 6, and messages that are a twentieth larger.
const LEVEL: i32 = 4;

/// As uvicorn has it: enough for windows of 4 KiB.
const MEMORY_LEVEL: i32 = 5;

/// A message that is smaller leaves as it is: it fits into the packet in any case.
const LEAST: usize = 64;

/// Bytes that are compressed at once; a larger message leaves in fragments of as many.
pub const SLICE: usize = 64 * 1024;

/// Bytes that are inflated at once, and compressed.
const STEP: usize = 16 * 1024;

const BROKEN: Failure = Failure { code: 1007, reason: "the message could not be inflated" };

/// What a connection compresses and inflates with.
#[derive(Debug)]
pub struct Deflation {
    /// For what the client sends.
    pub inflater: Box<Inflater>,
    /// For what it is sent.
    pub deflater: Box<Deflater>,
}

impl Deflation {
    /// None when there is no memory for it.
    #[must_use]
    pub fn new(agreed: Agreement, memory: &Memory) -> Option<Self> {
        let loan = memory.lend(INFLATER)?;
        let inflater = Inflater { agreed, inner: None, ended: false, _loan: loan };
        let deflater = Deflater { agreed, memory: memory.clone(), inner: None, used: false };
        // Apart, so that a connection without them needs no room for them.
        Some(Self { inflater: Box::new(inflater), deflater: Box::new(deflater) })
    }
}

/// Inflates what a client sends.
pub struct Inflater {
    agreed: Agreement,
    /// Made for the first message.
    inner: Option<Inflate>,
    /// The client has ended its stream, not only its message; the next bytes begin another.
    ended: bool,
    _loan: Loan,
}

/// How much may be inflated: of one message, and before others have their turn.
#[derive(Debug)]
pub(crate) struct Allowance<'a> {
    pub(crate) message: usize,
    pub(crate) turn: &'a mut usize,
}

impl Inflater {
    /// Inflates some of `input` behind `out`. Gives how much of it was taken: all, unless its turn is over.
    pub(crate) fn inflate(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        allowed: &mut Allowance<'_>,
    ) -> Result<usize, Failure> {
        let mut taken = 0;
        while *allowed.turn > 0 {
            let before = out.len();
            // One byte more than is allowed tells that there is too much.
            let room = (4 * (input.len() - taken)).clamp(256, STEP).min(allowed.message + 1 - before);
            out.resize(before + room, 0);
            let (took, made) = self.step(&input[taken..], &mut out[before..])?;
            taken += took;
            out.truncate(before + made);
            *allowed.turn = allowed.turn.saturating_sub(made);
            if out.len() > allowed.message {
                return Err(TOO_BIG);
            }
            if self.ended && taken < input.len() {
                self.begin_anew(out);
                // It costs as much, whether anything comes of it or not.
                *allowed.turn = allowed.turn.saturating_sub(STEP);
            } else if made < room {
                return if taken == input.len() { Ok(taken) } else { Err(BROKEN) };
            }
        }
        Ok(taken)
    }

    /// Inflates what is left of a message whose last byte has come.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>, message: usize) -> Result<(), Failure> {
        if !self.ended {
            // Little: no window is left to be filled.
            let mut turn = usize::MAX;
            self.inflate(&TAIL, out, &mut Allowance { message, turn: &mut turn })?;
        }
        if self.agreed.they_forget || self.ended {
            self.inner = None;
            self.ended = false;
        }
        Ok(())
    }

    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<(usize, usize), Failure> {
        let bits = self.agreed.theirs();
        let inner = self.inner.get_or_insert_with(|| Inflate::new(false, bits));
        let (read, written) = (inner.total_in(), inner.total_out());
        let status = inner.decompress(input, out, InflateFlush::SyncFlush).map_err(|_| BROKEN)?;
        self.ended = status == Status::StreamEnd;
        let count = |total: u64, before: u64| usize::try_from(total - before).unwrap_or(usize::MAX);
        Ok((count(inner.total_in(), read), count(inner.total_out(), written)))
    }

    /// §7.2.3.4: a stream may end within a message, and another go on behind it.
    fn begin_anew(&mut self, out: &[u8]) {
        let mut inner = Inflate::new(false, self.agreed.theirs());
        let window = 1 << self.agreed.theirs();
        // A raw stream takes any.
        let _ = inner.set_dictionary(&out[out.len().saturating_sub(window)..]);
        self.inner = Some(inner);
        self.ended = false;
    }
}

/// Compresses what a client is sent.
pub struct Deflater {
    agreed: Agreement,
    memory: Memory,
    inner: Option<(Deflate, Loan)>,
    /// Since it was last looked at.
    used: bool,
}

impl Deflater {
    /// Whether a message of this size is to be compressed.
    pub fn takes(&mut self, size: usize) -> bool {
        if size < LEAST {
            return false;
        }
        if self.inner.is_none() {
            let loan = self.memory.lend(DEFLATER);
            self.inner = loan.map(|loan| (made(self.agreed.ours), loan));
        }
        self.inner.is_some()
    }

    /// Compresses a part of a message, or the last one. Gives None if there is nothing to compress with.
    pub fn deflate(&mut self, input: &[u8], is_last: bool) -> Option<Bytes> {
        let (inner, _) = self.inner.as_mut()?;
        self.used = true;
        let mut out = BytesMut::new();
        let mut room = [0; STEP];
        let room = if input.len() < STEP / 8 { &mut room[..STEP / 4] } else { &mut room[..] };
        let mut taken = 0;
        loop {
            let (read, written) = (inner.total_in(), inner.total_out());
            let flush = if is_last { DeflateFlush::SyncFlush } else { DeflateFlush::NoFlush };
            inner.compress(&input[taken..], room, flush).ok()?;
            taken += usize::try_from(inner.total_in() - read).ok()?;
            let made = usize::try_from(inner.total_out() - written).ok()?;
            out.put_slice(&room[..made]);
            if made < room.len() {
                break;
            }
        }
        if is_last {
            out.truncate(out.len().saturating_sub(TAIL.len()));
            if self.agreed.we_forget {
                inner.reset();
            }
        }
        Some(out.freeze())
    }

    /// Gives the memory back if nothing was compressed since this was asked last: a window may begin anew at any time.
    pub fn rest(&mut self) {
        if !std::mem::take(&mut self.used) {
            self.inner = None;
        }
    }
}

impl Debug for Inflater {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Inflater").field("agreed", &self.agreed).finish_non_exhaustive()
    }
}

impl Debug for Deflater {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Deflater").field("agreed", &self.agreed).finish_non_exhaustive()
    }
}

fn made(bits: u8) -> Deflate {
    let window_bits = -i32::from(bits);
    Deflate::new_with_config(DeflateConfig {
        level: LEVEL,
        window_bits,
        mem_level: MEMORY_LEVEL,
        ..DeflateConfig::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deflate_offer;
    use crate::frame::{Decoder, Event};
    use http::{HeaderMap, HeaderValue};

    const LIMIT: usize = 4 * 1024 * 1024;

    fn agreed(offer: &'static str) -> Agreement {
        let headers = [(http::header::SEC_WEBSOCKET_EXTENSIONS, HeaderValue::from_static(offer))];
        deflate_offer::agree(&HeaderMap::from_iter(headers)).expect("an offer that is understood")
    }

    fn both(offer: &'static str, memory: &Memory) -> Deflation {
        Deflation::new(agreed(offer), memory).expect("there is memory")
    }

    /// Letters that are not all the same.
    fn words(size: usize) -> Vec<u8> {
        (0..size).map(|at| b'a' + ((at * at / 7 + at / 1000) % 23) as u8).collect()
    }

    /// A client's frames of a compressed message, with a key of zeros.
    fn frames(deflater: &mut Deflater, message: &[u8]) -> Vec<u8> {
        assert!(deflater.takes(message.len()));
        let parts: Vec<&[u8]> = message.chunks(SLICE).collect();
        let mut bytes = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let is_last = at + 1 == parts.len();
            let payload = deflater.deflate(part, is_last).expect("it has a compressor");
            let first = if is_last { 0x80 } else { 0 } | if at == 0 { 0x42 } else { 0 };
            bytes.extend([first, 0xff]);
            bytes.extend((payload.len() as u64).to_be_bytes());
            let short = payload.len() <= usize::from(u16::MAX);
            if short {
                bytes.truncate(bytes.len() - 9);
                if payload.len() > 125 {
                    bytes.push(0xfe);
                    bytes.extend((payload.len() as u16).to_be_bytes());
                } else {
                    bytes.push(0x80 | payload.len() as u8);
                }
            }
            bytes.extend([0; 4]);
            bytes.extend(&payload);
        }
        bytes
    }

    /// What a session makes of bytes: it comes back to what is left after every turn.
    fn read(decoder: &mut Decoder, bytes: &[u8], piece: usize) -> (Vec<Bytes>, usize) {
        let (mut messages, mut turns) = (Vec::new(), 0);
        for mut piece in bytes.chunks(piece) {
            loop {
                match decoder.next(&mut piece).expect("sound frames") {
                    Some(Event::Message(message)) => messages.push(message.into_payload()),
                    Some(Event::Turn) => {
                        turns += 1;
                        if piece.is_empty() {
                            break;
                        }
                    }
                    Some(other) => panic!("{other:?}"),
                    None => break,
                }
            }
        }
        (messages, turns)
    }

    #[test]
    fn messages_of_any_size_come_as_they_were_in_whatever_pieces() {
        let memory = Memory::of_a_worker();
        for offer in [
            "permessage-deflate",
            "permessage-deflate; client_max_window_bits=9; server_max_window_bits=9",
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
        ] {
            for piece in [1, 1000, usize::MAX] {
                let Deflation { inflater, mut deflater } = both(offer, &memory);
                let mut decoder = Decoder::new(LIMIT, memory.clone(), Some(inflater));
                for size in [64, 65, 1000, 16_384, 65_536, 65_537, 300_000] {
                    let message = words(size);
                    let bytes = frames(&mut deflater, &message);
                    let (came, _) = read(&mut decoder, &bytes, piece);
                    assert!(came == [message], "{offer}: {size} bytes in pieces of {piece}");
                }
            }
        }
    }

    #[test]
    fn each_message_is_there_with_its_last_byte_whoever_has_had_a_turn() {
        let memory = Memory::of_a_worker();
        let Deflation { inflater, mut deflater } = both("permessage-deflate", &memory);
        let mut decoder = Decoder::new(LIMIT, memory, Some(inflater));
        for _ in 0..300 {
            let bytes = frames(&mut deflater, &words(4096));
            assert_eq!(read(&mut decoder, &bytes, usize::MAX).0.len(), 1);
        }
    }

    #[test]
    fn much_that_comes_of_little_takes_many_turns() {
        let memory = Memory::of_a_worker();
        let Deflation { inflater, mut deflater } = both("permessage-deflate", &memory);
        let mut decoder = Decoder::new(LIMIT, memory.clone(), Some(inflater));
        let bytes = frames(&mut deflater, &vec![0; LIMIT]);
        assert!(bytes.len() < LIMIT / 500);
        let (came, turns) = read(&mut decoder, &bytes, usize::MAX);
        assert!(came.len() == 1 && came[0].len() == LIMIT && turns >= 10);
    }

    #[test]
    fn memory_that_is_spent_is_refused_and_comes_back() {
        let memory = Memory::new(INFLATER + DEFLATER + 100_000);
        let Deflation { inflater, mut deflater } = both("permessage-deflate", &memory);
        assert!(deflater.takes(LEAST) && !deflater.takes(LEAST - 1));
        assert!(memory.lend(100_000).is_some() && memory.lend(100_001).is_none());
        // One that is not used is given back; another may need it for a while.
        deflater.rest();
        let others = memory.lend(DEFLATER + 50_000);
        assert!(others.is_some() && !deflater.takes(LEAST));
        drop(others);
        let bytes = frames(&mut deflater, &words(30_000));
        let large = frames(&mut deflater, &words(200_000));
        let mut decoder = Decoder::new(LIMIT, memory.clone(), Some(inflater));
        let (came, _) = read(&mut decoder, &bytes, usize::MAX);
        assert!(memory.lend(90_000).is_none());
        drop(came);
        assert!(memory.lend(100_000).is_some());
        assert_eq!(decoder.next(&mut &large[..]).map_err(|failure| failure.code), Err(1013));
        drop((decoder, deflater));
        assert!(memory.lend(INFLATER + DEFLATER + 100_000).is_some());
        assert!(
            memory.lend(1).is_some()
                && Deflation::new(agreed("permessage-deflate"), &Memory::new(INFLATER - 1)).is_none()
        );
    }

    #[test]
    fn streams_that_end_again_and_again_take_turns_too() {
        let memory = Memory::of_a_worker();
        let Deflation { mut inflater, .. } = both("permessage-deflate", &memory);
        let (mut out, mut turn) = (Vec::new(), 256 * 1024);
        let ends = [3, 0].repeat(1000);
        let mut allowed = Allowance { message: LIMIT, turn: &mut turn };
        let taken = inflater.inflate(&ends, &mut out, &mut allowed).expect("sound");
        assert!(taken < 50 && turn == 0);
    }
}
