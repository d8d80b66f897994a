//! A piece of a body, in the parts that it came in.
//!
//! Whoever takes it copies it once, to where it is to be; joining the parts before would be a second copy. Not how far
//! ahead a body is read (`upload`).

use std::collections::VecDeque;

use bytes::Bytes;

/// Bytes that belong together. Equal to another of the same bytes, whatever parts they are in.
#[derive(Debug, Default)]
pub struct Piece {
    first: Bytes,
    rest: VecDeque<Bytes>,
}

impl Piece {
    /// All that has come, which is nothing at a body's end.
    pub(crate) fn of(mut chunks: VecDeque<Bytes>) -> Self {
        Self { first: chunks.pop_front().unwrap_or_default(), rest: chunks }
    }

    /// The parts, in their order; at least one.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> + Clone {
        std::iter::once(&self.first).chain(&self.rest).map(|part| &**part)
    }

    /// How many bytes they are together.
    pub fn len(&self) -> usize {
        self.parts().map(<[u8]>::len).sum()
    }

    /// Whether it is a body's empty end.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Bytes> for Piece {
    fn from(first: Bytes) -> Self {
        Self { first, rest: VecDeque::new() }
    }
}

impl PartialEq for Piece {
    fn eq(&self, other: &Self) -> bool {
        self.parts().flatten().eq(other.parts().flatten())
    }
}

impl Eq for Piece {}
