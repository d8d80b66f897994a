//! All that is known of a server, as JSON: for programs, and for the page.
//!
//! Not Prometheus' text, which is `exposition`'s. Times are in milliseconds.

use std::cmp::Reverse;
use std::time::{SystemTime, UNIX_EPOCH};

use bridgehead_metrics::{
    BlockingPlace, Cause, Closing, Counter, End, Figures, Gauge, SlowRequest, Snapshot, Timing,
};
use bridgehead_net::Tally;
use serde_json::{Map, Value, json};

use crate::Facts;
use crate::history::{History, durations, milliseconds};
use crate::judgement::Rules;

/// Requests and places that are shown.
const MOST: usize = 20;
/// Milliseconds after which a slow request is forgotten.
const LAST: u64 = 900_000;

/// All of it.
pub(crate) fn written(seen: &Snapshot, rules: &Rules, facts: &Facts, history: &History) -> Value {
    let unready = rules.unready(seen);
    let total = seen.total();
    json!({
        "server": {
            "version": facts.version,
            "python": facts.python,
            "target": facts.target,
            "ready": unready.is_empty(),
            "unready": unready,
            "live": rules.dead(seen).is_none(),
        },
        "total": figures(&total),
        "slowest": slowest(total.slowest),
        "blocking": blocking(total.places),
        "workers": seen.workers.iter().map(|(place, each)| worker(*place, each, rules)).collect::<Vec<_>>(),
        "worker_starts": seen.starts,
        "worker_ends": End::ALL.iter().zip(seen.ends).map(named(|end: &&End| end.name())).collect::<Map<_, _>>(),
        "history": history.written(),
    })
}

/// Those of the last quarter of an hour, the slowest first.
fn slowest(mut all: Vec<SlowRequest>) -> Vec<Value> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    all.retain(|each| now.saturating_sub(each.at) < LAST);
    all.sort_by_key(|each| Reverse(each.time));
    let written = all.into_iter().take(MOST).map(|each| {
        json!({
            "method": each.series.method(),
            "status": each.series.status(),
            "protocol": each.series.version(),
            "path": each.path,
            "route": Some(each.route).filter(|route| !route.is_empty()),
            "duration": each.time.as_secs_f64() * 1e3,
            "at": each.at,
        })
    });
    written.collect()
}

/// Since the start, what held a loop last first.
fn blocking(mut all: Vec<BlockingPlace>) -> Vec<Value> {
    all.sort_by_key(|each| Reverse(each.last));
    let written = all.into_iter().take(MOST).map(|each| {
        json!({
            "place": each.place,
            "cause": each.cause.name(),
            "by": each.cause.in_words(),
            "request": each.request,
            "count": each.count,
            "longest": each.longest.as_secs_f64() * 1e3,
            "last": each.last,
        })
    });
    written.collect()
}

fn worker(place: usize, each: &Figures, rules: &Rules) -> Value {
    let micros = |gauge| milliseconds(each.gauge(gauge) as f64);
    let mut written = figures(each);
    written["place"] = place.into();
    written["process"] = each.gauge(Gauge::Process).into();
    written["condition"] = each.condition().name().into();
    written["unready"] = rules.fault(each).into();
    written["ready_at"] = each.gauge(Gauge::StartedAt).into();
    written["silence"] = (rules.silence_of(each).as_secs_f64() * 1e3).into();
    written["loop"] = json!({
        "lag": micros(Gauge::LoopLag),
        "longest_step": micros(Gauge::LongestStep),
        "blocked_for": micros(Gauge::BlockedFor),
        "blocked_by": Some(Cause::of_code(each.gauge(Gauge::BlockedBy)).in_words())
            .filter(|_| each.gauge(Gauge::BlockedFor) > 0),
        "pending_tasks": each.gauge(Gauge::PendingTasks),
        "executor_queue": each.gauge(Gauge::ExecutorQueue),
        "executor_threads": each.gauge(Gauge::ExecutorThreads),
        "gil_wait": micros(Gauge::GilWait),
        "gil_wait_longest": micros(Gauge::GilWaitLongest),
    });
    written
}

fn figures(all: &Figures) -> Value {
    let quantiles = |seen: &bridgehead_metrics::Distribution| {
        let at = |share| seen.quantile(share).map(milliseconds);
        json!({"count": seen.count(), "p50": at(0.5), "p95": at(0.95), "p99": at(0.99)})
    };
    let timing = |timing| quantiles(&all.timing(timing));
    let requests = all.requests.iter().map(|(series, seen)| {
        let mut each = quantiles(seen);
        each["method"] = series.method().into();
        each["status"] = series.status().into();
        each["protocol"] = series.version().into();
        each
    });
    json!({
        "active": all.gauge(Gauge::Active),
        "running": all.gauge(Gauge::Running),
        "waiting_for_permit": all.gauge(Gauge::Waiting),
        "waiting_for_loop": all.gauge(Gauge::Inbox),
        "limit": all.gauge(Gauge::Limit),
        "connections": all.gauge(Gauge::Connections),
        "connections_accepted": all.counter(Counter::Connections),
        "http2": all.gauge(Gauge::Http2),
        "websockets": all.gauge(Gauge::WebSockets),
        "websockets_accepted": all.counter(Counter::WebSockets),
        "websocket_messages": {"in": all.counter(Counter::MessagesIn), "out": all.counter(Counter::MessagesOut)},
        "websocket_closes": Closing::all().map(|each| (each, all.closes(each))).filter(|each| each.1 > 0)
            .map(named(|each: &Closing| each.name())).collect::<Map<_, _>>(),
        "bytes": {"in": all.counter(Counter::BytesIn), "out": all.counter(Counter::BytesOut)},
        "lines_dropped": all.counter(Counter::LinesDropped),
        "slow_steps": all.counter(Counter::SlowSteps),
        "duration": quantiles(&durations(all, |_| true)),
        "queue": timing(Timing::Queue),
        "first_byte": timing(Timing::FirstByte),
        "handler": timing(Timing::Handler),
        "loop_lag": timing(Timing::LoopLag),
        "gil_wait": timing(Timing::GilWait),
        "requests": requests.collect::<Vec<_>>(),
        "refusals": Tally::reasons().map(|(number, name)| (name, all.refusals(number))).filter(|each| each.1 > 0)
            .map(named(|name: &&str| *name)).collect::<Map<_, _>>(),
    })
}

fn named<T, N: Into<String>>(name: impl Fn(&T) -> N) -> impl Fn((T, u64)) -> (String, Value) {
    move |(each, count)| (name(&each).into(), count.into())
}
