//! What Python constructs: one worker's network, and its end.
//!
//! Orchestration (lifespan, deadlines, what is said) is `worker.py`'s; each method here is one step of it.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bridgehead_metrics::{Condition, Gauge, Sheet};
use bridgehead_net::{
    Admission, Config, HealthPath, Http2, Listener, LogPipe, Meters, Ownership, Reasons, Stage, Tally,
};
use bridgehead_otel::Tracer;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::all_tasks::StandIn;
use crate::board::{Board, since_the_start};
use crate::bounds::{Bounds, WebSockets};
use crate::callables::Callables;
use crate::census::Inquiry;
use crate::default_headers::default_headers;
use crate::drain::{Books, Bridge, Flush};
use crate::driver::Driver;
use crate::ffi;
use crate::figures::Figures;
use crate::health::{Health, Pace};
use crate::lent::Lender;
use crate::logs::{Logs, Wiring};
use crate::network::{self, Reach, Started, Wanted};
use crate::proxying::{Forwarding, Proxies};
use crate::real_task::RealTask;
use crate::request_task::RequestTask;
use crate::runtime::Runtime;
use crate::runtime_handle::forget_runtime_handle;
use crate::scope::{Extensions, Template};
use crate::sheets;
use crate::soon;
use crate::spans::Spans;
use crate::stepper::Stepper;
use crate::suspicion::Suspect;
use crate::tls::Tls;
use crate::turner::Turner;

/// How long the last access lines may take.
const LAST_LINES: Duration = Duration::from_millis(500);

/// `bridgehead.worker.Options`, read once.
#[derive(FromPyObject)]
struct Options {
    /// Each with whether it was bound for this worker, and whether its clients speak TLS.
    listeners: Vec<(RawFd, bool, bool)>,
    tls: Option<Py<Tls>>,
    /// The port to which the other clients are sent, if they are not served.
    redirect: Option<u16>,
    /// By which whoever lent them calls them back.
    recall: Option<RawFd>,
    /// The part of one worker among several.
    rota: Option<Rota>,
    /// What is counted goes here.
    sheet: Py<sheets::Sheet>,
    /// Steps that hold the loop for longer are told of; without, nobody looks.
    slow_step: Option<f64>,
    /// Whether requests and connections are measured as well.
    measures: bool,
    /// Where requests are traced to.
    spans: Option<Spans>,
    /// Where clients are told whether they are welcome.
    health_path: Option<String>,
    root_path: String,
    state: Option<Py<PyDict>>,
    pathsend: bool,
    keep_alive: f64,
    bounds: Bounds,
    http2: bool,
    /// How many connections there may be.
    connections: Option<usize>,
    date_header: bool,
    default_headers: Vec<(Vec<u8>, Vec<u8>)>,
    reasons: Vec<(u16, String)>,
    logs: Logs,
    forwarding: Option<Forwarding>,
    /// Who speaks for clients before their first byte.
    proxy_protocol: Option<Proxies>,
    websockets: Option<WebSockets>,
    runtime: Wanted,
    /// What coroutines are run by, if it is not asyncio alone.
    request_task: Option<RequestTaskType>,
}

/// `bridgehead.station.Station`: which slot is this worker's, and where others' sockets are.
#[derive(FromPyObject)]
struct Rota {
    board: Py<Board>,
    slot: usize,
    place: usize,
    /// Each with its slot, and whether its clients speak TLS.
    others: Vec<(RawFd, usize, bool)>,
}

impl Rota {
    fn read(&self) -> bridgehead_net::Rota {
        bridgehead_net::Rota { board: self.board.get().words(), slot: self.slot, place: self.place }
    }
}

/// `bridgehead.request_task.Chosen`: a type of task that parks, and what drives its coroutines.
#[derive(FromPyObject)]
struct RequestTaskType {
    task_type: Py<PyAny>,
    driver: Py<Driver>,
}

/// `bridgehead.worker.Host`: what the server calls, and where it runs.
#[derive(FromPyObject)]
struct Host {
    application: Py<PyAny>,
    answer: Py<PyAny>,
    finished: Py<PyAny>,
    complain: Py<PyAny>,
    /// Gives a scope's route.
    route: Py<PyAny>,
    /// Counts what there is of tasks and threads.
    census: Py<PyAny>,
    /// Gives the place where the loop is.
    place: Py<PyAny>,
    /// Told of steps that are slow.
    slow: Py<PyAny>,
    /// Told how long they were.
    over: Py<PyAny>,
    /// Told of each drive, when the operator asks.
    trace: Option<Py<PyAny>>,
    event_loop: Py<PyAny>,
    context: Py<PyAny>,
    shutdown: Py<PyDict>,
}

