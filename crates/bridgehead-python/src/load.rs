//! The load generator as Python sees it: a run that is begun, looked at, and ended.
//!
//! Not the command: `bridgehead.load` has the words. Nothing here touches a server's loop.
//!
//! Invariant: the GIL is not held while anybody waits.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bridgehead_load::{
    Address, Expect, Handle, Latency, Limits, Plan, PlanError, Portion, Progress, Protocol, QUANTILES,
    Report, Row, Run, Scenario, Think, Upload,
};
use bytes::Bytes;
use http::{HeaderName, StatusCode};
use pyo3::exceptions::{PyConnectionError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

use crate::ffi;

/// `bridgehead.load.plan.Plan`, read once.
#[derive(FromPyObject)]
struct Words {
    /// Host and port; or a path, and no port.
    host: String,
    port: Option<u16>,
    tls: Option<String>,
    protocol: String,
    streams: usize,
    authority: String,
    scenarios: Vec<ScenarioWords>,
    connections: usize,
    threads: usize,
    rate: Option<f64>,
    duration: Option<f64>,
    requests: Option<u64>,
    warmup: f64,
    timeout: f64,
    keep_alive: bool,
    seed: u64,
}

/// `bridgehead.load.plan.Scenario`.
#[derive(FromPyObject)]
struct ScenarioWords {
    name: String,
    weight: u32,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Body>,
    upload: Option<UploadWords>,
    think: Option<(f64, f64)>,
    expect_status: Vec<u16>,
    expect_headers: Vec<(String, String)>,
    expect_body: Option<Vec<u8>>,
}

/// A text is a template, bytes are not.
#[derive(FromPyObject)]
enum Body {
    Template(String),
    Bytes(Vec<u8>),
}

/// `bridgehead.load.plan.Upload`.
#[derive(FromPyObject)]
struct UploadWords {
    size: u64,
    chunk: usize,
    every: f64,
    declared: bool,
}

/// Load on a server, from when it is made until it has come to its end or is stopped.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct LoadRun {
    // `report` takes it; pyo3 wants classes to be shareable.
    run: Mutex<Option<Run>>,
    handle: Handle,
}

#[pymethods]
impl LoadRun {
    #[new]
    fn new(py: Python<'_>, plan: Words) -> PyResult<Self> {
        let plan = read(plan)?;
        // Signals are for Python's threads.
        let run =
            py.detach(|| ffi::without_signals(|| Run::start(&plan))).map_err(|error| refused(&error))?;
        Ok(Self { handle: run.handle(), run: Mutex::new(Some(run)) })
    }

    /// Waits for the end, so many seconds at most; says whether it has come.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let time = Duration::try_from_secs_f64(seconds)?;
        Ok(py.detach(|| self.handle.wait(time)))
    }

    /// Ends it now; what was asked and is not answered is given up.
    fn stop(&self) {
        self.handle.stop();
    }

    /// How far it is.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let looked = || self.run.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Run::progress);
        progress(py, &py.detach(looked).ok_or_else(over)?)
    }

    /// Waits for the end, and says what it came to; once.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let taken = || self.run.lock().unwrap_or_else(PoisonError::into_inner).take().map(Run::report);
        report(py, &py.detach(taken).ok_or_else(over)?)
    }
}

