//! The application's half of an exchange: bodies come out, answers go in.
//!
//! Called on the loop's thread. What is shared with the other half, and when that one is woken, is `exchange`'s.
//!
//! Invariant: no call waits; what cannot be done now says so and tells the token later.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use bridgehead_asgi::{Acceptance, More, ResponseParts};
use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, TRAILER};

use crate::app::Token;
use crate::exchange::{After, Answer, Client, Flow, Sending, Shared};
use crate::piece::Piece;

/// Hints that wait to be written.
const HINTS: usize = 16;

/// The application's half. Dropping it unanswered is a failure of the application.
#[derive(Debug)]
pub struct AppHalf(pub(crate) Arc<Shared>);

/// Keeps what was sent until it is told to have it leave.
pub(crate) trait Outbox: std::fmt::Debug + Send + Sync {
    /// Has it leave.
    fn push_out(&self);
}

/// Pieces of an answer, or messages, that wait for more of them, whoever wrote them.
#[derive(Debug)]
pub struct Kept(Arc<dyn Outbox>);

impl Kept {
    pub(crate) fn of(outbox: Arc<dyn Outbox>) -> Self {
        Self(outbox)
    }

    /// Has them leave. Nothing happens when they have left already.
    pub fn push_out(&self) {
        self.0.push_out();
    }
}

/// What `receive` found.
#[derive(Debug, PartialEq, Eq)]
pub enum Reception {
    /// A piece of the body, or its empty end.
    Chunk(Piece, More),
    /// The client has gone, or broke off its upload.
    Gone,
    /// Nothing yet: the token is told when there is.
    Nothing,
}

/// Whether the application may send more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Yes.
    Free,
    /// What was given is taken; wait for [`AppHalf::room`] before more.
    Full,
    /// Nobody reads any more.
    Gone,
}

impl AppHalf {
    /// The next piece of the body. When there is nothing, `token` hears of it once something is there.
    #[must_use]
    pub fn receive(&self, token: Token) -> Reception {
        let mut state = self.0.lock();
        let (found, uploader) = state.receive(token);
        drop(state);
        self.0.wake_if(uploader);
        found
    }

    /// Waits for the client to leave, once the body was read: `Gone` or `Nothing`. One that only sends no more is told as
    /// gone, since a close looks the same; what is sent still goes out to it, until its system refuses it.
    #[must_use]
    pub fn watch(&self, token: Token) -> Reception {
        let mut state = self.0.lock();
        if !state.seems_gone() {
            state.parked = Some(token);
            return Reception::Nothing;
        }
        state.sending = Sending::EndedAsTold;
        Reception::Gone
    }

