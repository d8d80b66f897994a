//! What `receive()` and `send()` do in a `websocket` scope.
//!
//! One that is not accepted is an HTTP exchange still: its refusal, in whatever words, is an answer like any other
//! (`http.rs`). One that is accepted speaks through a half of its own.
//!
//! Invariant: the state is locked only where no Python can run.

use std::cell::RefMut;

use bridgehead_asgi::{Closing, More, ResponseHead, WebSocket, WebSocketMessage};
use bridgehead_net::Room;
use bytes::Bytes;
use pyo3::prelude::*;

use crate::http::Http;
use crate::http_state::State;
use crate::outcome::Outcome;
use crate::raise;
use crate::wait::Wait;
use crate::websocket_message::{self, Sent};
use crate::websocket_state::{Receipt, WebSocketState};

/// ASGI: what a client is told whose WebSocket is closed before it is accepted.
const REFUSED: i64 = 403;

/// RFC 6455 §7.4.1: the application failed.
const INTERNAL_ERROR: i64 = 1011;

impl Http {
    /// One attempt of a `receive()`.
    pub(crate) fn hear_now(&self, py: Python<'_>, mut state: RefMut<'_, State>) -> PyResult<Outcome> {
        let State { websocket: Some(websocket), half, .. } = &mut *state else {
            return Err(raise::disconnected());
        };
        let receipt = websocket.receive(half.as_ref(), self.token);
        drop(state);
        let message = match receipt {
            Receipt::Wait => return self.wait(py),
            Receipt::Connect => websocket_message::connect(py)?,
            Receipt::Message(message) => websocket_message::receive(py, &message)?,
            Receipt::Disconnect(ending) => {
                self.wake_waits(py)?;
                websocket_message::disconnect(py, &ending)?
            }
            Receipt::Nothing => return Err(raise::closed()),
        };
        Ok(Outcome::Done(Some(message)))
    }

    /// One attempt of a `send()`: the message is taken, or refused by an exception.
    pub(crate) fn say_now(slf: &Bound<'_, Self>, message: &Bound<'_, PyAny>) -> PyResult<Outcome> {
        let (py, this) = (slf.py(), slf.get());
        let room = match websocket_message::read(message, &this.bridge().lender)? {
            Sent::Message(message) => {
                let room = this.with_websocket(py, |websocket, _| websocket.send(message))?;
                if room == Room::Free && Self::keep_back(slf)? {
                    this.keep_for_standby(py);
                }
                room
            }
            Sent::Accept(acceptance) => {
                // Its span, and what it is among the slowest, is its handshake, which is over now.
                this.name_route(py);
                this.with_websocket(py, |websocket, state| {
                    websocket.accept(acceptance, state.half.as_ref())
                })?;
                // Whoever waits in another task to hear of the client hears of it elsewhere from now on.
                this.wake_waits(py)?;
                Room::Free
            }
            Sent::Close(closing) => {
                this.close(py, closing)?;
                Room::Free
            }
            Sent::DenialStart(head) => {
                this.deny(py, head)?;
                Room::Free
            }
            Sent::DenialBody(body, more) => {
                this.with_websocket(py, |websocket, _| {
                    websocket.judge(WebSocketMessage::DenialBody).map(drop)
                })?;
                let room = Self::pass_body(slf, body, more)?;
                if more == More::Ends {
                    this.with_websocket(py, |websocket, _| {
                        websocket.stage = WebSocket::Denied;
                        Ok(())
                    })?;
                }
                room
            }
        };
        match room {
            Room::Free => Ok(Outcome::Done(None)),
            Room::Gone => Err(raise::disconnected()),
            Room::Full => this.wait_for_room(py),
        }
    }

    fn with_websocket<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut WebSocketState, &mut State) -> PyResult<T>,
    ) -> PyResult<T> {
        let mut state = self.lock(py);
        let Some(mut websocket) = state.websocket.take() else { return Err(raise::disconnected()) };
        let done = work(&mut websocket, &mut state);
        state.websocket = Some(websocket);
        done
    }

    fn deny(&self, py: Python<'_>, head: ResponseHead) -> PyResult<()> {
        self.with_websocket(py, |websocket, state| {
            let next = websocket.judge(WebSocketMessage::DenialStart)?;
            state.start(head)?;
            websocket.stage = next;
            Ok(())
        })
    }

    fn close(&self, py: Python<'_>, closing: Closing) -> PyResult<()> {
        self.name_route(py);
        self.with_websocket(py, |websocket, state| {
            let next = websocket.judge(WebSocketMessage::Close)?;
            if websocket.stage == WebSocket::Connecting {
                refuse(state)?;
            } else {
                websocket.close(closing);
            }
            websocket.stage = next;
            Ok(())
        })?;
        self.wake_waits(py)
    }

    /// Whoever waits in another task looks again, in the loop's next turn.
    fn wake_waits(&self, py: Python<'_>) -> PyResult<()> {
        let waits = self.take_waits(py);
        waits.iter().try_for_each(|wait| Wait::resolve_soon(wait.bind(py)))
    }
}

/// Answers a handshake in the application's stead. A client that has gone is nobody's fault.
fn refuse(state: &mut State) -> PyResult<()> {
    let head = ResponseHead::new(REFUSED).map_err(raise::misuse)?;
    if !state.is_gone() {
        state.start(head)?;
        state.body(Bytes::new(), More::Ends)?;
    }
    Ok(())
}

/// The application has returned, or raised: what is left is closed. Gives what its behaviour lacks.
pub(crate) fn settle(
    websocket: &mut WebSocketState,
    state: &mut State,
    failed: bool,
) -> PyResult<Option<&'static str>> {
    let code = failed.then_some(INTERNAL_ERROR);
    let lack = match websocket.stage {
        WebSocket::Connecting if failed || state.is_gone() => None,
        WebSocket::Connecting => {
            refuse(state)?;
            Some("returned without answering the handshake of its WebSocket")
        }
        WebSocket::Open => {
            websocket.close(Closing::new(code, String::new()).map_err(raise::misuse)?);
            None
        }
        WebSocket::Denying | WebSocket::Denied | WebSocket::Closed => None,
    };
    websocket.let_go();
    Ok(lack)
}
