//! The step that holds a sheet's loop now, and how long it has: what is read of it while it runs, and is left of it if its
//! worker ends in it.
//!
//! Not what is over by then (`places`), and not who notices.
//!
//! Invariant: the time of a step is added to no place but the one that was told for this step.

use std::time::Duration;

use crate::cause::Cause;
use crate::cells::Gauge;
use crate::longest::LongestStep;
use crate::places::BlockingPlace;
use crate::sheet::Sheet;

/// Bits of a record's number, below that of a step.
const BY_STEP: u32 = 8;
/// Where a step was that nobody could look at before its worker was gone.
const UNSEEN: &str = "something in which its worker ended before it could be looked at";

impl Sheet {
    /// The loop was held there, by the step of this number, which may run on: as long as it does, its place has held the loop
    /// for longer than was seen.
    pub fn note_place_of(&self, step: u64, seen: &BlockingPlace) {
        if let Some(at) = self.keep_place(seen) {
            self.set(Gauge::BlockedAt, step << BY_STEP | at as u64);
        }
    }

    /// And there.
    pub fn note_place(&self, seen: &BlockingPlace) {
        self.keep_place(seen);
    }

    fn keep_place(&self, seen: &BlockingPlace) -> Option<usize> {
        LongestStep { time: seen.longest, request: seen.request.clone() }.keep(self.longest());
        self.places().note(seen)
    }

    /// The longest step so far, in microseconds, though it may still run.
    #[must_use]
    pub fn longest_step(&self) -> u64 {
        self.gauge(Gauge::LongestStep).max(self.gauge(Gauge::BlockedFor))
    }

    /// What held the loop, and holds it.
    pub(crate) fn places_as_they_stand(&self) -> Vec<BlockingPlace> {
        let held_at = self.place_that_holds();
        let as_it_stands = |(at, place): (usize, BlockingPlace)| match held_at {
            Some(held_at) if held_at == at => {
                // It may not be counted yet: that is done when its place is told.
                BlockingPlace {
                    longest: place.longest.max(self.held_for()),
                    count: place.count.max(1),
                    ..place
                }
            }
            _ => place,
        };
        // One that has not been counted is that of the step that runs, until its own is known.
        let is_known = |(at, place): &(usize, BlockingPlace)| place.count > 0 || held_at == Some(*at);
        self.places().read().into_iter().filter(is_known).map(as_it_stands).collect()
    }

    /// The longest step that was told of, and the one that runs if that is longer: for none while its place is not known.
    pub(crate) fn longest_as_it_stands(&self) -> LongestStep {
        let mut longest = LongestStep::read(self.longest());
        if self.held().is_some() {
            let held_at = self.place_that_holds();
            let place = self.places().read().into_iter().find(|(at, _)| Some(*at) == held_at);
            let request = place.map(|(_, place)| place.request).unwrap_or_default();
            longest.join(&LongestStep { time: self.held_for(), request });
        }
        longest
    }

    /// Nothing more comes, at this time in milliseconds since 1970: a step that ran until then has a place, if only that of an
    /// end.
    pub(crate) fn note_what_ran(&self, now: u64) {
        let Some(_) = self.held() else { return };
        let held_at = self.place_that_holds();
        let place =
            self.places().read().into_iter().find(|(at, _)| Some(*at) == held_at).map(|(_, place)| place);
        if let Some(place) = place.filter(|place| place.count == 0) {
            self.note_place(&BlockingPlace { count: 1, longest: self.held_for(), last: now, ..place });
        } else if held_at.is_none() {
            self.note_place(&BlockingPlace {
                place: UNSEEN.to_owned(),
                request: String::new(),
                cause: Cause::of_code(self.gauge(Gauge::BlockedBy)),
                count: 1,
                longest: self.held_for(),
                last: now,
            });
        }
    }

    fn held_for(&self) -> Duration {
        Duration::from_micros(self.gauge(Gauge::BlockedFor))
    }

    /// The step that holds the loop for too long, if one does.
    fn held(&self) -> Option<u64> {
        Some(self.gauge(Gauge::BlockedStep)).filter(|step| *step > 0)
    }

    /// The record of where it does, if that was told.
    fn place_that_holds(&self) -> Option<usize> {
        let (step, at) = (self.held()?, self.gauge(Gauge::BlockedAt));
        (at >> BY_STEP == step).then_some((at & ((1 << BY_STEP) - 1)) as usize)
    }
}
