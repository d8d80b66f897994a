//! One request as its application sees it: what `receive()` and `send()` do.
//!
//! Rules are `bridgehead-asgi`'s, waiting is the exchange's; this file brings the two together on the loop's thread and
//! decides what leaves together: a head waits for its first body message, however long that takes; a piece of a body for
//! the next, but no longer than until the application pauses.
//!
//! Invariant: the state is locked only where no Python can run.

use std::cell::RefMut;
use std::sync::atomic::Ordering;

use bridgehead_asgi::{More, RequestEvent, Response};
use bridgehead_net::{AppHalf, CHUNKS, Piece, Reception, Room, Token};
use bytes::Bytes;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};

use crate::budget::MESSAGES;
use crate::drain::Bridge;
use crate::file_send::FileSend;
use crate::http_state::{Outbox, RoomWatch, State};
use crate::logs::{self, Names};
use crate::message::{self, Message};
use crate::outcome::Outcome;
use crate::told::Known;
use crate::under_gil::UnderGil;
use crate::wait::Wait;
use crate::{ffi, names, websocket};

// A drive that fills its channel before it has to yield would wait for the client in every turn.
const _: () = assert!(CHUNKS > MESSAGES as usize);

/// One HTTP exchange on the loop's thread.
#[pyclass(frozen, weakref, module = "bridgehead._native")]
pub(crate) struct Http {
    bridge: Py<Bridge>,
    pub(crate) token: Token,
    pub(crate) known: Known,
    state: UnderGil<State>,
}

impl Http {
    pub(crate) fn new(bridge: Py<Bridge>, token: Token, state: State, known: Known) -> Self {
        Self { bridge, token, known, state: UnderGil::new(state) }
    }

    pub(crate) fn lock<'a, 'py: 'a>(&'a self, py: Python<'py>) -> RefMut<'a, State> {
        self.state.lock(py)
    }

    pub(crate) fn bridge(&self) -> &Bridge {
        self.bridge.get()
    }

    /// Does what may give the network something to do.
    pub(crate) fn tend<T>(slf: &Bound<'_, Self>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        Bridge::tend(slf.get().bridge.bind(slf.py()), work)
    }

    pub(crate) fn bridge_object(&self, py: Python<'_>) -> Py<Bridge> {
        self.bridge.clone_ref(py)
    }

    /// Keeps the task alive until the application has returned. One that has ended without a word of that was struck before
    /// it could say anything, as by what a signal handler raises: its request ends with it.
    pub(crate) fn keep(slf: &Bound<'_, Self>, task: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let mut state = this.lock(py);
        if state.half.is_none() {
            return Ok(());
        }
        state.task = Some(task.clone().unbind());
        drop(state);
        if task.call_method0(intern!(py, "done"))?.is_truthy()? {
            Self::give_up(slf)?;
            // Nobody else asks for it.
            let error = task.call_method0(intern!(py, "exception"))?;
            if !error.is_none() {
                names::report(py, &this.bridge().event_loop, PyErr::from_value(error));
            }
        }
        Ok(())
    }

    /// The request ends without a word of its application's.
    pub(crate) fn give_up(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::tend(slf, || slf.get().end(slf.py(), true, false)).map(drop)
    }

    pub(crate) fn task(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.lock(py).task.as_ref().map(|task| task.clone_ref(py))
    }

    /// Whether the network wants the request to end.
    pub(crate) fn is_cancelled(&self, py: Python<'_>) -> bool {
        self.lock(py).half.as_ref().is_some_and(AppHalf::is_cancelled)
    }

    /// Who waits for what the network has just told of.
    pub(crate) fn take_waits(&self, py: Python<'_>) -> Vec<Py<Wait>> {
        std::mem::take(&mut self.lock(py).waits)
    }

    /// Tokio waits for room no more.
    pub(crate) fn room_came(&self, py: Python<'_>) {
        self.lock(py).room = RoomWatch::Off;
    }

    /// Sends what was kept back: pieces that may have been followed by others.
    pub(crate) fn flush(&self, py: Python<'_>) {
        let mut state = self.lock(py);
        state.outbox = Outbox::Empty;
        state.push_out();
    }

    /// What was sent is kept back until the application pauses: pieces that are ready together leave together.
    /// Says whether the standby has to know.
    pub(crate) fn keep_back(slf: &Bound<'_, Self>) -> PyResult<bool> {
        let (py, this) = (slf.py(), slf.get());
        let mut state = this.lock(py);
        let before = std::mem::replace(&mut state.outbox, Outbox::Pieces);
        if before == Outbox::Empty {
            state.budget.watch();
        }
        drop(state);
        if before == Outbox::Empty {
            this.bridge.get().hold(slf)?;
        }
        Ok(before == Outbox::Empty)
    }

