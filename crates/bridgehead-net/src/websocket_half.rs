//! The application's end of a WebSocket: messages come out, messages go in.
//!
//! Called on the loop's thread. What is shared with the other end, and when that one is woken, is `websocket`'s.
//!
//! Invariant: no call waits; what cannot be done now says so and tells the token later.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use bridgehead_asgi::Closing;
use bridgehead_websocket::Message;

use crate::app::Token;
use crate::app_half::{Kept, Outbox, Room};
use crate::websocket::{Ending, Shared, Stage, wake};

/// The application's end. Dropped while it is open, it closes.
#[derive(Debug)]
pub struct WebSocketHalf(pub(crate) Arc<Shared>);

/// What `receive` found.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// A message.
    Message(Message),
    /// It is over, and nothing more comes.
    Over(Ending),
    /// Nothing yet: the token is told when there is.
    Nothing,
}

impl WebSocketHalf {
    /// The next message. When there is nothing, `token` hears of it once something is there.
    #[must_use]
    pub fn receive(&self, token: Token) -> Heard {
        let mut state = self.0.lock();
        if let Some(message) = state.inbound.pop_front() {
            state.inbound_size -= message.payload().len();
            let woken = if state.paused && state.may_resume() { state.session.take() } else { None };
            drop(state);
            wake(woken);
            return Heard::Message(message);
        }
        match &state.stage {
            Stage::Open => {
                state.parked = Some(token);
                Heard::Nothing
            }
            Stage::Over(ending, _) => Heard::Over(ending.clone()),
            Stage::Closing(ending) => {
                let ending = ending.clone();
                state.stage = Stage::Over(ending.clone(), None);
                let (woken, room) = (state.session.take(), std::mem::take(&mut state.room));
                drop(state);
                wake(room.into_iter().chain(woken));
                Heard::Over(ending)
            }
        }
    }

    /// Sends a message; it is taken whatever is returned, unless it is over. One that leaves room for more waits for
    /// [`Self::push_out`].
    #[must_use]
    pub fn send(&self, message: Message) -> Room {
        let mut state = self.0.lock();
        if state.is_over() {
            return Room::Gone;
        }
        state.outbound_size += message.payload().len();
        state.outbound.push_back(message);
        let room = state.room();
        let woken = if room == Room::Full { state.session.take() } else { None };
        drop(state);
        wake(woken);
        room
    }

    /// Closes, behind what was sent; what has come and was not taken is of no use any more. Nothing happens to one that
    /// is over.
    pub fn close(&self, closing: Closing) {
        let mut state = self.0.lock();
        let ending = match &state.stage {
            Stage::Over(..) => return,
            Stage::Open => Ending::new(closing.code(), closing.reason()),
            Stage::Closing(said) => said.clone(),
        };
        state.forget_inbound();
        let told = state.end(ending, Some(closing));
        drop(state);
        self.0.tell(told);
    }

    /// Whether there is room.
    #[must_use]
    pub fn room_now(&self) -> Room {
        let state = self.0.lock();
        if state.is_over() { Room::Gone } else { state.room() }
    }

    /// Waits until there is room again, or it is over.
    pub fn room(&self) -> impl Future<Output = ()> + Send + 'static {
        let shared = Arc::clone(&self.0);
        poll_fn(move |cx| {
            let mut state = shared.lock();
            if state.is_over() || state.has_much_room() {
                return Poll::Ready(());
            }
            if !state.room.iter().any(|waker| waker.will_wake(cx.waker())) {
                state.room.push(cx.waker().clone());
            }
            Poll::Pending
        })
    }

    /// What is kept back, for somebody else to have it leave.
    #[must_use]
    pub fn kept(&self) -> Kept {
        Kept::of(Arc::clone(&self.0) as Arc<dyn Outbox>)
    }

    /// Has what was sent so far leave.
    pub fn push_out(&self) {
        self.0.push_out();
    }

    /// Whether nobody hears anything any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.lock().is_over()
    }
}

impl Drop for WebSocketHalf {
    fn drop(&mut self) {
        if let Ok(closing) = Closing::new(Some(1011), String::new()) {
            self.close(closing);
        }
    }
}
