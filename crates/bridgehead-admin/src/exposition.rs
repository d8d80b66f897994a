//! The figures as Prometheus reads them: OpenMetrics, and the older text.
//!
//! Encoded by `prometheus-client`. Names are OpenTelemetry's for HTTP where it has any, with their units, as its
//! exporters write them; the others begin with `bridgehead_`.
//!
//! Invariant: a counter that exists is there from the first scrape, with zero, so that its first increase is seen.

use std::fmt::{self, Write};
use std::sync::Mutex;

use bridgehead_metrics::{
    BlockingPlace, Cause, Closing, Counter, End, Figures, GateFigures, GateGauge, GateOutcome, Gauge, Series,
    Snapshot, Start, Timing,
};
use bridgehead_net::Tally;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::registry::{Registry, Unit};

use crate::families::{MICROSECOND, Page, Pairs, UNLABELLED};
use crate::{Facts, Rules};

/// What OpenMetrics is called.
pub(crate) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// What the older text is called.
pub(crate) const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// As OpenMetrics has it.
pub(crate) fn openmetrics(seen: Snapshot, rules: Rules, facts: &Facts) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Once(Mutex::new(Some((seen, rules, facts.clone()))))));
    let mut written = String::with_capacity(64 * 1024);
    // A string takes whatever is written.
    let _ = text::encode(&mut written, &registry);
    written
}

/// The same for who reads nothing newer: a counter's family has the name of its samples, and there are no units.
pub(crate) fn prometheus(openmetrics: &str) -> String {
    let mut written = String::with_capacity(openmetrics.len());
    let mut help = None;
    for line in openmetrics.lines() {
        if let Some(said) = line.strip_prefix("# HELP ") {
            help = said.split_once(' ');
        } else if let Some(said) = line.strip_prefix("# TYPE ") {
            let Some((name, kind)) = said.split_once(' ') else { continue };
            let suffix = if kind == "counter" { "_total" } else { "" };
            if let Some((_, text)) = help.take() {
                let _ = writeln!(written, "# HELP {name}{suffix} {text}");
            }
            let _ = writeln!(written, "# TYPE {name}{suffix} {kind}");
        } else if !line.starts_with('#') {
            let _ = writeln!(written, "{line}");
        }
    }
    written
}

/// A collector may be asked by many; this one has one answer.
#[derive(Debug)]
struct Once(Mutex<Option<(Snapshot, Rules, Facts)>>);

impl Collector for Once {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let taken = self.0.lock().ok().and_then(|mut once| once.take());
        taken.map_or(Ok(()), |(seen, rules, facts)| Page(encoder).write(&seen, rules, &facts))
    }
}

