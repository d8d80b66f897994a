//! Whether a task has been called and not been looked at since: one call is enough until then.
//!
//! Not the queue that it stands in meanwhile (`executor`).
//!
//! Invariant: who answers sees all that was done before a call, also before one that found another waiting for its answer. So
//! an answer has to read what it overwrites: a plain store could come to others after what it is followed by.

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by whoever wakes a task, cleared by whoever polls it.
#[derive(Debug)]
pub(crate) struct Summons(AtomicBool);

impl Summons {
    /// One that has been called.
    pub(crate) fn called() -> Self {
        Self(AtomicBool::new(true))
    }

    /// Whether this call is the first since the last answer.
    #[must_use]
    pub(crate) fn call(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    /// What it was called for is looked at from here on.
    pub(crate) fn answer(&self) {
        self.0.swap(false, Ordering::AcqRel);
    }
}
