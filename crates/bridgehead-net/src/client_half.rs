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

use crate::exchange::{After, Answer, Client, Flow, Sending, Shared};
use crate::overseer::Overseer;
use crate::refusal::Refusal;

/// The network's half of the answer. Dropping it before the answer's end means that the client has gone.
#[derive(Debug)]
pub(crate) struct ClientHalf(pub(crate) Arc<Shared>);

/// An answer's end that must not look like one.
#[derive(Debug, thiserror::Error)]
#[error("the application broke off its answer")]
pub(crate) struct BrokenOff;

impl ClientHalf {
    /// Hints can be written before the answer.
    pub(crate) fn speaks_http2(&self) {
        self.0.lock().download.hints = Some(Vec::new());
    }

    /// What is to be written before the answer.
    pub(crate) fn hints(&self) -> Vec<HeaderMap> {
        self.0.lock().download.hints.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The head, once the application has sent enough of it to know how its body comes. Gives it once.
    pub(crate) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        let mut state = self.0.lock();
        match state.download.answer.take() {
            Some(answer) => {
                state.download.begun = true;
                Poll::Ready(answer)
            }
            None => {
                state.download.client = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Whatever waits of a streamed body, in one piece; then the trailers.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let mut state = self.0.lock();
        if !state.download.chunks.is_empty() {
            // What the client has not taken yet is as much as what waits: there is room when this is asked again.
            state.download.laden = true;
            return Poll::Ready(Some(Ok(Frame::data(state.take_ready()))));
        }
        state.download.laden = false;
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

    /// All that was declared was taken: the application need not wait for its client to have it.
    pub(crate) fn has_all(&self) {
        let mut state = self.0.lock();
        state.download.laden = false;
        let room = std::mem::take(&mut state.download.room);
        drop(state);
        room.into_iter().for_each(Waker::wake);
    }

    /// Waits until the application breaks the body off.
    pub(crate) fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if matches!(state.download.flow, Flow::Broken | Flow::Refused(_)) {
            return Poll::Ready(());
        }
        state.download.client = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Whether nothing of the body is left to be written.
    pub(crate) fn is_complete(&self) -> bool {
        let state = self.0.lock();
        let download = &state.download;
        download.flow == Flow::Complete && download.chunks.is_empty() && download.trailers.is_none()
    }

    /// The application never saw the request.
    pub(crate) fn refused(&self, refusal: Refusal) {
        self.0.lock().download.answer = Some(Answer::Refused(refusal));
    }

    /// Its handler is cancelled when its client has gone.
    pub(crate) fn ends_with_client(&self) {
        self.0.lock().oversight.ends_with_client = true;
    }

    /// For who looks at the time of the request.
    pub(crate) fn overseer(&self) -> Overseer {
        Overseer(Arc::clone(&self.0))
    }

    /// Whether so much of the request is left unread that its connection will be closed.
    pub(crate) fn leaves_unread(&self) -> bool {
        self.0.lock().leaves_unread()
    }

    /// The connection ends with this answer: what is left of the request is of no use.
    pub(crate) fn closes(&self) {
        self.0.lock().upload.keeps = false;
    }

    /// What becomes of the connection; settled when the answer is complete.
    pub(crate) fn after(&self) -> After {
        self.0.lock().download.after
    }

    /// The client has all that was declared, though the application may have more to say.
    pub(crate) fn served(self) -> Encore {
        self.0.lock().client = Client::Served;
        Encore { shared: Arc::clone(&self.0), followed: false }
    }
}

impl Drop for ClientHalf {
    fn drop(&mut self) {
        if self.0.lock().client != Client::Served {
            self.0.client_left();
        }
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

impl Shared {
    fn half_closed(&self) {
        let mut state = self.lock();
        if state.sending == Sending::Open {
            state.sending = Sending::Ended;
        }
        let (parked, cancelled) = (state.unpark(), state.cancel_with_client());
        drop(state);
        self.tell(parked);
        self.cancel(cancelled);
    }
}
