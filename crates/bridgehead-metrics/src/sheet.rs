//! One worker's figures: where each word lies, and how it is written and read.
//!
//! Not what the words mean (`cells`), and not whose sheet it is (`sheets`).
//!
//! Invariant: every write is one atomic addition or store, so a process that dies in the middle leaves nothing half done,
//! and whoever reads may be a moment behind but never wrong. Relaxed order is enough: no two words have to fit together.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::cause::Cause;
use crate::cells::{Closing, Condition, Counter, Gauge, Timing};
use crate::histogram::{self, Distribution};
use crate::places::{self, BlockingPlace, Places};
use crate::series::{self, Series};
use crate::slowest::{self, SlowRequest, Slowest};

/// How many reasons there may be for which clients are refused; their names are the network's.
pub const REASONS: usize = 64;

const COUNTERS: usize = Gauge::ROOM;
const REASON: usize = COUNTERS + Counter::ROOM;
const CLOSES: usize = REASON + REASONS;
const TIMINGS: usize = CLOSES + Closing::ROOM;
const SERIES: usize = TIMINGS + Timing::ROOM * histogram::WORDS;
const CAUSES: usize = SERIES + series::WORDS;
const SLOWEST: usize = CAUSES + Cause::ROOM;
const PLACES: usize = SLOWEST + slowest::WORDS;
const END: usize = PLACES + places::WORDS;
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

/// What a sheet says at one time.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    gauges: Vec<u64>,
    counters: Vec<u64>,
    reasons: Vec<u64>,
    closes: Vec<u64>,
    timings: Vec<Distribution>,
    causes: Vec<u64>,
    /// Durations of requests.
    pub requests: BTreeMap<Series, Distribution>,
    /// The slowest of the last quarter of an hour, in no order.
    pub slowest: Vec<SlowRequest>,
    /// What held the loop for too long, in no order.
    pub places: Vec<BlockingPlace>,
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

    /// And there.
    pub fn note_place(&self, seen: &BlockingPlace) {
        Places(self.words_of(PLACES..END)).note(seen);
    }

    fn slowest(&self) -> Slowest<'_> {
        Slowest(self.words_of(SLOWEST..PLACES))
    }

    /// All of it, now.
    #[must_use]
    pub fn read(&self) -> Figures {
        let row = |range| self.words_of(range).iter().map(|word| word.load(Ordering::Relaxed)).collect();
        let timing = |each: Timing| {
            let start = TIMINGS + each as usize * histogram::WORDS;
            Distribution::read(self.words_of(start..start + histogram::WORDS))
        };
        Figures {
            gauges: row(0..COUNTERS),
            counters: row(COUNTERS..REASON),
            reasons: row(REASON..CLOSES),
            closes: row(CLOSES..TIMINGS),
            timings: Timing::ALL.map(timing).into(),
            causes: row(CAUSES..SLOWEST),
            requests: series::read(self.words_of(SERIES..CAUSES)).collect(),
            slowest: self.slowest().read(),
            places: Places(self.words_of(PLACES..END)).read().into_iter().map(|(_, each)| each).collect(),
        }
    }

    /// What another sheet has counted besides.
    pub(crate) fn take_in(&self, figures: &Figures) {
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
        figures.places.iter().for_each(|each| self.note_place(each));
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

impl Figures {
    /// What a gauge says.
    #[must_use]
    pub fn gauge(&self, gauge: Gauge) -> u64 {
        self.gauges.get(gauge as usize).copied().unwrap_or_default()
    }

    /// How far the worker has come.
    #[must_use]
    pub fn condition(&self) -> Condition {
        self.gauge(Gauge::Condition).into()
    }

    /// What a counter says.
    #[must_use]
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(counter as usize).copied().unwrap_or_default()
    }

    /// How often clients were refused for the reason of this number.
    #[must_use]
    pub fn refusals(&self, reason: usize) -> u64 {
        self.reasons.get(reason).copied().unwrap_or_default()
    }

    /// How often WebSockets ended so.
    #[must_use]
    pub fn closes(&self, closing: Closing) -> u64 {
        self.closes.get(closing.place()).copied().unwrap_or_default()
    }

    /// How often the loop was held by this for too long.
    #[must_use]
    pub fn blamed(&self, cause: Cause) -> u64 {
        self.causes.get(cause.place()).copied().unwrap_or_default()
    }

    /// What a timing has seen.
    #[must_use]
    pub fn timing(&self, timing: Timing) -> Distribution {
        self.timings.get(timing as usize).cloned().unwrap_or_default()
    }

    /// What another sheet says besides; gauges are added up as well.
    pub fn add(&mut self, other: &Self) {
        let rows = [
            (&mut self.gauges, &other.gauges),
            (&mut self.counters, &other.counters),
            (&mut self.reasons, &other.reasons),
            (&mut self.closes, &other.closes),
            (&mut self.causes, &other.causes),
        ];
        for (own, other) in rows {
            own.resize(own.len().max(other.len()), 0);
            own.iter_mut().zip(other).for_each(|(own, other)| *own = own.wrapping_add(*other));
        }
        self.timings.resize(Timing::ALL.len(), Distribution::default());
        self.timings.iter_mut().zip(&other.timings).for_each(|(own, other)| own.add(other));
        for (series, seen) in &other.requests {
            self.requests.entry(*series).or_default().add(seen);
        }
        self.slowest.extend(other.slowest.iter().cloned());
        for seen in &other.places {
            match self.places.iter_mut().find(|each| each.place == seen.place) {
                Some(known) => known.join(seen),
                None => self.places.push(seen.clone()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Protocol;

    #[test]
    fn every_list_has_room() {
        assert!((Gauge::BlockedBy as usize) < Gauge::ROOM && (Counter::Steps as usize) < Counter::ROOM);
        assert!(Timing::ALL.len() <= Timing::ROOM);
        assert!(Timing::ALL.iter().enumerate().all(|(at, each)| *each as usize == at));
    }

    #[test]
    fn a_sheet_says_what_was_written_and_nothing_else() {
        let sheet = Sheet::own();
        let series = Series::new("GET", 200, Protocol::Http11);
        sheet.up(Gauge::Active);
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
