//! One worker's figures: where each word lies, and how it is written and read.
//!
//! Not what the words mean (`cells`), and not whose sheet it is (`sheets`).
//!
//! Invariant: every write is one atomic addition or store, so a process that dies in the middle leaves nothing half done,
//! and whoever reads may be a moment behind but never wrong. Relaxed order is enough: no two words have to fit together.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::cause::Cause;
use crate::cells::{Closing, Condition, Counter, Gauge, REASONS, Timing};
use crate::figures::{self, Figures};
use crate::gates;
use crate::histogram::{self, Distribution};
use crate::places::{self, Places};
use crate::record::{self, Slot};
use crate::series::{self, Series};
use crate::slowest::{self, SlowRequest, Slowest};

const COUNTERS: usize = Gauge::ROOM;
const REASON: usize = COUNTERS + Counter::ROOM;
const CLOSES: usize = REASON + REASONS;
const TIMINGS: usize = CLOSES + Closing::ROOM;
const SERIES: usize = TIMINGS + Timing::ROOM * histogram::WORDS;
const CAUSES: usize = SERIES + series::WORDS;
const SLOWEST: usize = CAUSES + Cause::ROOM;
const PLACES: usize = SLOWEST + slowest::WORDS;
const GATES: usize = PLACES + places::WORDS;
const ACTIVE: usize = GATES + gates::WORDS;
const LONGEST: usize = ACTIVE + Series::KINDS;
const END: usize = LONGEST + record::WORDS;
/// Words of a sheet, in whole pages of memory: a sheet that nobody has takes none.
pub(crate) const WORDS: usize = END.next_multiple_of(512);

/// One worker's figures. Clones are the same.
#[derive(Clone, Debug)]
pub struct Sheet {
    words: Words,
    start: usize,
}

/// Where words are from.
#[derive(Clone, Debug)]
enum Words {
    /// Memory of several processes.
    Shared(&'static [AtomicU64]),
    /// This process's own.
    Own(Arc<[AtomicU64]>),
}

impl Default for Sheet {
    fn default() -> Self {
        Self::own()
    }
}

impl Sheet {
    /// For a process that shares its figures with nobody.
    #[must_use]
    pub fn own() -> Self {
        Self { words: Words::Own((0..WORDS).map(|_| AtomicU64::new(0)).collect()), start: 0 }
    }

    pub(crate) fn shared(words: &'static [AtomicU64], start: usize) -> Self {
        Self { words: Words::Shared(words), start }
    }

