//! What a run came to: the records of all threads, together.
//!
//! Not words: Python shows it.
//!
//! Invariant: every time is in seconds, and `requests` is answers and errors together.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

use crate::fault::Kind;
use crate::record::{Record, histogram};
use crate::timeline::{Row, Timeline, seconds};

/// Steps of the curve to each halving of the distance to 100 %.
const CURVE_STEPS: u32 = 20;

/// What is told of every distribution, by its name.
pub const QUANTILES: [(&str, f64); 7] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p999", 0.999),
    ("p9999", 0.9999),
];

/// How long something took.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub stdev: f64,
    /// The shortest.
    pub min: f64,
    /// The longest.
    pub max: f64,
    /// At the quantiles of `QUANTILES`.
    pub quantiles: [f64; QUANTILES.len()],
}

/// What one scenario came to.
#[derive(Debug, Clone)]
pub struct Portion {
    /// The scenario's.
    pub name: String,
    /// Answers and errors.
    pub requests: u64,
    /// Errors.
    pub errors: u64,
    /// By the kind's name; kinds that did not happen are not there.
    pub errors_by_kind: BTreeMap<&'static str, u64>,
    /// How many whole answers had which status.
    pub statuses: BTreeMap<u16, u64>,
    /// Of the answers that are no errors.
    pub latency: Latency,
}

/// What all came to.
#[derive(Debug, Clone)]
pub struct Report {
    /// How long it was measured.
    pub seconds: f64,
    /// Answers that are no errors and came in that time, a second.
    pub rps: f64,
    /// All scenarios together.
    pub whole: Portion,
    /// Each, in the plan's order.
    pub scenarios: Vec<Portion>,
    /// (quantile, latency), from the fastest to the slowest.
    pub curve: Vec<(f64, f64)>,
    /// What was said of the first error of each kind.
    pub first_errors: BTreeMap<&'static str, String>,
    /// Connecting.
    pub connect: Latency,
    /// How late requests of a rate were made due: our own fault.
    pub lag: Latency,
    /// Bytes of bodies that came.
    pub bytes: u64,
    /// Begun, and given up when the run was stopped.
    pub unfinished: u64,
    /// Due by the rate, and never begun, since no connection was free.
    pub unsent: u64,
    /// Due by the rate in the warm-up, and not begun when it was over.
    pub dropped: u64,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// Time of a core that our threads used, warm-up included.
    pub cpu: f64,
    /// By the second.
    pub timeline: Vec<Row>,
}

/// What is known of a run besides the records.
#[derive(Debug)]
pub(crate) struct Circumstances {
    pub(crate) names: Vec<String>,
    pub(crate) unsent: u64,
    pub(crate) dropped: u64,
    /// Whether the number of requests ended it.
    pub(crate) is_spent: bool,
    pub(crate) cpu: Duration,
    /// When it was stopped, if it was.
    pub(crate) stopped: Option<Instant>,
}

impl Report {
    pub(crate) fn new(records: Vec<Record>, circumstances: Circumstances) -> Self {
        let length = length(&records, &circumstances);
        let portions: Vec<(Portion, Histogram<u64>)> = circumstances
            .names
            .iter()
            .enumerate()
            .map(|(index, name)| portion(name, &records, index..index + 1))
            .collect();
        let (whole, latency) = portion("all", &records, 0..circumstances.names.len());
        let within: u64 = records.iter().map(|record| record.within).sum();
        Self {
            seconds: length.as_secs_f64(),
            rps: if length.is_zero() { 0.0 } else { within as f64 / length.as_secs_f64() },
            whole,
            scenarios: portions.into_iter().map(|(portion, _)| portion).collect(),
            curve: curve(&latency),
            first_errors: first_errors(&records),
            connect: Latency::of(&sum(records.iter().map(|record| &record.connects))),
            lag: Latency::of(&sum(records.iter().map(|record| &record.lag))),
            bytes: records.iter().map(|record| record.bytes).sum(),
            unfinished: records.iter().map(|record| record.in_flight).sum(),
            unsent: circumstances.unsent,
            dropped: circumstances.dropped,
            interrupted: circumstances.stopped.is_some(),
            cpu: circumstances.cpu.as_secs_f64(),
            timeline: Timeline::join(records.into_iter().map(|record| record.timeline).collect(), length),
        }
    }
}

impl Latency {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        Self {
            count: histogram.len(),
            mean: histogram.mean() / 1e9,
            stdev: if histogram.is_empty() { 0.0 } else { histogram.stdev() / 1e9 },
            min: seconds(histogram.min()),
            max: seconds(histogram.max()),
            quantiles: QUANTILES.map(|(_, quantile)| seconds(histogram.value_at_quantile(quantile))),
        }
    }
}

/// How long it was measured: to the planned end, to the stop, or to the last answer to so many requests.
fn length(records: &[Record], circumstances: &Circumstances) -> Duration {
    let Some(window) = records.first().map(|record| record.window) else { return Duration::ZERO };
    let last = records.iter().filter_map(|record| record.last).max();
    let ended = match circumstances.stopped {
        Some(stopped) => Some(stopped),
        None if circumstances.is_spent || window.end.is_none() => last,
        None => window.end,
    };
    let end = [window.end, ended].into_iter().flatten().min();
    end.map_or(Duration::ZERO, |end| end.saturating_duration_since(window.begin))
}

fn sum<'a>(histograms: impl Iterator<Item = &'a Histogram<u64>>) -> Histogram<u64> {
    let mut whole = histogram();
    for each in histograms {
        whole.add(each).expect("all have the same bounds");
    }
    whole
}

fn portion(name: &str, records: &[Record], scenarios: std::ops::Range<usize>) -> (Portion, Histogram<u64>) {
    let tallies = || records.iter().flat_map(|record| &record.tallies[scenarios.clone()]);
    let latency = sum(tallies().map(|tally| &tally.latency));
    let mut faults = [0; Kind::ALL.len()];
    let mut statuses = BTreeMap::new();
    for tally in tallies() {
        for (total, count) in faults.iter_mut().zip(tally.faults) {
            *total += count;
        }
        for (&status, &count) in &tally.statuses {
            *statuses.entry(status).or_default() += count;
        }
    }
    let errors: u64 = faults.iter().sum();
    let named = Kind::ALL.map(Kind::name).into_iter().zip(faults);
    let portion = Portion {
        name: name.to_owned(),
        requests: latency.len() + errors,
        errors,
        errors_by_kind: named.filter(|&(_, count)| count > 0).collect(),
        statuses,
        latency: Latency::of(&latency),
    };
    (portion, latency)
}

fn curve(latency: &Histogram<u64>) -> Vec<(f64, f64)> {
    if latency.is_empty() {
        return Vec::new();
    }
    latency
        .iter_quantiles(CURVE_STEPS)
        .map(|step| (step.quantile_iterated_to(), seconds(step.value_iterated_to())))
        .collect()
}

fn first_errors(records: &[Record]) -> BTreeMap<&'static str, String> {
    let said = |kind: Kind| records.iter().find_map(|record| record.said[kind as usize].clone());
    Kind::ALL.into_iter().filter_map(|kind| Some((kind.name(), said(kind)?))).collect()
}
