//! A message of a client, as far as it has come: unmasked, inflated, looked at once, and bounded.
//!
//! Not the frames that it comes in, which are `frame`'s.
//!
//! Invariant: it holds no more than a message may, and no more than `FREE` bytes that were not lent to it.

use std::fmt::Debug;

use bytes::Bytes;

use crate::deflate::{Allowance, Inflater};
use crate::failure::{Failure, NO_MEMORY, NO_TEXT, TOO_BIG};
use crate::mask;
use crate::memory::{Loan, Memory};
use crate::message::Message;
use crate::text;

/// Frames of a message that may come without a byte.
const EMPTY_FRAMES: usize = 1024;

/// Bytes of a message that are nobody's business.
const FREE: usize = 4 * 1024;

/// Bytes that are inflated in one go.
const STEP: usize = 4 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Binary,
}

/// What messages are made with.
#[derive(Debug)]
pub(crate) struct Means {
    /// The largest message.
    pub(crate) limit: usize,
    pub(crate) memory: Memory,
    /// Present if messages may come compressed.
    pub(crate) inflater: Option<Box<Inflater>>,
    /// Bytes that may be inflated before others have their turn.
    pub(crate) turn: usize,
}

#[derive(Debug)]
pub(crate) struct Partial {
    kind: Kind,
    is_compressed: bool,
    data: Vec<u8>,
    loan: Option<Loan>,
    /// Bytes that are known to be text.
    sound: usize,
    frames: usize,
    /// Bytes of its frames.
    came: usize,
}

impl Partial {
    pub(crate) fn new(kind: Kind, is_compressed: bool) -> Self {
        Self { kind, is_compressed, data: Vec::new(), loan: None, sound: 0, frames: 0, came: 0 }
    }

    /// Another frame of it has begun, which announces so many bytes.
    pub(crate) fn begin_frame(&mut self, length: u64, means: &Means) -> Result<(), Failure> {
        self.frames += 1;
        if self.frames > EMPTY_FRAMES + self.came {
            return Err(Failure { code: 1008, reason: "a message came in too many empty frames" });
        }
        // What a compressed frame comes to is seen when it is inflated.
        let room = means.limit.saturating_sub(self.data.len());
        if !self.is_compressed && length > room as u64 { Err(TOO_BIG) } else { Ok(()) }
    }

    /// Takes from a frame's payload, and gives how much: all, unless inflating it takes more than a turn.
    pub(crate) fn take(&mut self, payload: &[u8], key: [u8; 4], means: &mut Means) -> Result<usize, Failure> {
        let taken = match &mut means.inflater {
            Some(inflater) if self.is_compressed => {
                let mut plain = [0; STEP];
                let plain = &mut plain[..payload.len().min(STEP)];
                plain.copy_from_slice(&payload[..plain.len()]);
                mask::apply(plain, key);
                let mut allowed = Allowance { message: means.limit, turn: &mut means.turn };
                inflater.inflate(plain, &mut self.data, &mut allowed)?
            }
            _ => {
                self.copy(payload, key);
                payload.len()
            }
        };
        self.came += taken;
        self.settle(&means.memory)?;
        Ok(taken)
    }

    fn copy(&mut self, payload: &[u8], key: [u8; 4]) {
        let before = self.data.len();
        if before == 0 {
            // Most messages come in one piece: no room is left over.
            self.data.reserve_exact(payload.len());
        }
        self.data.extend_from_slice(payload);
        mask::apply(&mut self.data[before..], key);
    }

    /// Sees to what has been added.
    fn settle(&mut self, memory: &Memory) -> Result<(), Failure> {
        let size = self.data.capacity();
        if size > FREE {
            let has_it = match &mut self.loan {
                Some(loan) => loan.grow_to(size),
                None => {
                    self.loan = memory.lend(size);
                    self.loan.is_some()
                }
            };
            if !has_it {
                return Err(NO_MEMORY);
            }
        }
        if self.kind == Kind::Text && !text::is_sound_so_far(&self.data, &mut self.sound) {
            return Err(NO_TEXT);
        }
        Ok(())
    }

    /// Its last byte has come.
    pub(crate) fn whole(mut self, means: &mut Means) -> Result<Message, Failure> {
        if let Some(inflater) = means.inflater.as_mut().filter(|_| self.is_compressed) {
            inflater.finish(&mut self.data, means.limit)?;
            self.settle(&means.memory)?;
        }
        if self.kind == Kind::Text && self.sound < self.data.len() {
            return Err(NO_TEXT);
        }
        let payload = match self.loan {
            None => Bytes::from(self.data),
            Some(loan) => Bytes::from_owner(Lent { data: self.data, _loan: loan }),
        };
        Ok(match self.kind {
            Kind::Binary => Message::Binary(payload),
            Kind::Text => Message::Text(payload),
        })
    }
}

/// Bytes that give back what they take of the worker's memory.
struct Lent {
    data: Vec<u8>,
    _loan: Loan,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}
