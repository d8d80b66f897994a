//! Where one HTTP exchange stands on the application's side, and what its messages do to it.
//!
//! Rules are `bridgehead-asgi`'s and waiting is the exchange's; here the two meet. No Python runs here, though Python
//! objects are kept.
//!
//! Invariant: a head leaves with its first piece of body, and until then another answer may still go in its place.

use std::time::Instant;

use bridgehead_admission::Permit;
use bridgehead_asgi::{
    Fate, HttpMessage, Length, Misuse, More, Request, RequestEvent, RequestReceipt, Response, ResponseHead,
    Then, Write,
};
use bridgehead_net::{AppHalf, Kept, Reception, Room, Token, WebSocketHalf};
use bytes::Bytes;
use http::HeaderMap;
use pyo3::prelude::*;

use crate::budget::Budget;
use crate::raise;
use crate::trailing::Trailing;
use crate::wait::Wait;
use crate::websocket_state::WebSocketState;

pub(crate) struct State {
    /// Gone once the application has returned.
    pub(crate) half: Option<AppHalf>,
    /// The same; somebody else may run then.
    pub(crate) permit: Option<Permit>,
    pub(crate) request: Request,
    pub(crate) response: Response,
    /// A head that waits for its body.
    pub(crate) held: Option<ResponseHead>,
    pub(crate) waits: Vec<Py<Wait>>,
    pub(crate) budget: Budget,
    /// Whether Tokio already waits for room on our behalf.
    pub(crate) room: RoomWatch,
    /// asyncio holds tasks weakly, so we do not.
    pub(crate) task: Option<Py<PyAny>>,
    method: http::Method,
    pub(crate) outbox: Outbox,
    /// What becomes of trailers, if any come.
    trailers: Fate,
    trailing: Option<Box<Trailing>>,
    /// What a head waits for that is held.
    pub(crate) held_for: HeldFor,
    /// When the application was called, if that is measured.
    pub(crate) called: Option<Instant>,
    /// Present in a `websocket` scope.
    pub(crate) websocket: Option<Box<WebSocketState>>,
}

/// What a head that is held waits for.
pub(crate) enum HeldFor {
    /// Its body, whatever that is.
    Body,
    /// A word on what to answer, since its file cannot be had: another head, or a body.
    SecondThoughts,
}

/// What the bridge knows to be kept back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outbox {
    Empty,
    /// Pieces of a body.
    Pieces,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoomWatch {
    Off,
    On,
}

impl State {
    pub(crate) fn new(half: AppHalf, permit: Permit, method: &http::Method, trailers: Fate) -> Self {
        Self {
            half: Some(half),
            permit: Some(permit),
            request: Request::default(),
            response: Response::to(method),
            held: None,
            waits: Vec::new(),
            budget: Budget::new(),
            room: RoomWatch::Off,
            task: None,
            method: method.clone(),
            outbox: Outbox::Empty,
            trailers,
            trailing: None,
            held_for: HeldFor::Body,
            called: None,
            websocket: None,
        }
    }

    /// What asks for a WebSocket.
    pub(crate) fn of_websocket(mut self, half: WebSocketHalf) -> Self {
        self.websocket = Some(Box::new(WebSocketState::new(half)));
        self
    }

    /// The WebSocket that was accepted, if one was.
    pub(crate) fn accepted(&self) -> Option<&WebSocketState> {
        self.websocket.as_deref().filter(|websocket| websocket.was_accepted())
    }

    /// Whether there is room for what is sent.
    pub(crate) fn room_now(&self) -> Room {
        match self.accepted() {
            Some(websocket) => websocket.room_now(),
            None => self.half.as_ref().map_or(Room::Gone, AppHalf::room_now),
        }
    }

    /// Has what is kept back leave.
    pub(crate) fn push_out(&self) {
        if let Some(half) = self.accepted().and_then(WebSocketState::half) {
            half.push_out();
        } else if let Some(half) = &self.half {
            half.push_out();
        }
    }

    /// What is kept back.
    pub(crate) fn kept(&self) -> Option<Kept> {
        match self.accepted() {
            Some(websocket) => websocket.half().map(WebSocketHalf::kept),
            None => self.half.as_ref().map(AppHalf::kept),
        }
    }