    /// Nothing more is said to the client.
    pub fn abandon(&self) {
        let wakers = self.0.lock().abandon();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The application failed of itself, not since it was told that the client has left: one that still reads is due an
    /// answer.
    pub fn owes_an_answer(&self) {
        let mut state = self.0.lock();
        if state.sending == Sending::EndedAsTold {
            state.sending = Sending::Ended;
        }
    }

    /// Whether the application may stop here: the client has left, as far as it was told, or broke off its upload.
    #[must_use]
    pub fn owes_nothing(&self) -> bool {
        let state = self.0.lock();
        state.is_gone()
            || state.sending == Sending::EndedAsTold
            || matches!(state.upload.flow, Flow::Broken | Flow::Refused(_))
    }

    /// Sends links ahead of an answer. `None` where that cannot be done.
    #[must_use]
    pub fn hint(&self, links: HeaderMap) -> Option<Room> {
        let mut state = self.0.lock();
        let gone = state.is_gone();
        let hints = state.download.hints.as_mut()?;
        if gone {
            return Some(Room::Gone);
        }
        // Whoever sends so many without a pause is heard in part: they are hints.
        if hints.len() < HINTS {
            hints.push(links);
        }
        let waker = state.download.client.take();
        drop(state);
        self.0.wake_if(waker);
        Some(Room::Free)
    }

    /// Sends a head alone: its body comes by [`Self::write`].
    #[must_use]
    pub fn start(&self, parts: ResponseParts) -> Room {
        let mut state = self.0.lock();
        if state.is_gone() {
            return Room::Gone;
        }
        state.download.answer = Some(Answer::Stream(parts));
        Room::Free
    }

    /// Sends a head that no body follows, whatever is written.
    #[must_use]
    pub fn start_bodiless(&self, parts: ResponseParts) -> Room {
        let mut state = self.0.lock();
        if state.is_gone() {
            return Room::Gone;
        }
        state.download.answer = Some(Answer::HeadOnly(parts));
        Room::Free
    }

    /// Accepts the WebSocket that was asked for: what comes then is its own half's.
    #[must_use]
    pub fn accept(&self, acceptance: Acceptance) -> Room {
        let mut state = self.0.lock();
        if state.is_gone() {
            return Room::Gone;
        }
        state.download.answer = Some(Answer::Accepted(acceptance));
        state.download.flow = Flow::Complete;
        let (waker, overseer) = (state.download.client.take(), state.oversight.overseer.take());
        drop(state);
        self.0.wake_if(waker);
        // What follows may last for days.
        self.0.wake_if(overseer);
        Room::Free
    }

    /// Sends a complete answer.
    #[must_use]
    pub fn finish(&self, parts: ResponseParts, body: Bytes) -> Room {
        let mut state = self.0.lock();
        if state.is_gone() {
            return Room::Gone;
        }
        state.download.answer = Some(Answer::Whole(parts, body));
        state.download.flow = Flow::Complete;
        let waker = state.download.client.take();
        drop(state);
        self.0.wake_if(waker);
        Room::Free
    }

    /// What is kept back, for somebody else to have it leave.
    #[must_use]
    pub fn kept(&self) -> Kept {
        Kept::of(Arc::clone(&self.0) as Arc<dyn Outbox>)
    }

    /// Has what was started and written so far leave.
    pub fn push_out(&self) {
        self.0.push_out();
    }

    /// Sends a piece of a started answer; it is taken whatever is returned, unless the client has gone. One that
    /// leaves room for more waits for [`Self::push_out`].
    #[must_use]
    pub fn write(&self, chunk: Bytes, more: More) -> Room {
        let mut state = self.0.lock();
        if state.is_gone() && !(more == More::Ends && state.can_end()) {
            return Room::Gone;
        }
        if !chunk.is_empty() && state.client == Client::Present {
            state.download.last = chunk.len();
            state.download.unsent.push(chunk);
        }
        if more == More::Ends {
            state.download.flow = Flow::Complete;
        }
        // After the last piece there is nothing to wait for: once it is written the client counts as gone.
        let room = if more == More::Ends { Room::Free } else { state.room() };
        let leaves = more == More::Ends || room == Room::Full;
        let waker = if leaves { state.download.client.take() } else { None };
        drop(state);
        self.0.wake_if(waker);
        room
    }

    /// Announces a trailer in a head that has not left; false when it has.
    #[must_use]
    pub fn announce(&self, name: HeaderName) -> bool {
        match &mut self.0.lock().download.answer {
            Some(Answer::Stream(parts)) => parts.headers.try_append(TRAILER, name.into()).is_ok(),
            _ => false,
        }
    }

    /// Ends a started answer with fields that follow its body.
    #[must_use]
    pub fn end_with(&self, trailers: HeaderMap) -> Room {
        let mut state = self.0.lock();
        if state.is_gone() {
            return Room::Gone;
        }
        state.download.trailers = Some(trailers);
        state.download.flow = Flow::Complete;
        let waker = state.download.client.take();
        drop(state);
        self.0.wake_if(waker);
        Room::Free
    }

    /// Whether there is room.
    #[must_use]
    pub fn room_now(&self) -> Room {
        let state = self.0.lock();
        if state.is_gone() { Room::Gone } else { state.room() }
    }

    /// Waits until there is room again, or nobody reads.
    pub fn room(&self) -> impl Future<Output = ()> + Send + 'static {
        let shared = Arc::clone(&self.0);
        poll_fn(move |cx| {
            let mut state = shared.lock();
            if state.is_gone() || state.has_room_again() {
                return Poll::Ready(());
            }
            if !state.download.room.iter().any(|waker| waker.will_wake(cx.waker())) {
                state.download.room.push(cx.waker().clone());
            }
            Poll::Pending
        })
    }

    /// Has the connection closed after this answer: its application does not keep to what it declares.
    pub fn close_after(&self) {
        self.0.lock().download.after = After::Close;
    }

    /// By what [`crate::App::cancel`] is to name the request. False when it was cancelled before.
    #[must_use]
    pub fn known_as(&self, token: Token) -> bool {
        let mut state = self.0.lock();
        state.oversight.token = Some(token);
        !state.oversight.cancelled
    }

    /// Whether the request's handler is to end.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.lock().oversight.cancelled
    }

    /// Whether nobody reads any more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.0.lock().is_gone()
    }
}

impl Drop for AppHalf {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let overseer = state.oversight.overseer.take();
        // What comes now comes too late.
        state.oversight.token = None;
        if state.download.flow != Flow::Open {
            drop(state);
            self.0.wake_if(overseer);
            return;
        }
        state.download.flow = Flow::Broken;
        if state.download.answer.is_none() {
            state.download.answer = Some(match state.upload.flow {
                // Without its request's end there was nothing that the application could have said.
                Flow::Broken => Answer::Abandoned,
                Flow::Refused(refusal) => Answer::Refused(refusal),
                // It was told that the client has left, or cancelled for that, and had nothing to say.
                _ if state.sending == Sending::EndedAsTold => Answer::Abandoned,
                _ if state.sending == Sending::Ended && state.oversight.cancelled => Answer::Abandoned,
                Flow::Open | Flow::Complete => Answer::Failed,
            });
        }
        let waker = state.download.client.take();
        drop(state);
        self.0.wake_if(waker);
        self.0.wake_if(overseer);
    }
}
