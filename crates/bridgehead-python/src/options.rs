//! What Python constructs a server with: what the network needs to know, and whom it calls.
//!
//! Not what is made of it (`server.rs`).
//!
//! Invariant: each value is read once, and judged by then.

use std::os::fd::RawFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bridgehead_admission::Admission;
use bridgehead_metrics::Sheet;
use bridgehead_net::{Config, HealthPath, Http2, Meters, Reasons, Tally};
use bridgehead_otel::Tracer;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::all_tasks::Register;
use crate::board::since_the_start;
use crate::bounds::{Bounds, WebSockets};
use crate::compression::Compression;
use crate::default_headers::default_headers;
use crate::ffi;
use crate::logs::{Logs, Wiring};
use crate::network::Wanted;
use crate::proxying::{Forwarding, Proxies};
use crate::request_task::Chosen;
use crate::rota::Rota;
use crate::sheets;
use crate::spans::Spans;
use crate::stack::Files;
use crate::static_files::StaticFiles;
use crate::tls::Tls;

/// `bridgehead.worker.Options`, read once.
#[derive(FromPyObject)]
pub(crate) struct Options {
    /// Each with whether it was bound for this worker, and whether its clients speak TLS.
    pub(crate) listeners: Vec<(RawFd, bool, bool)>,
    pub(crate) tls: Option<Py<Tls>>,
    /// The port to which the other clients are sent, if they are not served.
    pub(crate) redirect: Option<u16>,
    /// By which whoever lent them calls them back.
    pub(crate) recall: Option<RawFd>,
    /// The part of one worker among several.
    pub(crate) rota: Option<Rota>,
    /// What is counted goes here.
    pub(crate) sheet: Py<sheets::Sheet>,
    /// Steps that hold the loop for longer are told of; without, nobody looks.
    pub(crate) slow_step: Option<f64>,
    /// Whether requests and connections are measured as well.
    pub(crate) measures: bool,
    /// Where requests are traced to.
    pub(crate) spans: Option<Spans>,
    /// Where clients are told whether they are welcome.
    pub(crate) health_path: Option<String>,
    pub(crate) root_path: String,
    pub(crate) state: Option<Py<PyDict>>,
    pub(crate) pathsend: bool,
    /// What files answer, if anything.
    pub(crate) static_files: Option<StaticFiles>,
    /// Which answers are compressed, if any.
    pub(crate) compression: Option<Compression>,
    pub(crate) keep_alive: f64,
    pub(crate) bounds: Bounds,
    pub(crate) http2: bool,
    /// How many connections there may be.
    pub(crate) connections: Option<usize>,
    pub(crate) http1_early_hints: bool,
    pub(crate) date_header: bool,
    pub(crate) default_headers: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) reasons: Vec<(u16, String)>,
    pub(crate) logs: Logs,
    pub(crate) forwarding: Option<Forwarding>,
    /// Who speaks for clients before their first byte.
    pub(crate) proxy_protocol: Option<Proxies>,
    pub(crate) websockets: Option<WebSockets>,
    pub(crate) runtime: Wanted,
    /// Where asyncio keeps its tasks, if that is known.
    pub(crate) tasks_register: Option<Register>,
    /// What coroutines are run by, if it is not asyncio alone.
    pub(crate) request_task: Option<Chosen>,
}

/// `bridgehead.worker.Host`: what the server calls, and where it runs.
#[derive(FromPyObject)]
pub(crate) struct Host {
    pub(crate) application: Py<PyAny>,
    pub(crate) answer: Py<PyAny>,
    pub(crate) finished: Py<PyAny>,
    pub(crate) complain: Py<PyAny>,
    /// Gives a scope's route.
    pub(crate) route: Py<PyAny>,
    /// Counts what there is of tasks and threads.
    pub(crate) census: Py<PyAny>,
    /// Gives the place where the loop is.
    pub(crate) place: Py<PyAny>,
    /// Gives whose step it was.
    pub(crate) whose: Py<PyAny>,
    /// Told of steps that are slow.
    pub(crate) slow: Py<PyAny>,
    /// Told how long they were.
    pub(crate) over: Py<PyAny>,
    /// Whose a file is.
    pub(crate) files: Files,
    /// Told of each drive, when the operator asks.
    pub(crate) trace: Option<Py<PyAny>>,
    /// Has the loop call the bridge when a descriptor is readable.
    pub(crate) watch: Py<PyAny>,
    pub(crate) event_loop: Py<PyAny>,
    pub(crate) context: Py<PyAny>,
    pub(crate) shutdown: Py<PyDict>,
}

/// Where others look, and what is told to them.
pub(crate) type Seen<'a> = (&'a Sheet, Arc<OnceLock<Admission>>, Option<Arc<Tracer>>);

impl Options {
    /// What the network is made with.
    pub(crate) fn read(&self, logs: Wiring, (sheet, admission, tracer): Seen<'_>) -> PyResult<Config> {
        let meters = || Meters { sheet: sheet.clone(), clock: since_the_start };
        let bounds = self.bounds.read(self.connections)?;
        let files = self.static_files.as_ref();
        Ok(Config {
            keep_alive: Duration::try_from_secs_f64(self.keep_alive)?,
            http2: if self.http2 { self.bounds.http2()? } else { Http2::Off },
            files: files.map(|files| files.read(&self.root_path, bounds.admission)),
            bounds,
            compression: self.compression.as_ref().map(Compression::read),
            http1_early_hints: self.http1_early_hints,
            date_header: self.date_header,
            default_headers: default_headers(&self.default_headers)?,
            reasons: Reasons::new(self.reasons.clone()),
            access_log: logs.access_log,
            refusals: logs.refusals,
            tally: Tally::on(sheet.clone()),
            admission,
            health: self.health_path.clone().map(|path| HealthPath { path, meters: meters() }),
            tracer,
            adapts: self.bounds.adapts().then(|| sheet.clone()),
            meters: self.measures.then(meters),
            connections: logs.connections,
            forwarding: self.forwarding.as_ref().map(Forwarding::read),
            proxy_protocol: self.proxy_protocol.as_ref().map(Proxies::read),
            request_ids: logs.request_ids,
            unconfirmed: ffi::unconfirmed,
            give_back: ffi::give_back,
            websockets: self.websockets.as_ref().map(WebSockets::read).transpose()?,
            rota: self.rota.as_ref().map(Rota::read),
        })
    }
}
