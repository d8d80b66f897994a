//! What a sheet said at one time, and what several did together.
//!
//! Not where it was read (`sheet`).
//!
//! Invariant: of figures that are added up none is counted twice, and of those of which the highest counts that is kept.

use std::collections::{BTreeMap, BTreeSet};

use crate::cause::Cause;
use crate::cells::{Closing, Condition, Counter, Gauge, Timing};
use crate::gates::GateFigures;
use crate::histogram::Distribution;
use crate::longest::LongestStep;
use crate::places::BlockingPlace;
use crate::series::Series;
use crate::slowest::SlowRequest;

/// What a sheet says at one time.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub(crate) gauges: Vec<u64>,
    pub(crate) counters: Vec<u64>,
    pub(crate) reasons: Vec<u64>,
    pub(crate) closes: Vec<u64>,
    pub(crate) timings: Vec<Distribution>,
    pub(crate) causes: Vec<u64>,
    /// By their kinds.
    pub(crate) active: Vec<u64>,
    /// Durations of requests.
    pub requests: BTreeMap<Series, Distribution>,
    /// The slowest of the last quarter of an hour, in no order.
    pub slowest: Vec<SlowRequest>,
    /// What held the loop for too long, in no order.
    pub places: Vec<BlockingPlace>,
    pub(crate) longest: LongestStep,
    /// The application's gates, by their names.
    pub gates: BTreeMap<String, GateFigures>,
}

impl Figures {
    /// Of what is kept of one that is gone.
    pub(crate) fn of_gauges(gauges: Vec<u64>, longest: LongestStep) -> Self {
        Self { gauges, longest, ..Self::default() }
    }

    pub(crate) fn gauges(&self) -> &[u64] {
        &self.gauges
    }

    /// What a gauge says.
    #[must_use]
    pub fn gauge(&self, gauge: Gauge) -> u64 {
        self.gauges.get(gauge as usize).copied().unwrap_or_default()
    }

    /// Whether as many requests wait as may, for a permit or for the loop.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        is_crowded(|gauge| self.gauge(gauge))
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

    /// Requests that are here, for each method and scheme that was met; for GET in the clear always, so that there is a sum.
    pub fn active(&self) -> impl Iterator<Item = (Series, u64)> + '_ {
        let met: BTreeSet<_> = self.requests.keys().map(|series| series.kind()).collect();
        let counted = Series::kinds().zip(self.active.iter().copied());
        let first = Series::kinds().next();
        counted.filter(move |(series, count)| {
            *count > 0 || met.contains(&series.kind()) || Some(*series) == first
        })
    }

    /// What a timing has seen.
    #[must_use]
    pub fn timing(&self, timing: Timing) -> Distribution {
        self.timings.get(timing as usize).cloned().unwrap_or_default()
    }

    /// What another sheet says besides; gauges are added up as well, but for those of which the highest counts.
    pub fn add(&mut self, other: &Self) {
        let highest = Gauge::HIGHEST.map(|gauge| (gauge as usize, self.gauge(gauge).max(other.gauge(gauge))));
        let rows = [
            (&mut self.gauges, &other.gauges),
            (&mut self.counters, &other.counters),
            (&mut self.reasons, &other.reasons),
            (&mut self.closes, &other.closes),
            (&mut self.causes, &other.causes),
            (&mut self.active, &other.active),
        ];
        for (own, other) in rows {
            own.resize(own.len().max(other.len()), 0);
            own.iter_mut().zip(other).for_each(|(own, other)| *own = own.wrapping_add(*other));
        }
        for (at, value) in highest {
            self.gauges.get_mut(at).into_iter().for_each(|word| *word = value);
        }
        self.timings.resize(Timing::ALL.len(), Distribution::default());
        self.timings.iter_mut().zip(&other.timings).for_each(|(own, other)| own.add(other));
        for (series, seen) in &other.requests {
            self.requests.entry(*series).or_default().add(seen);
        }
        for (name, seen) in &other.gates {
            self.gates.entry(name.clone()).or_default().add(seen);
        }
        self.slowest.extend(other.slowest.iter().cloned());
        self.longest.join(&other.longest);
        for seen in &other.places {
            match self.places.iter_mut().find(|each| each.place == seen.place) {
                Some(known) => known.join(seen),
                None => self.places.push(seen.clone()),
            }
        }
    }
}

/// Where none may wait, whoever finds no permit is refused at once: that says nothing of the next.
pub(crate) fn is_crowded(gauge: impl Fn(Gauge) -> u64) -> bool {
    let queues = [(Gauge::Waiting, Gauge::QueueLimit), (Gauge::Inbox, Gauge::InboxLimit)];
    queues.into_iter().any(|(wait, may)| gauge(may) > 0 && gauge(wait) >= gauge(may))
}