    /// It is so from now on.
    pub fn set(&self, gauge: Gauge, value: u64) {
        if let Some(word) = self.word(gauge as usize) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Its worker, if it serves, is about to end. For whoever knows that, before it does or in its place.
    pub fn last_call(&self) {
        if let Some(word) = self.word(Gauge::Condition as usize) {
            let (from, to) = (Condition::Serving as u64, Condition::LastCall as u64);
            // Whoever is further already stays there.
            let _ = word.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// It is so, if it was less.
    pub fn raise(&self, gauge: Gauge, value: u64) {
        if let Some(word) = self.word(gauge as usize) {
            word.fetch_max(value, Ordering::Relaxed);
        }
    }

    /// One more.
    pub fn up(&self, gauge: Gauge) {
        if let Some(word) = self.word(gauge as usize) {
            word.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One less.
    pub fn down(&self, gauge: Gauge) {
        if let Some(word) = self.word(gauge as usize) {
            word.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// What it is now.
    #[must_use]
    pub fn gauge(&self, gauge: Gauge) -> u64 {
        self.word(gauge as usize).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Whether as many requests wait as may, for a permit or for the loop.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        figures::is_crowded(|gauge| self.gauge(gauge))
    }

    /// So many more.
    pub fn add(&self, counter: Counter, by: u64) {
        self.increase(COUNTERS + counter as usize, by);
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self, counter: Counter) -> u64 {
        self.word(COUNTERS + counter as usize).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// A client was refused for the reason of this number.
    pub fn refuse(&self, reason: usize) {
        if reason < REASONS {
            self.increase(REASON + reason, 1);
        }
    }

    /// For each reason, how often that was.
    pub fn refusals(&self) -> impl Iterator<Item = u64> + '_ {
        (REASON..REASON + REASONS).map(|at| self.word(at).map_or(0, |word| word.load(Ordering::Relaxed)))
    }

    /// A WebSocket has ended.
    pub fn close(&self, closing: Closing) {
        self.increase(CLOSES + closing.place(), 1);
    }

    /// It took so long this time.
    pub fn record(&self, timing: Timing, time: Duration) {
        let start = TIMINGS + timing as usize * histogram::WORDS;
        histogram::record(self.words_of(start..start + histogram::WORDS), time);
    }

    /// A request has come.
    pub fn enter(&self, series: Series) {
        self.increase(ACTIVE + series.kind(), 1);
    }

    /// It is here no more.
    pub fn leave(&self, series: Series) {
        if let Some(word) = self.word(ACTIVE + series.kind()) {
            word.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Requests that are here.
    fn active(&self) -> u64 {
        let kinds = self.words_of(ACTIVE..LONGEST).iter();
        kinds.fold(0, |sum, word| sum.wrapping_add(word.load(Ordering::Relaxed)))
    }

    /// A request is over.
    pub fn request(&self, series: Series, time: Duration) {
        series::record(self.words_of(SERIES..CAUSES), series, time);
    }

    /// Whether a request that took so long is among the slowest: if so, it is to be told of.
    #[must_use]
    pub fn is_slow(&self, time: Duration) -> bool {
        self.slowest().includes(time)
    }

    /// It is among the slowest.
    #[cold]
    pub fn keep_slow(&self, slow: &SlowRequest) {
        self.slowest().keep(slow);
    }

    /// It is so late, in seconds since 1970: what was slow long ago is forgotten.
    pub fn turn_slowest(&self, now: u64) {
        self.slowest().begin_span(now);
    }

    /// The loop was held by this for too long.
    pub fn blame(&self, cause: Cause) {
        self.increase(CAUSES + cause.place(), 1);
    }

    /// Nothing more comes, at this time in milliseconds since 1970. Requests that were under way are lost, and a slow step that
    /// was counted, and not judged before the end, is laid to what was known of it. One that ran until then has a place, if
    /// only that of an end.
    pub(crate) fn settle(&self, now: u64) {
        self.add(Counter::RequestsLost, self.active());
        self.note_what_ran(now);
        let counted = self.count(Counter::SlowSteps);
        let judged = self.words_of(CAUSES..SLOWEST).iter().map(|word| word.load(Ordering::Relaxed)).sum();
        if counted > judged {
            self.blame(Cause::of_code(self.gauge(Gauge::BlockedBy)));
            self.increase(CAUSES + Cause::Unknown.place(), counted - judged - 1);
        }
    }

    pub(crate) fn places(&self) -> Places<'_> {
        Places(self.words_of(PLACES..GATES))
    }

    pub(crate) fn gates(&self) -> &[AtomicU64] {
        self.words_of(GATES..ACTIVE)
    }

    pub(crate) fn longest(&self) -> Slot<'_> {
        Slot(self.words_of(LONGEST..END))
    }

    fn slowest(&self) -> Slowest<'_> {
        Slowest(self.words_of(SLOWEST..PLACES))
    }

    /// All of it, now: a step that runs counts with the time that it has taken.
    #[must_use]
    pub fn read(&self) -> Figures {
        let row = |range| self.words_of(range).iter().map(|word| word.load(Ordering::Relaxed)).collect();
        let timing = |each: Timing| {
            let start = TIMINGS + each as usize * histogram::WORDS;
            Distribution::read(self.words_of(start..start + histogram::WORDS))
        };
        let mut gauges: Vec<u64> = row(0..COUNTERS);
        gauges[Gauge::LongestStep as usize] = self.longest_step();
        gauges[Gauge::Active as usize] = self.active();
        Figures {
            gauges,
            counters: row(COUNTERS..REASON),
            reasons: row(REASON..CLOSES),
            closes: row(CLOSES..TIMINGS),
            timings: Timing::ALL.map(timing).into(),
            causes: row(CAUSES..SLOWEST),
            active: row(ACTIVE..LONGEST),
            requests: series::read(self.words_of(SERIES..CAUSES)).collect(),
            slowest: self.slowest().read(),
            places: self.places_as_they_stand(),
            longest: self.longest_as_it_stands(),
            gates: gates::read(self.gates()),
        }
    }

    /// What another sheet has counted besides, and the highest of both.
    pub(crate) fn take_in(&self, figures: &Figures) {
        Gauge::HIGHEST.into_iter().for_each(|gauge| self.raise(gauge, figures.gauge(gauge)));
        let rows = [
            (COUNTERS, &figures.counters),
            (REASON, &figures.reasons),
            (CLOSES, &figures.closes),
            (CAUSES, &figures.causes),
        ];
        for (start, row) in rows {
            row.iter()
                .enumerate()
                .filter(|(_, by)| **by > 0)
                .for_each(|(at, by)| self.increase(start + at, *by));
        }
        for (at, seen) in figures.timings.iter().enumerate() {
            let start = TIMINGS + at * histogram::WORDS;
            histogram::add(self.words_of(start..start + histogram::WORDS), seen);
        }
        for (series, seen) in &figures.requests {
            series::add(self.words_of(SERIES..CAUSES), *series, seen);
        }
        figures.slowest.iter().filter(|each| self.is_slow(each.time)).for_each(|each| self.keep_slow(each));
        for each in &figures.places {
            self.places().note(each);
        }
        figures.longest.keep(self.longest());
        figures.gates.iter().for_each(|(name, seen)| self.gate(name).place().take_in(seen));
    }

    /// It is blank: somebody else's turn.
    pub(crate) fn clear(&self) {
        self.words_of(0..WORDS).iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    fn increase(&self, at: usize, by: u64) {
        if let Some(word) = self.word(at) {
            word.fetch_add(by, Ordering::Relaxed);
        }
    }

    fn word(&self, at: usize) -> Option<&AtomicU64> {
        self.all().get(self.start + at)
    }

    fn words_of(&self, range: Range<usize>) -> &[AtomicU64] {
        self.all().get(self.start + range.start..self.start + range.end).unwrap_or_default()
    }

    fn all(&self) -> &[AtomicU64] {
        match &self.words {
            Words::Shared(words) => words,
            Words::Own(words) => words,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::{Protocol, Scheme};

    #[test]
    fn every_list_has_room() {
        assert!((Gauge::ExecutorHidden as usize) < Gauge::ROOM);
        assert!((Counter::ProbesTurnedAway as usize) < Counter::ROOM);
        assert!(Timing::ALL.len() <= Timing::ROOM);
        assert!(Timing::ALL.iter().enumerate().all(|(at, each)| *each as usize == at));
    }

    #[test]
    fn a_sheet_says_what_was_written_and_nothing_else() {
        let sheet = Sheet::own();
        let series = Series::new("GET", 200, Protocol::Http11);
        sheet.enter(series);
        sheet.add(Counter::BytesIn, 7);
        sheet.refuse(3);
        sheet.refuse(REASONS);
        sheet.close(Closing::of(1001));
        sheet.record(Timing::GilWait, Duration::from_millis(3));
        sheet.request(series, Duration::from_millis(2));
        let figures = sheet.read();
        assert_eq!((figures.gauge(Gauge::Active), figures.gauge(Gauge::Running)), (1, 0));
        assert_eq!((figures.counter(Counter::BytesIn), figures.counter(Counter::BytesOut)), (7, 0));
        assert_eq!((figures.refusals(3), figures.refusals(0), sheet.refusals().sum::<u64>()), (1, 0, 1));
        assert_eq!((figures.closes(Closing::of(1001)), figures.closes(Closing::of(1000))), (1, 0));
        assert_eq!((figures.timing(Timing::GilWait).sum, figures.timing(Timing::Queue).count()), (3000, 0));
        assert_eq!(figures.requests[&series].sum, 2000);
        assert_eq!(figures.requests.len(), 1);
    }

    #[test]
    fn requests_that_are_here_are_counted_by_method_and_scheme_and_those_that_were_met_stay_with_zero() {
        let sheet = Sheet::own();
        let (get, put) =
            (Series::new("GET", 499, Protocol::Http11), Series::new("PUT", 499, Protocol::Http2));
        let put = put.by(Scheme::Https);
        let shown = || {
            let mut twice = sheet.read();
            twice.add(&sheet.read());
            let each = |(series, count): (Series, u64)| (series.method(), series.scheme(), count);
            (twice.active().map(each).collect::<Vec<_>>(), twice.gauge(Gauge::Active))
        };
        assert_eq!(shown(), (vec![("GET", "http", 0)], 0));
        [get, put, put].iter().for_each(|series| sheet.enter(*series));
        assert_eq!(shown(), (vec![("GET", "http", 2), ("PUT", "https", 4)], 6));
        [put, put, get].iter().for_each(|series| sheet.leave(*series));
        sheet.request(put.answered(200), Duration::ZERO);
        assert_eq!(shown(), (vec![("GET", "http", 0), ("PUT", "https", 0)], 0));
    }

    #[test]
    fn who_has_a_queue_that_is_full_is_crowded_and_who_has_none_is_not() {
        for (wait, may) in [(Gauge::Waiting, Gauge::QueueLimit), (Gauge::Inbox, Gauge::InboxLimit)] {
            let sheet = Sheet::own();
            let is_crowded = |waits, most| {
                sheet.set(wait, waits);
                sheet.set(may, most);
                (sheet.is_crowded(), sheet.read().is_crowded())
            };
            assert_eq!(is_crowded(4, 5), (false, false));
            assert_eq!(is_crowded(5, 5), (true, true));
            assert_eq!(is_crowded(1, 0), (false, false));
        }
    }

    #[test]
    fn figures_are_added_up() {
        let sheet = Sheet::own();
        sheet.set(Gauge::Running, 2);
        sheet.add(Counter::BytesIn, 7);
        sheet.record(Timing::Queue, Duration::from_millis(3));
        sheet.request(Series::new("GET", 200, Protocol::Http2), Duration::from_millis(2));
        let mut twice = Figures::default();
        twice.add(&sheet.read());
        twice.add(&sheet.read());
        assert_eq!((twice.gauge(Gauge::Running), twice.counter(Counter::BytesIn)), (4, 14));
        assert_eq!(twice.timing(Timing::Queue).count(), 2);
        assert_eq!(twice.requests.values().map(Distribution::count).sum::<u64>(), 2);
    }
}
