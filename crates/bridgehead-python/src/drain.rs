//! The loop's side of the inbox: starts new requests, resumes those that waited.
//!
//! A plain callback of the loop, or in the place of its poll (`turner.rs`): no task is current while it runs. A request's
//! Python objects are made here first.
//!
//! Invariant: the runtime handle is set before anything else, and a batch ends after [`BATCH`] events or [`SHARE`], so
//! that the loop's own callbacks have their turn.

use std::cell::RefMut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bridgehead_executor::Executor;
use bridgehead_net::{Arrival, Token};
use pyo3::prelude::*;

use crate::books::{Books, Flush, Network};
use crate::callables::Callables;
use crate::figures::Figures;
use crate::flusher::Flusher;
use crate::function::{ReceiveFunction, SendFunction};
use crate::fused::Patience;
use crate::http::Http;
use crate::http_state::State;
use crate::inbox::{Event, Inbox};
use crate::lent::Lender;
use crate::logs::Names;
use crate::nested::Nested;
use crate::pace::Pace;
use crate::paced::Paced;
use crate::presence::Presence;
use crate::runtime_handle::{RuntimeHandle, set_runtime_handle};
use crate::scope::{Template, trailers};
use crate::stepper::{Request, Stepper};
use crate::told::{Asked, Known, Told};
use crate::under_gil::UnderGil;
use crate::wait::Wait;
use crate::whose::Longest;
use crate::{ffi, logs, names, spans};

const BATCH: usize = 32;
const SHARE: Duration = Duration::from_millis(5);

/// Carries requests from the inbox to coroutines. Calling it drains the inbox, and turns a nested network first.
#[pyclass(frozen, weakref, module = "bridgehead._native")]
pub(crate) struct Bridge {
    pub(crate) callables: Callables,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) lender: Arc<Lender>,
    pub(crate) handle: RuntimeHandle,
    pub(crate) event_loop: Py<PyAny>,
    /// Every request starts from a copy of it.
    pub(crate) context: Py<PyAny>,
    pub(crate) template: Template,
    pub(crate) stepper: Box<dyn Stepper>,
    pub(crate) books: UnderGil<Books>,
    /// Who has what is kept back leave when the loop does not come back.
    pub(crate) presence: Arc<Presence>,
    /// Who has things leave between the drain's callbacks.
    pub(crate) between: Flush,
    /// When the loop polls by itself and turns the network as well.
    pub(crate) nested: Option<Nested>,
    // The loop's thread only. Counts turns of the loop: a request that sees it move knows that nobody waits for it.
    pub(crate) turns: AtomicU64,
    /// Requests are cancelled by us.
    pub(crate) cancels: AtomicBool,
    /// Who looks after the loop, if anybody does.
    pub(crate) pace: Option<Arc<Pace>>,
    /// In asyncio's debug mode, whose step was the longest.
    pub(crate) longest: Option<Longest>,
    /// Where requests are measured, if they are.
    pub(crate) figures: Figures,
    /// Whether the network may want to cancel one that asks for no WebSocket.
    pub(crate) cancellable: bool,
}

impl Bridge {
    pub(crate) fn books<'a, 'py: 'a>(&'a self, py: Python<'py>) -> RefMut<'a, Books> {
        self.books.lock(py)
    }

