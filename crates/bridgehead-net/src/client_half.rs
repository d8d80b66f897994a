//! The network's half of an exchange: answers come out, and it is seen when the client leaves.
//!
//! Held by the connection's task. What is shared with the application's half is `exchange`'s.
//!
//! Invariant: a half that is dropped before its answer's end is a client that has gone, and the application hears of it.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;

use crate::exchange::{After, Answer, Client, Download, Flow, LOW_WATER, Sending, Shared};
use crate::overseer::Overseer;
use crate::press::Press;
use crate::refusal::Refusal;

/// The network's half of the answer. Dropping it before the answer's end means that the client has gone.
#[derive(Debug)]
pub(crate) struct ClientHalf {
    shared: Arc<Shared>,
    /// What encodes its body, if anything does.
    press: Option<Box<Press>>,
}

/// What an application has said up to its answer's head.
pub(crate) enum Spoken {
    /// Links that go before it.
    Hints(Vec<HeaderMap>),
    Answer(Answer),
}

/// An answer's end that must not look like one.
#[derive(Debug, thiserror::Error)]
#[error("the application broke off its answer")]
pub(crate) struct BrokenOff;

/// What became of the frames that were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// Whoever writes still has some.
    IsKept,
    HasLeft,
}

impl ClientHalf {
    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { shared, press: None }
    }

    /// Hints can be written before the answer.
    pub(crate) fn takes_hints(&self) {
        self.shared.lock().download.hints = Some(Vec::new());
    }

    /// What comes next: hints before the answer, or that.
    pub(crate) fn poll_spoken(&mut self, cx: &mut Context<'_>) -> Poll<Spoken> {
        let mut state = self.shared.lock();
        match &mut state.download.hints {
            Some(hints) if !hints.is_empty() => Poll::Ready(Spoken::Hints(std::mem::take(hints))),
            Some(_) | None => state.download.poll_answer(cx).map(Spoken::Answer),
        }
    }

    /// The head, once the application has sent enough of it to know how its body comes. Gives it once.
    pub(crate) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        self.shared.lock().download.poll_answer(cx)
    }

    /// Whatever waits of a streamed body, in one piece; then the trailers. What was taken before counts with what waits,
    /// unless it has left.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        before: Before,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match &mut self.press {
            None => self.shared.poll_plain(cx, before),
            Some(press) => press.poll_frame(&self.shared, cx),
        }
    }

    /// What is written from here on is encoded.
    pub(crate) fn encode(&mut self, press: Press) {
        self.press = Some(Box::new(press));
    }

    /// A body that was whole is taken as one that comes in pieces.
    pub(crate) fn refill(&self, body: Bytes) {
        self.shared.lock().download.unsent.push(body);
    }

    /// All that was declared was taken: the application need not wait for its client to have it.
    pub(crate) fn has_all(&self) {
        let mut state = self.shared.lock();
        state.download.laden = 0;
        let room = std::mem::take(&mut state.download.room);
        drop(state);
        room.into_iter().for_each(Waker::wake);
    }

    /// Waits until the application breaks the body off.
    pub(crate) fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.shared.lock();
        if matches!(state.download.flow, Flow::Broken | Flow::Refused(_)) {
            return Poll::Ready(());
        }
        state.download.client = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Waits until the request is to end, before the application has it.
    pub(crate) fn poll_cancelled(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.shared.lock();
        if state.oversight.cancelled {
            return Poll::Ready(());
        }
        state.download.client = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Whether nothing of the body is left to be written.
    pub(crate) fn is_complete(&self) -> bool {
        let state = self.shared.lock();
        let download = &state.download;
        let pressed = self.press.as_ref().is_none_or(|press| press.is_over());
        pressed
            && download.flow == Flow::Complete
            && download.unsent.is_empty()
            && download.trailers.is_none()
    }

    /// The application never saw the request.
    pub(crate) fn refused(&self, refusal: Refusal) {
        self.shared.lock().download.answer = Some(Answer::Refused(refusal));
    }

    /// Its handler is cancelled when its client has gone.
    pub(crate) fn ends_with_client(&self) {
        self.shared.lock().oversight.ends_with_client = true;
    }

    /// For who looks at the time of the request.
    pub(crate) fn overseer(&self) -> Overseer {
        Overseer(Arc::clone(&self.shared))
    }

    /// Whether so much of the request is left unread that its connection will be closed.
    pub(crate) fn leaves_unread(&self) -> bool {
        self.shared.lock().leaves_unread()
    }

    /// The connection ends with this answer: what is left of the request is of no use.
    pub(crate) fn closes(&self) {
        self.shared.lock().upload.keeps = false;
    }

    /// What the client could not be told any more; given once.
    pub(crate) fn take_late(&self) -> Option<Refusal> {
        self.shared.lock().download.late.take()
    }

    /// What becomes of the connection; settled when the answer is complete.
    pub(crate) fn after(&self) -> After {
        self.shared.lock().download.after
    }

    /// The client has all that was declared, though the application may have more to say.
    pub(crate) fn served(self) -> Encore {
        self.shared.lock().client = Client::Served;
        Encore { shared: Arc::clone(&self.shared), followed: false }
    }
}

