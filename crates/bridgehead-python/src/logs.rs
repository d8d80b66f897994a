//! What an operator reads of requests: where access lines go, how they look, what else is told.
//!
//! Lines that a descriptor takes are Rust's alone. Those that Python's loggers are to have come through the inbox, and
//! are said here, on the loop's thread.
//!
//! Invariant: a thread of Tokio's makes a report and never says it.

use std::os::fd::RawFd;
use std::sync::Arc;

use bridgehead_net::{
    AccessLog, Colours, Connections, Layout, LogPipe, Refusals, Report, RequestIds, Sink, Trace,
};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;

use crate::ffi;

/// `bridgehead.reports.Logs`, read once.
#[derive(FromPyObject)]
pub(crate) struct Logs {
    /// Where access lines go: a descriptor, Python's loggers, or nowhere.
    descriptor: Option<RawFd>,
    through_python: bool,
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
    /// To be closed at the end.
    pub(crate) pipe: Option<Arc<LogPipe>>,
}

impl Logs {
    /// Opens what lines are written to.
    pub(crate) fn wire(&self, root_path: &str) -> PyResult<Wiring> {
        let layout = self.layout()?;
        let pipe = self.descriptor.map(|descriptor| open(descriptor, &layout)).transpose()?;
        let sink = match &pipe {
            Some(pipe) => Some(Sink::Pipe(Arc::clone(pipe))),
            None => self.through_python.then_some(Sink::App),
        };
        Ok(Wiring {
            access_log: sink.map(|sink| AccessLog { sink, layout, root_path: root_path.to_owned() }),
            refusals: if self.refusals { Refusals::Reported } else { Refusals::Silent },
            connections: if self.connections { Connections::Reported } else { Connections::Silent },
            request_ids: self.request_ids.map(RequestIds::new),
            pipe,
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
