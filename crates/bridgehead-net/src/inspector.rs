//! The guard of one connection, between its socket and hyper.
//!
//! Invariant: once something was refused, hyper reads nothing more.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::io::ReadBuf;

use crate::config::HeadLimits;
use crate::guard::{Breach, Guard};
use crate::refusal::Refusal;

/// How far a client is with what it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// No request comes of what it sent last.
    Refused(Refusal),
    InHead,
    InBody,
    /// It has ended one request, and not begun another.
    Between,
}

/// Looks at what is read.
#[derive(Debug)]
pub(crate) struct Inspector {
    limits: HeadLimits,
    // Only the connection's own task comes here, but hyper wants what it polls to be shareable.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    guard: Guard,
    breach: Option<Breach>,
    /// Whether hyper has used up what came before the breach, and wants more.
    reached: bool,
}

impl Inspector {
    pub(crate) fn new(limits: HeadLimits) -> Self {
        Self { limits, state: Mutex::default() }
    }

    /// How far the client is.
    pub(crate) fn standing(&self) -> Standing {
        let state = self.state();
        match state.breach {
            // Until then hyper may have requests that came before, whose answers go first.
            Some(Breach { in_head: true, .. }) if !state.reached => Standing::Between,
            Some(Breach { refusal, in_head: true, .. }) => Standing::Refused(refusal),
            _ if state.guard.is_in_head() => Standing::InHead,
            _ if state.guard.is_in_body() => Standing::InBody,
            _ => Standing::Between,
        }
    }

    /// What reads come to after something was refused.
    pub(crate) fn poll_closed(&self) -> Option<Poll<io::Result<()>>> {
        let mut state = self.state();
        state.reached = state.breach.is_some();
        state.breach.map(poll_refused)
    }

    /// Looks at what was read behind `before`, and takes out what is not let through.
    pub(crate) fn poll_look(&self, buffer: &mut ReadBuf<'_>, before: usize) -> Poll<io::Result<()>> {
        let mut state = self.state();
        let Err(breach) = state.guard.admit(&buffer.filled()[before..], &self.limits) else {
            return Poll::Ready(Ok(()));
        };
        state.breach = Some(breach);
        state.reached = breach.sound == 0;
        buffer.set_filled(before + breach.sound);
        if breach.sound > 0 { Poll::Ready(Ok(())) } else { poll_refused(breach) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A head is refused by the connection, which sees it when hyper is through with what came before; a body by whoever
/// carries it.
fn poll_refused(breach: Breach) -> Poll<io::Result<()>> {
    if breach.in_head {
        Poll::Pending
    } else {
        Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, breach.refusal.text())))
    }
}
