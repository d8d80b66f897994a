//! The longest step that was told of, and for which request it was.
//!
//! Not where it was (`places`, which keep the request of the last time), and not one that was too short to be told of, which
//! the gauge alone has.
//!
//! Invariant: a shorter one never takes its place.

use std::time::Duration;

use crate::cells::Gauge;
use crate::figures::Figures;
use crate::record::{self, Slot};

/// Steps of the two measures differ by less than this.
const SAME: Duration = Duration::from_millis(1);

/// A step of which it is known for whom it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LongestStep {
    pub(crate) time: Duration,
    /// Method and path; empty if it was for none.
    pub(crate) request: String,
}

impl LongestStep {
    /// Whichever is longer.
    pub(crate) fn join(&mut self, other: &Self) {
        if other.time > self.time {
            self.clone_from(other);
        }
    }

    /// None if there was none.
    pub(crate) fn read(slot: Slot<'_>) -> Self {
        slot.read().map_or_else(Self::default, |record| {
            let [_, request] = record.texts;
            Self { time: Duration::from_micros(record.numbers[0]), request }
        })
    }

    /// Whatever was there before.
    pub(crate) fn write(&self, slot: Slot<'_>) {
        let mut numbers = [0; record::NUMBERS];
        numbers[0] = u64::try_from(self.time.as_micros()).unwrap_or(u64::MAX);
        slot.write(numbers, ["", &self.request]);
    }

    /// If that was shorter.
    pub(crate) fn keep(&self, slot: Slot<'_>) {
        if self.time > Duration::from_micros(slot.number(0)) {
            self.write(slot);
        }
    }
}

impl Figures {
    /// For which request the longest step was, if it was told of and for one.
    #[must_use]
    pub fn longest_request(&self) -> Option<&str> {
        let is_it = self.longest.time + SAME > Duration::from_micros(self.gauge(Gauge::LongestStep));
        Some(self.longest.request.as_str()).filter(|request| is_it && !request.is_empty())
    }
}
