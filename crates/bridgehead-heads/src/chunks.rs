//! What frames a body in chunks: their sizes, and what may follow the last.
//!
//! Not where its lines begin and end, which is `guard`'s.
//!
//! Invariant: what is taken has one length to whoever reads it, and framing never outweighs what it frames by much.

use crate::fault::Fault;
use crate::letters::{decimal, is_folded, trimmed};

/// A chunk's size and its extension.
pub(crate) const LONGEST_SIZE: usize = 272;

/// Of a size: as many as the largest has. Some parsers refuse more, whatever they are worth; others leave zeros out.
const SIZE_DIGITS: usize = 16;

/// Framing of chunks that may come before it is compared with what they hold.
const FREE_FRAMING: u64 = 64 * 1024;

/// Bytes of framing for a byte of body.
const FRAMING_RATIO: u64 = 8;

/// What may follow the last chunk.
const TRAILER_LINES: usize = 32;
pub(crate) const TRAILER_BYTES: usize = 8 * 1024;

/// Bytes of a chunked body so far, and of what surrounds them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chunks {
    body: u64,
    framing: u64,
}

/// What came behind the last chunk so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trailers {
    lines: usize,
    bytes: usize,
    /// Whether one of them was a length.
    length: bool,
}

/// Whether the line of a size is, though its end has not come. Its carriage return does not count.
pub(crate) fn is_too_long(came: usize) -> bool {
    came > LONGEST_SIZE + 1
}

impl Chunks {
    /// How much a line says that follows.
    pub(crate) fn after(mut self, line: &[u8]) -> Result<(u64, Self), Fault> {
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (size, extension) = line.split_at(digits);
        let is_text = extension.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control());
        // No blank stands behind a size: some parsers take it for a part of it, some for its end.
        let is_extension = extension.is_empty() || extension.starts_with(b";");
        if digits > SIZE_DIGITS || line.len() > LONGEST_SIZE || !is_extension || !is_text {
            return Err(Fault::BadBody);
        }
        let size = std::str::from_utf8(size).ok().and_then(|size| u64::from_str_radix(size, 16).ok());
        let size = size.ok_or(Fault::BadBody)?;
        self.framing += line.len() as u64 + 4;
        self.body = self.body.checked_add(size).ok_or(Fault::BadBody)?;
        if self.framing > FREE_FRAMING.saturating_add(FRAMING_RATIO.saturating_mul(self.body)) {
            return Err(Fault::BadBody);
        }
        Ok((size, self))
    }
}

impl Trailers {
    /// Another line has come.
    ///
    /// # Errors
    ///
    /// When they are too many, too long, or would frame a body.
    pub fn after(mut self, line: &[u8]) -> Result<Self, Fault> {
        self.lines += 1;
        self.bytes += line.len() + 2;
        let is_coding = value_of(line, b"transfer-encoding").is_some();
        // A length means nothing here. One that could not be read in a head is an attempt at whoever merges the two.
        let length = value_of(line, b"content-length").map(decimal);
        let is_bad_length = matches!(length, Some(None)) || length.is_some() && self.length;
        self.length |= length.is_some();
        if self.lines > TRAILER_LINES
            || self.bytes > TRAILER_BYTES
            || is_folded(line)
            || is_coding
            || is_bad_length
        {
            return Err(Fault::BadBody);
        }
        Ok(self)
    }

    /// Whether they are with a line whose end has not come. Its carriage return does not count.
    pub(crate) fn is_too_long(&self, came: usize) -> bool {
        self.bytes + came > TRAILER_BYTES + 1
    }
}

/// What follows a name and its colon, without the blanks around it.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (found, value) = line.split_at_checked(name.len())?;
    let value = value.strip_prefix(b":")?;
    found.eq_ignore_ascii_case(name).then(|| trimmed(value))
}
