//! The slowest requests of the last quarter of an hour: what was asked, what it came to, how long it took, when.
//!
//! A quarter of an hour has three spans, each with so many places. There is one more, which is the one that is overwritten: the
//! current one has only begun. Who ends a request reads one word: what a request has to take to be among them.
//!
//! Invariant: a request that is not among the slowest of its span costs that one look.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::record::{self, Slot};
use crate::series::Series;

/// Seconds of a span.
const SPAN: u64 = 300;
const SPANS: usize = 4;
/// Requests that are kept of each.
const MOST: usize = 6;
/// What a request has to take, in microseconds; which span it is.
const FRONT: usize = 2;
pub(crate) const WORDS: usize = FRONT + SPANS * MOST * record::WORDS;

/// The numbers of a record.
const MICROS: usize = 0;
const AT: usize = 1;
const SERIES: usize = 2;

/// A request that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowRequest {
    /// From its head to the last byte of its answer.
    pub time: Duration,
    /// When it ended, in milliseconds since 1970.
    pub at: u64,
    /// Its method, status and protocol.
    pub series: Series,
    /// Its path, without a query.
    pub path: String,
    /// The route that the framework found for it; empty if it tells of none.
    pub route: String,
}

/// Where they lie.
pub(crate) struct Slowest<'a>(pub(crate) &'a [AtomicU64]);

impl Slowest<'_> {
    /// Whether a request that took so long is to be kept.
    pub(crate) fn includes(&self, time: Duration) -> bool {
        self.0.first().is_some_and(|least| micros(time) > least.load(Ordering::Relaxed))
    }

    /// Keeps it, in the place of the fastest of its span.
    pub(crate) fn keep(&self, slow: &SlowRequest) {
        self.begin_span(slow.at / 1000);
        let (its, current) = (slow.at / 1000 / SPAN, self.span());
        if its + SPANS as u64 <= current {
            return;
        }
        let span = its as usize % SPANS;
        let Some(place) = (0..MOST).min_by_key(|at| self.slot(span, *at).number(MICROS)) else { return };
        let numbers = [micros(slow.time), slow.at, slow.series.key(), 0];
        self.slot(span, place).write(numbers, [&slow.path, &slow.route]);
        let least = (0..MOST).map(|at| self.slot(span, at).number(MICROS)).min().unwrap_or_default();
        if let (Some(word), true) = (self.0.first(), its == current) {
            word.store(least, Ordering::Relaxed);
        }
    }

    /// It is so late, in seconds since 1970: a span that is new has none yet.
    pub(crate) fn begin_span(&self, now: u64) {
        let [least, span, ..] = self.0 else { return };
        let before = span.load(Ordering::Relaxed);
        if now / SPAN <= before {
            return;
        }
        span.store(now / SPAN, Ordering::Relaxed);
        least.store(0, Ordering::Relaxed);
        for over in (before.max(now / SPAN - SPANS as u64) + 1..=now / SPAN).map(|each| each as usize % SPANS)
        {
            (0..MOST).for_each(|at| self.slot(over, at).write([0; record::NUMBERS], ["", ""]));
        }
    }

    fn span(&self) -> u64 {
        self.0.get(1).map_or(0, |span| span.load(Ordering::Relaxed))
    }

    pub(crate) fn read(&self) -> Vec<SlowRequest> {
        let slots = (0..SPANS).flat_map(|span| (0..MOST).map(move |at| (span, at)));
        let records = slots.filter_map(|(span, at)| self.slot(span, at).read());
        let kept = records.filter(|record| record.numbers[AT] > 0).map(|record| {
            let [path, route] = record.texts;
            SlowRequest {
                time: Duration::from_micros(record.numbers[MICROS]),
                at: record.numbers[AT],
                series: Series::of_key(record.numbers[SERIES]),
                path,
                route,
            }
        });
        kept.collect()
    }

    fn slot(&self, span: usize, at: usize) -> Slot<'_> {
        let start = FRONT + (span * MOST + at) * record::WORDS;
        Slot(self.0.get(start..start + record::WORDS).unwrap_or_default())
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Protocol;

    const NOW: u64 = 1_800_000_000;

    fn words() -> Vec<AtomicU64> {
        (0..WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    fn slow(millis: u64, at: u64) -> SlowRequest {
        SlowRequest {
            time: Duration::from_millis(millis),
            at: at * 1000,
            series: Series::new("GET", 200, Protocol::Http11),
            path: format!("/{millis}"),
            route: "/{millis}".to_owned(),
        }
    }

    fn kept(slowest: &Slowest<'_>) -> Vec<u128> {
        let mut kept: Vec<_> = slowest.read().iter().map(|each| each.time.as_millis()).collect();
        kept.sort_unstable();
        kept
    }

    #[test]
    fn the_slowest_of_a_span_are_kept_and_a_faster_one_is_not() {
        let words = words();
        let slowest = Slowest(&words);
        for millis in [5, 30, 10, 40, 20, 50] {
            assert!(slowest.includes(Duration::from_millis(millis)));
            slowest.keep(&slow(millis, NOW));
        }
        assert!(!slowest.includes(Duration::from_millis(5)));
        slowest.keep(&slow(15, NOW));
        assert!(!slowest.includes(Duration::from_millis(9)));
        assert_eq!(kept(&slowest), [10, 15, 20, 30, 40, 50]);
        assert!(slowest.read().contains(&slow(15, NOW)));
    }

    #[test]
    fn a_new_span_begins_without_any_and_the_oldest_is_forgotten() {
        let words = words();
        let slowest = Slowest(&words);
        (1..=MOST as u64).for_each(|millis| slowest.keep(&slow(1000 * millis, NOW)));
        assert!(!slowest.includes(Duration::from_millis(2)));
        slowest.begin_span(NOW + SPAN);
        assert!(slowest.includes(Duration::from_millis(2)));
        slowest.keep(&slow(2, NOW + SPAN));
        assert_eq!(kept(&slowest).len(), MOST + 1);
        slowest.keep(&slow(3, NOW + 4 * SPAN));
        assert_eq!(kept(&slowest), [2, 3]);
        slowest.begin_span(NOW + 20 * SPAN);
        assert_eq!(kept(&slowest).len(), 0);
    }

    #[test]
    fn what_another_sheet_kept_earlier_goes_to_its_own_span_or_is_too_old() {
        let words = words();
        let slowest = Slowest(&words);
        slowest.keep(&slow(7, NOW + 3 * SPAN));
        slowest.keep(&slow(5, NOW));
        slowest.keep(&slow(9, NOW - SPAN));
        assert_eq!(kept(&slowest), [5, 7]);
    }

    #[test]
    fn what_was_slow_is_kept_for_a_quarter_of_an_hour_whenever_it_was() {
        for at in [NOW, NOW + SPAN / 2, NOW + SPAN - 1] {
            let words = words();
            let slowest = Slowest(&words);
            slowest.keep(&slow(7, at));
            for later in at..at + 900 {
                slowest.begin_span(later);
                assert_eq!(kept(&slowest), [7], "{} s later", later - at);
            }
        }
    }
}
