//! Requests by method, status and protocol: each combination that was met has a histogram of its durations.
//!
//! There is room for so many, found by hashing; what finds none is counted in the first place, as requests of which no more
//! is known.
//!
//! Invariant: a place belongs to the combination that came first, for as long as its sheet is somebody's.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::histogram::{self, Distribution};

/// How many combinations; a power of two. An API that uses six methods with twenty statuses in two protocols fits.
const MOST: usize = 256;
/// The key and the histogram.
const EACH: usize = 1 + histogram::WORDS;
pub(crate) const WORDS: usize = MOST * EACH;

/// Set in every key, so that none is zero.
const TAKEN: u64 = 1 << 32;

/// The methods that are told apart, as OpenTelemetry lists them; the last stands for any other.
const METHODS: [&str; 11] =
    ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE", "QUERY", "_OTHER"];

/// What a request is spoken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
}

/// What requests have in common that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series(u64);

impl Series {
    /// Of a request of this method that was answered so; 499: its client has left.
    #[must_use]
    pub fn new(method: &str, status: u16, protocol: Protocol) -> Self {
        let method = METHODS.iter().position(|known| *known == method).unwrap_or(METHODS.len() - 1);
        Self(TAKEN | (protocol as u64) << 24 | (method as u64) << 16 | u64::from(status))
    }

    pub(crate) fn key(self) -> u64 {
        self.0
    }

    pub(crate) fn of_key(key: u64) -> Self {
        Self(key)
    }

    /// Those for which there was no room.
    fn overflow() -> Self {
        Self::new("_OTHER", 0, Protocol::Http11)
    }

    /// How a method is called that may be any.
    #[must_use]
    pub fn method_of(method: &str) -> &'static str {
        METHODS.iter().find(|known| **known == method).copied().unwrap_or("_OTHER")
    }

    /// The method, `_OTHER` for one that is not told apart.
    #[must_use]
    pub fn method(self) -> &'static str {
        METHODS.get((self.0 >> 16 & 0xff) as usize).copied().unwrap_or("_OTHER")
    }

    /// The status; zero is unknown.
    #[must_use]
    pub fn status(self) -> u16 {
        (self.0 & 0xffff) as u16
    }

    /// As OpenTelemetry has it.
    #[must_use]
    pub fn version(self) -> &'static str {
        match self.0 >> 24 & 0xff {
            0 => "1.0",
            1 => "1.1",
            _ => "2",
        }
    }

    /// Where it is looked for first. Methods and statuses are spread, the few protocols beside each other.
    fn hash(self) -> usize {
        let spread = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (spread >> 56) as usize
    }
}

/// Adds a request to its series.
pub(crate) fn record(words: &[AtomicU64], series: Series, time: Duration) {
    histogram::record(find(words, series), time);
}

/// Adds many, of a sheet that is given up.
pub(crate) fn add(words: &[AtomicU64], series: Series, seen: &Distribution) {
    histogram::add(find(words, series), seen);
}

/// Every series that has one.
pub(crate) fn read(words: &[AtomicU64]) -> impl Iterator<Item = (Series, Distribution)> + '_ {
    words.chunks_exact(EACH).filter_map(|each| {
        let (key, histogram) = each.split_first()?;
        let key = key.load(Ordering::Acquire);
        (key != 0).then(|| (Series(key), Distribution::read(histogram)))
    })
}

/// The histogram of a series; that of all others when there is no room for it.
fn find(words: &[AtomicU64], series: Series) -> &[AtomicU64] {
    let start = series.hash();
    let others = MOST - 1;
    (0..others)
        .find_map(|step| claim(words, 1 + (start + step) % others, series))
        .or_else(|| claim(words, 0, Series::overflow()))
        .unwrap_or_default()
}

/// The histogram in this place, if it is this series', or nobody's yet.
fn claim(words: &[AtomicU64], place: usize, series: Series) -> Option<&[AtomicU64]> {
    let (key, histogram) = words.get(place * EACH..(place + 1) * EACH)?.split_first()?;
    let known = match key.load(Ordering::Acquire) {
        0 => key.compare_exchange(0, series.0, Ordering::AcqRel, Ordering::Acquire).err().unwrap_or(series.0),
        known => known,
    };
    (known == series.0).then_some(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Vec<AtomicU64> {
        (0..WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn a_series_says_what_it_was_made_of() {
        let series = Series::new("PATCH", 404, Protocol::Http2);
        assert_eq!((series.method(), series.status(), series.version()), ("PATCH", 404, "2"));
        assert_eq!(Series::new("BREW", 418, Protocol::Http10).method(), "_OTHER");
    }

    #[test]
    fn requests_of_one_series_are_counted_together_and_others_apart() {
        let words = words();
        let get = Series::new("GET", 200, Protocol::Http11);
        let post = Series::new("POST", 200, Protocol::Http11);
        for (series, times) in [(get, 3), (post, 1)] {
            (0..times).for_each(|_| record(&words, series, Duration::from_millis(1)));
        }
        let mut seen: Vec<_> = read(&words).map(|(series, seen)| (series, seen.count())).collect();
        seen.sort_unstable();
        assert_eq!(seen, [(get, 3), (post, 1)]);
    }

    #[test]
    fn what_finds_no_room_is_counted_all_the_same() {
        let words = words();
        for status in 0..2 * MOST as u16 {
            record(&words, Series::new("GET", 100 + status, Protocol::Http11), Duration::ZERO);
        }
        let total: u64 = read(&words).map(|(_, seen)| seen.count()).sum();
        assert_eq!(total, 2 * MOST as u64);
    }
}