impl Page<'_> {
    fn write(&mut self, seen: &Snapshot, rules: Rules, facts: &Facts) -> fmt::Result {
        let total = seen.total();
        self.requests(&total)?;
        self.connections(&total)?;
        self.websockets(&total)?;
        self.refusals(&total)?;
        self.loops(seen, &total)?;
        self.gates(seen, &total)?;
        self.workers(seen)?;
        self.readiness(seen, rules)?;
        let build = [("version", facts.version.clone()), ("python", facts.python.clone())];
        self.gauges("bridgehead_build_info", "What runs here", None, [(build, 1.0)])
    }

    fn requests(&mut self, total: &Figures) -> fmt::Result {
        let series = total.requests.iter().map(|(series, seen)| (labels(*series), seen.clone()));
        self.histograms(
            "http_server_request_duration",
            "From a request's head to its answer's last byte",
            series,
        )?;
        let active = total.active().map(|(series, count)| {
            let of = [("http_request_method", series.method()), ("url_scheme", series.scheme())];
            (of.map(|(name, value)| (name, value.to_owned())), count as f64)
        });
        self.gauges(
            "http_server_active_requests",
            "Requests between their head and the last byte of their answer",
            None,
            active,
        )?;
        let states = [("application", Gauge::Running), ("permit", Gauge::Waiting), ("loop", Gauge::Inbox)];
        let states = states.map(|(at, gauge)| ([("at", at.to_owned())], total.gauge(gauge) as f64));
        self.gauges(
            "bridgehead_requests",
            "Requests with the application, and those that wait for a permit or the loop",
            None,
            states,
        )?;
        for (timing, name, help) in [
            (
                Timing::Queue,
                "bridgehead_request_queue",
                "From a request's head until the application is called",
            ),
            (
                Timing::FirstByte,
                "bridgehead_request_first_byte",
                "From a request's head until its answer's head",
            ),
            (Timing::Handler, "bridgehead_request_handler", "From the application's call until it returns"),
        ] {
            self.histograms(name, help, [(UNLABELLED, total.timing(timing))])?;
        }
        self.counter(
            "bridgehead_requests_lost",
            "Requests under way whose worker died",
            total.counter(Counter::RequestsLost),
        )?;
        let probes = [("200", Counter::ProbesWelcomed), ("503", Counter::ProbesTurnedAway)];
        let probes = probes.map(|(status, counter)| {
            ([("http_response_status_code", status.to_owned())], total.counter(counter))
        });
        self.counters("bridgehead_health_probes", "Requests that --health-path has answered", probes)?;
        let bytes = [("receive", Counter::BytesIn), ("transmit", Counter::BytesOut)];
        let bytes =
            bytes.map(|(way, counter)| ([("network_io_direction", way.to_owned())], total.counter(counter)));
        self.counters("bridgehead_network_io_bytes", "Bytes on sockets, TLS included", bytes)?;
        let dropped = total.counter(Counter::LinesDropped);
        self.counter("bridgehead_access_lines_dropped", "Access lines that nobody read", dropped)?;
        self.spans(total)
    }

    fn spans(&mut self, total: &Figures) -> fmt::Result {
        let exported = total.counter(Counter::SpansExported);
        self.counter("bridgehead_spans_exported", "Spans that a collector has", exported)?;
        let lost = [
            ("queue_full", Counter::SpansCrowdedOut),
            ("unreachable", Counter::SpansUnreachable),
            ("refused", Counter::SpansRefused),
            ("ended", Counter::SpansUnsent),
        ];
        let lost = lost.map(|(why, counter)| ([("reason", why.to_owned())], total.counter(counter)));
        self.counters("bridgehead_spans_lost", "Spans that no collector has", lost)
    }

    fn connections(&mut self, total: &Figures) -> fmt::Result {
        let of = |gauge| total.gauge(gauge);
        let (busy, http2, websockets) = (of(Gauge::Http1Busy), of(Gauge::Http2), of(Gauge::WebSockets));
        // Each word is read by itself, so one that has just changed its state may be missed or there twice.
        let idle = of(Gauge::Connections).saturating_sub(busy + http2 + websockets);
        let states =
            [("http1_busy", busy), ("http1_idle", idle), ("http2", http2), ("websocket", websockets)];
        let states = states.map(|(state, count)| ([("state", state.to_owned())], count as f64));
        self.gauges("bridgehead_connections", "Connections that are open", None, states)?;
        self.counter(
            "bridgehead_connections_accepted",
            "Connections that were let in",
            total.counter(Counter::Connections),
        )?;
        let closed = [
            ("keep_alive", Counter::IdleEnds),
            ("crowd", Counter::HurriedEnds),
            ("lifetime", Counter::LifetimeEnds),
        ];
        let closed = closed.map(|(why, counter)| ([("reason", why.to_owned())], total.counter(counter)));
        self.counters(
            "bridgehead_connections_closed",
            "Connections that were closed between two requests, as they have to be at last",
            closed,
        )
    }

    fn websockets(&mut self, total: &Figures) -> fmt::Result {
        self.counter(
            "bridgehead_websockets_accepted",
            "WebSockets that were accepted",
            total.counter(Counter::WebSockets),
        )?;
        let messages = [("receive", Counter::MessagesIn), ("transmit", Counter::MessagesOut)];
        let messages = messages
            .map(|(way, counter)| ([("network_io_direction", way.to_owned())], total.counter(counter)));
        self.counters("bridgehead_websocket_messages", "Messages of WebSockets", messages)?;
        let closes = Closing::all().map(|each| ([("code", each.name())], total.closes(each)));
        self.counters("bridgehead_websocket_closes", "WebSockets that ended, by their code", closes)
    }

    fn refusals(&mut self, total: &Figures) -> fmt::Result {
        let reasons =
            Tally::reasons().map(|(number, name)| ([("reason", name.to_owned())], total.refusals(number)));
        self.counters("bridgehead_refusals", "Clients that were refused, cut off or kept waiting", reasons)
    }

    fn loops(&mut self, seen: &Snapshot, total: &Figures) -> fmt::Result {
        for (timing, name, help) in [
            (Timing::LoopLag, "bridgehead_loop_lag", "How late the loop comes to what is due, sampled"),
            (Timing::GilWait, "bridgehead_gil_wait", "How long a thread waits for the GIL, sampled"),
        ] {
            self.histograms(name, help, [(UNLABELLED, total.timing(timing))])?;
        }
        self.counter(
            "bridgehead_loop_slow_steps",
            "Steps that held the loop for longer than --slow-step",
            total.counter(Counter::SlowSteps),
        )?;
        let causes = Cause::ALL.map(|cause| ([("cause", cause.name().to_owned())], total.blamed(cause)));
        self.counters(
            "bridgehead_loop_slow_step_causes",
            "What held the loop in them, as far as they were looked at",
            causes,
        )?;
        let mut places: Vec<_> = total.places.iter().collect();
        places.sort_by(|one, other| one.place.cmp(&other.place));
        let of_place = |each: &BlockingPlace| [("place", each.place.clone())];
        // No counter: a place that made room for another, and comes again, begins at one.
        self.gauges(
            "bridgehead_loop_slow_place_steps",
            "How often each place held the loop for too long, of those that did last; one that was not among them begins anew",
            None,
            places.iter().map(|each| (of_place(each), each.count as f64)),
        )?;
        self.gauges(
            "bridgehead_loop_slow_place_longest",
            "The longest of those steps",
            Some(Unit::Seconds),
            places.iter().map(|each| (of_place(each), each.longest.as_secs_f64())),
        )?;
        let held = seen.workers.iter().filter(|(_, figures)| figures.gauge(Gauge::BlockedFor) > 0);
        let held = held.map(|(place, figures)| {
            let cause = Cause::of_code(figures.gauge(Gauge::BlockedBy));
            ([("worker", place.to_string()), ("cause", cause.name().to_owned())], 1.0)
        });
        self.gauges(
            "bridgehead_loop_blocked_by",
            "What holds each loop that is held for too long",
            None,
            held,
        )?;
        for (gauge, name, help) in [
            (Gauge::LongestStep, "bridgehead_loop_longest_step", "The longest step of the loop so far"),
            (
                Gauge::BlockedFor,
                "bridgehead_loop_blocked",
                "For how long a step holds the loop that is too long already",
            ),
        ] {
            let of = |figures: &Figures| figures.gauge(gauge) as f64 * MICROSECOND;
            // Of those that are gone the longest is kept, which is not to be lost with the worst of them.
            let gone = Some(of(&seen.gone)).filter(|kept| *kept > 0.0);
            let each = of_workers(seen, of).chain(gone.map(|kept| ([("worker", "gone".to_owned())], kept)));
            self.gauges(name, help, Some(Unit::Seconds), each)?;
        }
        for (gauge, name, help) in [
            (
                Gauge::Limit,
                "bridgehead_concurrency_limit",
                "How many requests may be with the application now; 0 is any number",
            ),
            (Gauge::PendingTasks, "bridgehead_loop_pending_tasks", "Tasks that are not done"),
        ] {
            self.gauges(name, help, None, of_workers(seen, |figures| figures.gauge(gauge) as f64))?;
        }
        for (gauge, name, help) in [
            (
                Gauge::ExecutorQueue,
                "bridgehead_executor_queue",
                "Calls that wait for a thread of the default executor",
            ),
            (Gauge::ExecutorThreads, "bridgehead_executor_threads", "Threads of the default executor"),
        ] {
            let shown = seen.workers.iter().filter(|(_, figures)| figures.gauge(Gauge::ExecutorHidden) == 0);
            let each =
                shown.map(|(place, figures)| ([("worker", place.to_string())], figures.gauge(gauge) as f64));
            self.gauges(name, help, None, each)?;
        }
        Ok(())
    }

    fn gates(&mut self, seen: &Snapshot, total: &Figures) -> fmt::Result {
        for (gauge, name, help) in [
            (GateGauge::Slots, "bridgehead_gate_slots", "How many may be inside a gate of the application's"),
            (GateGauge::Running, "bridgehead_gate_running", "How many are"),
            (GateGauge::Waiting, "bridgehead_gate_waiting", "How many wait for a slot of it"),
        ] {
            let each = seen.workers.iter().flat_map(|(place, figures)| {
                let of_gate = move |(name, gate): (&String, &GateFigures)| {
                    ([("worker", place.to_string()), ("gate", name.clone())], gate.gauge(gauge) as f64)
                };
                figures.gates.iter().map(of_gate)
            });
            self.gauges(name, help, None, each)?;
        }
        let entries = total.gates.iter().flat_map(|(name, gate)| {
            GateOutcome::ALL.map(|outcome| {
                ([("gate", name.clone()), ("outcome", outcome.name().to_owned())], gate.count(outcome))
            })
        });
        self.counters("bridgehead_gate_entries", "What became of who wanted a slot", entries)?;
        let waits = total.gates.iter().map(|(name, gate)| ([("gate", name.clone())], gate.waits.clone()));
        self.histograms(
            "bridgehead_gate_wait",
            "How long they had waited, but for those who found it full",
            waits,
        )
    }

    fn readiness(&mut self, seen: &Snapshot, rules: Rules) -> fmt::Result {
        let ready = f64::from(u8::from(rules.unready(seen).is_empty()));
        self.gauge("bridgehead_ready", "1 while /readyz is 200", ready)?;
        let each = of_workers(seen, |figures| f64::from(u8::from(rules.fault(figures).is_none())));
        self.gauges("bridgehead_worker_ready", "1 for each worker that is ready", None, each)
    }

    fn workers(&mut self, seen: &Snapshot) -> fmt::Result {
        let conditions = seen.workers.iter().map(|(place, figures)| {
            ([("worker", place.to_string()), ("condition", figures.condition().name().to_owned())], 1.0)
        });
        self.gauges("bridgehead_worker_condition", "How far each worker has come", None, conditions)?;
        let started = of_workers(seen, |figures| figures.gauge(Gauge::StartedAt) as f64 / 1e3);
        self.gauges(
            "bridgehead_worker_ready_timestamp",
            "When each worker was ready",
            Some(Unit::Seconds),
            started,
        )?;
        let starts = Start::ALL
            .into_iter()
            .zip(seen.starts)
            .map(|(start, count)| ([("reason", start.name().to_owned())], count));
        self.counters("bridgehead_worker_starts", "Workers that were started", starts)?;
        let ends = End::ALL
            .into_iter()
            .zip(seen.ends)
            .map(|(end, count)| ([("reason", end.name().to_owned())], count));
        self.counters("bridgehead_worker_ends", "Workers that ended", ends)
    }
}