/// Serves an application on a running loop.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Server {
    bridge: Py<Bridge>,
    // The loop's thread takes it once, to end it; pyo3 wants classes to be shareable.
    network: Mutex<Option<Box<dyn Runtime>>>,
    turner: Option<Py<Turner>>,
    fallback: Option<String>,
    log: Option<Arc<LogPipe>>,
    sheet: Sheet,
    admission: Arc<OnceLock<Admission>>,
    // The loop's thread takes it once, to end it, as above.
    health: Mutex<Option<Health>>,
    registers: StandIn,
    tracer: Option<Arc<Tracer>>,
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
        let wiring = options.logs.wire(&options.root_path)?;
        let log = wiring.pipe.clone();
        let sheet = options.sheet.get().words();
        let admission = Arc::<OnceLock<Admission>>::default();
        let tracer = options.spans.as_ref().map(Spans::start).transpose()?;
        let Started { network, inbox, presence, reach } =
            start(py, &options, wiring, (&sheet, Arc::clone(&admission), tracer.clone()))?;
        let event_loop = host.event_loop.bind(py);
        let slow = options.slow_step.map(Duration::try_from_secs_f64).transpose()?;
        let pace = slow.map(|_| Arc::new(Pace::new(sheet.clone())));
        pace.iter().for_each(|pace| presence.rouses(Arc::clone(pace)));
        let (mut fused, mut nested, mut fallback) = (None, None, None);
        match reach {
            Reach::Selector(turned) => fused = Some(turned),
            Reach::Callbacks(turned) => nested = Some(turned),
            Reach::Descriptor(why) => fallback = why,
        }
        let between = if fused.is_some() { Flush::Itself } else { Flush::Nobody };
        let bridge = Bridge {
            callables: Callables {
                application: host.application,
                answer: host.answer,
                finished: host.finished,
                complain: host.complain,
                route: host.route,
                attach: options.spans.as_ref().and_then(|spans| spans.attacher(py)),
                reports: options.logs.reports,
            },
            handle: network.handle(),
            context: host.context,
            template: Template::new(
                py,
                options.root_path,
                options.state,
                Extensions { paths: options.pathsend, shutdown: host.shutdown },
            )?,
            stepper: stepper(event_loop, options.request_task, host.trace)?,
            books: Mutex::new(Books::starting(between)),
            between,
            nested,
            presence,
            turns: AtomicU64::new(0),
            cancels: AtomicBool::new(false),
            pace: pace.clone(),
            figures: Figures(options.measures.then(|| sheet.clone())),
            cancellable: options.bounds.cancels_requests(),
            event_loop: event_loop.clone().unbind(),
            lender: Lender::new(Arc::clone(&inbox)),
            inbox,
        };
        let bridge = Py::new(py, bridge)?;
        if let Some(descriptor) = bridge.get().inbox.wake().descriptor() {
            event_loop.call_method1("add_reader", (descriptor, soon::reader(bridge.bind(py))?))?;
        }
        if let Some(nested) = bridge.get().nested() {
            nested.attach(bridge.bind(py))?;
        }
        sheets::serve(&sheet);
        if !options.bounds.adapts() {
            sheet.set(Gauge::Limit, options.bounds.permits().unwrap_or_default() as u64);
        }
        let turner =
            fused.map(|fused| Py::new(py, Turner::new(py, bridge.clone_ref(py), fused)?)).transpose()?;
        let suspect = Suspect::this_thread();
        let Host { census: look, place, slow: tell, over, .. } = host;
        let inquiry = Inquiry { look, place, slow: tell, over, suspect };
        let health = match pace.zip(slow) {
            Some((pace, slow)) => Some(Health::start(pace, Arc::clone(&bridge.get().inbox), slow, inquiry)?),
            None => None,
        };
        let (network, health) = (Mutex::new(Some(network)), Mutex::new(health));
        let registers = StandIn::take_place(py);
        Ok(Self { bridge, network, turner, fallback, log, sheet, admission, health, registers, tracer })
    }

    /// Why the network has a thread of its own though the loop's was asked for.
    #[getter]
    fn fallback(&self) -> Option<&str> {
        self.fallback.as_deref()
    }

    /// What a fused loop's selector calls to turn the network; `None` when that has a thread of its own.
    #[getter]
    fn turner(&self, py: Python<'_>) -> Option<Py<Turner>> {
        self.turner.as_ref().map(|turner| turner.clone_ref(py))
    }

    /// Goes on serving; each answer of HTTP/1 closes its connection.
    fn last_call(&self) {
        self.sheet.set(Gauge::Condition, Condition::LastCall as u64);
        self.advance(Stage::LastCall);
    }

    /// Lets nobody in any more but those who wait; running requests finish.
    fn drain(&self) {
        self.sheet.set(Gauge::Condition, Condition::Draining as u64);
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

    /// How many requests wait: for a permit, and for the loop.
    #[getter]
    fn queued(&self) -> (usize, usize) {
        let waiting = self.admission.get().map_or(0, Admission::waiting);
        (waiting, self.bridge.get().inbox.arrivals())
    }

    /// How often clients were refused, cut off or kept waiting, by reason. Also when all is over.
    #[getter]
    fn counts(&self) -> BTreeMap<&'static str, u64> {
        Tally::on(self.sheet.clone()).counts()
    }

    /// Ends what is left; the server is of no use afterwards.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(network) = self.network.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        self.registers.leave(py)?;
        let bridge = self.bridge.get();
        if let Some(descriptor) = bridge.inbox.wake().descriptor() {
            bridge.event_loop.call_method1(py, "remove_reader", (descriptor,))?;
        }
        if let Some(nested) = bridge.nested() {
            nested.detach(self.bridge.bind(py))?;
        }
        if let Some(turner) = &self.turner {
            turner.get().detach();
        }
        forget_runtime_handle(bridge.executor());
        let health = self.health.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ended = py.detach(|| {
            let ended = health.map_or(Ok(()), Health::stop).and(network.join());
            if let Some(tracer) = &self.tracer {
                tracer.close();
            }
            let lost = self.log.as_ref().map_or(0, |log| log.close(LAST_LINES));
            ended.map(|()| lost)
        });
        let lost = ended.map_err(|_| {
            PyRuntimeError::new_err("the network's thread panicked: this is a bug in Bridgehead")
        })?;
        bridge.say_last(py, lost)
    }
}