    pub(crate) fn turn(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// The loop's own callbacks come next, if there are any.
    pub(crate) fn next_turn(&self) {
        self.turns.store(self.turn() + 1, Ordering::Relaxed);
    }

    pub(crate) fn event_loop(&self, py: Python<'_>) -> Py<PyAny> {
        self.event_loop.clone_ref(py)
    }

    /// Whether applications may answer by a file's name.
    pub(crate) fn offers_paths(&self) -> bool {
        self.template.offers_paths()
    }

    pub(crate) fn inbox(&self) -> Arc<Inbox> {
        Arc::clone(&self.inbox)
    }

    /// Says something of the application to its operator.
    pub(crate) fn complain(&self, py: Python<'_>, sentence: &str, names: Names<'_>) -> PyResult<()> {
        self.callables.complain.call1(py, (sentence, names)).map(drop)
    }

    /// The network has ended: its last lines are said.
    pub(crate) fn say_last(&self, py: Python<'_>, unread: u64) -> PyResult<()> {
        let reports = self.callables.reports.bind(py);
        if unread > 0 {
            logs::say_unread(reports, unread)?;
        }
        while let Some(event) = self.inbox.take() {
            match event {
                Event::Report(report) => logs::say(reports, report)?,
                Event::Lost(count) => logs::say_lost(reports, count)?,
                Event::Returned => self.lender.let_go(py),
                Event::Arrived(_)
                | Event::Progress(_)
                | Event::Room(_)
                | Event::Cancel(_)
                | Event::Finished => {}
            }
        }
        Ok(())
    }

    /// How many requests have not returned yet.
    pub(crate) fn running(&self, py: Python<'_>) -> usize {
        self.books(py).requests.len()
    }

    /// A request keeps something back; it leaves after the event that is being handled, or when the loop turns.
    pub(crate) fn hold(&self, http: &Bound<'_, Http>) -> PyResult<()> {
        let py = http.py();
        let mut books = self.books(py);
        books.held.push(http.clone().unbind());
        if books.flush != Flush::Nobody {
            return Ok(());
        }
        books.flush = Flush::Scheduled;
        drop(books);
        if let Some(nested) = &self.nested {
            return nested.schedule(http.get().bridge_object(py).bind(py));
        }
        let flush = Flusher { bridge: http.get().bridge_object(py) };
        self.event_loop.call_method1(py, names::call_soon(py), (flush,)).map(drop)
    }

    /// Whose work goes to Tokio, which the drain has set the handle for.
    pub(crate) fn executor(&self) -> &Executor {
        &self.handle.executor
    }

    /// Has everything leave that was kept back; `next` looks after what comes then.
    fn flush(&self, py: Python<'_>, next: Flush) {
        let mut books = self.books(py);
        books.flush = next;
        if books.held.is_empty() {
            return;
        }
        let held = std::mem::take(&mut books.held);
        drop(books);
        for http in &held {
            http.get().flush(py);
        }
    }

    /// A request is over.
    pub(crate) fn forget(&self, py: Python<'_>, Token(key): Token) -> PyResult<()> {
        let forgotten = self.books(py).requests.try_remove(key);
        self.figures.running(|| self.running(py));
        drop(forgotten);
        self.tell_when_over(py)
    }

    /// The network's turn comes: everything leaves that was kept back.
    pub(crate) fn push_out(&self, py: Python<'_>) {
        self.flush(py, Flush::Itself);
    }

    /// The loop's own callbacks come: what they keep back is looked after as it comes.
    pub(crate) fn rest(&self, py: Python<'_>) {
        self.flush(py, self.between);
    }

    /// Present when the loop polls by itself and turns the network as well.
    pub(crate) fn nested(&self) -> Option<&Nested> {
        self.nested.as_ref()
    }

    /// Does what may give the network something to do: outside a turn of it, one turn is scheduled for all of that.
    pub(crate) fn tend<T>(slf: &Bound<'_, Self>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        match &slf.get().nested {
            Some(nested) => nested.tend(slf, work),
            None => work(),
        }
    }

    fn tell_when_over(&self, py: Python<'_>) -> PyResult<()> {
        let mut books = self.books(py);
        if books.network != Network::Over || !books.requests.is_empty() {
            return Ok(());
        }
        books.network = Network::Told;
        drop(books);
        let finished = self.callables.finished.bind(py);
        self.event_loop.call_method1(py, names::call_soon(py), (finished,)).map(drop)
    }