impl Drop for LoadRun {
    fn drop(&mut self) {
        // Its threads are joined, and none of them wants the GIL.
        drop(self.run.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

fn over() -> PyErr {
    PyRuntimeError::new_err("the run has been reported already")
}

fn refused(error: &PlanError) -> PyErr {
    match error {
        PlanError::Unreachable { .. } => PyConnectionError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

fn read(words: Words) -> PyResult<Plan> {
    let time = |seconds: f64| Duration::try_from_secs_f64(seconds).map_err(PyErr::from);
    Ok(Plan {
        address: match words.port {
            Some(port) => Address::Tcp(words.host, port),
            None => Address::Unix(PathBuf::from(words.host)),
        },
        tls: words.tls,
        protocol: match words.protocol.as_str() {
            "websocket" => Protocol::WebSocket,
            "2" => Protocol::Http2 { streams: words.streams },
            _ => Protocol::Http1,
        },
        authority: words.authority,
        scenarios: words.scenarios.into_iter().map(scenario).collect::<PyResult<_>>()?,
        connections: words.connections,
        threads: words.threads,
        rate: words.rate,
        limits: Limits { duration: words.duration.map(time).transpose()?, requests: words.requests },
        warm_up: time(words.warmup)?,
        timeout: time(words.timeout)?,
        keep_alive: words.keep_alive,
        seed: words.seed,
    })
}

fn scenario(words: ScenarioWords) -> PyResult<Scenario> {
    let upload = match (words.body, words.upload) {
        (_, Some(UploadWords { size, chunk, every, declared })) => {
            Upload::Stream { size, chunk, every: Duration::try_from_secs_f64(every)?, declared }
        }
        (Some(Body::Template(text)), None) => Upload::Template(text),
        (Some(Body::Bytes(bytes)), None) => Upload::Bytes(bytes.into()),
        (None, None) => Upload::Nothing,
    };
    let think = words.think.map(|(least, most)| {
        let (least, most) = (Duration::try_from_secs_f64(least)?, Duration::try_from_secs_f64(most)?);
        PyResult::Ok(Think { least, most })
    });
    Ok(Scenario {
        upload,
        think: think.transpose()?,
        expect: Expect {
            statuses: statuses(&words.expect_status)?,
            headers: headers(words.expect_headers)?,
            body: words.expect_body.map(Bytes::from),
        },
        name: words.name,
        weight: words.weight,
        method: words.method,
        path: words.path,
        headers: words.headers,
    })
}

fn statuses(numbers: &[u16]) -> PyResult<Vec<StatusCode>> {
    let read = |&number| StatusCode::from_u16(number);
    numbers
        .iter()
        .map(read)
        .collect::<Result<_, _>>()
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

fn headers(pairs: Vec<(String, String)>) -> PyResult<Vec<(HeaderName, String)>> {
    let read = |(name, value): (String, String)| match HeaderName::from_bytes(name.as_bytes()) {
        Ok(name) => Ok((name, value)),
        Err(_) => Err(PyValueError::new_err(format!("{name:?} is not the name of a header"))),
    };
    pairs.into_iter().map(read).collect()
}

fn progress<'py>(py: Python<'py>, progress: &Progress) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("elapsed", progress.elapsed)?;
    dict.set_item("requests", progress.requests)?;
    dict.set_item("errors", progress.errors)?;
    dict.set_item("in_flight", progress.in_flight)?;
    dict.set_item("latest", progress.latest.as_ref().map(|row| of_row(py, row)).transpose()?)?;
    Ok(dict)
}

fn report<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let dict = of_portion(py, &report.whole)?;
    dict.set_item("seconds", report.seconds)?;
    dict.set_item("rps", report.rps)?;
    dict.set_item("curve", &report.curve)?;
    dict.set_item("first_errors", &report.first_errors)?;
    dict.set_item("connect", of_latency(py, &report.connect)?)?;
    dict.set_item("lag", of_latency(py, &report.lag)?)?;
    dict.set_item("bytes", report.bytes)?;
    dict.set_item("unfinished", report.unfinished)?;
    dict.set_item("dropped", report.dropped)?;
    dict.set_item("unsent", report.unsent)?;
    dict.set_item("interrupted", report.interrupted)?;
    dict.set_item("cpu", report.cpu)?;
    let scenarios = report.scenarios.iter().map(|each| of_portion(py, each)).collect::<PyResult<Vec<_>>>()?;
    dict.set_item("scenarios", scenarios)?;
    let rows = report.timeline.iter().map(|row| of_row(py, row)).collect::<PyResult<Vec<_>>>()?;
    dict.set_item("timeline", rows)?;
    Ok(dict)
}

fn of_portion<'py>(py: Python<'py>, portion: &Portion) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", &portion.name)?;
    dict.set_item("requests", portion.requests)?;
    dict.set_item("errors", portion.errors)?;
    dict.set_item("errors_by_kind", &portion.errors_by_kind)?;
    // Keys as JSON has them.
    let statuses = portion.statuses.iter().map(|(status, count)| (status.to_string(), count));
    dict.set_item("statuses", statuses.into_py_dict(py)?)?;
    dict.set_item("latency", of_latency(py, &portion.latency)?)?;
    Ok(dict)
}

fn of_latency<'py>(py: Python<'py>, latency: &Latency) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("count", latency.count)?;
    dict.set_item("mean", latency.mean)?;
    dict.set_item("stdev", latency.stdev)?;
    dict.set_item("min", latency.min)?;
    for (name, value) in QUANTILES.iter().map(|(name, _)| name).zip(latency.quantiles) {
        dict.set_item(name, value)?;
    }
    dict.set_item("max", latency.max)?;
    Ok(dict)
}

fn of_row<'py>(py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("at", row.at)?;
    dict.set_item("seconds", row.seconds)?;
    dict.set_item("answers", row.answers)?;
    dict.set_item("errors", row.errors)?;
    dict.set_item("bytes", row.bytes)?;
    for (name, value) in [("p50", row.p50), ("p90", row.p90), ("p99", row.p99), ("max", row.max)] {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}
