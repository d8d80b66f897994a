//! What of an answer waits to be written: small pieces are joined as soon as there are enough of them.
//!
//! Not who waits for room, nor who is woken (`exchange`).
//!
//! A small piece that is alone is not copied. Kept one by one until somebody writes, all of them would be here twice at
//! that moment, and leave holes in memory that nothing of another size fits into.
//!
//! Invariant: bytes leave in the order in which they came, a piece of [`JOINED`] bytes or more is not copied, and any
//! other once at most.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::exchange::JOINED;

/// The pieces of one answer.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    /// As they leave.
    ready: VecDeque<Joined>,
    /// Behind those: less than [`JOINED`] bytes in all.
    small: Vec<Bytes>,
    small_bytes: usize,
    bytes: usize,
    pieces: usize,
}

/// One piece, or several small ones.
#[derive(Debug, Default)]
struct Joined {
    bytes: Bytes,
    pieces: usize,
}

impl Unsent {
    pub(crate) fn push(&mut self, piece: Bytes) {
        self.bytes += piece.len();
        self.pieces += 1;
        if piece.len() >= JOINED {
            self.join();
            self.ready.push_back(Joined { bytes: piece, pieces: 1 });
            return;
        }
        self.small_bytes += piece.len();
        self.small.push(piece);
        if self.small_bytes >= JOINED {
            self.join();
        }
    }

    /// What leaves next, empty if nothing waits.
    pub(crate) fn take(&mut self) -> Bytes {
        if self.ready.is_empty() {
            self.join();
        }
        let taken = self.ready.pop_front().unwrap_or_default();
        self.bytes -= taken.bytes.len();
        self.pieces -= taken.pieces;
        taken.bytes
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// How many bytes wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many pieces wait, as they came.
    pub(crate) fn pieces(&self) -> usize {
        self.pieces
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces == 0
    }

    /// Makes the small ones one.
    fn join(&mut self) {
        let pieces = self.small.len();
        let bytes = match pieces {
            0 => return,
            1 => self.small.pop().unwrap_or_default(),
            _ => {
                let mut joined = Vec::with_capacity(self.small_bytes);
                self.small.drain(..).for_each(|piece| joined.extend_from_slice(&piece));
                joined.into()
            }
        };
        self.small_bytes = 0;
        self.ready.push_back(Joined { bytes, pieces });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsent(sizes: &[usize]) -> Unsent {
        let mut unsent = Unsent::default();
        let pieces = (0..=u8::MAX).cycle().zip(sizes).map(|(letter, size)| Bytes::from(vec![letter; *size]));
        pieces.for_each(|piece| unsent.push(piece));
        unsent
    }

    fn taken(mut unsent: Unsent) -> Vec<Bytes> {
        std::iter::from_fn(|| (!unsent.is_empty()).then(|| unsent.take())).collect()
    }

    #[test]
    fn small_pieces_leave_together_and_large_ones_alone_in_their_order() {
        let cases: [(&[usize], &[usize]); 6] = [
            (&[], &[]),
            (&[5], &[5]),
            (&[5, 6, 7], &[18]),
            (&[5, JOINED, 6], &[5, JOINED, 6]),
            (&[5, 6, JOINED, 7, 8, JOINED - 1], &[11, JOINED, JOINED + 14]),
            (&[JOINED - 1, JOINED - 1, JOINED, JOINED], &[2 * JOINED - 2, JOINED, JOINED]),
        ];
        for (came, left) in cases {
            let unsent = unsent(came);
            assert_eq!(unsent.bytes(), came.iter().sum());
            let pieces = taken(unsent);
            assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), left);
            assert!(pieces.concat().is_sorted(), "{came:?} leave in another order");
        }
    }

    #[test]
    fn each_small_piece_counts_until_it_leaves() {
        let mut unsent = unsent(&[1; 300]);
        assert_eq!(unsent.pieces(), 300);
        assert_eq!(unsent.take().len(), 300);
        assert_eq!((unsent.pieces(), unsent.bytes()), (0, 0));
    }

    #[test]
    fn a_piece_that_is_alone_or_large_is_not_copied() {
        let (alone, large) = (Bytes::from(vec![1; 9]), Bytes::from(vec![2; JOINED]));
        let mut unsent = Unsent::default();
        unsent.push(alone.clone());
        unsent.push(large.clone());
        assert_eq!(unsent.take().as_ptr(), alone.as_ptr());
        assert_eq!(unsent.take().as_ptr(), large.as_ptr());
    }

    #[test]
    fn only_as_many_small_pieces_as_are_about_to_be_joined_are_kept_one_by_one() {
        for size in [1, 100, 1000, 4096, 5000, JOINED - 1] {
            let unsent = unsent(&vec![size; 2 * JOINED / size]);
            assert!(unsent.small_bytes < JOINED, "{size}");
            assert!(unsent.ready.iter().all(|joined| joined.bytes.len() < 2 * JOINED), "{size}");
        }
    }
}
