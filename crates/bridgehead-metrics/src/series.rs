//! Requests by method, scheme, status and protocol, and by why the server failed them: each combination that was met has a
//! histogram of its durations.
//!
//! There is room for so many, found by hashing. What finds none is counted by the class of its status, and by why the server
//! failed it: an error is never lost among answers.
//!
//! Invariant: a place belongs to the combination that came first, for as long as its sheet is somebody's.

#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

use crate::cells::REASONS;
use crate::histogram::{self, Distribution};

/// How many combinations; a power of two. An API that uses six methods with twenty statuses in two protocols fits.
#[cfg(not(loom))]
const MOST: usize = 256;
/// The first digits that a status may have, and every reason for which the server may fail a request: what comes in none of
/// the others has room here for sure.
#[cfg(not(loom))]
const REST: usize = 10 + REASONS;
// So few that two want the same place.
#[cfg(loom)]
const MOST: usize = 3;
#[cfg(loom)]
const REST: usize = 1;
/// The key and the histogram.
const EACH: usize = 1 + histogram::WORDS;
pub(crate) const WORDS: usize = (MOST + REST) * EACH;

/// Set in every key, so that none is zero.
const TAKEN: u64 = 1 << 32;
/// The lowest bits of what a key is made of, above the status.
const METHOD: u32 = 16;
const PROTOCOL: u32 = 24;
const SCHEME: u32 = 28;
/// One more than the number of the reason; zero: none.
const REFUSAL: u32 = 40;
/// A protocol and a scheme of which nothing is known.
const UNKNOWN: u64 = 15;

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

/// By what a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// By TLS, to us or to a proxy.
    Https,
}

/// What requests have in common that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series(u64);

impl Series {
    /// How many kinds of requests there may be at a time, by method and scheme.
    pub(crate) const KINDS: usize = 2 * METHODS.len();

    /// Of a request of this method that was answered so; 499: its client has left.
    #[must_use]
    pub fn new(method: &str, status: u16, protocol: Protocol) -> Self {
        let method = METHODS.iter().position(|known| *known == method).unwrap_or(METHODS.len() - 1);
        let key = (protocol as u64) << PROTOCOL | (method as u64) << METHOD | u64::from(status);
        Self(TAKEN | key).by(Scheme::Http)
    }

    /// It came by this.
    #[must_use]
    pub fn by(self, scheme: Scheme) -> Self {
        self.with(SCHEME, UNKNOWN, scheme as u64)
    }

    /// It was answered so.
    #[must_use]
    pub fn answered(self, status: u16) -> Self {
        self.with(0, 0xffff, status.into())
    }

    /// The server, not the application, has answered it so, for the reason of this number. That is kept of an error of the
    /// server's alone: who asks in a wrong way has it from the status.
    #[must_use]
    pub fn refused(self, reason: usize) -> Self {
        if self.is_server_error() && reason < REASONS {
            self.with(REFUSAL, 0xff, reason as u64 + 1)
        } else {
            self
        }
    }

    pub(crate) fn key(self) -> u64 {
        self.0
    }

    pub(crate) fn of_key(key: u64) -> Self {
        Self(key)
    }

    /// All that is kept of it where there is no room for more: the first digit of its status stands for that.
    fn rest(self) -> Self {
        let class = self.class();
        let rest = Self::new("_OTHER", class, Protocol::Http11);
        let rest = rest.with(PROTOCOL, UNKNOWN, UNKNOWN).with(SCHEME, UNKNOWN, UNKNOWN);
        self.refusal().map_or(rest, |reason| rest.refused(reason))
    }

    fn is_rest(self) -> bool {
        self.part(PROTOCOL, UNKNOWN) == UNKNOWN
    }

