//! Which of the steps that were slow is counted already.
//!
//! The loop's thread counts one at its end, and the thread that looks counts one that still runs, whichever comes first. That
//! thread may be late: what it has looked at may be over, and others behind it.
//!
//! Invariant: each step is counted once, in whatever order the two come.

#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

/// The last step that was counted, by when it began: of two, the later one has the larger number. What is told of a step beside
/// is told by other means.
#[derive(Debug, Default)]
pub(crate) struct Counted(AtomicU64);

impl Counted {
    /// Whether this one is to be counted now.
    pub(crate) fn takes(&self, step: u64) -> bool {
        // One that is behind the last was counted at its end.
        self.0.fetch_max(step, Ordering::Relaxed) < step
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_counted_once_though_who_looked_at_it_comes_when_others_are_over() {
        let counted = Counted::default();
        assert!(counted.takes(1) && counted.takes(5));
        assert!(!counted.takes(5) && !counted.takes(1));
    }
}
