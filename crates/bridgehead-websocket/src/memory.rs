//! What the WebSockets of one worker may keep beside the little that each has: large messages, and what compression needs.
//!
//! Not what a single one may keep, which its own limits say.
//!
//! Invariant: what is lent never exceeds what there is, and comes back when its holder is dropped.

use std::sync::Arc;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(loom)]
use loom::sync::atomic::{AtomicUsize, Ordering};

/// Bytes for all WebSockets of a worker.
const ALL: usize = 256 * 1024 * 1024;

/// Bytes that are still to be had. Clones are the same.
#[derive(Clone, Debug)]
// The network's threads take, and the loop's thread gives back what Python has taken over.
pub struct Memory(Arc<AtomicUsize>);

/// Bytes that are taken. Dropped, they are there for others.
#[derive(Debug)]
pub struct Loan {
    memory: Memory,
    size: usize,
}

impl Memory {
    /// What all WebSockets of a worker have.
    #[must_use]
    pub fn of_a_worker() -> Self {
        Self::new(ALL)
    }

    /// So many bytes.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(size)))
    }

    /// So much, if there is so much.
    #[must_use]
    pub fn lend(&self, size: usize) -> Option<Loan> {
        self.take(size).then(|| Loan { memory: self.clone(), size })
    }

    fn take(&self, size: usize) -> bool {
        let take = |left: usize| left.checked_sub(size);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

impl Loan {
    /// Gives whether there is so much in all. A loan never shrinks.
    pub fn grow_to(&mut self, size: usize) -> bool {
        let more = size.saturating_sub(self.size);
        let had = self.memory.take(more);
        if had {
            self.size += more;
        }
        had
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.memory.0.fetch_add(self.size, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_is_bounded_and_comes_back() {
        let memory = Memory::new(100);
        let mut first = memory.lend(60).expect("there is enough");
        assert!(memory.lend(41).is_none());
        let second = memory.lend(30).expect("there is enough");
        assert!(first.grow_to(70) && first.grow_to(5) && !first.grow_to(71));
        drop(second);
        assert!(first.grow_to(100));
        drop(first);
        assert!(memory.lend(100).is_some());
    }
}
