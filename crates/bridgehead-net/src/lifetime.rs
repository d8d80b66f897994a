//! How long one connection lasts: its time, and the requests that it may carry.
//!
//! Not its idle time (`crowd`), nor how it ends: once one of them is spent, its next answer is the last, and no request is
//! ever in between.
//!
//! Invariant: connections that were made together are not over together.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::config::Lifetimes;

/// A connection's time is so much of it longer or shorter, as chance has it.
const SPREAD: f64 = 0.1;

/// What is left to one connection.
#[derive(Debug)]
pub(crate) struct Lifetime {
    until: Option<Instant>,
    // Counted down by the connection's own task; hyper wants what it polls to be shareable.
    requests: Option<AtomicU64>,
}

impl Lifetime {
    pub(crate) fn new(limits: Lifetimes, now: Instant) -> Self {
        // Keys that nobody knows, and a hash that is chance enough.
        let chance = || RandomState::new().hash_one(0) as f64 / u64::MAX as f64;
        Self {
            until: limits.time.and_then(|time| now.checked_add(scattered(time, chance()))),
            requests: limits.requests.map(AtomicU64::new),
        }
    }

    /// When it is over, if time ends it.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Whether its time has passed.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// One more request. Gives whether it is the last.
    pub(crate) fn count(&self) -> bool {
        self.requests.as_ref().is_some_and(|left| left.fetch_sub(1, Ordering::Relaxed) == 1)
    }
}

/// `chance` is from 0 to 1.
fn scattered(time: Duration, chance: f64) -> Duration {
    let factor = 1.0 + SPREAD * (2.0 * chance - 1.0);
    Duration::try_from_secs_f64(time.as_secs_f64() * factor).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_time_is_a_tenth_longer_or_shorter_at_most() {
        assert_eq!(scattered(HOUR, 0.0), Duration::from_secs(3240));
        assert_eq!(scattered(HOUR, 0.5), HOUR);
        assert_eq!(scattered(HOUR, 1.0), Duration::from_secs(3960));
        let now = Instant::now();
        let limits = Lifetimes { time: Some(HOUR), requests: None };
        let ends: std::collections::BTreeSet<_> =
            (0..100).map(|_| Lifetime::new(limits, now).until()).collect();
        assert!(ends.len() > 90, "those that were made together are over together");
        let all = (now + HOUR * 9 / 10)..=(now + HOUR * 11 / 10);
        assert!(ends.iter().flatten().all(|end| all.contains(end)));
    }

    #[test]
    fn the_last_request_is_the_one_that_spends_them() {
        let limits = |requests| Lifetimes { time: None, requests };
        let three = Lifetime::new(limits(Some(3)), Instant::now());
        assert_eq!([three.count(), three.count(), three.count()], [false, false, true]);
        let any = Lifetime::new(limits(None), Instant::now());
        assert!(!any.count() && !any.is_over(Instant::now() + 1000 * HOUR));
    }
}
