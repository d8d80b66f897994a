//! The last quarter of an hour: what was counted between two looks, every five seconds.
//!
//! Kept here and not by the page, so that whoever opens it sees what was before.
//!
//! Invariant: no more is kept than [`KEPT`] looks.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bridgehead_metrics::{Distribution, Figures, Gauge, Series, Snapshot, Timing};
use bridgehead_net::Tally;
use serde_json::{Value, json};

/// Between two looks.
pub(crate) const LOOK: Duration = Duration::from_secs(5);
/// A quarter of an hour.
const KEPT: usize = 180;

/// What was seen, look by look.
#[derive(Debug, Default)]
pub(crate) struct History {
    before: Option<(Instant, Figures)>,
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
    /// Takes in what is seen at that moment. `ready` workers serve.
    pub(crate) fn look(&mut self, at: Instant, seen: &Snapshot, ready: u64) {
        let now = seen.total();
        if let Some((earlier, before)) = self.before.replace((at, now.clone())) {
            if self.looks.len() == KEPT {
                self.looks.pop_front();
            }
            self.looks.push_back(Look::between(&before, &now, at.duration_since(earlier), ready));
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
    fn between(before: &Figures, now: &Figures, time: Duration, workers: u64) -> Self {
        // A busy machine looks late.
        let seconds = time.max(Duration::from_millis(1)).as_secs_f64();
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let all = durations(now, |_| true).since(&durations(before, |_| true));
        let admitted = durations(now, is_admitted).since(&durations(before, is_admitted));
        let timing = |timing: Timing| {
            now.timing(timing).since(&before.timing(timing)).quantile(0.99).map(milliseconds)
        };
        Self {
            at: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            requests: all.count() as f64 / seconds,
            errors: rate(
                durations(now, Series::is_server_error).count(),
                durations(before, Series::is_server_error).count(),
            ),
            refusals: rate(refusals(now), refusals(before)),
            latency: [0.5, 0.95, 0.99].map(|share| admitted.quantile(share).map(milliseconds)),
            queue: timing(Timing::Queue),
            lag: timing(Timing::LoopLag),
            active: now.gauge(Gauge::Active),
            waiting: now.gauge(Gauge::Waiting) + now.gauge(Gauge::Inbox),
            connections: now.gauge(Gauge::Connections),
            workers,
        }
    }
}

/// How long such requests took.
pub(crate) fn durations(figures: &Figures, of: impl Fn(Series) -> bool) -> Distribution {
    let mut all = Distribution::default();
    let chosen = figures.requests.iter().filter(|(series, _)| of(**series));
    chosen.for_each(|(_, seen)| all.add(seen));
    all
}

/// Who is turned away for want of room is so at once: with those the latency would get better the fewer are served. What an
/// application itself answers by 503 took its time.
pub(crate) fn is_admitted(series: Series) -> bool {
    !series.refusal().is_some_and(Tally::is_overload)
}

fn refusals(figures: &Figures) -> u64 {
    Tally::reasons().map(|(number, _)| figures.refusals(number)).sum()
}

pub(crate) fn milliseconds(micros: f64) -> f64 {
    micros / 1e3
}

#[cfg(test)]
mod tests {
    use bridgehead_metrics::{Protocol, Sheet, Sheets};

    use super::*;

    #[test]
    fn a_look_has_what_came_since_the_one_before() {
        let sheet = Sheet::own();
        let sheets = Sheets::alone(sheet.clone());
        let mut history = History::default();
        let series = |status| Series::new("GET", status, Protocol::Http11);
        let ask = |status| sheet.request(series(status), Duration::from_millis(3));
        let (full, _) = Tally::reasons().find(|(_, name)| *name == "queue_full").expect("it is one");
        let shed = || sheet.request(series(503).refused(full), Duration::from_micros(1));
        ask(200);
        let start = Instant::now();
        history.look(start, &sheets.read(), 1);
        (0..10).for_each(|_| ask(200));
        (0..5).for_each(|_| shed());
        history.look(start + LOOK, &sheets.read(), 1);
        history.look(start + 2 * LOOK, &sheets.read(), 1);
        let written = history.written();
        assert_eq!(written["requests"], json!([3.0, 0.0]));
        assert_eq!(written["errors"], json!([1.0, 0.0]));
        assert_eq!(written["p50"], json!([3.0, null]));
        ask(503);
        history.look(start + 4 * LOOK, &sheets.read(), 1);
        assert_eq!(history.written()["p50"][2], json!(3.0), "the application has said so itself");
        assert_eq!(history.written()["requests"][2], json!(0.1), "one in ten seconds: the look was late");
    }

    #[test]
    fn no_more_is_kept_than_a_quarter_of_an_hour() {
        let sheets = Sheets::alone(Sheet::own());
        let mut history = History::default();
        (0..KEPT + 5).for_each(|_| history.look(Instant::now(), &sheets.read(), 0));
        assert_eq!(history.looks.len(), KEPT);
    }
}
