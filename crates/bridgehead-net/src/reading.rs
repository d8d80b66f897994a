//! How a client reads what waits for it.
//!
//! A system takes a write when about a third of a socket's buffer is free, and that may be megabytes: a slow reader can
//! need minutes between two of them. So what its own system has confirmed is counted, and since nobody tells of that,
//! it is looked at: when a deadline comes, a few times within a gap, and never at a write.
//!
//! Invariant: progress is never dated before it was made. Who makes some within each gap is waited for, and who makes
//! none for a gap and a quarter is not.

use std::task::Waker;
use std::time::{Duration, Instant};

use crate::pace::{Pace, PaceLimits};

/// Looks within a gap.
const LOOKS: u32 = 4;

/// A client's progress with what was written for it.
#[derive(Debug)]
pub(crate) struct Reading {
    pace: Pace,
    /// Between two looks.
    interval: Option<Duration>,
    next: Option<Instant>,
    /// Bytes that were confirmed at the last look of this wait.
    seen: Option<u64>,
    counted: u64,
    /// Who goes on when nothing waits any more.
    waker: Option<Waker>,
}

impl Reading {
    pub(crate) fn new(limits: PaceLimits) -> Self {
        let interval = limits.gap.map(|gap| gap / LOOKS);
        Self { pace: Pace::new(limits), interval, next: None, seen: None, counted: 0, waker: None }
    }

    /// Bytes wait from now on.
    pub(crate) fn wait(&mut self, now: Instant) {
        self.pace.wait_from(now);
        self.seen = None;
        self.next = self.interval.map(|interval| now + interval);
    }

    /// Nothing waits any more. Gives whom to wake.
    pub(crate) fn rest(&mut self) -> Option<Waker> {
        self.pace.rest();
        self.next = None;
        self.waker.take()
    }

    /// Wakes when nothing waits any more.
    pub(crate) fn wake_at_rest(&mut self, waker: &Waker) {
        self.waker = Some(waker.clone());
    }

    /// When to look.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        [self.pace.deadline(), self.next].into_iter().flatten().min()
    }

    /// A look: so many bytes are confirmed. Whether that is too few.
    pub(crate) fn has_failed(&mut self, confirmed: u64, now: Instant) -> bool {
        // What was confirmed before the first look of a wait may have been so just before it.
        if self.seen.replace(confirmed) != Some(confirmed) {
            self.pace.progress_at(confirmed.saturating_sub(self.counted), now);
            self.counted = self.counted.max(confirmed);
        }
        self.next = self.interval.map(|interval| now + interval);
        self.pace.deadline().is_some_and(|deadline| deadline <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Looks whenever it is due, at a client that has `confirmed(seconds)` bytes; gives the second it is given up, if any.
    fn given_up(limits: PaceLimits, confirmed: impl Fn(f64) -> u64) -> Option<f64> {
        let mut reading = Reading::new(limits);
        let start = Instant::now();
        reading.wait(start);
        while let Some(look) = reading.deadline() {
            let waited = (look - start).as_secs_f64();
            if reading.has_failed(confirmed(waited), look) {
                return Some(waited);
            }
            if waited > 1000.0 {
                break;
            }
        }
        None
    }

    #[test]
    fn a_reader_that_never_pauses_for_a_gap_is_waited_for() {
        let limits = PaceLimits { gap: Some(30 * SECOND), rate: Some(240) };
        for step in [0.1, 7.0, 8.0, 15.0, 29.0] {
            // Ten thousand bytes at once, then nothing for that long, and again.
            let steps = move |seconds: f64| 10_000 * (1 + (seconds / step) as u64);
            assert_eq!(given_up(limits, steps), None, "{step}");
        }
    }

    #[test]
    fn a_reader_that_stops_is_given_up_within_a_gap_and_a_quarter() {
        let limits = PaceLimits { gap: Some(40 * SECOND), rate: None };
        assert_eq!(given_up(limits, |_| 0), Some(50.0));
        assert_eq!(given_up(limits, |seconds| 1000 * seconds.min(100.0) as u64), Some(140.0));
    }

    #[test]
    fn a_rate_is_earned_by_what_is_confirmed() {
        let limits = PaceLimits { gap: None, rate: Some(1000) };
        assert_eq!(given_up(limits, |seconds| (seconds * 1001.0) as u64), None);
        assert_eq!(given_up(limits, |_| 0), Some(5.0));
        // Eight thousand bytes are worth eight seconds.
        assert_eq!(given_up(limits, |_| 8000), Some(8.0));
        let both = PaceLimits { gap: Some(30 * SECOND), rate: Some(1000) };
        assert!(given_up(both, |seconds| (seconds * 900.0) as u64).is_some());
    }

    #[test]
    fn who_is_not_waited_for_is_not_looked_at() {
        let mut reading = Reading::new(PaceLimits { gap: Some(30 * SECOND), rate: Some(240) });
        assert_eq!(reading.deadline(), None);
        reading.wait(Instant::now());
        assert!(reading.deadline().is_some());
        reading.rest();
        assert_eq!(reading.deadline(), None);
    }
}
