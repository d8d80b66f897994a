//! The sheets of all workers of a server, and what is left of those that are gone.
//!
//! The first sheet is nobody's: what a worker has counted is added to it before its place is somebody else's, so sums
//! over all workers never go back. In front of it is what their parent counts.
//!
//! Invariant: a place is given up by the parent alone, once nobody writes there any more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cells::{Condition, Gauge};
use crate::figures::Figures;
use crate::longest::LongestStep;
use crate::record::{self, Slot};
use crate::sheet::{self, Sheet};

/// Words in front, of which these are used: how many workers ended, and were started, for each reason; how the last one stood
/// that is gone.
const FRONT: usize = 512;
const ENDS: usize = 1;
const STARTS: usize = 32;
const LAST: usize = 64;
const LAST_LONGEST: usize = LAST + Gauge::ROOM;

/// How many workers there may be at a time, those that leave included.
const PLACES: usize = 1024;

/// Why a worker is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Start {
    /// The server is.
    Initial,
    /// One has ended that nobody had told to.
    Died,
    /// One was told to end by somebody who is not its parent.
    Stopped,
    /// All are started anew.
    Reload,
    /// One has said nothing for too long.
    Unresponsive,
    /// One has served for long enough, or takes too much memory.
    Recycled,
    /// It was asked for this one.
    Replaced,
    /// There are to be more.
    Added,
}

