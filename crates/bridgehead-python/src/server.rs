//! What Python constructs: one worker's network, and its end.
//!
//! Orchestration (lifespan, deadlines, what is said) is `worker.py`'s; each method here is one step of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bridgehead_admission::Admission;
use bridgehead_asgi::encode_path;
use bridgehead_metrics::{Condition, Gauge, Sheet};
use bridgehead_net::{Stage, Tally};
use bridgehead_otel::Tracer;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::all_tasks::StandIn;
use crate::books::{Books, Flush};
use crate::callables::Callables;
use crate::census::{InAll, Inquiry, in_all};
use crate::drain::Bridge;
use crate::figures::Figures;
use crate::function;
use crate::health::{Health, Rests};
use crate::lent::Lender;
use crate::listening::{Doors, Shutters, listeners};
use crate::logs::Lines;
use crate::network::{self, Reach, Started, Wanted};
use crate::options::{Host, Options};
use crate::pace::Pace;
use crate::request_task;
use crate::runtime::Runtime;
use crate::runtime_handle::forget_runtime_handle;
use crate::scope::{Extensions, Template};
use crate::sheets;
use crate::soon;
use crate::spans::Watch;
use crate::stack::Stack;
use crate::suspicion::Suspect;
use crate::turner::Turner;
use crate::under_gil::UnderGil;
use crate::whose::Longest;

/// How long the last access lines may take.
const LAST_LINES: Duration = Duration::from_millis(500);