impl Drop for ClientHalf {
    fn drop(&mut self) {
        self.shared.client_left_unserved();
    }
}

/// Waits for an application to be through with an answer whose bytes are all written. Dropping it means that the
/// connection is gone.
#[derive(Debug)]
pub(crate) struct Encore {
    shared: Arc<Shared>,
    /// Whether another request waits behind it.
    followed: bool,
}

impl Encore {
    /// Until then the connection serves no other request: what comes may be a reason to close it.
    pub(crate) fn poll_through(&self, cx: &mut Context<'_>) -> Poll<After> {
        let mut state = self.shared.lock();
        match state.download.flow {
            Flow::Complete => Poll::Ready(state.download.after),
            Flow::Broken | Flow::Refused(_) => Poll::Ready(After::Close),
            Flow::Open => {
                state.download.client = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The same, for a request that waits for it.
    pub(crate) fn poll_followed(&mut self, cx: &mut Context<'_>) -> Poll<After> {
        self.followed = true;
        self.poll_through(cx)
    }

    pub(crate) fn is_followed(&self) -> bool {
        self.followed
    }

    /// As [`Witness::half_closed`].
    pub(crate) fn half_closed(&self) {
        self.shared.half_closed();
    }
}

impl Drop for Encore {
    fn drop(&mut self) {
        self.shared.client_left();
    }
}

/// Sees a client leave, beside the half that serves it.
#[derive(Clone, Debug)]
pub(crate) struct Witness(pub(crate) Arc<Shared>);

impl Witness {
    /// The client sends no more. Whoever waits to hear from it is told; its answer still goes out.
    pub(crate) fn half_closed(&self) {
        self.0.half_closed();
    }

    /// How many bytes of the request's body have come.
    pub(crate) fn received(&self) -> u64 {
        self.0.lock().upload.received
    }

    /// Whether the whole request has been read, so that an end of the stream is the client's leaving.
    pub(crate) fn is_read(&self) -> bool {
        self.0.lock().upload.flow == Flow::Complete
    }
}

impl Download {
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        match self.answer.take() {
            Some(answer) => {
                self.begun = true;
                Poll::Ready(answer)
            }
            None => {
                self.client = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Shared {
    /// Whatever waits of a streamed body, as the application sent it.
    pub(crate) fn poll_plain(
        &self,
        cx: &mut Context<'_>,
        before: Before,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let mut state = self.lock();
        if before == Before::HasLeft {
            state.download.laden = 0;
        }
        if !state.download.unsent.is_empty() {
            let taken = state.download.unsent.take();
            state.download.laden += taken.len();
            return Poll::Ready(Some(Ok(Frame::data(taken))));
        }
        if state.download.laden > LOW_WATER && state.download.flow == Flow::Open {
            // Whoever writes does so now, and then asks again.
            cx.waker().wake_by_ref();
        }
        let polled = match state.download.flow {
            Flow::Complete => {
                Poll::Ready(state.download.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
            }
            Flow::Broken | Flow::Refused(_) => Poll::Ready(Some(Err(BrokenOff))),
            Flow::Open => {
                state.download.client = Some(cx.waker().clone());
                Poll::Pending
            }
        };
        let room = std::mem::take(&mut state.download.room);
        drop(state);
        room.into_iter().for_each(Waker::wake);
        polled
    }

    fn half_closed(&self) {
        let mut state = self.lock();
        if state.sending == Sending::Open {
            state.sending = Sending::Ended;
        }
        let (parked, cancelled) = (state.unpark(), state.cancel_with_client());
        // Who waits for a permit need not have it.
        let waits = if state.oversight.cancelled { state.download.client.take() } else { None };
        drop(state);
        self.tell(parked);
        self.cancel(cancelled);
        self.wake_if(waits);
    }
}
