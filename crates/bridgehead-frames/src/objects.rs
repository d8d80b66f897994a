//! Texts and bytes of Python's, read from memory.
//!
//! Invariant: of what claims to be too long nothing is read.

use crate::layout::KnownText;
use crate::memory::{Memory, bytes, word};

/// Of a type, behind the count of references; of a text or of bytes, how long they are.
pub(crate) const TYPE: usize = 8;
const LENGTH: usize = 16;

/// Where a text says in which form it is.
const FORM: usize = 32;

/// Characters of a name or a path.
const LONGEST_TEXT: usize = 4096;

/// Bytes of a table of lines: a function of ten thousand lines has as many.
const LONGEST_BYTES: usize = 1 << 20;

/// Bits of a form, above the first of them: bytes of a character, then whether the characters follow at once, and are ASCII.
const WIDTH: u32 = 0b111;
const COMPACT: u32 = 0b1000;
const ASCII: u32 = 0b1_0000;

/// Where those bits may begin: CPython has moved them.
const SHIFTS: [u32; 2] = [2, 16];

/// How texts are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Texts {
    shift: u32,
    /// Where characters begin, of ASCII and of others.
    ascii: usize,
    other: usize,
}

impl Texts {
    /// Finds it out by texts that are known.
    pub(crate) fn learn(
        memory: &impl Memory,
        known: &[KnownText],
        (ascii, other): (usize, usize),
    ) -> Option<Self> {
        let reads = |texts: &Self| {
            !known.is_empty()
                && known.iter().all(|each| texts.read(memory, each.address).as_ref() == Some(&each.text))
        };
        SHIFTS.into_iter().map(|shift| Self { shift, ascii, other }).find(reads)
    }

    /// The text that is there.
    pub(crate) fn read(&self, memory: &impl Memory, address: usize) -> Option<String> {
        let length = word(memory, address.checked_add(LENGTH)?).filter(|length| *length <= LONGEST_TEXT)?;
        let mut form = [0; 4];
        memory.fill(address.checked_add(FORM)?, &mut form)?;
        let form = u32::from_ne_bytes(form) >> self.shift;
        if form & COMPACT == 0 {
            return None;
        }
        let begins = address.checked_add(if form & ASCII == 0 { self.other } else { self.ascii })?;
        let width = (form & WIDTH) as usize;
        let kept = bytes(memory, begins, length * width)?;
        let characters = kept.chunks_exact(width.max(1)).map(|character| match *character {
            [one] => Some(char::from(one)),
            [one, two] => char::from_u32(u32::from(u16::from_ne_bytes([one, two]))),
            [one, two, three, four] => char::from_u32(u32::from_ne_bytes([one, two, three, four])),
            _ => None,
        });
        // A path that is no UTF-8 has halves of characters.
        Some(characters.map(|each| each.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
    }
}

/// The bytes that are there; they begin so far behind.
pub(crate) fn read_bytes(memory: &impl Memory, address: usize, begin: usize) -> Option<Vec<u8>> {
    let length = word(memory, address.checked_add(LENGTH)?).filter(|length| *length <= LONGEST_BYTES)?;
    bytes(memory, address.checked_add(begin)?, length)
}
