//! What one thread has seen so far.
//!
//! Pure but for the instants it is given: no socket, no clock.
//!
//! Invariant: counts requests that were begun after the warm-up, each once.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

use crate::channel::Answer;
use crate::fault::{Fault, Kind};
use crate::timeline::{LEAST, MOST, Timeline};

/// Three digits: a percentile is told to a thousandth of itself.
const DIGITS: u8 = 3;

pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(LEAST, MOST, DIGITS).expect("the bounds are right")
}

/// The time that is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) begin: Instant,
    /// When it is known in advance.
    pub(crate) end: Option<Instant>,
}

impl Window {
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.end.is_some_and(|end| now >= end)
    }
}

/// One scenario's counts.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) latency: Histogram<u64>,
    pub(crate) faults: [u64; Kind::ALL.len()],
    pub(crate) statuses: BTreeMap<u16, u64>,
}

/// One thread's counts.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) window: Window,
    pub(crate) tallies: Vec<Tally>,
    pub(crate) timeline: Timeline,
    pub(crate) connects: Histogram<u64>,
    /// How late the pacer was.
    pub(crate) lag: Histogram<u64>,
    /// What was said of the first error of each kind.
    pub(crate) said: [Option<String>; Kind::ALL.len()],
    pub(crate) bytes: u64,
    /// Answers that came while it was measured, whenever they were asked for.
    pub(crate) within: u64,
    pub(crate) in_flight: u64,
    /// When the last measured request ended.
    pub(crate) last: Option<Instant>,
}

impl Record {
    pub(crate) fn new(scenarios: usize, window: Window) -> Self {
        let tally = || Tally { latency: histogram(), faults: Default::default(), statuses: BTreeMap::new() };
        Self {
            window,
            tallies: (0..scenarios).map(|_| tally()).collect(),
            timeline: Timeline::new(),
            connects: histogram(),
            lag: histogram(),
            said: Default::default(),
            bytes: 0,
            within: 0,
            in_flight: 0,
            last: None,
        }
    }

    pub(crate) fn connected(&mut self, took: Duration) {
        self.connects.saturating_record(nanoseconds(took));
    }

    pub(crate) fn paced(&mut self, late: Duration) {
        self.lag.saturating_record(nanoseconds(late));
    }

    /// A request that was due at `due` has been begun.
    pub(crate) fn began(&mut self, due: Instant) {
        if due >= self.window.begin {
            self.in_flight += 1;
        }
    }

    /// It has ended.
    pub(crate) fn ended(
        &mut self,
        scenario: usize,
        due: Instant,
        now: Instant,
        outcome: Result<Answer, Fault>,
    ) {
        let outcome = judged(outcome);
        if outcome.result.is_ok() && now >= self.window.begin && !self.window.is_over(now) {
            self.within += 1;
        }
        if due < self.window.begin {
            return;
        }
        self.in_flight -= 1;
        self.last = Some(now);
        self.bytes += outcome.bytes;
        let at = self.row_time(now);
        let tally = &mut self.tallies[scenario];
        if let Some(status) = outcome.status {
            *tally.statuses.entry(status).or_default() += 1;
        }
        match outcome.result {
            Ok(()) => {
                let latency = nanoseconds(now - due);
                tally.latency.saturating_record(latency);
                self.timeline.answer(at, latency, outcome.bytes);
            }
            Err(Fault { kind, text }) => {
                tally.faults[kind as usize] += 1;
                self.said[kind as usize].get_or_insert(text);
                self.timeline.error(at);
            }
        }
    }

    /// What ends after the measured time belongs to its last row.
    fn row_time(&self, now: Instant) -> Duration {
        let at = now - self.window.begin;
        match self.window.end {
            Some(end) => at.min((end - self.window.begin).saturating_sub(Duration::from_nanos(1))),
            None => at,
        }
    }
}

struct Judged {
    status: Option<u16>,
    bytes: u64,
    result: Result<(), Fault>,
}

/// A whole answer may be an error too.
fn judged(outcome: Result<Answer, Fault>) -> Judged {
    let answer = match outcome {
        Ok(answer) => answer,
        Err(fault) => return Judged { status: None, bytes: 0, result: Err(fault) },
    };
    let status = answer.status.map(|status| status.as_u16());
    let result = match answer.wrong {
        // A status that is not the one wanted is told as what it is.
        None => Ok(()),
        Some(text) => Err(match status {
            Some(status) if status >= 500 => Fault::new(Kind::Status5xx, format!("status {status}")),
            _ => Fault::new(Kind::Assertion, text),
        }),
    };
    Judged { status, bytes: answer.bytes, result }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