    /// The application may block before its next piece; these leave then all the same.
    pub(crate) fn keep_for_standby(&self, py: Python<'_>) {
        let kept = self.lock(py).kept();
        if let Some(kept) = kept {
            self.bridge.get().presence.keep(kept);
        }
    }

    /// One attempt of a `receive()`.
    pub(crate) fn receive_now(&self, py: Python<'_>) -> PyResult<Outcome> {
        let bridge = self.bridge.get();
        let mut state = self.lock(py);
        if state.budget.is_spent(bridge.turn()) {
            state.budget.rest();
            return Ok(Outcome::Yield);
        }
        if state.websocket.is_some() {
            return self.hear_now(py, state);
        }
        match state.receive(self.token) {
            Reception::Chunk(piece, more) => {
                drop(state);
                Ok(Outcome::Done(Some(request_message(py, &piece, more)?)))
            }
            Reception::Gone => {
                drop(state);
                Ok(Outcome::Done(Some(disconnect_message(py)?)))
            }
            Reception::Nothing => {
                drop(state);
                self.wait(py)
            }
        }
    }

    /// One attempt of a `send()`: the message is taken, or refused by an exception.
    pub(crate) fn send_now(
        slf: &Bound<'_, Self>,
        message: &Bound<'_, PyAny>,
        file: &mut Option<Box<FileSend>>,
    ) -> PyResult<Outcome> {
        let py = slf.py();
        let this = slf.get();
        let bridge = this.bridge.get();
        // Taken before it yields, or what other tasks of the request send meanwhile would overtake it.
        let (is_spent, websocket) = {
            let mut state = this.lock(py);
            (state.budget.is_spent(bridge.turn()), state.websocket.is_some())
        };
        if websocket {
            let outcome = Self::say_now(slf, message)?;
            return Ok(if is_spent { this.after(py, outcome) } else { outcome });
        }
        let room = match message::read(message, file, &bridge.lender)? {
            Message::Hint(links) => this.lock(py).hint(links)?,
            Message::Start(head) => {
                this.lock(py).start(head)?;
                Room::Free
            }
            Message::Body(body, more) => Self::pass_body(slf, body, more)?,
            Message::File(kind, mut file) => {
                Self::begin_file(slf, kind, &mut file)?;
                return Ok(Outcome::File(file));
            }
            Message::Trailers(fields, more) => {
                let (room, ended) = this.lock(py).trailers(fields, more)?;
                if ended {
                    this.response_ended(py)?;
                }
                room
            }
        };
        match room {
            Room::Free if is_spent => Ok(this.after(py, Outcome::Done(None))),
            Room::Free => Ok(Outcome::Done(None)),
            Room::Gone => Err(this.lock(py).gone()),
            Room::Full => this.wait_for_room(py),
        }
    }

    /// The loop comes first, after what is done. Not between a head and its body, however slow the machine: what leaves
    /// in one piece would leave in two, and with another framing.
    fn after(&self, py: Python<'_>, outcome: Outcome) -> Outcome {
        if !matches!(outcome, Outcome::Done(_)) {
            return outcome;
        }
        let mut state = self.lock(py);
        if state.holds_head() {
            return outcome;
        }
        state.budget.rest();
        Outcome::Yield
    }

    /// Passes a piece of the body on.
    pub(crate) fn pass_body(slf: &Bound<'_, Self>, body: Bytes, more: More) -> PyResult<Room> {
        let (py, this) = (slf.py(), slf.get());
        if more == More::Ends {
            this.name_route(py);
        }
        let (room, notice, ended) = this.lock(py).body(body, more)?;
        if let Some(notice) = notice {
            this.bridge.get().complain(py, &notice, this.names())?;
        }
        if ended {
            this.response_ended(py)?;
        } else if room == Room::Free && Self::keep_back(slf)? {
            this.keep_for_standby(py);
        }
        Ok(room)
    }

    /// Whoever waits in another task to hear of the end hears of it now.
    fn response_ended(&self, py: Python<'_>) -> PyResult<()> {
        let waits = {
            let mut state = self.lock(py);
            state.request = state.request.next(RequestEvent::ResponseEnded);
            std::mem::take(&mut state.waits)
        };
        waits.iter().try_for_each(|wait| Wait::resolve_soon(wait.bind(py)))
    }