impl Start {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Initial,
        Self::Died,
        Self::Stopped,
        Self::Reload,
        Self::Unresponsive,
        Self::Recycled,
        Self::Replaced,
        Self::Added,
    ];

    /// In one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Died => "died",
            Self::Stopped => "stopped",
            Self::Reload => "reload",
            Self::Unresponsive => "unresponsive",
            Self::Recycled => "recycled",
            Self::Replaced => "replaced",
            Self::Added => "added",
        }
    }
}

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
    /// The gauges of the last of them, as it left them.
    pub last: Option<Figures>,
    /// How many were started, as [`Start::ALL`] has the reasons.
    pub starts: [u64; Start::ALL.len()],
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

    /// All of them that serve are about to end.
    pub fn last_call(&self) {
        (0..PLACES).for_each(|place| self.at(place).last_call());
    }

    /// The worker at this place is gone at this time, in milliseconds since 1970: what it counted is kept, as is how it stood,
    /// and its place is blank.
    pub fn give_up(&self, place: usize, now: u64) {
        if let Kind::Shared { words, changing } = &self.0 {
            let _changing = lock(changing);
            let left = self.at(place);
            left.settle(now);
            let figures = left.read();
            gone(words).take_in(&figures);
            if figures.gauge(Gauge::Process) > 0 {
                let kept = words[LAST..].iter().zip(figures.gauges());
                kept.for_each(|(word, value)| word.store(*value, Ordering::Relaxed));
                figures.longest.write(last_longest(words));
            }
            left.clear();
        }
    }

    /// A worker was started.
    pub fn count_start(&self, start: Start) {
        self.count(STARTS + start as usize);
    }

    /// A worker has ended.
    pub fn count_end(&self, end: End) {
        self.count(ENDS + end as usize);
    }

    /// What all of them say now.
    #[must_use]
    pub fn read(&self) -> Snapshot {
        match &self.0 {
            Kind::Alone(sheet) => Snapshot {
                workers: vec![(0, sheet.read())],
                starts: [1, 0, 0, 0, 0, 0, 0, 0],
                ..Snapshot::default()
            },
            Kind::Shared { words, changing } => {
                let _changing = lock(changing);
                let front = |at: usize| words.get(at).map_or(0, |word| word.load(Ordering::Relaxed));
                let last: Vec<_> = (LAST..LAST + Gauge::ROOM).map(front).collect();
                let is_there = |place: &usize| self.condition(*place) != Condition::Absent;
                Snapshot {
                    workers: (0..PLACES)
                        .filter(is_there)
                        .map(|place| (place, self.at(place).read()))
                        .collect(),
                    gone: gone(words).read(),
                    last: Some(Figures::of_gauges(last, LongestStep::read(last_longest(words))))
                        .filter(|last| last.gauge(Gauge::Process) > 0),
                    starts: Start::ALL.map(|start| front(STARTS + start as usize)),
                    ends: End::ALL.map(|end| front(ENDS + end as usize)),
                }
            }
        }
    }

    fn condition(&self, place: usize) -> Condition {
        self.at(place).gauge(Gauge::Condition).into()
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

fn last_longest(words: &'static [AtomicU64]) -> Slot<'static> {
    Slot(words.get(LAST_LONGEST..LAST_LONGEST + record::WORDS).unwrap_or_default())
}

fn lock(changing: &Mutex<()>) -> MutexGuard<'_, ()> {
    changing.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cause::Cause;
    use crate::cells::Counter;
    use crate::gates::{GateGauge, GateOutcome};
    use crate::places::BlockingPlace;
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
        sheets.give_up(1, 0);
        serve(&sheets.at(1));
        sheets.give_up(1, 0);
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
    fn each_slow_step_of_a_worker_that_is_gone_has_a_cause() {
        let sheets = sheets();
        let sheet = sheets.at(0);
        sheet.add(Counter::SlowSteps, 2);
        sheet.blame(Cause::Python);
        sheet.set(Gauge::BlockedBy, Cause::CallWithGil.code());
        sheets.give_up(0, 0);
        sheets.at(1).add(Counter::SlowSteps, 1);
        sheets.give_up(1, 0);
        let total = sheets.read().total();
        assert_eq!(total.counter(Counter::SlowSteps), 3);
        let causes = [Cause::Python, Cause::CallWithGil, Cause::Unknown];
        assert_eq!(causes.map(|cause| total.blamed(cause)), [1, 1, 1]);
    }

    fn held_at(place: &str, longest: u64) -> BlockingPlace {
        BlockingPlace {
            place: place.to_owned(),
            request: "GET /".to_owned(),
            cause: Cause::Python,
            count: 1,
            longest: Duration::from_micros(longest),
            last: 1,
        }
    }

    #[test]
    fn a_step_that_runs_is_as_long_as_it_has_been_also_when_its_worker_ends_in_it() {
        let sheets = sheets();
        let sheet = sheets.at(0);
        sheet.set(Gauge::Condition, Condition::Serving as u64);
        sheet.note_place_of(1, &held_at("before", 400));
        for (gauge, value) in [(Gauge::LongestStep, 400), (Gauge::BlockedStep, 2), (Gauge::BlockedFor, 5000)]
        {
            sheet.set(gauge, value);
        }
        let longest = |place: &str| {
            let total = sheets.read().total();
            let place = total.places.iter().find(|each| each.place.contains(place));
            (total.gauge(Gauge::LongestStep), place.map(|each| each.longest.as_micros()))
        };
        assert_eq!(longest("before"), (5000, Some(400)), "it is another step's");
        assert_eq!(sheets.read().total().longest_request(), None, "it is not known yet");
        sheet.note_place_of(2, &held_at("now", 300));
        assert_eq!(longest("now"), (5000, Some(5000)));
        assert_eq!(sheets.read().total().longest_request(), Some("GET /"));
        sheets.give_up(0, 9);
        assert_eq!((longest("now"), longest("before")), ((5000, Some(5000)), (5000, Some(400))));
        sheets.at(0).set(Gauge::BlockedFor, 7000);
        sheets.at(0).set(Gauge::BlockedStep, 1);
        sheets.give_up(0, 9);
        assert_eq!(longest("ended before it could be looked at"), (7000, Some(7000)));
        assert_eq!(sheets.read().total().longest_request(), None);
    }

    #[test]
    fn the_request_of_the_longest_step_outlives_its_worker_and_is_no_shorter_ones() {
        let sheets = sheets();
        let of =
            |request: &str, longest| BlockingPlace { request: request.to_owned(), ..held_at("at", longest) };
        for (worker, process, longest) in [(0, 11, 900_000), (1, 12, 500_000)] {
            let sheet = sheets.at(worker);
            sheet.set(Gauge::Condition, Condition::Serving as u64);
            sheet.set(Gauge::Process, process);
            sheet.set(Gauge::LongestStep, longest);
            sheet.note_place(&of(&format!("GET /{process}"), longest));
            sheet.note_place(&of("GET /shorter", 300_000));
            let figures = sheets.read().workers.last().map(|(_, figures)| figures.clone());
            assert_eq!(figures.expect("it serves").longest_request(), Some(&*format!("GET /{process}")));
        }
        (0..2).for_each(|worker| sheets.give_up(worker, 0));
        let seen = sheets.read();
        assert_eq!(seen.total().longest_request(), Some("GET /11"));
        assert_eq!(seen.last.expect("two are gone").longest_request(), Some("GET /12"));
        let longer = sheets.at(0);
        longer.set(Gauge::Condition, Condition::Serving as u64);
        longer.set(Gauge::LongestStep, 950_000);
        assert_eq!(sheets.read().total().longest_request(), None, "nobody told of that");
    }

    #[test]
    fn a_sheet_is_as_long_as_older_workers_take_it_to_be() {
        assert_eq!((sheet::WORDS, FRONT), (10_240, 512));
    }

    #[test]
    fn how_the_last_one_stood_that_is_gone_is_kept_and_of_all_the_highest() {
        let sheets = sheets();
        assert!(sheets.read().last.is_none());
        for (process, tasks, longest) in [(11, 3, 900), (12, 5, 200)] {
            sheets.at(0).set(Gauge::Process, process);
            sheets.at(0).set(Gauge::PendingTasks, tasks);
            sheets.at(0).set(Gauge::LongestStep, longest);
            sheets.give_up(0, 0);
        }
        sheets.give_up(1, 0);
        serve(&sheets.at(2));
        sheets.at(2).set(Gauge::LongestStep, 300);
        let seen = sheets.read();
        let total = seen.total();
        assert_eq!((total.gauge(Gauge::LongestStep), total.gauge(Gauge::PendingTasks)), (900, 0));
        let last = seen.last.expect("two are gone");
        let last = [Gauge::Process, Gauge::PendingTasks, Gauge::LongestStep].map(|gauge| last.gauge(gauge));
        assert_eq!(last, [12, 5, 200]);
    }

    #[test]
    fn what_a_worker_was_at_when_it_died_is_known() {
        let sheets = sheets();
        let sheet = sheets.at(0);
        (0..3).for_each(|_| sheet.enter(Series::new("GET", 499, Protocol::Http11)));
        sheet.add(Counter::SlowSteps, 1);
        sheet.blame(Cause::Python);
        let place = |name: &str, last| crate::BlockingPlace {
            place: name.to_owned(),
            request: String::new(),
            cause: Cause::Python,
            count: 1,
            longest: Duration::from_millis(300),
            last,
        };
        sheet.note_place(&place("load()", 1));
        sheet.note_place_of(1, &place("save()", 2));
        sheet.set(Gauge::BlockedStep, 1);
        sheet.set(Gauge::BlockedFor, 9_000_000);
        let longest = |figures: &Figures| {
            let of = |name| figures.places.iter().find(|each| each.place == name).expect("it is kept");
            [of("load()"), of("save()")].map(|each| (each.count, each.longest.as_millis()))
        };
        assert_eq!(longest(&sheet.read()), [(1, 300), (1, 9000)]);
        sheets.give_up(0, 0);
        let total = sheets.read().total();
        assert_eq!((longest(&total), total.counter(Counter::RequestsLost)), ([(1, 300), (1, 9000)], 3));
    }

    #[test]
    fn what_gates_counted_is_kept_when_their_worker_is_gone_and_how_they_stood_is_not() {
        let sheets = sheets();
        for place in [0, 1] {
            sheets.at(place).set(Gauge::Condition, Condition::Serving as u64);
            let pool = sheets.at(place).gate("pool");
            pool.up(GateGauge::Slots, 5);
            pool.count(GateOutcome::Late);
            pool.wait(Duration::from_millis(3));
        }
        sheets.give_up(0, 0);
        let pool = &sheets.read().total().gates["pool"];
        assert_eq!(
            (pool.gauge(GateGauge::Slots), pool.count(GateOutcome::Late), pool.waits.count()),
            (5, 2, 2)
        );
        assert!(sheets.at(0).read().gates.is_empty());
    }

    #[test]
    fn starts_and_ends_are_counted_by_reason() {
        let sheets = sheets();
        sheets.count_start(Start::Initial);
        sheets.count_start(Start::Died);
        sheets.count_end(End::Killed);
        let seen = sheets.read();
        assert_eq!((seen.starts, seen.ends), ([1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0]));
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
        sheets.give_up(0, 0);
        assert_eq!(sheets.read().total().counter(Counter::BytesIn), 10);
        assert_eq!(sheet.gauge(Gauge::Running), 3);
    }
}