    pub(crate) fn receive(&mut self, token: Token) -> Reception {
        let Some(half) = &self.half else { return Reception::Gone };
        let found = match self.request.receive() {
            RequestReceipt::Disconnect => return Reception::Gone,
            RequestReceipt::Wait => half.watch(token),
            RequestReceipt::Chunk => half.receive(token),
        };
        match &found {
            Reception::Chunk(_, more) => self.request = self.request.next(RequestEvent::Chunk(*more)),
            Reception::Gone => self.request = self.request.next(RequestEvent::ClientGone),
            Reception::Nothing => {}
        }
        found
    }

    /// Whether a head waits for its body.
    pub(crate) fn holds_head(&self) -> bool {
        self.held.is_some()
    }

    pub(crate) fn start(&mut self, mut head: ResponseHead) -> PyResult<()> {
        let before = if self.may_think_again() { Response::to(&self.method) } else { self.response };
        let next = before.start(&head).map_err(raise::misuse)?;
        if self.is_gone() {
            return Err(self.gone());
        }
        let written = matches!(next, Response::Streaming { left: Length::Open });
        let fate = if written { self.trailers } else { Fate::Dropped };
        self.trailing = Trailing::of(&mut head, fate);
        self.response = next;
        self.held = Some(head);
        self.held_for = HeldFor::Body;
        Ok(())
    }

    /// Links that go ahead of the head.
    pub(crate) fn hint(&mut self, links: HeaderMap) -> PyResult<Room> {
        self.response.expects_hint().map_err(raise::misuse)?;
        let Some(half) = &self.half else { return Ok(Room::Gone) };
        let due = "HTTP/2, or a server started with `--http1-early-hints`, was due";
        let came = HttpMessage::EarlyHint.name();
        half.hint(links).ok_or_else(|| raise::misuse(Misuse::NotOffered { came, due }))
    }

    /// Whether the head that came may be followed by another, in its place.
    fn may_think_again(&self) -> bool {
        self.held.is_some() && matches!(self.held_for, HeldFor::SecondThoughts)
    }

    /// A file is open that is the whole body: a head that does not say so yet says how long it is.
    pub(crate) fn opened(&mut self, length: Option<u64>) -> PyResult<()> {
        self.held_for = HeldFor::Body;
        let holds = self.holds_the_end();
        let (Some(head), Some(length)) = (&mut self.held, length) else { return Ok(()) };
        if head.declared().is_some() || holds {
            return Ok(());
        }
        head.declare_length(length).map_err(raise::misuse)?;
        if self.response == (Response::Streaming { left: Length::Open }) {
            self.response = Response::Streaming { left: Length::Declared(length) };
        }
        Ok(())
    }

    /// Whether the end of the body is not the response's.
    pub(crate) fn holds_the_end(&self) -> bool {
        self.trailing.as_ref().is_some_and(|trailing| trailing.hold_the_end())
    }

    /// Whether nothing more goes on the wire.
    fn is_complete(&self) -> bool {
        self.response.is_ended() && !self.holds_the_end()
    }

    /// Gives whether anybody is there to read them, and whether the response is over.
    pub(crate) fn trailers(&mut self, fields: HeaderMap, more: More) -> PyResult<(Room, bool)> {
        let Some(trailing) = &mut self.trailing else {
            return Err(raise::misuse(Misuse::TrailersUnpromised));
        };
        if trailing.take(fields, more)? == Fate::Dropped {
            return Ok((Room::Free, false));
        }
        let Some(half) = &self.half else { return Ok((Room::Gone, false)) };
        trailing.announce(half);
        match more {
            More::Follows => Ok((half.room_now(), false)),
            More::Ends => Ok((half.end_with(trailing.collected()), true)),
        }
    }

    /// The application has returned: what is held leaves that needs no further word.
    pub(crate) fn let_go(&mut self) {
        if self.response.is_ended() || self.response == Response::Bodiless && !self.may_think_again() {
            self.release();
        }
    }

    /// Has what is held leave. A client that has gone is noticed by what comes next.
    pub(crate) fn release(&mut self) {
        let Some(head) = self.held.take() else { return };
        let _ = self.begin(head);
    }

