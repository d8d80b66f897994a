//! Whether a client lives: pings at intervals, and how long it may take to give a sign of life.
//!
//! Any byte is a sign: a client in the middle of a long frame cannot send a pong.
//!
//! Invariant: only waiting counts. A client is not dead because we do not read.

use std::time::{Duration, Instant};

/// Says when the next ping is due, or its answer.
#[derive(Debug)]
pub(crate) struct Heart {
    interval: Option<Duration>,
    timeout: Option<Duration>,
    count: u64,
    next: Instant,
    /// Since when a sign of life is waited for, and how long.
    until: Option<Instant>,
}

/// What is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    Rests,
    /// A ping with this payload.
    Pings([u8; 8]),
    /// The client is dead.
    Stops,
}

impl Heart {
    /// Without an interval there are no pings, without a timeout nobody dies of them.
    pub(crate) fn new(interval: Option<Duration>, timeout: Option<Duration>, now: Instant) -> Self {
        let next = interval.map_or(now, |interval| now + interval);
        Self { interval, timeout, count: 0, next, until: None }
    }

    /// The client has sent something.
    pub(crate) fn lives(&mut self) {
        self.until = None;
    }

    /// When something is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.interval.map(|_| self.until.unwrap_or(self.next))
    }

    /// What is due now. `paused` says that the client is not being read.
    pub(crate) fn beat(&mut self, now: Instant, paused: bool) -> Beat {
        let Some(interval) = self.interval.filter(|_| self.next().is_some_and(|next| next <= now)) else {
            return Beat::Rests;
        };
        if self.until.is_some() {
            if !paused {
                return Beat::Stops;
            }
            self.until = self.timeout.map(|timeout| now + timeout);
            return Beat::Rests;
        }
        self.count += 1;
        self.next = now + interval;
        self.until = self.timeout.map(|timeout| now + timeout);
        Beat::Pings(self.count.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn heart(timeout: Option<Duration>) -> (Heart, Instant) {
        let now = Instant::now();
        (Heart::new(Some(20 * SECOND), timeout, now), now)
    }

    #[test]
    fn who_answers_is_asked_again_after_the_interval() {
        let (mut heart, began) = heart(Some(5 * SECOND));
        assert_eq!(heart.beat(began + 19 * SECOND, false), Beat::Rests);
        assert_eq!(heart.beat(began + 20 * SECOND, false), Beat::Pings([0, 0, 0, 0, 0, 0, 0, 1]));
        assert_eq!(heart.next(), Some(began + 25 * SECOND));
        heart.lives();
        assert_eq!(heart.next(), Some(began + 40 * SECOND));
    }

    #[test]
    fn who_does_not_answer_is_dead_unless_nobody_listens() {
        let (mut heart, began) = heart(Some(5 * SECOND));
        assert!(matches!(heart.beat(began + 20 * SECOND, false), Beat::Pings(_)));
        assert_eq!(heart.beat(began + 25 * SECOND, true), Beat::Rests);
        assert_eq!(heart.beat(began + 29 * SECOND, false), Beat::Rests);
        assert_eq!(heart.beat(began + 30 * SECOND, false), Beat::Stops);
    }

    #[test]
    fn without_a_timeout_nobody_dies_and_without_an_interval_nobody_is_asked() {
        let (mut heart, began) = heart(None);
        for round in 1..5 {
            assert!(matches!(heart.beat(began + 20 * round * SECOND, false), Beat::Pings(_)));
        }
        let mut silent = Heart::new(None, Some(SECOND), began);
        assert_eq!((silent.next(), silent.beat(began + 100 * SECOND, false)), (None, Beat::Rests));
    }
}