    fn handle(slf: &Bound<'_, Self>, event: Event) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        match event {
            Event::Arrived(arrival) => Self::start(slf, *arrival),
            Event::Progress(token) => {
                this.resume(py, token);
                Ok(())
            }
            Event::Room(token) => {
                if let Some(http) = this.request(py, token) {
                    http.get().room_came(py);
                }
                this.resume(py, token);
                Ok(())
            }
            Event::Cancel(token) => this.cancel_one(py, token),
            Event::Returned => {
                this.lender.let_go(py);
                Ok(())
            }
            Event::Report(report) => logs::say(this.callables.reports.bind(py), report),
            Event::Lost(count) => logs::say_lost(this.callables.reports.bind(py), count),
            Event::Finished => {
                this.books(py).network = Network::Over;
                this.tell_when_over(py)
            }
        }
    }

    pub(crate) fn request(&self, py: Python<'_>, Token(key): Token) -> Option<Py<Http>> {
        self.books(py).requests.get(key).and_then(|http| Some(http.as_ref()?.clone_ref(py)))
    }

    /// Whoever waits in this request looks again.
    fn resume(&self, py: Python<'_>, token: Token) {
        let Some(http) = self.request(py, token) else { return };
        if let (Some(pace), Some(asked)) = (&self.pace, &http.get().known.asked) {
            pace.is_for(asked);
        }
        let task = self.for_debug_mode(|| http.get().task(py));
        for wait in http.get().take_waits(py) {
            Wait::resolve_now(wait.bind(py));
        }
        self.say_whose(py, || http.get().task(py));
        self.was_for(py, || task);
    }

    /// Makes a request's Python objects and takes the first step of its coroutine.
    fn start(slf: &Bound<'_, Self>, arrival: Arrival) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let Arrival { head, peer, story, half, permit, websocket } = arrival;
        let called = this.figures.called(story.as_deref());
        let trailers = trailers(&head);
        let scope = match &websocket {
            None => this.template.scope(py, &head, &peer, trailers)?,
            Some(asked) => this.template.websocket_scope(py, &head, &peer, &asked.subprotocols)?,
        };
        let key = this.books(py).admit();
        this.figures.running(|| this.running(py));
        // A WebSocket has a time for its acceptance.
        if (this.cancellable || websocket.is_some()) && !half.known_as(Token(key)) {
            // It was over before it began.
            return this.forget(py, Token(key));
        }
        let mut state = State::new(half, permit, &head.method, trailers);
        state.called = called.filter(|_| websocket.is_none());
        if let Some(asked) = websocket {
            state = state.of_websocket(asked.half);
        }
        let told = story.clone().map(|story| Told::new(story, &scope));
        let asked = this.pace.as_ref().map(|pace| {
            let asked = Asked::of(&head);
            pace.is_for(&asked);
            asked
        });
        let known = Known { trace: head.trace.clone(), asked, told };
        let http = Py::new(py, Http::new(slf.clone().unbind(), Token(key), state, known))?;
        if let Some(place) = this.books(py).requests.get_mut(key) {
            *place = Some(http.clone_ref(py));
        }
        // Its task may have ended by then, and know no more whose it was.
        let its_scope = scope.clone();
        let started = (|| {
            let receive = ReceiveFunction::new(http.clone_ref(py));
            let send = SendFunction::new(http.clone_ref(py));
            let arguments = (&this.callables.application, scope, receive, send, &http);
            let coroutine = this.callables.answer.bind(py).call1(arguments)?;
            let request = Request { head: &head };
            let context = ffi::copy_of(this.context.bind(py))?;
            spans::attach(this.callables.attach.as_ref(), &context, story.as_deref())?;
            this.stepper.start(coroutine, context, request)
        })();
        match started {
            Ok(task) => {
                this.say_whose(py, || Some(its_scope.into_any().unbind()));
                this.was_for(py, || Some(task.clone().unbind()));
                Http::keep(http.bind(py), &task)
            }
            Err(error) => {
                // Whoever keeps the error keeps the frames that it went through, and so the request.
                Http::give_up(http.bind(py))?;
                this.forget(py, Token(key))?;
                Err(error)
            }
        }
    }
}

impl Bridge {
    /// Takes a batch out of the inbox. True when something is left.
    pub(crate) fn drain(slf: &Bound<'_, Self>) -> PyResult<bool> {
        let (py, this) = (slf.py(), slf.get());
        set_runtime_handle(&this.handle);
        this.books(py).flush = Flush::Itself;
        this.inbox.open();
        let mut paced = Paced::begin(this, py);
        for _ in 0..BATCH {
            let Some(event) = this.inbox.take() else { break };
            if let Err(error) = Self::handle(slf, event) {
                names::report(py, &this.event_loop, error);
            }
            this.flush(py, Flush::Itself);
            if paced.step(py) >= SHARE {
                break;
            }
        }
        this.flush(py, this.between);
        paced.end(py);
        Ok(this.inbox.close())
    }
}

#[pymethods]
impl Bridge {
    /// How asyncio's debug mode finds the task that it has called: the one that took the longest.
    #[getter]
    fn __self__(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.longest_task(py)
    }

    fn __call__(slf: &Bound<'_, Self>) -> PyResult<()> {
        if let Some(nested) = &slf.get().nested {
            return nested.turn(slf, Patience::None);
        }
        let left = Self::drain(slf);
        slf.get().next_turn();
        if left? {
            slf.get().event_loop.call_method1(slf.py(), names::call_soon(slf.py()), (slf,))?;
        }
        Ok(())
    }
}
