//! Ends a request that takes too long, and one whose client has gone: its client is answered or cut off, its handler
//! cancelled.
//!
//! Not how a handler is cancelled, which is the [`App`](crate::App)'s, nor the permit, which is back when that has ended.
//!
//! Invariant: a handler is asked to end at most once by each of the two, and never after its last word.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use bridgehead_executor::Executor;

use crate::app::{Token, WebSocketRequest};
use crate::config::Config;
use crate::exchange::{Answer, Client, Flow, Sending, Shared, State};
use crate::refusal::Refusal;

/// How long a request's answer may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    time: Duration,
    /// What a client is told whose answer took longer.
    late: Refusal,
}

impl Term {
    /// That of a request, or of a handshake, which has one of its own beside.
    pub(crate) fn of(config: &Config, handshake: Option<&WebSocketRequest>) -> Option<Self> {
        let whole = config.bounds.request_time.map(|time| Self { time, late: Refusal::SlowAnswer });
        let acceptance = handshake.and(config.websockets).and_then(|settings| settings.acceptance);
        let accepted = acceptance.map(|time| Self { time, late: Refusal::SlowAcceptance });
        accepted.into_iter().chain(whole).min_by_key(|term| term.time)
    }
}

/// What is known of a request that may be cancelled.
#[derive(Debug, Default)]
pub(crate) struct Oversight {
    /// By what its application knows it, once it has begun.
    pub(crate) token: Option<Token>,
    /// Its handler is to end.
    pub(crate) cancelled: bool,
    /// So it is when its client has gone.
    pub(crate) ends_with_client: bool,
    /// Who looks at the time.
    pub(crate) overseer: Option<Waker>,
}

/// Sees to it that a request ends in time.
#[derive(Debug)]
pub(crate) struct Overseer(pub(crate) Arc<Shared>);

impl Overseer {
    /// Waits until the application is through with the request, or its time is over.
    pub(crate) async fn watch(self, term: Term, executor: Executor) {
        let mut sleep = pin!(executor.sleep(term.time));
        let late = poll_fn(|cx| {
            if self.is_over(cx.waker()) {
                return Poll::Ready(false);
            }
            sleep.as_mut().poll(cx).map(|()| true)
        })
        .await;
        if late {
            self.0.time_out(term.late);
        }
    }

    fn is_over(&self, waker: &Waker) -> bool {
        let mut state = self.0.lock();
        if state.download.flow != Flow::Open {
            return true;
        }
        state.oversight.overseer = Some(waker.clone());
        false
    }
}

impl Shared {
    /// The time is over: 504 if nothing was said yet, else the answer breaks off.
    fn time_out(&self, late: Refusal) {
        let mut state = self.lock();
        if state.download.flow != Flow::Open {
            return;
        }
        if !state.download.begun && !state.is_gone() {
            state.download.answer = Some(Answer::Refused(late));
            state.download.unsent.clear();
        } else if !state.is_gone() {
            state.download.late = Some(late);
        }
        let (parked, cancelled) = (state.unpark(), state.cancel());
        let wakers = state.abandon();
        drop(state);
        self.tell(parked);
        wakers.into_iter().for_each(Waker::wake);
        self.cancel(cancelled);
    }
}

impl State {
    /// The handler is to end. Gives whom to tell so, if that is known yet.
    fn cancel(&mut self) -> Option<Token> {
        if std::mem::replace(&mut self.oversight.cancelled, true) { None } else { self.oversight.token }
    }

    /// The same, since its client has gone before its answer was complete.
    pub(crate) fn cancel_with_client(&mut self) -> Option<Token> {
        let waits_for_nobody = self.oversight.ends_with_client
            && self.download.flow == Flow::Open
            && match self.client {
                Client::Present => self.sending != Sending::Open,
                Client::Served | Client::Sated => false,
                Client::Gone => true,
            };
        if waits_for_nobody { self.cancel() } else { None }
    }
}
