//! The sheets of all workers of a server, and what is left of those that are gone.
//!
//! The first sheet is nobody's: what a worker has counted is added to it before its place is somebody else's, so sums
//! over all workers never go back. In front of it is what their parent counts.
//!
//! Invariant: a place is given up by the parent alone, once nobody writes there any more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cells::Condition;
use crate::sheet::{self, Figures, Sheet};

/// Words in front, of which these are used: how many workers were started, and ended for each reason.
const FRONT: usize = 512;
const STARTS: usize = 0;
const ENDS: usize = 1;

/// How many workers there may be at a time, those that leave included.
const PLACES: usize = 1024;

/// Why a worker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum End {
    /// It was told to.
    Stopped,
    /// It did by itself, with any exit code.
    Exited,
    /// By a signal, the system's for want of memory included.
    Killed,
    /// It was told to, and had to be killed.
    Overdue,
    /// Its application could not be loaded or started.
    Refused,
}

impl End {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Stopped, Self::Exited, Self::Killed, Self::Overdue, Self::Refused];

    /// In one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Exited => "exited",
            Self::Killed => "killed",
            Self::Overdue => "overdue",
            Self::Refused => "refused_to_start",
        }
    }
}

/// A server's. Clones are the same.
#[derive(Clone, Debug)]
pub struct Sheets(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// Of one process, which is not started by us.
    Alone(Sheet),
    Shared {
        words: &'static [AtomicU64],
        // The parent gives a place up on one thread and sums on another: nothing is to be counted twice or not at all.
        changing: Arc<Mutex<()>>,
    },
}

/// What all sheets of a server say at one time.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Those that there are, each with its place.
    pub workers: Vec<(usize, Figures)>,
    /// What is left of those that are gone.
    pub gone: Figures,
    /// How many were started.
    pub starts: u64,
    /// How many ended, as [`End::ALL`] has the reasons.
    pub ends: [u64; End::ALL.len()],
}

impl Snapshot {
    /// Of everybody together.
    #[must_use]
    pub fn total(&self) -> Figures {
        let mut total = self.gone.clone();
        self.workers.iter().for_each(|(_, figures)| total.add(figures));
        total
    }
}

impl Sheets {
    /// Words that the sheets of several workers take. Whole pages of them are never touched unless there are so many.
    pub const WORDS: usize = FRONT + sheet::WORDS * (PLACES + 1);

    /// Sheets in this memory.
    #[must_use]
    pub fn new(words: &'static [AtomicU64]) -> Self {
        Self(Kind::Shared { words, changing: Arc::default() })
    }

    /// The sheet of a process that is the whole server.
    #[must_use]
    pub fn alone(sheet: Sheet) -> Self {
        Self(Kind::Alone(sheet))
    }

    /// The sheet of the worker at this place. One that is not there is written to in vain.
    #[must_use]
    pub fn at(&self, place: usize) -> Sheet {
        match &self.0 {
            Kind::Alone(sheet) => sheet.clone(),
            Kind::Shared { words, .. } => Sheet::shared(words, FRONT + sheet::WORDS * (place + 1)),
        }
    }

    /// The worker at this place is gone: what it counted is kept, and its place is blank.
    pub fn give_up(&self, place: usize) {
        if let Kind::Shared { words, changing } = &self.0 {
            let _changing = lock(changing);
            let left = self.at(place);
            gone(words).take_in(&left.read());
            left.clear();
        }
    }

    /// A worker was started.
    pub fn count_start(&self) {
        self.count(STARTS);
    }

    /// A worker has ended.
    pub fn count_end(&self, end: End) {
        self.count(ENDS + end as usize);
    }

    /// What all of them say now.
    #[must_use]
    pub fn read(&self) -> Snapshot {
        match &self.0 {
            Kind::Alone(sheet) => {
                Snapshot { workers: vec![(0, sheet.read())], starts: 1, ..Snapshot::default() }
            }
            Kind::Shared { words, changing } => {
                let _changing = lock(changing);
                let front = |at: usize| words.get(at).map_or(0, |word| word.load(Ordering::Relaxed));
                let is_there = |place: &usize| self.condition(*place) != Condition::Absent;
                Snapshot {
                    workers: (0..PLACES)
                        .filter(is_there)
                        .map(|place| (place, self.at(place).read()))
                        .collect(),
                    gone: gone(words).read(),
                    starts: front(STARTS),
                    ends: End::ALL.map(|end| front(ENDS + end as usize)),
                }
            }
        }
    }

    fn condition(&self, place: usize) -> Condition {
        self.at(place).gauge(crate::cells::Gauge::Condition).into()
    }

    fn count(&self, at: usize) {
        if let Kind::Shared { words, .. } = &self.0
            && let Some(word) = words.get(at)
        {
            word.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn gone(words: &'static [AtomicU64]) -> Sheet {
    Sheet::shared(words, FRONT)
}

fn lock(changing: &Mutex<()>) -> MutexGuard<'_, ()> {
    changing.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cells::{Counter, Gauge};
    use crate::series::{Protocol, Series};

    /// Room for three workers.
    fn sheets() -> Sheets {
        let words: Vec<_> = (0..FRONT + sheet::WORDS * 4).map(|_| AtomicU64::new(0)).collect();
        Sheets::new(Vec::leak(words))
    }

    fn serve(sheet: &Sheet) {
        sheet.set(Gauge::Condition, Condition::Serving as u64);
        sheet.set(Gauge::Running, 3);
        sheet.add(Counter::BytesIn, 10);
        sheet.refuse(5);
        sheet.request(Series::new("GET", 200, Protocol::Http11), Duration::from_millis(1));
    }

    #[test]
    fn what_a_worker_counted_is_kept_when_its_place_is_given_up_and_what_it_had_is_not() {
        let sheets = sheets();
        serve(&sheets.at(1));
        serve(&sheets.at(2));
        sheets.give_up(1);
        serve(&sheets.at(1));
        sheets.give_up(1);
        let seen = sheets.read();
        assert_eq!(seen.workers.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [2]);
        let total = seen.total();
        assert_eq!(
            (total.counter(Counter::BytesIn), total.refusals(5), total.gauge(Gauge::Running)),
            (30, 3, 3)
        );
        assert_eq!(total.requests.values().map(crate::Distribution::count).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn starts_and_ends_are_counted_by_reason() {
        let sheets = sheets();
        sheets.count_start();
        sheets.count_start();
        sheets.count_end(End::Killed);
        let seen = sheets.read();
        assert_eq!((seen.starts, seen.ends), (2, [0, 0, 1, 0, 0]));
    }

    #[test]
    fn a_place_that_is_not_there_is_written_to_in_vain() {
        let sheets = sheets();
        serve(&sheets.at(3));
        assert!(sheets.read().workers.is_empty());
    }

    #[test]
    fn a_process_alone_is_the_whole_server() {
        let sheet = Sheet::own();
        let sheets = Sheets::alone(sheet.clone());
        serve(&sheets.at(0));
        sheets.give_up(0);
        assert_eq!(sheets.read().total().counter(Counter::BytesIn), 10);
        assert_eq!(sheet.gauge(Gauge::Running), 3);
    }
}
