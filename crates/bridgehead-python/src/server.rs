//! What Python constructs: one worker's network, and its end.
//!
//! Orchestration (lifespan, deadlines, what is said) is `worker.py`'s; each method here is one step of it.

use std::os::fd::RawFd;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bridgehead_net::{AccessLog, Config, Listener, LogPipe, Stage};
use http::{HeaderName, HeaderValue};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::drain::{Books, Bridge, Callables};
use crate::ffi;
use crate::inbox::Inbox;
use crate::real_task::RealTask;
use crate::runtime_handle::clear_runtime_handle;
use crate::scope::Template;
use crate::threaded::Threaded;
use crate::wake::Wake;

/// How long the last access lines may take.
const LAST_LINES: Duration = Duration::from_millis(500);

/// `bridgehead.worker.Options`, read once.
#[derive(FromPyObject)]
struct Options {
    listeners: Vec<RawFd>,
    root_path: String,
    state: Option<Py<PyDict>>,
    keep_alive: f64,
    date_header: bool,
    default_headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// Where access lines go: a descriptor, if anywhere.
    access_log: Option<RawFd>,
    access_colours: bool,
}

/// `bridgehead.worker.Host`: what the server calls, and where it runs.
#[derive(FromPyObject)]
struct Host {
    application: Py<PyAny>,
    answer: Py<PyAny>,
    finished: Py<PyAny>,
    complain: Py<PyAny>,
    event_loop: Py<PyAny>,
    context: Py<PyAny>,
}

/// Serves an application on a running loop.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Server {
    bridge: Py<Bridge>,
    // The loop's thread takes it once, to end it; pyo3 wants classes to be shareable.
    network: Mutex<Option<Threaded>>,
    log: Option<Arc<LogPipe>>,
}

impl Server {
    fn advance(&self, stage: Stage) {
        if let Some(network) = &*self.network.lock().unwrap_or_else(PoisonError::into_inner) {
            network.advance(stage);
        }
    }
}

#[pymethods]
impl Server {
    /// Begins to serve: when this returns, clients are let in.
    #[new]
    fn new(py: Python<'_>, host: Host, options: Options) -> PyResult<Self> {
        let log = options.access_log.map(open_log).transpose()?;
        let listeners = options.listeners.iter().map(|&number| listen(number)).collect::<PyResult<_>>()?;
        let access_log =
            log.as_ref().map(|pipe| AccessLog { pipe: Arc::clone(pipe), colours: options.access_colours });
        let config = Config {
            keep_alive: Duration::try_from_secs_f64(options.keep_alive)?,
            date_header: options.date_header,
            default_headers: default_headers(&options.default_headers)?,
            access_log,
        };
        let inbox = Arc::new(Inbox::new(Wake::new()?));
        let network = py.detach(|| Threaded::start(config, listeners, Arc::clone(&inbox)))?;
        let event_loop = host.event_loop.bind(py);
        let bridge = Bridge {
            callables: Callables {
                application: host.application,
                answer: host.answer,
                finished: host.finished,
                complain: host.complain,
            },
            handle: network.handle.clone(),
            context: host.context,
            template: Template::new(py, options.root_path, options.state)?,
            stepper: Box::new(RealTask::new(event_loop)?),
            books: Mutex::new(Books::default()),
            turns: AtomicU64::new(0),
            event_loop: event_loop.clone().unbind(),
            inbox,
        };
        let bridge = Py::new(py, bridge)?;
        let descriptor = bridge.get().inbox.wake().descriptor();
        event_loop.call_method1("add_reader", (descriptor, &bridge))?;
        Ok(Self { bridge, network: Mutex::new(Some(network)), log })
    }

    /// Lets nobody in any more but those who wait; running requests finish.
    fn drain(&self) {
        self.advance(Stage::Draining);
    }

    /// Closes every connection.
    fn abort(&self) {
        self.advance(Stage::Aborting);
    }

    /// Cancels the requests that still run, and says how many.
    fn cancel(&self, py: Python<'_>) -> PyResult<usize> {
        self.bridge.get().cancel(py)
    }

    /// How many requests have not returned yet.
    #[getter]
    fn running(&self) -> usize {
        self.bridge.get().running()
    }

    /// Ends what is left; the server is of no use afterwards.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(network) = self.network.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        let bridge = self.bridge.get();
        bridge.event_loop.call_method1(py, "remove_reader", (bridge.inbox.wake().descriptor(),))?;
        clear_runtime_handle();
        let ended = py.detach(|| {
            let ended = network.join();
            if let Some(log) = &self.log {
                log.close(LAST_LINES);
            }
            ended
        });
        ended.map_err(|_| {
            PyRuntimeError::new_err("the network's thread panicked: this is a bug in Bridgehead")
        })
    }
}

fn open_log(descriptor: RawFd) -> PyResult<Arc<LogPipe>> {
    let descriptor = ffi::duplicate(descriptor)?;
    Ok(ffi::without_signals(|| LogPipe::start(descriptor))?)
}

fn listen(descriptor: RawFd) -> PyResult<Listener> {
    Listener::new(ffi::duplicate(descriptor)?).map_err(|error| PyOSError::new_err(error.to_string()))
}

/// Values of one name together, as they are sent or left out together.
fn default_headers(pairs: &[(Vec<u8>, Vec<u8>)]) -> PyResult<Vec<(HeaderName, Vec<HeaderValue>)>> {
    let mut grouped: Vec<(HeaderName, Vec<HeaderValue>)> = Vec::new();
    for (name, value) in pairs {
        let refused = |error: http::Error| PyValueError::new_err(error.to_string());
        let name = HeaderName::from_bytes(name).map_err(|error| refused(error.into()))?;
        let value = HeaderValue::from_bytes(value).map_err(|error| refused(error.into()))?;
        match grouped.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => grouped.push((name, vec![value])),
        }
    }
    Ok(grouped)
}
