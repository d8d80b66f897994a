//! All that is known of a server, as JSON: for programs, and for the page.
//!
//! Not Prometheus' text, which is `exposition`'s. Times are in milliseconds.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use bridgehead_metrics::{
    BlockingPlace, Cause, Closing, Counter, Distribution, End, Figures, GateFigures, GateGauge, GateOutcome,
    Gauge, Series, SlowRequest, Snapshot, Start, Timing,
};
use bridgehead_net::Tally;
use serde_json::{Map, Value, json};

use crate::Facts;
use crate::exposition;
use crate::history::{History, durations, is_admitted, milliseconds};
use crate::judgement::Rules;

/// Requests and places that are shown.
const MOST: usize = 20;
/// Spans that no collector has.
const LOST: [Counter; 4] =
    [Counter::SpansCrowdedOut, Counter::SpansUnreachable, Counter::SpansRefused, Counter::SpansUnsent];
/// Milliseconds after which a slow request is forgotten.
const LAST: u64 = 900_000;

/// All of it.
pub(crate) fn written(seen: &Snapshot, rules: &Rules, facts: &Facts, history: &History) -> Value {
    let unready = rules.unready(seen);
    let total = seen.total();
    let mut figures_of_all = figures(&total);
    for (name, gauge) in [("longest_step", Gauge::LongestStep), ("gil_wait_longest", Gauge::GilWaitLongest)] {
        figures_of_all[name] = milliseconds(total.gauge(gauge) as f64).into();
    }
    figures_of_all["longest_request"] = total.longest_request().into();
    json!({
        "server": {
            "version": facts.version,
            "python": facts.python,
            "target": facts.target,
            "ready": unready.is_empty(),
            "unready": unready,
            "live": rules.dead(seen).is_none(),
        },
        "total": figures_of_all,
        "slowest": slowest(total.slowest),
        "blocking": blocking(total.places),
        "gates": gates(&total.gates),
        "last_gone": seen.last.as_ref().map(gone),
        "workers": seen.workers.iter().map(|(place, each)| worker(*place, each, rules)).collect::<Vec<_>>(),
        "worker_starts": Start::ALL.iter().zip(seen.starts).map(named(|start: &&Start| start.name())).collect::<Map<_, _>>(),
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
            "status": status_of(each.series),
            "protocol": known(each.series.version()),
            "path": each.path,
            "route": Some(each.route).filter(|route| !route.is_empty()),
            "duration": each.time.as_secs_f64() * 1e3,
            "at": each.at,
        })
    });
    written.collect()
}

