//! The descriptors that a forked child must close.
//!
//! An application may fork. The child inherits our listeners and clients: while it lives, a client that we closed
//! would still look open, and the port would stay taken. The child cannot use what owns them (the threads are gone, a
//! lock may be held), so their numbers stand in a bitmap that needs no lock to be read. The copy of stdout that access
//! lines are written to is among them: whoever reads that waits for its end.
//!
//! Not here is what holds up nobody, such as polls and what wakes threads. What is left of us in the child may still
//! write to these when it is dropped, and the number might be another's by then.
//!
//! Invariant: a bit is set exactly while this process owns that descriptor.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Higher numbers are not remembered; a process rarely has more, and forgetting one costs a child's clean-up only.
const LARGEST: usize = 1 << 16;

// Set and cleared by the network's thread and the log's; read by the child's only thread after a fork, where a channel or lock could
// be in any state.
static OWNED: [AtomicU64; LARGEST / 64] = [const { AtomicU64::new(0) }; LARGEST / 64];

/// Says that a descriptor is ours, for as long as it lives.
#[derive(Debug)]
pub struct Claim(RawFd);

impl Claim {
    /// On this one.
    #[must_use]
    pub fn on(descriptor: &impl AsFd) -> Self {
        let number = descriptor.as_fd().as_raw_fd();
        if let Some((word, bit)) = place(number) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        Self(number)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some((word, bit)) = place(self.0) {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }
}

fn place(number: RawFd) -> Option<(&'static AtomicU64, u64)> {
    let number = usize::try_from(number).ok()?;
    OWNED.get(number / 64).map(|word| (word, 1 << (number % 64)))
}

/// What this process owns.
pub fn descriptors() -> impl Iterator<Item = RawFd> {
    OWNED.iter().enumerate().flat_map(|(index, word)| numbers(index, word.load(Ordering::Relaxed)))
}

/// For a forked child: closes what its parent owned, and owns none of these numbers. They may be anybody's soon.
pub fn disown(close: impl Fn(RawFd)) {
    for (index, word) in OWNED.iter().enumerate() {
        numbers(index, word.swap(0, Ordering::Relaxed)).for_each(&close);
    }
}

fn numbers(index: usize, bits: u64) -> impl Iterator<Item = RawFd> {
    (0..64)
        .filter(move |bit| bits & (1 << bit) != 0)
        .filter_map(move |bit| RawFd::try_from(index * 64 + bit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_listed_while_it_is_claimed() {
        let file = std::fs::File::open("Cargo.toml").expect("tests run in the crate's folder");
        let claim = Claim::on(&file);
        assert!(descriptors().any(|number| number == file.as_raw_fd()));
        drop(claim);
        assert!(!descriptors().any(|number| number == file.as_raw_fd()));
    }
}
