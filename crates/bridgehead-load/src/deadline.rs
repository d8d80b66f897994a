//! The end of a wait that begins anew with each request.
//!
//! Not a clock: whoever waits says until when.
//!
//! Invariant: one timer for each connection, moved when it fires, never made anew.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};

use crate::fault::{Fault, Kind};

/// The end of a wait.
#[derive(Debug)]
pub(crate) struct Deadline {
    at: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Deadline {
    pub(crate) fn new(at: Instant) -> Self {
        Self { at, timer: Box::pin(sleep_until(at)) }
    }

    /// Later than before, always: the timer of the earlier one serves until it fires.
    pub(crate) fn set(&mut self, at: Instant) {
        self.at = at;
    }

    pub(crate) fn at(&self) -> Instant {
        self.at
    }

    /// What `work` comes to, unless the time ends first.
    pub(crate) async fn over<F: Future>(&mut self, work: F) -> Result<F::Output, Fault> {
        let mut work = pin!(work);
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Ok(done)),
            Poll::Pending => self.poll(cx).map(Err),
        })
        .await
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Fault> {
        while self.timer.as_mut().poll(cx).is_ready() {
            if self.timer.deadline() >= self.at {
                return Poll::Ready(Fault::new(Kind::Timeout, "no whole answer within the time"));
            }
            let at = self.at;
            self.timer.as_mut().reset(at);
        }
        Poll::Pending
    }
}