/// The application's, of all workers together.
fn gates(all: &BTreeMap<String, GateFigures>) -> Vec<Value> {
    let written = all.iter().map(|(name, gate)| {
        let mut written = json!({
            "name": name,
            "slots": gate.gauge(GateGauge::Slots),
            "running": gate.gauge(GateGauge::Running),
            "waiting": gate.gauge(GateGauge::Waiting),
            "wait": quantiles(&gate.waits),
        });
        for outcome in GateOutcome::ALL {
            written[outcome.name()] = gate.count(outcome).into();
        }
        written
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
    let mut written = figures(each);
    written["place"] = place.into();
    written["process"] = each.gauge(Gauge::Process).into();
    written["condition"] = each.condition().name().into();
    written["unready"] = rules.fault(each).into();
    written["ready_at"] = each.gauge(Gauge::StartedAt).into();
    written["silence"] = (rules.silence_of(each).as_secs_f64() * 1e3).into();
    written["loop"] = loop_of(each);
    written
}

/// How one stood that is gone.
fn gone(each: &Figures) -> Value {
    json!({
        "process": each.gauge(Gauge::Process),
        "condition": each.condition().name(),
        "ready_at": each.gauge(Gauge::StartedAt),
        "active": each.gauge(Gauge::Active),
        "running": each.gauge(Gauge::Running),
        "waiting_for_permit": each.gauge(Gauge::Waiting),
        "waiting_for_loop": each.gauge(Gauge::Inbox),
        "loop": loop_of(each),
    })
}

fn loop_of(each: &Figures) -> Value {
    let micros = |gauge| milliseconds(each.gauge(gauge) as f64);
    let executor = |gauge| Some(each.gauge(gauge)).filter(|_| each.gauge(Gauge::ExecutorHidden) == 0);
    json!({
        "lag": micros(Gauge::LoopLag),
        "longest_step": micros(Gauge::LongestStep),
        "longest_request": each.longest_request(),
        "blocked_for": micros(Gauge::BlockedFor),
        "blocked_by": Some(Cause::of_code(each.gauge(Gauge::BlockedBy)).in_words())
            .filter(|_| each.gauge(Gauge::BlockedFor) > 0),
        "pending_tasks": each.gauge(Gauge::PendingTasks),
        "executor_queue": executor(Gauge::ExecutorQueue),
        "executor_threads": executor(Gauge::ExecutorThreads),
        "gil_wait": micros(Gauge::GilWait),
        "gil_wait_longest": micros(Gauge::GilWaitLongest),
    })
}

fn quantiles(seen: &Distribution) -> Value {
    let at = |share| seen.quantile(share).map(milliseconds);
    json!({"count": seen.count(), "p50": at(0.5), "p95": at(0.95), "p99": at(0.99)})
}

fn figures(all: &Figures) -> Value {
    let timing = |timing| quantiles(&all.timing(timing));
    let requests = all.requests.iter().map(|(series, seen)| {
        let mut each = quantiles(seen);
        each["method"] = series.method().into();
        each["status"] = status_of(*series);
        each["protocol"] = known(series.version());
        each["scheme"] = known(series.scheme());
        each["error"] = exposition::error_type(*series).into();
        each
    });
    json!({
        "active": all.gauge(Gauge::Active),
        "lost": all.counter(Counter::RequestsLost),
        "running": all.gauge(Gauge::Running),
        "waiting_for_permit": all.gauge(Gauge::Waiting),
        "waiting_for_loop": all.gauge(Gauge::Inbox),
        "limit": all.gauge(Gauge::Limit),
        "connections": all.gauge(Gauge::Connections),
        "connections_accepted": all.counter(Counter::Connections),
        "connections_closed": {"keep_alive": all.counter(Counter::IdleEnds), "crowd": all.counter(Counter::HurriedEnds),
            "lifetime": all.counter(Counter::LifetimeEnds)},
        "http2": all.gauge(Gauge::Http2),
        "websockets": all.gauge(Gauge::WebSockets),
        "websockets_accepted": all.counter(Counter::WebSockets),
        "websocket_messages": {"in": all.counter(Counter::MessagesIn), "out": all.counter(Counter::MessagesOut)},
        "websocket_closes": Closing::all().map(|each| (each, all.closes(each))).filter(|each| each.1 > 0)
            .map(named(|each: &Closing| each.name())).collect::<Map<_, _>>(),
        "bytes": {"in": all.counter(Counter::BytesIn), "out": all.counter(Counter::BytesOut)},
        "health_probes": {"welcomed": all.counter(Counter::ProbesWelcomed), "turned_away": all.counter(Counter::ProbesTurnedAway)},
        "lines_dropped": all.counter(Counter::LinesDropped),
        "spans": {"exported": all.counter(Counter::SpansExported), "lost": LOST.map(|each| all.counter(each)).iter().sum::<u64>()},
        "slow_steps": all.counter(Counter::SlowSteps),
        "duration": quantiles(&durations(all, is_admitted)),
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

/// The number, or `"5xx"` if no more is known.
fn status_of(series: Series) -> Value {
    match series.status() {
        ..10 => series.status_in_words().into(),
        status => status.into(),
    }
}

fn known(word: &'static str) -> Value {
    Some(word).filter(|word| !word.is_empty()).into()
}

fn named<T, N: Into<String>>(name: impl Fn(&T) -> N) -> impl Fn((T, u64)) -> (String, Value) {
    move |(each, count)| (name(&each).into(), count.into())
}