/// Serves an application on a running loop.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Server {
    bridge: Py<Bridge>,
    // The loop's thread takes it once, to end it; pyo3 wants classes to be shareable.
    network: Mutex<Option<Box<dyn Runtime>>>,
    shutters: Shutters,
    turner: Option<Py<Turner>>,
    fallback: Option<String>,
    lines: Option<Lines>,
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
        function::prepare(py);
        let mut wiring = options.logs.wire(&encode_path(&options.root_path))?;
        let lines = wiring.lines.take();
        let sheet = options.sheet.get().words();
        let admission = Arc::<OnceLock<Admission>>::default();
        let heard = Arc::<OnceLock<_>>::default();
        let watch = || Watch { sheet: sheet.clone(), inbox: Arc::clone(&heard) };
        let tracer = options.spans.as_ref().map(|spans| spans.start(py, watch())).transpose()?;
        let doors = Doors { tls: options.tls.as_ref(), redirect: options.redirect, recall: options.recall };
        let (listeners, shutters) = listeners(&options.listeners, options.rota.as_ref(), &doors)?;
        let config = options.read(wiring, (&sheet, Arc::clone(&admission), tracer.clone()))?;
        let Started { network, inbox, presence, reach } =
            network::start(py, &options.runtime, config, listeners)?;
        // The only one to set it.
        let _ = heard.set(Arc::clone(&inbox));
        let event_loop = host.event_loop.bind(py);
        let slow = options.slow_step.map(Duration::try_from_secs_f64).transpose()?;
        let pace = slow.map(|slow| Arc::new(Pace::new(sheet.clone(), slow)));
        pace.iter().for_each(|pace| presence.rouses(Arc::clone(pace)));
        let (mut fused, mut nested, mut fallback) = (None, None, None);
        match reach {
            Reach::Selector(turned) => fused = Some(turned),
            Reach::Callbacks(turned) => nested = Some(turned),
            Reach::Descriptor(why) => fallback = why,
        }
        let (between, rests) = match fused {
            Some(_) => (Flush::Itself, Rests::Roused),
            None => (Flush::Nobody, Rests::Unheard),
        };
        let bridge = Bridge {
            callables: Callables {
                application: host.application,
                answer: host.answer,
                finished: host.finished,
                complain: host.complain,
                route: host.route,
                whose: host.whose,
                attach: options.spans.as_ref().and_then(|spans| spans.attacher(py)),
                reports: options.logs.reports,
            },
            handle: network.handle(),
            context: host.context,
            template: Template::new(
                py,
                options.root_path,
                options.state,
                Extensions {
                    paths: options.pathsend,
                    http1_hints: options.http1_early_hints,
                    shutdown: host.shutdown,
                },
            )?,
            stepper: request_task::stepper(event_loop, options.request_task, host.trace)?,
            books: UnderGil::new(Books::starting(between)),
            between,
            nested,
            presence,
            turns: AtomicU64::new(0),
            cancels: AtomicBool::new(false),
            pace: pace.clone(),
            longest: Longest::of(event_loop)?,
            figures: Figures(options.measures.then(|| sheet.clone())),
            cancellable: options.bounds.cancels_requests(),
            event_loop: event_loop.clone().unbind(),
            lender: Lender::new(Arc::clone(&inbox)),
            inbox,
        };
        let bridge = Py::new(py, bridge)?;
        if let Some(descriptor) = bridge.get().inbox.wake().descriptor() {
            host.watch.call1(py, (event_loop, descriptor, soon::reader(bridge.bind(py))?))?;
        }
        if let Some(nested) = bridge.get().nested() {
            nested.attach(bridge.bind(py))?;
        }
        sheets::serve(&sheet);
        options.bounds.tell(&sheet);
        let turner = match (fused, options.runtime) {
            (Some(fused), Wanted::Selector(polled)) => {
                Some(Py::new(py, Turner::new(py, bridge.clone_ref(py), fused, polled.names)?)?)
            }
            _ => None,
        };
        let suspect = Suspect::this_thread();
        let Host { census: look, place, slow: tell, over, files, .. } = host;
        let stack = if pace.is_some() { Stack::of_this_thread(py, files)? } else { None };
        let inquiry = Inquiry { look, place, slow: tell, over, suspect, stack };
        let asked = Arc::clone(&bridge.get().inbox);
        let watch = |pace| Health::start(pace, move |probe| asked.probe(probe), rests, inquiry);
        let health = pace.map(watch).transpose()?;
        let (network, health) = (Mutex::new(Some(network)), Mutex::new(health));
        let registers = StandIn::take_place(py, options.tasks_register)?;
        Ok(Self {
            bridge,
            network,
            shutters,
            turner,
            fallback,
            lines,
            sheet,
            admission,
            health,
            registers,
            tracer,
        })
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

    /// Lets nobody in any more at one listener but those who wait; connections go on.
    fn shut(&self, number: usize) -> PyResult<()> {
        self.shutters.shut(number)
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

    /// Cancels the requests that still run, and says how many. Those who wait for one of them to end are told so.
    fn cancel(&self, py: Python<'_>) -> PyResult<usize> {
        self.admission.get().into_iter().for_each(Admission::dismiss);
        self.bridge.get().cancel(py)
    }

    /// How many requests have not returned yet.
    #[getter]
    fn running(&self, py: Python<'_>) -> usize {
        self.bridge.get().running(py)
    }

    /// How many requests there were so far.
    #[getter]
    fn begun(&self, py: Python<'_>) -> u64 {
        self.bridge.get().books(py).begun
    }

    /// How many requests wait: for a permit, and for the loop.
    #[getter]
    fn queued(&self) -> (usize, usize) {
        let waiting = self.admission.get().map_or(0, Admission::waiting);
        (waiting, self.bridge.get().inbox.arrivals())
    }

    /// The slow step that is over, of which the census has yet to tell that.
    #[getter]
    fn just_over(&self) -> Option<InAll> {
        self.bridge.get().pace.as_ref()?.just_over.seen().map(in_all)
    }

    /// How often clients were refused, cut off or kept waiting, by reason. Also when all is over.
    #[getter]
    fn counts(&self) -> BTreeMap<&'static str, u64> {
        Tally::on(self.sheet.clone()).counts()
    }

    /// Has access lines go to the `descriptor` from here on, to the `loggers`, or to `nobody`. From any thread.
    fn turn_lines(&self, taker: &str) -> PyResult<()> {
        self.lines.as_ref().map_or(Ok(()), |lines| lines.turn(taker))
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
            self.tracer.iter().for_each(|tracer| tracer.close());
            let lost = self.lines.as_ref().map_or(0, |lines| lines.close(LAST_LINES));
            ended.map(|()| lost)
        });
        let lost = ended.map_err(|_| {
            PyRuntimeError::new_err("the network's thread panicked: this is a bug in Bridgehead")
        })?;
        bridge.say_last(py, lost)
    }
}
