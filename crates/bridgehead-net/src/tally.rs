//! How often clients were refused, cut off or kept waiting, by reason.
//!
//! Counted where it is decided. Not lines for an operator, which are `App::report`'s.
//!
//! Invariant: what is counted is counted once, and no count goes back.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::refusal::Refusal;

/// The counts of a worker, each by its name, from its first client to its last.
// A lock: the network adds when something has gone wrong, whoever runs the worker reads now and then, and neither holds
// it for longer than that. A channel would have to be emptied while nobody asks.
#[derive(Debug, Default)]
pub struct Tally(Mutex<BTreeMap<&'static str, u64>>);

/// What a client met that is no refusal of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hardship {
    /// It sent nothing, and was closed.
    Silence,
    /// It did not read, and was reset.
    SlowReader,
    /// hyper could not read its head.
    UnreadableHead,
    /// Its frames of HTTP/2 are not in order.
    BadFrames,
    /// They are too many.
    Flood,
    /// No handshake of TLS came of it.
    NoHandshake,
    /// It waits, since there are as many connections as may be.
    Crowd,
    /// It waits, since no connection can be accepted.
    Shortage,
}

impl Hardship {
    fn name(self) -> &'static str {
        match self {
            Self::Silence => "silence",
            Self::SlowReader => "slow_reader",
            Self::UnreadableHead => "unreadable_head",
            Self::BadFrames => "bad_frames",
            Self::Flood => "flood",
            Self::NoHandshake => "no_handshake",
            Self::Crowd => "crowd",
            Self::Shortage => "shortage",
        }
    }
}

impl Tally {
    /// What has happened so far, and how often. What has not is left out.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn refused(&self, refusal: Refusal) {
        self.add(refusal.name());
    }

    pub(crate) fn met(&self, hardship: Hardship) {
        self.add(hardship.name());
    }

    fn add(&self, name: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_by_its_name() {
        let tally = Tally::default();
        tally.refused(Refusal::NoHost);
        tally.met(Hardship::Flood);
        tally.refused(Refusal::NoHost);
        assert_eq!(tally.counts(), BTreeMap::from([("flood", 1), ("no_host", 2)]));
    }
}