/// What requests have in common, as OpenTelemetry names it; what is not known is left out.
fn labels(series: Series) -> Vec<(&'static str, String)> {
    let mut labels = vec![
        ("http_request_method", series.method().to_owned()),
        ("http_response_status_code", series.status_in_words()),
        ("network_protocol_version", series.version().to_owned()),
        ("url_scheme", series.scheme().to_owned()),
        ("error_type", error_type(series).unwrap_or_default()),
    ];
    labels.retain(|(_, value)| !value.is_empty());
    labels
}

/// Why a request has failed, of those that the server failed: the name of a refusal, else the status, as OpenTelemetry has it.
pub(crate) fn error_type(series: Series) -> Option<String> {
    let named = || series.refusal().and_then(Tally::name_of_refusal).map(str::to_owned);
    series.is_server_error().then(|| named().unwrap_or_else(|| series.status_in_words()))
}

fn of_workers(seen: &Snapshot, value: impl Fn(&Figures) -> f64) -> impl Iterator<Item = (Pairs<1>, f64)> {
    seen.workers.iter().map(move |(place, figures)| ([("worker", place.to_string())], value(figures)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bridgehead_metrics::{Protocol, Sheet, Sheets};

    use super::*;

    fn written() -> String {
        let sheet = Sheet::own();
        sheet.set(Gauge::Condition, 2);
        sheet.add(Counter::BytesIn, 10);
        sheet.request(Series::new("GET", 200, Protocol::Http11), Duration::from_millis(3));
        let facts = Facts { version: "1".to_owned(), python: "3".to_owned(), target: String::new() };
        let rules = Rules { silence: None, clock: || Duration::ZERO };
        openmetrics(Sheets::alone(sheet).read(), rules, &facts)
    }

    fn has(text: &str, line: &str) {
        assert!(text.lines().any(|each| each == line), "{line} is not in\n{text}");
    }

    #[test]
    fn openmetrics_has_samples_units_and_an_end() {
        let text = written();
        has(&text, "bridgehead_network_io_bytes_total{network_io_direction=\"receive\"} 10");
        has(&text, "# TYPE bridgehead_network_io_bytes counter");
        has(&text, "# UNIT http_server_request_duration_seconds seconds");
        has(&text, "bridgehead_refusals_total{reason=\"no_host\"} 0");
        let labels = "http_request_method=\"GET\",http_response_status_code=\"200\",\
            network_protocol_version=\"1.1\",url_scheme=\"http\"";
        has(&text, &format!("http_server_request_duration_seconds_count{{{labels}}} 1"));
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn an_error_says_who_has_made_it_and_an_answer_says_nothing_of_errors() {
        let series = |status| Series::new("GET", status, Protocol::Http11);
        let (full, _) = Tally::reasons().find(|(_, name)| *name == "queue_full").expect("it is one");
        let told = [series(503).refused(full), series(503), series(404), series(499)].map(error_type);
        assert_eq!(told, [Some("queue_full".to_owned()), Some("503".to_owned()), None, None]);
    }

    #[test]
    fn the_older_text_names_counters_by_their_samples_and_has_no_units() {
        let text = prometheus(&written());
        has(&text, "# TYPE bridgehead_network_io_bytes_total counter");
        has(&text, "# TYPE http_server_request_duration_seconds histogram");
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"));
        let helps = text.lines().filter(|line| line.starts_with("# HELP")).count();
        assert_eq!(helps, text.lines().filter(|line| line.starts_with("# TYPE")).count());
    }
}
