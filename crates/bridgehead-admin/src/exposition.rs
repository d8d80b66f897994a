//! The figures as Prometheus reads them: OpenMetrics, and the older text.
//!
//! Encoded by `prometheus-client`. Names are OpenTelemetry's for HTTP where it has any, with their units, as its
//! exporters write them; the others begin with `bridgehead_`.
//!
//! Invariant: a counter that exists is there from the first scrape, with zero, so that its first increase is seen.

use std::fmt::{self, Write};
use std::sync::Mutex;

use bridgehead_metrics::{
    BOUNDS, Cause, Closing, Counter, Distribution, End, Figures, Gauge, Snapshot, Timing,
};
use bridgehead_net::Tally;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::Facts;

/// What OpenMetrics is called.
pub(crate) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// What the older text is called.
pub(crate) const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

const MICROSECOND: f64 = 1e-6;

const UNLABELLED: Pairs<0> = [];

/// As OpenMetrics has it.
pub(crate) fn openmetrics(seen: Snapshot, facts: &Facts) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Once(Mutex::new(Some((seen, facts.clone()))))));
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
struct Once(Mutex<Option<(Snapshot, Facts)>>);

impl Collector for Once {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let taken = self.0.lock().ok().and_then(|mut once| once.take());
        taken.map_or(Ok(()), |(seen, facts)| Page(encoder).write(&seen, &facts))
    }
}

type Pairs<const N: usize> = [(&'static str, String); N];

struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn write(&mut self, seen: &Snapshot, facts: &Facts) -> fmt::Result {
        let total = seen.total();
        self.requests(&total)?;
        self.connections(&total)?;
        self.websockets(&total)?;
        self.refusals(&total)?;
        self.loops(seen, &total)?;
        self.workers(seen)?;
        let build = [("version", facts.version.clone()), ("python", facts.python.clone())];
        self.gauges("bridgehead_build_info", "What runs here", None, [(build, 1.0)])
    }

    fn requests(&mut self, total: &Figures) -> fmt::Result {
        let series = total.requests.iter().map(|(series, seen)| {
            let status = match series.status() {
                0 => String::new(),
                status => status.to_string(),
            };
            let labels = [
                ("http_request_method", series.method().to_owned()),
                ("http_response_status_code", status),
                ("network_protocol_version", series.version().to_owned()),
            ];
            (labels, seen.clone())
        });
        self.histograms(
            "http_server_request_duration",
            "From a request's head to its answer's last byte",
            series,
        )?;
        let active = total.gauge(Gauge::Active) as f64;
        self.gauge(
            "http_server_active_requests",
            "Requests between their head and the last byte of their answer",
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
        let bytes = [("receive", Counter::BytesIn), ("transmit", Counter::BytesOut)];
        let bytes =
            bytes.map(|(way, counter)| ([("network_io_direction", way.to_owned())], total.counter(counter)));
        self.counters("bridgehead_network_io_bytes", "Bytes on sockets, TLS included", bytes)?;
        let dropped = total.counter(Counter::LinesDropped);
        self.counter("bridgehead_access_lines_dropped", "Access lines that nobody read", dropped)
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
            let each = of_workers(seen, |figures| figures.gauge(gauge) as f64 * MICROSECOND);
            self.gauges(name, help, Some(Unit::Seconds), each)?;
        }
        for (gauge, name, help) in [
            (
                Gauge::Limit,
                "bridgehead_concurrency_limit",
                "How many requests may be with the application now; 0 is any number",
            ),
            (Gauge::PendingTasks, "bridgehead_loop_pending_tasks", "Tasks that are not done"),
            (
                Gauge::ExecutorQueue,
                "bridgehead_executor_queue",
                "Calls that wait for a thread of the default executor",
            ),
            (Gauge::ExecutorThreads, "bridgehead_executor_threads", "Threads of the default executor"),
        ] {
            self.gauges(name, help, None, of_workers(seen, |figures| figures.gauge(gauge) as f64))?;
        }
        Ok(())
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
        self.counter("bridgehead_worker_starts", "Workers that were started", seen.starts)?;
        let ends = End::ALL
            .into_iter()
            .zip(seen.ends)
            .map(|(end, count)| ([("reason", end.name().to_owned())], count));
        self.counters("bridgehead_worker_ends", "Workers that ended", ends)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.counters(name, help, [(UNLABELLED, value)])
    }

    fn counters<S: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        each: impl IntoIterator<Item = (S, u64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        each.into_iter().try_for_each(|(labels, value)| {
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)
        })
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.gauges(name, help, None, [(UNLABELLED, value)])
    }

    fn gauges<S: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        each: impl IntoIterator<Item = (S, f64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        each.into_iter().try_for_each(|(labels, value)| family.encode_family(&labels)?.encode_gauge(&value))
    }

    /// In seconds.
    fn histograms<S: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        each: impl IntoIterator<Item = (S, Distribution)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        each.into_iter().try_for_each(|(labels, seen)| {
            let bounds = BOUNDS.iter().map(|micros| *micros as f64 / 1e6).chain([f64::INFINITY]);
            let buckets: Vec<_> = bounds.zip(seen.counts).collect();
            let sum = seen.sum as f64 * MICROSECOND;
            family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, seen.count(), &buckets, None)
        })
    }
}

fn of_workers(seen: &Snapshot, value: impl Fn(&Figures) -> f64) -> impl Iterator<Item = (Pairs<1>, f64)> {
    seen.workers.iter().map(move |(place, figures)| ([("worker", place.to_string())], value(figures)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bridgehead_metrics::{Protocol, Series, Sheet, Sheets};

    use super::*;

    fn written() -> String {
        let sheet = Sheet::own();
        sheet.set(Gauge::Condition, 2);
        sheet.add(Counter::BytesIn, 10);
        sheet.request(Series::new("GET", 200, Protocol::Http11), Duration::from_millis(3));
        let facts = Facts { version: "1".to_owned(), python: "3".to_owned(), target: String::new() };
        openmetrics(Sheets::alone(sheet).read(), &facts)
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
        let labels =
            "http_request_method=\"GET\",http_response_status_code=\"200\",network_protocol_version=\"1.1\"";
        has(&text, &format!("http_server_request_duration_seconds_count{{{labels}}} 1"));
        assert!(text.ends_with("# EOF\n"));
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
