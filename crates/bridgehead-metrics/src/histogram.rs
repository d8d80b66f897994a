//! Times of which there are many: how many were no longer than each bound, their sum, and the longest.
//!
//! Not percentiles: whoever reads computes those.

#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

/// Upper bounds in microseconds: those that OpenTelemetry advises for HTTP, and four below them, since an answer from
/// Rust is faster than its first.
pub const BOUNDS: [u64; 18] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 75_000, 100_000, 250_000, 500_000, 750_000,
    1_000_000, 2_500_000, 5_000_000, 7_500_000, 10_000_000,
];

/// Words of a histogram: one for each bound, one for what is above, the sum, the longest; a power of two would waste more.
pub(crate) const WORDS: usize = BOUNDS.len() + 3;
const SUM: usize = WORDS - 2;
const LONGEST: usize = WORDS - 1;

/// What a histogram has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// How many lay between each bound and the one before; the last is above all bounds.
    pub counts: [u64; BOUNDS.len() + 1],
    /// In microseconds.
    pub sum: u64,
    /// None was longer, in microseconds.
    pub longest: u64,
}

impl Distribution {
    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Those of another besides.
    pub fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(own, other)| *own += other);
        self.sum += other.sum;
        self.longest = self.longest.max(other.longest);
    }

    /// What came since `before`, which was seen earlier. Its longest is of this time if it is the longest of all; else it is
    /// known only that it was shorter than that.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let counts = std::array::from_fn(|at| self.counts[at].saturating_sub(before.counts[at]));
        Self { counts, sum: self.sum.saturating_sub(before.sum), longest: self.longest }
    }

    /// Below which time this share of them lay, in microseconds, as if they were spread evenly between two bounds, but not
    /// above the longest. `None` without any.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let mut rank = share * count as f64;
        let mut low = 0;
        for (bound, here) in BOUNDS.iter().zip(self.counts) {
            if here > 0 && rank <= here as f64 {
                let spread = low as f64 + (bound - low) as f64 * rank / here as f64;
                return Some(spread.min(self.longest as f64));
            }
            rank -= here as f64;
            low = *bound;
        }
        // Above all bounds nothing is known but this.
        Some(self.longest as f64)
    }

    pub(crate) fn read(words: &[AtomicU64]) -> Self {
        let load = |at: usize| words.get(at).map_or(0, |word| word.load(Ordering::Relaxed));
        Self { counts: std::array::from_fn(load), sum: load(SUM), longest: load(LONGEST) }
    }
}

/// Adds a time to a histogram in these words.
pub(crate) fn record(words: &[AtomicU64], time: Duration) {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    // First: what is counted is never above the longest.
    raise(words, micros);
    // Most are short: looked through from below.
    let at = BOUNDS.iter().position(|bound| micros <= *bound).unwrap_or(BOUNDS.len());
    for (at, by) in [(at, 1), (SUM, micros)] {
        if let Some(word) = words.get(at) {
            word.fetch_add(by, Ordering::Relaxed);
        }
    }
}

fn raise(words: &[AtomicU64], micros: u64) {
    // Few are the longest so far: the others read a word.
    if let Some(longest) = words.get(LONGEST).filter(|word| word.load(Ordering::Relaxed) < micros) {
        longest.fetch_max(micros, Ordering::Relaxed);
    }
}

/// Adds what another histogram has seen.
pub(crate) fn add(words: &[AtomicU64], seen: &Distribution) {
    raise(words, seen.longest);
    for (word, by) in words.iter().zip(seen.counts.iter().chain([&seen.sum])) {
        word.fetch_add(*by, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_counted_at_the_first_bound_that_it_does_not_exceed() {
        let words: Vec<_> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        for micros in [0, 250, 251, 10_000_000, 10_000_001] {
            record(&words, Duration::from_micros(micros));
        }
        let seen = Distribution::read(&words);
        assert_eq!((seen.counts[0], seen.counts[1], seen.counts[17], seen.counts[18]), (2, 1, 1, 1));
        assert_eq!((seen.count(), seen.sum), (5, 20_000_502));
    }

    #[test]
    fn a_quantile_lies_between_the_bounds_of_its_place() {
        let words: Vec<_> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        assert_eq!(Distribution::read(&words).quantile(0.5), None);
        (0..100).for_each(|_| record(&words, Duration::from_millis(3)));
        let before = Distribution::read(&words);
        (0..100).for_each(|_| record(&words, Duration::from_millis(5)));
        let seen = Distribution::read(&words);
        assert_eq!((seen.quantile(0.5), seen.quantile(1.0)), (Some(3750.0), Some(5000.0)));
        (0..10).for_each(|_| record(&words, Duration::from_secs(60)));
        let seen = Distribution::read(&words);
        assert_eq!(seen.quantile(0.99), Some(60_000_000.0));
        assert_eq!((seen.since(&before).count(), seen.since(&before).sum), (110, 600_500_000));
    }

    #[test]
    fn no_quantile_is_above_the_longest() {
        let words: Vec<_> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        (0..100).for_each(|_| record(&words, Duration::from_millis(3)));
        let seen = Distribution::read(&words);
        assert_eq!((seen.quantile(0.1), seen.quantile(0.99)), (Some(2750.0), Some(3000.0)));
        let other: Vec<_> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        record(&other, Duration::from_millis(4));
        add(&words, &Distribution::read(&other));
        let mut twice = Distribution::read(&words);
        twice.add(&seen);
        assert_eq!((twice.count(), twice.quantile(1.0)), (201, Some(4000.0)));
    }
}
