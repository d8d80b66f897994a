//! The last quarter of an hour: what was counted between two looks, every five seconds.
//!
//! Kept here and not by the page, so that whoever opens it sees what was before.
//!
//! Invariant: no more is kept than [`KEPT`] looks.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bridgehead_metrics::{Distribution, Figures, Gauge, Snapshot, Timing};
use bridgehead_net::Tally;
use serde_json::{Value, json};

/// Between two looks.
pub(crate) const LOOK: Duration = Duration::from_secs(5);
/// A quarter of an hour.
const KEPT: usize = 180;

/// What was seen, look by look.
#[derive(Debug, Default)]
pub(crate) struct History {
    before: Option<Figures>,
    looks: VecDeque<Look>,
}

#[derive(Debug)]
struct Look {
    /// Seconds since 1970.
    at: u64,
    /// For each second.
    requests: f64,
    errors: f64,
    refusals: f64,
    /// In milliseconds; `None` without any request.
    latency: [Option<f64>; 3],
    queue: Option<f64>,
    lag: Option<f64>,
    active: u64,
    waiting: u64,
    connections: u64,
    workers: u64,
}

impl History {
    /// Takes in what is seen now. `ready` workers serve.
    pub(crate) fn look(&mut self, seen: &Snapshot, ready: u64) {
        let now = seen.total();
        if let Some(before) = self.before.replace(now.clone()) {
            if self.looks.len() == KEPT {
                self.looks.pop_front();
            }
            self.looks.push_back(Look::between(&before, &now, ready));
        }
    }

    /// A row for each figure, the oldest first.
    pub(crate) fn written(&self) -> Value {
        let row = |figure: fn(&Look) -> Value| self.looks.iter().map(figure).collect::<Vec<_>>();
        json!({
            "seconds": LOOK.as_secs(),
            "at": row(|look| look.at.into()),
            "requests": row(|look| look.requests.into()),
            "errors": row(|look| look.errors.into()),
            "refusals": row(|look| look.refusals.into()),
            "p50": row(|look| look.latency[0].into()),
            "p95": row(|look| look.latency[1].into()),
            "p99": row(|look| look.latency[2].into()),
            "queue": row(|look| look.queue.into()),
            "lag": row(|look| look.lag.into()),
            "active": row(|look| look.active.into()),
            "waiting": row(|look| look.waiting.into()),
            "connections": row(|look| look.connections.into()),
            "workers": row(|look| look.workers.into()),
        })
    }
}

impl Look {
    fn between(before: &Figures, now: &Figures, workers: u64) -> Self {
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / LOOK.as_secs_f64();
        let all = durations(now, |_| true).since(&durations(before, |_| true));
        let failed = |status: u16| (500..600).contains(&status);
        let timing = |timing: Timing| {
            now.timing(timing).since(&before.timing(timing)).quantile(0.99).map(milliseconds)
        };
        Self {
            at: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            requests: all.count() as f64 / LOOK.as_secs_f64(),
            errors: rate(durations(now, failed).count(), durations(before, failed).count()),
            refusals: rate(refusals(now), refusals(before)),
            latency: [0.5, 0.95, 0.99].map(|share| all.quantile(share).map(milliseconds)),
            queue: timing(Timing::Queue),
            lag: timing(Timing::LoopLag),
            active: now.gauge(Gauge::Active),
            waiting: now.gauge(Gauge::Waiting) + now.gauge(Gauge::Inbox),
            connections: now.gauge(Gauge::Connections),
            workers,
        }
    }
}

/// How long requests took that were answered by such a status.
pub(crate) fn durations(figures: &Figures, of: impl Fn(u16) -> bool) -> Distribution {
    let mut all = Distribution::default();
    let chosen = figures.requests.iter().filter(|(series, _)| of(series.status()));
    chosen.for_each(|(_, seen)| all.add(seen));
    all
}

fn refusals(figures: &Figures) -> u64 {
    Tally::reasons().map(|(number, _)| figures.refusals(number)).sum()
}

pub(crate) fn milliseconds(micros: f64) -> f64 {
    micros / 1e3
}

#[cfg(test)]
mod tests {
    use bridgehead_metrics::{Protocol, Series, Sheet, Sheets};

    use super::*;

    #[test]
    fn a_look_has_what_came_since_the_one_before() {
        let sheet = Sheet::own();
        let sheets = Sheets::alone(sheet.clone());
        let mut history = History::default();
        let ask =
            |status| sheet.request(Series::new("GET", status, Protocol::Http11), Duration::from_millis(3));
        ask(200);
        history.look(&sheets.read(), 1);
        (0..10).for_each(|_| ask(200));
        (0..5).for_each(|_| ask(503));
        history.look(&sheets.read(), 1);
        history.look(&sheets.read(), 1);
        let written = history.written();
        assert_eq!(written["requests"], json!([3.0, 0.0]));
        assert_eq!(written["errors"], json!([1.0, 0.0]));
        assert_eq!(written["p50"], json!([3.75, null]));
    }

    #[test]
    fn no_more_is_kept_than_a_quarter_of_an_hour() {
        let sheets = Sheets::alone(Sheet::own());
        let mut history = History::default();
        (0..KEPT + 5).for_each(|_| history.look(&sheets.read(), 0));
        assert_eq!(history.looks.len(), KEPT);
    }
}
