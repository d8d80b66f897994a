//! The gates that an application has named: how each stands, who came in and who did not, and how long they waited.
//!
//! There is room for so many names; what finds none is counted in the first place, as gates of which no more is known. Gates
//! of one name are counted together.
//!
//! Not who counts: the bridge does, and claims a name from one thread at a time.
//!
//! Invariant: a place belongs to the name that came first, for as long as its sheet is somebody's.

use std::collections::BTreeMap;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

use crate::histogram::{self, Distribution};
use crate::record::{cut, packed, unpacked};

/// Names that are told apart. A gate stands before something scarce, of which an application has a few.
#[cfg(not(loom))]
const NAMED: usize = 16;
// So few that one finds no room.
#[cfg(loom)]
const NAMED: usize = 1;
/// The name of all others, which have the first place.
const OTHERS: &str = "_OTHER";
/// Bytes of a name; what is longer is cut.
#[cfg(not(loom))]
const LONGEST: usize = 64;
// Two words, which may be seen apart.
#[cfg(loom)]
const LONGEST: usize = 16;

/// A place: the length of its name, which is zero while it is nobody's, the name, the numbers, the histogram of the waits.
const NAME: usize = 1;
const GAUGES: usize = NAME + LONGEST / 8;
const OUTCOMES: usize = GAUGES + GateGauge::ALL.len();
const WAITS: usize = OUTCOMES + GateOutcome::ALL.len();
pub(crate) const EACH: usize = WAITS + histogram::WORDS;
pub(crate) const WORDS: usize = (1 + NAMED) * EACH;

/// What goes up and down with a gate, and is gone with its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum GateGauge {
    /// So many may be inside.
    Slots,
    /// So many are.
    Running,
    /// So many wait, or have their slot and have not come for it yet.
    Waiting,
}

impl GateGauge {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Slots, Self::Running, Self::Waiting];
}

/// What became of who wanted a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum GateOutcome {
    /// It has come in.
    Admitted,
    /// As many waited as may.
    Full,
    /// It has waited for as long as it may.
    Late,
    /// It was cancelled while it waited.
    Left,
}

impl GateOutcome {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Admitted, Self::Full, Self::Late, Self::Left];

    /// In one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Full => "full",
            Self::Late => "late",
            Self::Left => "left",
        }
    }
}

/// What is known of the gates of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateFigures {
    gauges: [u64; GateGauge::ALL.len()],
    outcomes: [u64; GateOutcome::ALL.len()],
    /// Of those who came in, and of those who have waited and did not.
    pub waits: Distribution,
}

impl GateFigures {
    /// What a gauge says.
    #[must_use]
    pub fn gauge(&self, gauge: GateGauge) -> u64 {
        self.gauges[gauge as usize]
    }

    /// How many it became of.
    #[must_use]
    pub fn count(&self, outcome: GateOutcome) -> u64 {
        self.outcomes[outcome as usize]
    }

    /// Those of another worker besides.
    pub(crate) fn add(&mut self, other: &Self) {
        let rows = [(&mut self.gauges[..], &other.gauges[..]), (&mut self.outcomes, &other.outcomes)];
        for (own, other) in rows {
            own.iter_mut().zip(other).for_each(|(own, other)| *own = own.wrapping_add(*other));
        }
        self.waits.add(&other.waits);
    }
}

/// The words of one name.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a>(pub(crate) &'a [AtomicU64]);

