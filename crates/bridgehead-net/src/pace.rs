//! How long somebody may keep us waiting: the longest gap, and the least rate.
//!
//! Only waiting counts: a client is not punished for an application that does not read, nor for one that does not write.
//!
//! Invariant: who makes progress at the least rate, and never pauses longer than the gap, is waited for without end; and
//! where there is a gap, what came quickly pays for a bounded time of less.

use std::time::{Duration, Instant};

/// Time before the rate is looked at.
const GRACE: Duration = Duration::from_secs(5);

/// What came at once pays for so much waiting, or for two gaps if those are longer: megabytes would pay for hours.
const CREDIT: Duration = Duration::from_secs(60);

/// What is asked of a client, where anything is.
#[derive(Clone, Copy, Debug, Default)]
pub struct PaceLimits {
    /// The longest time without a byte.
    pub gap: Option<Duration>,
    /// Bytes a second, at least, once it was waited for longer than five seconds.
    pub rate: Option<u32>,
}

/// A client's progress.
#[derive(Debug)]
pub(crate) struct Pace {
    limits: PaceLimits,
    bytes: u64,
    waited: Duration,
    wait: Option<Wait>,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    since: Instant,
    progress: Instant,
}

impl Pace {
    pub(crate) fn new(limits: PaceLimits) -> Self {
        Self { limits, bytes: 0, waited: Duration::ZERO, wait: None }
    }

    /// The client is waited for from now on, if it was not.
    pub(crate) fn wait(&mut self) {
        self.wait_from(Instant::now());
    }

    /// The same, if this is now.
    pub(crate) fn wait_from(&mut self, now: Instant) {
        if self.wait.is_none() {
            self.wait = Some(Wait { since: now, progress: now });
        }
    }

    /// So many bytes came, or went.
    pub(crate) fn progress(&mut self, bytes: usize) {
        self.progress_at(bytes as u64, Instant::now());
    }

    /// The same, if this is now.
    pub(crate) fn progress_at(&mut self, bytes: u64, now: Instant) {
        self.bytes = (self.bytes + bytes).min(self.most(now));
        if let Some(wait) = &mut self.wait {
            wait.progress = now;
        }
    }

    /// The bytes that count at most: what was waited for so far has cost some, and no more are kept than the credit takes.
    /// Without a gap they may come in any steps, and a system confirms what was read in large ones.
    fn most(&self, now: Instant) -> u64 {
        let (Some(rate), Some(gap)) = (self.limits.rate, self.limits.gap) else { return u64::MAX };
        let waits = self.wait.map_or(Duration::ZERO, |wait| now.saturating_duration_since(wait.since));
        let paid = self.waited + waits + CREDIT.max(gap.saturating_mul(2));
        (paid.as_secs_f64() * f64::from(rate.max(1))) as u64
    }

    /// The client is not waited for any more.
    pub(crate) fn rest(&mut self) {
        if let Some(wait) = self.wait.take() {
            self.waited += wait.since.elapsed();
        }
    }

    /// When a client that is waited for has failed.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let wait = self.wait?;
        let by_gap = self.limits.gap.map(|gap| wait.progress + gap);
        let by_rate = self.limits.rate.map(|rate| {
            let earned = Duration::from_secs_f64(self.bytes as f64 / f64::from(rate.max(1)));
            wait.since + GRACE.max(earned).saturating_sub(self.waited)
        });
        [by_gap, by_rate].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn pace(gap: Option<u64>, rate: Option<u32>) -> Pace {
        Pace::new(PaceLimits { gap: gap.map(Duration::from_secs), rate })
    }

    fn left(pace: &Pace) -> Option<u64> {
        pace.deadline().map(|deadline| (deadline - Instant::now()).as_secs_f64().round() as u64)
    }

    #[test]
    fn who_is_not_waited_for_has_no_deadline() {
        let mut pace = pace(Some(30), Some(240));
        assert_eq!(pace.deadline(), None);
        pace.wait();
        assert!(pace.deadline().is_some());
        pace.rest();
        assert_eq!(pace.deadline(), None);
    }

    #[test]
    fn a_gap_ends_with_each_byte() {
        let mut pace = pace(Some(30), None);
        pace.wait();
        let first = pace.deadline();
        pace.progress(1);
        assert!(pace.deadline() >= first);
        assert_eq!(left(&pace), Some(30));
    }

    #[test]
    fn a_rate_is_earned_by_bytes_and_spent_by_waiting() {
        let mut pace = pace(None, Some(100));
        pace.wait();
        assert_eq!(left(&pace), Some(5));
        pace.progress(1000);
        assert_eq!(left(&pace), Some(10));
        pace.rest();
        pace.waited = 4 * SECOND;
        pace.wait();
        assert_eq!(left(&pace), Some(6));
    }

    #[test]
    fn what_came_quickly_pays_for_a_minute() {
        let mut pace = pace(Some(30), Some(100));
        let begun = Instant::now();
        pace.progress_at(3_000_000, begun);
        pace.wait_from(begun);
        let mut now = begun;
        let mut trickles_until = |pace: &mut Pace| {
            while pace.deadline().is_some_and(|deadline| deadline > now) {
                now += SECOND;
                pace.progress_at(50, now);
            }
            (now - begun).as_secs()
        };
        // At half the rate it lasts twice as long.
        assert_eq!(trickles_until(&mut pace), 120);
        // Once more, and not on top of what was waited for before.
        pace.progress_at(3_000_000, begun + 120 * SECOND);
        assert_eq!(trickles_until(&mut pace), 240);
    }

    #[test]
    fn a_gap_that_is_longer_is_paid_for() {
        let mut pace = pace(Some(300), Some(100));
        let begun = Instant::now();
        pace.wait_from(begun);
        pace.progress_at(3_000_000, begun);
        assert_eq!(pace.deadline(), Some(begun + 300 * SECOND));
        pace.progress_at(1, begun + 299 * SECOND);
        assert_eq!(pace.deadline(), Some(begun + 599 * SECOND));
    }

    proptest! {
        #[test]
        fn who_keeps_the_gap_and_the_rate_is_waited_for(
            rate in 1..10_000_u32,
            pauses in vec(1..=30_000_u64, 1..100),
        ) {
            let mut pace = pace(Some(30), Some(rate));
            let mut now = Instant::now();
            pace.wait_from(now);
            for pause in pauses {
                // What the pause costs, and a byte for what is lost in rounding.
                pace.progress_at(u64::from(rate) * pause / 1000 + 1, now);
                now += Duration::from_millis(pause);
                prop_assert!(pace.deadline().is_some_and(|deadline| deadline >= now));
            }
        }

        #[test]
        fn who_is_slower_is_not(rate in 2..10_000_u32, seconds in 6..1000_u32) {
            let mut pace = pace(None, Some(rate));
            let begun = Instant::now();
            pace.wait_from(begun);
            pace.progress_at(u64::from(rate - 1) * u64::from(seconds), begun);
            let end = begun + seconds * SECOND;
            prop_assert!(pace.deadline().is_some_and(|deadline| deadline < end));
        }
    }
}