    fn end(&self, py: Python<'_>, failed: bool, departed: bool) -> PyResult<Option<&'static str>> {
        self.name_route(py);
        self.bridge.get().say_whose(py, || None);
        if !failed {
            self.lock(py).let_go();
        } else if !departed {
            self.lock(py).half.as_ref().inspect(|half| half.owes_an_answer());
        }
        let websocket = self.lock(py).websocket.take();
        if let Some(mut websocket) = websocket {
            let lack = websocket::settle(&mut websocket, &mut self.lock(py), failed);
            let answered = websocket.was_accepted();
            drop(websocket);
            let unfinished = self.end_exchange(py)?;
            return Ok(lack?.or(unfinished.filter(|_| !answered)));
        }
        self.end_exchange(py)
    }

    fn end_exchange(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        let (half, permit, waits, task, response, holds, called) = {
            let mut state = self.lock(py);
            let holds = state.holds_the_end();
            let (half, permit, task) = (state.half.take(), state.permit.take(), state.task.take());
            (half, permit, std::mem::take(&mut state.waits), task, state.response, holds, state.called.take())
        };
        let gone = half.as_ref().is_none_or(AppHalf::owes_nothing);
        drop((half, permit, task));
        self.bridge.get().figures.returned(called);
        waits.iter().try_for_each(|wait| Wait::resolve_soon(wait.bind(py)))?;
        self.bridge.get().forget(py, self.token)?;
        Ok(match response {
            _ if gone => None,
            Response::AwaitingStart { .. } if self.bridge.get().offers_paths() => Some(KEPT_BACK),
            Response::AwaitingStart { .. } => Some("returned without starting its response"),
            // Nothing of the body would leave that answers HEAD, but its end is due as for GET.
            Response::Streaming { .. } | Response::Bodiless => {
                Some("returned without completing its response")
            }
            Response::Ended if holds => Some("returned without sending the trailers that it promised"),
            Response::Discarding | Response::Ended => None,
        })
    }
}

const KEPT_BACK: &str = "returned without starting its response; with --pathsend, middleware that waits for a body \
                         may have kept it back";

fn request_message(py: Python<'_>, piece: &Piece, more: More) -> PyResult<Py<PyAny>> {
    let message = PyDict::new(py);
    message.set_item(names::kind(py), names::http_request(py))?;
    message.set_item(names::body(py), ffi::bytes_of(py, piece.parts())?)?;
    message.set_item(names::more_body(py), more.follows())?;
    Ok(message.into_any().unbind())
}

fn disconnect_message(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let message = PyDict::new(py);
    message.set_item(names::kind(py), names::http_disconnect(py))?;
    Ok(message.into_any().unbind())
}

#[pymethods]
impl Http {
    /// The application has returned, or raised, if only since its client has left. Says what its response lacks, if a
    /// client was there to miss it.
    #[pyo3(signature = (*, failed = false, departed = false))]
    fn settle(&self, py: Python<'_>, failed: bool, departed: bool) -> PyResult<Option<&'static str>> {
        Bridge::tend(self.bridge.bind(py), || self.end(py, failed, departed))
    }

    /// What the request is called in lines and records, if ids are given: its id, and its `traceparent`.
    #[getter]
    fn names(&self) -> Names<'_> {
        logs::names_of(self.known.trace.as_deref())
    }

    /// Whether the client has left, as far as the application was told.
    #[getter]
    fn gone(&self, py: Python<'_>) -> bool {
        let state = self.lock(py);
        match state.accepted() {
            Some(websocket) => websocket.is_over(),
            None => state.half.as_ref().is_none_or(AppHalf::owes_nothing),
        }
    }

    /// Whether it is the server that cancels the request.
    #[getter]
    fn stopping(&self, py: Python<'_>) -> bool {
        self.bridge.get().cancels.load(Ordering::Relaxed) || self.is_cancelled(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.bridge)?;
        if let Some(told) = &self.known.told {
            told.visit(&visit)?;
        }
        // What is being changed is in use.
        if let Some(state) = self.state.visited(&visit) {
            if let Some(task) = &state.task {
                visit.call(task)?;
            }
            for wait in &state.waits {
                visit.call(wait)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self, py: Python<'_>) {
        let (waits, task) = {
            let mut state = self.lock(py);
            (std::mem::take(&mut state.waits), state.task.take())
        };
        drop((waits, task));
    }
}