fn stepper(
    event_loop: &Bound<'_, PyAny>,
    chosen: Option<RequestTaskType>,
    trace: Option<Py<PyAny>>,
) -> PyResult<Box<dyn Stepper>> {
    let Some(RequestTaskType { task_type, driver }) = chosen else {
        let task_type = event_loop.py().import("asyncio")?.getattr("Task")?.unbind();
        return Ok(Box::new(RealTask::new(event_loop, task_type)?));
    };
    let tasks = RealTask::new(event_loop, task_type)?;
    Ok(Box::new(RequestTask { driver, tasks, listener: trace.map(Arc::new) }))
}

/// Where others look, and what is told to them.
type Seen<'a> = (&'a Sheet, Arc<OnceLock<Admission>>, Option<Arc<Tracer>>);

fn start(py: Python<'_>, options: &Options, logs: Wiring, seen: Seen<'_>) -> PyResult<Started> {
    let config = config(options, logs, seen)?;
    let mut listeners =
        options.listeners.iter().map(|&listener| listen(listener, options)).collect::<PyResult<Vec<_>>>()?;
    for &(descriptor, slot, secure) in options.rota.iter().flat_map(|rota| &rota.others) {
        listeners.push(listen((descriptor, false, secure), options)?.of_slot(slot));
    }
    network::start(py, &options.runtime, config, listeners)
}

fn config(options: &Options, logs: Wiring, (sheet, admission, tracer): Seen<'_>) -> PyResult<Config> {
    let meters = || Meters { sheet: sheet.clone(), clock: since_the_start };
    Ok(Config {
        keep_alive: Duration::try_from_secs_f64(options.keep_alive)?,
        http2: if options.http2 { options.bounds.http2()? } else { Http2::Off },
        bounds: options.bounds.read(options.connections)?,
        date_header: options.date_header,
        default_headers: default_headers(&options.default_headers)?,
        reasons: Reasons::new(options.reasons.clone()),
        access_log: logs.access_log,
        refusals: logs.refusals,
        tally: Tally::on(sheet.clone()),
        admission,
        health: options.health_path.clone().map(|path| HealthPath { path, meters: meters() }),
        tracer,
        adapts: options.bounds.adapts().then(|| sheet.clone()),
        meters: options.measures.then(meters),
        connections: logs.connections,
        forwarding: options.forwarding.as_ref().map(Forwarding::read),
        proxy_protocol: options.proxy_protocol.as_ref().map(Proxies::read),
        request_ids: logs.request_ids,
        unconfirmed: ffi::unconfirmed,
        give_back: ffi::give_back,
        websockets: options.websockets.as_ref().map(WebSockets::read).transpose()?,
        rota: options.rota.as_ref().map(Rota::read),
    })
}

fn listen((descriptor, ours, secure): (RawFd, bool, bool), options: &Options) -> PyResult<Listener> {
    let ownership = if ours { Ownership::Ours } else { Ownership::Shared };
    let listener = Listener::new(ffi::duplicate(descriptor)?, ownership)
        .map_err(|error| PyOSError::new_err(error.to_string()))?;
    let listener = match (secure, &options.tls, options.redirect) {
        (true, Some(tls), _) => listener.secured(tls.get().credentials()),
        (true, None, _) => return Err(PyValueError::new_err("there is nothing to make handshakes with")),
        (false, _, Some(port)) => listener.redirecting(port),
        (false, _, None) => listener,
    };
    match options.recall {
        Some(recall) => Ok(listener.lent_until(ffi::duplicate(recall)?)?),
        None => Ok(listener),
    }
}