    /// How a method is called that may be any.
    #[must_use]
    pub fn method_of(method: &str) -> &'static str {
        METHODS.iter().find(|known| **known == method).copied().unwrap_or("_OTHER")
    }

    /// The method, `_OTHER` for one that is not told apart.
    #[must_use]
    pub fn method(self) -> &'static str {
        METHODS.get(self.part(METHOD, 0xff) as usize).copied().unwrap_or("_OTHER")
    }

    /// The status; of one of which no more is known its first digit.
    #[must_use]
    pub fn status(self) -> u16 {
        self.part(0, 0xffff) as u16
    }

    /// For labels: `404`; `4xx` if no more is known.
    #[must_use]
    pub fn status_in_words(self) -> String {
        match self.status() {
            class @ ..10 => format!("{class}xx"),
            status => status.to_string(),
        }
    }

    /// Whether the server, or its application, has failed.
    #[must_use]
    pub fn is_server_error(self) -> bool {
        self.class() == 5
    }

    /// The number of the reason for which the server has failed it by itself.
    #[must_use]
    pub fn refusal(self) -> Option<usize> {
        (self.part(REFUSAL, 0xff) as usize).checked_sub(1)
    }

    /// As OpenTelemetry has it; empty: it is not known.
    #[must_use]
    pub fn version(self) -> &'static str {
        match self.part(PROTOCOL, UNKNOWN) {
            0 => "1.0",
            1 => "1.1",
            UNKNOWN => "",
            _ => "2",
        }
    }

    /// As OpenTelemetry has it; empty: it is not known.
    #[must_use]
    pub fn scheme(self) -> &'static str {
        match self.part(SCHEME, UNKNOWN) {
            0 => "http",
            UNKNOWN => "",
            _ => "https",
        }
    }

    /// Which kind of request it is while it has no answer.
    pub(crate) fn kind(self) -> usize {
        let method = self.part(METHOD, 0xff) as usize;
        (2 * method + usize::from(self.scheme() == "https")).min(Self::KINDS - 1)
    }

    /// A request of each kind, which has no answer yet.
    pub(crate) fn kinds() -> impl Iterator<Item = Self> {
        METHODS.into_iter().flat_map(|method| {
            [Scheme::Http, Scheme::Https].map(|scheme| Self::new(method, 0, Protocol::Http11).by(scheme))
        })
    }

    /// The first digit of a status.
    fn class(self) -> u16 {
        let status = self.status();
        if status < 10 { status } else { status / 100 % 10 }
    }

    fn part(self, at: u32, mask: u64) -> u64 {
        self.0 >> at & mask
    }

    fn with(self, at: u32, mask: u64, part: u64) -> Self {
        Self(self.0 & !(mask << at) | (part & mask) << at)
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

/// The histogram of a series; that of its class when there is no room for it.
fn find(words: &[AtomicU64], series: Series) -> &[AtomicU64] {
    let start = series.hash();
    let own = || (0..MOST).find_map(|step| claim(words, (start + step) % MOST, series));
    let rest = || (MOST..MOST + REST).find_map(|place| claim(words, place, series.rest()));
    // What was put together once has one place in every sheet.
    let found = if series.is_rest() { None } else { own() };
    found.or_else(rest).unwrap_or_default()
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

#[cfg(all(test, not(loom)))]
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
        let failed = series.by(Scheme::Https).answered(503).refused(7);
        assert_eq!((failed.scheme(), series.scheme()), ("https", "http"));
        assert_eq!((failed.status(), failed.refusal(), failed.is_server_error()), (503, Some(7), true));
        assert_eq!(series.refused(7), series, "a client's fault is told by the status");
        assert_eq!(failed.answered(500).refusal(), Some(7));
    }

    #[test]
    fn requests_under_way_are_told_apart_by_method_and_scheme() {
        let kinds: Vec<_> = Series::kinds().collect();
        assert!(kinds.iter().enumerate().all(|(at, series)| series.kind() == at));
        assert_eq!(kinds.len(), Series::KINDS);
        let put = Series::new("PUT", 499, Protocol::Http2).by(Scheme::Https);
        assert_eq!((kinds[put.kind()].method(), kinds[put.kind()].scheme()), ("PUT", "https"));
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

    /// So many others that there is no room for one more.
    fn full() -> Vec<AtomicU64> {
        let words = words();
        for status in 0..MOST as u16 {
            record(&words, Series::new("GET", 100 + status, Protocol::Http11), Duration::ZERO);
        }
        words
    }

    fn counts(words: &[AtomicU64]) -> Vec<(String, Option<usize>, u64)> {
        let rests = read(words).filter(|(series, _)| series.is_rest());
        let mut counts: Vec<_> =
            rests.map(|(series, seen)| (series.status_in_words(), series.refusal(), seen.count())).collect();
        counts.sort_unstable();
        counts
    }

    #[test]
    fn what_finds_no_room_is_counted_by_the_class_of_its_status_and_by_why_the_server_failed() {
        let words = full();
        assert_eq!(counts(&words), []);
        let series = |status| Series::new("PUT", status, Protocol::Http2).by(Scheme::Https);
        let met = [series(200), series(500), series(503), series(503).refused(9), series(504).refused(3)];
        met.iter().for_each(|series| record(&words, *series, Duration::ZERO));
        let due = [("2xx", None, 1), ("5xx", None, 2), ("5xx", Some(3), 1), ("5xx", Some(9), 1)];
        assert_eq!(counts(&words), due.map(|(class, why, count)| (class.to_owned(), why, count)));
        let (rest, _) = read(&words).find(|(series, _)| series.is_rest()).expect("there are some");
        assert_eq!((rest.method(), rest.version(), rest.scheme()), ("_OTHER", "", ""));
    }

    #[test]
    fn what_found_no_room_in_one_sheet_has_one_place_in_the_next() {
        let (words, others) = (full(), full());
        record(&words, Series::new("PUT", 500, Protocol::Http2), Duration::ZERO);
        let next = self::words();
        for (series, seen) in read(&words).chain(read(&others)) {
            add(&next, series, &seen);
        }
        record(&next, Series::new("PUT", 501, Protocol::Http2), Duration::ZERO);
        assert_eq!(counts(&next), [("5xx".to_owned(), None, 2)]);
    }

    #[test]
    fn every_rest_that_there_may_be_finds_room() {
        let words = full();
        for class in 1..10 {
            record(&words, Series::new("PUT", class * 100, Protocol::Http2), Duration::ZERO);
        }
        for reason in 0..REASONS {
            record(&words, Series::new("PUT", 500, Protocol::Http2).refused(reason), Duration::ZERO);
        }
        assert_eq!(counts(&words).iter().map(|each| each.2).sum::<u64>(), 9 + REASONS as u64);
    }
}