impl Place<'_> {
    pub(crate) fn up(self, gauge: GateGauge, by: u64) {
        self.increase(GAUGES + gauge as usize, by);
    }

    pub(crate) fn down(self, gauge: GateGauge, by: u64) {
        self.increase(GAUGES + gauge as usize, by.wrapping_neg());
    }

    pub(crate) fn count(self, outcome: GateOutcome, by: u64) {
        self.increase(OUTCOMES + outcome as usize, by);
    }

    pub(crate) fn wait(self, time: Duration) {
        histogram::record(self.waits(), time);
    }

    /// What those have counted that are gone; how they stood is gone with them.
    pub(crate) fn take_in(self, seen: &GateFigures) {
        GateOutcome::ALL.into_iter().for_each(|outcome| self.count(outcome, seen.count(outcome)));
        histogram::add(self.waits(), &seen.waits);
    }

    fn read(self) -> GateFigures {
        let load = |at: usize| self.0.get(at).map_or(0, |word| word.load(Ordering::Relaxed));
        GateFigures {
            gauges: std::array::from_fn(|at| load(GAUGES + at)),
            outcomes: std::array::from_fn(|at| load(OUTCOMES + at)),
            waits: Distribution::read(self.waits()),
        }
    }

    fn waits(&self) -> &[AtomicU64] {
        self.0.get(WAITS..EACH).unwrap_or_default()
    }

    fn increase(self, at: usize, by: u64) {
        if let Some(word) = self.0.get(at) {
            // An addition that goes around is a subtraction.
            word.fetch_add(by, Ordering::Relaxed);
        }
    }

    fn name(&self) -> Option<String> {
        let length = self.0.first()?.load(Ordering::Acquire) as usize;
        let words: Vec<_> =
            self.0.get(NAME..GAUGES)?.iter().map(|word| word.load(Ordering::Relaxed)).collect();
        (length > 0).then(|| unpacked(&words, length))
    }

    /// Whether it is this one's from now on, if it was not before.
    fn claim(&self, name: &str) -> bool {
        let Some(length) = self.0.first() else { return false };
        if let Some(known) = self.name() {
            return known == name;
        }
        let words = self.0.get(NAME..GAUGES).unwrap_or_default().iter();
        words.zip(packed(name, LONGEST)).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        // Last: who sees the length sees the name.
        length.store(name.len() as u64, Ordering::Release);
        true
    }
}

/// Where the place of a name begins; that of all others when there is no room for it.
pub(crate) fn find(words: &[AtomicU64], name: &str) -> usize {
    let name = cut(name, LONGEST);
    let place = |at: usize| Place(words.get(at * EACH..(at + 1) * EACH).unwrap_or_default());
    let found = (1..=NAMED).find(|at| name != OTHERS && place(*at).claim(name));
    found.unwrap_or_else(|| {
        place(0).claim(OTHERS);
        0
    }) * EACH
}

/// Every name that has a place.
pub(crate) fn read(words: &[AtomicU64]) -> BTreeMap<String, GateFigures> {
    let places = words.chunks_exact(EACH).map(Place);
    places.filter_map(|place| Some((place.name()?, place.read()))).collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn words() -> Vec<AtomicU64> {
        (0..WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    fn place<'a>(words: &'a [AtomicU64], name: &str) -> Place<'a> {
        let start = find(words, name);
        Place(&words[start..start + EACH])
    }

    #[test]
    fn each_name_has_its_figures_and_what_it_had_is_not_kept_when_it_is_gone() {
        let words = words();
        place(&words, "pool").up(GateGauge::Slots, 5);
        place(&words, "pool").up(GateGauge::Waiting, 3);
        place(&words, "pool").down(GateGauge::Waiting, 2);
        place(&words, "pool").count(GateOutcome::Late, 1);
        place(&words, "pool").wait(Duration::from_millis(3));
        place(&words, "mail").count(GateOutcome::Full, 1);
        let read = read(&words);
        assert_eq!(read.keys().collect::<Vec<_>>(), ["mail", "pool"]);
        let pool = &read["pool"];
        assert_eq!(GateGauge::ALL.map(|gauge| pool.gauge(gauge)), [5, 0, 1]);
        assert_eq!(GateOutcome::ALL.map(|outcome| pool.count(outcome)), [0, 0, 1, 0]);
        let gone = self::words();
        place(&gone, "pool").take_in(pool);
        let kept = &super::read(&gone)["pool"];
        assert_eq!(
            (kept.gauge(GateGauge::Slots), kept.count(GateOutcome::Late), kept.waits.sum),
            (0, 1, 3000)
        );
    }

    #[test]
    fn names_that_find_no_room_are_counted_together_and_none_is_lost() {
        let words = words();
        for at in 0..NAMED + 5 {
            place(&words, &format!("gate {at}")).count(GateOutcome::Admitted, 1);
        }
        let read = read(&words);
        assert_eq!((read.len(), read[OTHERS].count(GateOutcome::Admitted)), (NAMED + 1, 5));
        assert_eq!(read["gate 0"].count(GateOutcome::Admitted), 1);
    }

    #[test]
    fn a_long_name_is_cut_at_the_end_of_a_character_and_found_again() {
        let words = words();
        let long = format!("x{}", "ä".repeat(100));
        assert_eq!(find(&words, &long), find(&words, &long));
        let read = read(&words);
        let name = read.keys().next().expect("it has a place");
        assert!(name.len() == LONGEST - 1 && long.starts_with(name));
    }
}
