//! What an operator reads of requests: where access lines go, how they look, what else is told.
//!
//! Lines that a descriptor takes are Rust's alone. Those that Python's loggers are to have come through the inbox, and
//! are said here, on the loop's thread. Which of both it is changes when Python says so.
//!
//! Invariant: a thread of Tokio's makes a report and never says it.

use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bridgehead_net::{
    AccessLog, Colours, Connections, Layout, LogPipe, Outlet, Refusals, Report, RequestIds, Sink, Trace,
};
use bridgehead_otel::Collector;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;

use crate::ffi;

/// `bridgehead.reports.Logs`, read once.
#[derive(FromPyObject)]
pub(crate) struct Logs {
    /// Where access lines are written if Python's loggers do not take them; without, there are none.
    descriptor: Option<RawFd>,
    /// Who takes them first.
    taker: String,
    /// `usual`, `text` or `json`.
    style: String,
    pieces: Vec<(String, String)>,
    colours: bool,
    refusals: bool,
    connections: bool,
    /// The seed of the ids that requests get, if they get any.
    request_ids: Option<(u64, u64)>,
    /// What is called for each report.
    pub(crate) reports: Py<PyAny>,
}

/// The settings of a network, as far as they are about logs.
pub(crate) struct Wiring {
    pub(crate) access_log: Option<AccessLog>,
    pub(crate) refusals: Refusals,
    pub(crate) connections: Connections,
    pub(crate) request_ids: Option<RequestIds>,
    /// To be turned meanwhile, and closed at the end.
    pub(crate) lines: Option<Lines>,
}

/// Where access lines leave.
pub(crate) struct Lines {
    outlet: Arc<Outlet>,
    descriptor: RawFd,
    layout: Layout,
    // Whoever turns it may be any thread of Python's, also at the end.
    closed: Mutex<bool>,
}

impl Lines {
    fn begin(descriptor: RawFd, layout: &Layout, taker: &str) -> PyResult<Self> {
        let (outlet, layout) = (Outlet::to(Sink::Nobody), layout.clone());
        let lines = Self { outlet, descriptor, layout, closed: Mutex::new(false) };
        lines.turn(taker)?;
        Ok(lines)
    }

    /// From here on `descriptor` takes them, or `loggers`, or `nobody`.
    pub(crate) fn turn(&self, taker: &str) -> PyResult<()> {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        if *closed {
            return Ok(());
        }
        self.outlet.turn(match taker {
            "descriptor" => Sink::Pipe(match self.outlet.pipe() {
                Some(pipe) => Arc::clone(pipe),
                None => open(self.descriptor, &self.layout)?,
            }),
            "loggers" => Sink::App,
            _ => Sink::Nobody,
        });
        Ok(())
    }

    /// Has what is left written; gives how many lines were not.
    pub(crate) fn close(&self, patience: Duration) -> u64 {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.outlet.pipe().map_or(0, |pipe| pipe.close(patience))
    }
}

impl Logs {
    /// Opens what lines are written to, if that is so from the start.
    pub(crate) fn wire(&self, root_path: &str) -> PyResult<Wiring> {
        let layout = self.layout()?;
        let begin = |descriptor| Lines::begin(descriptor, &layout, &self.taker);
        let lines = self.descriptor.map(begin).transpose()?;
        let access_log = lines.as_ref().map(|lines| AccessLog {
            outlet: Arc::clone(&lines.outlet),
            layout,
            root_path: root_path.to_owned(),
        });
        Ok(Wiring {
            access_log,
            refusals: if self.refusals { Refusals::Reported } else { Refusals::Silent },
            connections: if self.connections { Connections::Reported } else { Connections::Silent },
            request_ids: self.request_ids.map(RequestIds::new),
            lines,
        })
    }

    fn layout(&self) -> PyResult<Layout> {
        let made = match self.style.as_str() {
            "json" => Layout::json(&self.pieces),
            "text" => Layout::text(&self.pieces),
            _ => Ok(Layout::usual(if self.colours { Colours::On } else { Colours::Off })),
        };
        made.map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

fn open(descriptor: RawFd, layout: &Layout) -> PyResult<Arc<LogPipe>> {
    let descriptor = ffi::duplicate(descriptor)?;
    Ok(ffi::without_signals(|| LogPipe::start(descriptor, layout.clone()))?)
}

/// What `bridgehead.log.Names` is: a request's id, and its `traceparent`.
pub(crate) type Names<'a> = Option<(&'a str, Option<&'a str>)>;

pub(crate) fn names_of(trace: Option<&Trace>) -> Names<'_> {
    trace.map(|trace| (trace.id(), trace.parent()))
}

/// Says one report.
pub(crate) fn say(reports: &Bound<'_, PyAny>, report: Report) -> PyResult<()> {
    let py = reports.py();
    match report {
        Report::Access(record) => {
            let asked = (&record.client, &record.method, &record.target, record.version, record.status);
            reports
                .call_method1(intern!(py, "access"), (asked, &record.line, names_of(record.trace.as_deref())))
        }
        Report::Connection { client, event } => {
            reports.call_method1(intern!(py, "connection"), (client, event))
        }
        Report::Shortage { reason } => reports.call_method1(intern!(py, "shortage"), (reason,)),
        Report::Collector(Collector::Away { place, why }) => {
            reports.call_method1(intern!(py, "collector_away"), (place, why))
        }
        Report::Collector(Collector::Back { place, lost }) => {
            reports.call_method1(intern!(py, "collector_back"), (place, lost))
        }
        Report::Collector(Collector::Left { place, unsent }) => {
            reports.call_method1(intern!(py, "spans_unsent"), (place, unsent))
        }
        Report::Refused { client, reason, trace } => {
            reports.call_method1(intern!(py, "refused"), (client, reason, names_of(trace.as_deref())))
        }
    }
    .map(drop)
}

/// Says how many reports there was no room for.
pub(crate) fn say_lost(reports: &Bound<'_, PyAny>, count: u64) -> PyResult<()> {
    reports.call_method1(intern!(reports.py(), "lost"), (count,)).map(drop)
}

/// Says how many access lines nobody read.
pub(crate) fn say_unread(reports: &Bound<'_, PyAny>, count: u64) -> PyResult<()> {
    reports.call_method1(intern!(reports.py(), "unread"), (count,)).map(drop)
}
