//! How a request waits: for its client to come up with something, or to take something.
//!
//! Not for what (`http`, `http_file`, `websocket`).
//!
//! Invariant: whoever waits looks again when there may be something, and nothing waits for the GIL meanwhile.

use bridgehead_net::Room;
use pyo3::prelude::*;

use crate::http::Http;
use crate::http_state::RoomWatch;
use crate::inbox::Event;
use crate::outcome::Outcome;
use crate::runtime_handle;
use crate::wait::Wait;
use crate::websocket_state::WebSocketState;

impl Http {
    pub(crate) fn room_now(&self, py: Python<'_>) -> Room {
        self.lock(py).room_now()
    }

    /// A `send()` that waited looks again.
    pub(crate) fn sent_now(&self, py: Python<'_>) -> PyResult<Outcome> {
        match self.room_now(py) {
            Room::Free => Ok(Outcome::Done(None)),
            Room::Gone => Err(self.lock(py).gone()),
            Room::Full => self.wait_for_room(py),
        }
    }

    pub(crate) fn wait(&self, py: Python<'_>) -> PyResult<Outcome> {
        let wait = Wait::new(py, self.bridge().event_loop(py))?;
        let kept = wait.clone_ref(py);
        let mut state = self.lock(py);
        // Whoever asks with a timeout asks again and again, on a stream for hours.
        let over: Vec<_> = state.waits.extract_if(.., |wait| wait.borrow(py).done(py)).collect();
        state.waits.push(kept);
        state.budget.wait();
        drop(state);
        drop(over);
        Ok(Outcome::Wait(wait))
    }

    /// Tokio waits for room, and says so through the inbox: nobody waits for the GIL.
    pub(crate) fn wait_for_room(&self, py: Python<'_>) -> PyResult<Outcome> {
        let outcome = self.wait(py)?;
        let mut state = self.lock(py);
        if state.room == RoomWatch::On {
            return Ok(outcome);
        }
        if let Some(half) = state.accepted().and_then(WebSocketState::half) {
            self.watch_room(half.room())?;
        } else if let Some(half) = &state.half {
            self.watch_room(half.room())?;
        } else {
            return Ok(outcome);
        }
        state.room = RoomWatch::On;
        Ok(outcome)
    }

    fn watch_room(&self, room: impl Future<Output = ()> + Send + 'static) -> PyResult<()> {
        let (inbox, token) = (self.bridge().inbox(), self.token);
        runtime_handle::spawn(self.bridge().executor(), async move {
            room.await;
            inbox.push(Event::Room(token));
        })
    }
}
