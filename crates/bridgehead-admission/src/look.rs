//! A look at what requests take when few others run.
//!
//! Not when there is one, nor what follows (`gradient`). All that began while there were few are looked at, and not those
//! that ended first: the quick ones do.
//!
//! | it | until |
//! |---|---|
//! | empties | as few run as may |
//! | sees | [`SEEN`] have ended that began since |
//! | waits | the others that began meanwhile have ended too; others run beside them again |
//!
//! Invariant: no part of it lasts for longer than [`LONGEST`].

use std::time::Duration;

/// Requests that are enough.
const SEEN: u32 = 16;
const LONGEST: Duration = Duration::from_secs(1);

/// A request has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// When it was let in.
    pub(crate) began: Duration,
    /// When it ended.
    pub(crate) now: Duration,
    /// How many others run.
    pub(crate) running: usize,
}

/// What some requests take on average. Of logarithms: one that takes a minute is no sign of anything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) count: u32,
    sum: f64,
}

#[derive(Debug)]
pub(crate) enum Look {
    Empties { since: Duration },
    Sees { since: Duration, old: usize, sample: Sample },
    Waits { since: Duration, until: Duration, left: usize, sample: Sample },
}

/// What a look has come to.
#[derive(Debug)]
pub(crate) enum Seen {
    NotYet(Look),
    /// Whether anything was seen.
    Over(Option<f64>),
}

impl Sample {
    pub(crate) fn take(&mut self, end: &End) {
        self.count += 1;
        self.sum += end.now.saturating_sub(end.began).as_secs_f64().max(1e-6).ln();
    }

    /// In seconds.
    pub(crate) fn mean(&self) -> f64 {
        (self.sum / f64::from(self.count.max(1))).exp()
    }
}

impl Look {
    pub(crate) fn new(now: Duration) -> Self {
        Self::Empties { since: now }
    }

    /// Whether few may run.
    pub(crate) fn needs_few(&self) -> bool {
        !matches!(self, Self::Waits { .. })
    }

    /// A request has ended, and so many may run.
    pub(crate) fn ended(self, end: &End, few: usize) -> Seen {
        let is_late = |since| end.now.saturating_sub(since) >= LONGEST;
        match self {
            Self::Empties { .. } if end.running <= few => {
                Seen::NotYet(Self::Sees { since: end.now, old: end.running, sample: Sample::default() })
            }
            Self::Empties { since } if is_late(since) => Seen::Over(None),
            Self::Empties { .. } => Seen::NotYet(self),
            Self::Sees { since, mut old, mut sample } => {
                if end.began >= since {
                    sample.take(end);
                } else {
                    old = old.saturating_sub(1);
                }
                if sample.count < SEEN && !is_late(since) {
                    return Seen::NotYet(Self::Sees { since, old, sample });
                }
                let left = end.running.saturating_sub(old);
                Seen::NotYet(Self::Waits { since, until: end.now, left, sample })
            }
            Self::Waits { since, until, mut left, mut sample } => {
                if end.began >= since && end.began < until {
                    sample.take(end);
                    left = left.saturating_sub(1);
                }
                if left > 0 && !is_late(until) {
                    return Seen::NotYet(Self::Waits { since, until, left, sample });
                }
                Seen::Over((sample.count > 0).then(|| sample.mean()))
            }
        }
    }
}