    /// Gives whether there is room for more, what is to be complained of, and whether the response is over.
    pub(crate) fn body(&mut self, body: Bytes, more: More) -> PyResult<(Room, Option<String>, bool)> {
        let offered = body.len();
        let (next, mut write) = match self.response.body(offered, more) {
            // Its start was refused for that.
            Err(Misuse::BodyBeforeStart) if self.is_gone() => return Ok((Room::Gone, None, false)),
            judged => judged.map_err(raise::misuse)?,
        };
        if self.holds_the_end() && write.then == Then::Complete {
            write.then = Then::Continue;
        }
        let before = std::mem::replace(&mut self.response, next);
        let room = match before.is_ended() {
            // What is too much is swallowed, until nobody is there to swallow it for.
            true if self.is_gone() => Room::Gone,
            true => Room::Free,
            false => self.put(body, offered, write),
        };
        if room == Room::Gone {
            // What was not taken has not happened: the same message again comes to the same.
            self.response = before;
            return Ok((room, None, false));
        }
        if let (More::Ends, Some(trailing)) = (more, &mut self.trailing) {
            trailing.body_ended();
        }
        Ok((room, complaint(write, more), self.is_complete() && !before.is_ended()))
    }

    /// An accepted piece into the exchange, with the head if that still waits.
    fn put(&mut self, mut body: Bytes, offered: usize, write: Write) -> Room {
        body.truncate(write.take);
        match self.held.take() {
            Some(head) if self.is_complete() => self.complete(head, body, offered, write),
            Some(head) => match self.begin(head) {
                Room::Gone => Room::Gone,
                _ => self.write(body, write),
            },
            None => self.write(body, write),
        }
    }

    /// What whoever sends is told when nobody reads any more.
    pub(crate) fn gone(&self) -> PyErr {
        // A permit comes back when the application has returned.
        if self.permit.is_none() { raise::returned() } else { raise::disconnected() }
    }

    /// Whether nobody reads any more, or nothing more can be said.
    pub(crate) fn is_gone(&self) -> bool {
        self.half.as_ref().is_none_or(AppHalf::is_gone)
    }

    /// A head whose answer is complete with it.
    fn complete(&mut self, head: ResponseHead, body: Bytes, offered: usize, write: Write) -> Room {
        if matches!(write.then, Then::Short { .. }) {
            let room = self.begin(head);
            return if room == Room::Gone { room } else { self.write(body, write) };
        }
        let Some(half) = &self.half else { return Room::Gone };
        let mut parts = head.into_parts();
        parts.close |= matches!(write.then, Then::Overflow { .. });
        let bodiless = matches!(parts.status, http::StatusCode::NO_CONTENT | http::StatusCode::NOT_MODIFIED);
        if self.method == http::Method::HEAD
            && !bodiless
            && parts.declared.is_none()
            && matches!(write.then, Then::Complete)
            && offered > 0
        {
            // What the same GET would have declared.
            parts.declared = u64::try_from(offered).ok();
            parts.headers.insert(http::header::CONTENT_LENGTH, offered.into());
        }
        half.finish(parts, body)
    }

    /// A head alone: pieces of its body follow, or are swallowed where there can be none.
    pub(crate) fn begin(&mut self, head: ResponseHead) -> Room {
        let Some(half) = &self.half else { return Room::Gone };
        if self.response == Response::Bodiless {
            half.start_bodiless(head.into_parts())
        } else {
            half.start(head.into_parts())
        }
    }

    fn write(&mut self, body: Bytes, write: Write) -> Room {
        let Some(half) = &self.half else { return Room::Gone };
        match write.then {
            Then::Continue => half.write(body, More::Follows),
            Then::Complete => half.write(body, More::Ends),
            Then::Overflow { .. } => {
                half.close_after();
                half.write(body, More::Ends)
            }
            Then::Short { .. } => {
                let room = half.write(body, More::Follows);
                // Dropped before its end: the answer breaks off, as it has to.
                self.half = None;
                if room == Room::Gone { Room::Gone } else { Room::Free }
            }
        }
    }
}

/// What an application did that its client will suffer from.
fn complaint(write: Write, more: More) -> Option<String> {
    match write.then {
        Then::Overflow { excess } => {
            // How much is still to come nobody knows: of a file this is one piece.
            let how_many = if more.follows() { String::new() } else { format!("{excess} bytes ") };
            Some(format!(
                "the application sent {how_many}more than its content-length declares: the response was cut there, \
                 and its connection is closed"
            ))
        }
        Then::Short { missing } => Some(format!(
            "the application sent {missing} bytes fewer than its content-length declares: the response was broken off"
        )),
        Then::Continue | Then::Complete => None,
    }
}
