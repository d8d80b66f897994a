//! The guard of one connection, between its socket and hyper.
//!
//! Invariant: once something was refused, hyper reads nothing more.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use bytes::Bytes;
use tokio::io::ReadBuf;

use crate::config::HeadLimits;
use crate::guard::{Breach, Guard};
use crate::refusal::Refusal;

/// What HTTP/2 begins with, as far as HTTP/1 takes it for a line.
const PREFACE_LINE: &[u8] = b"PRI * HTTP/2.0\r\n";

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
    /// Bytes so far.
    read: usize,
    /// Whether hyper has used up what came before the breach, and wants more.
    reached: bool,
    /// What came behind the line that HTTP/2 begins with.
    rest: Vec<u8>,
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

    /// Whether something has come behind the last request that is whole, be it of a kind that is not let through.
    pub(crate) fn has_more(&self) -> bool {
        let state = self.state();
        state.breach.is_some() || state.guard.is_in_head()
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
        let came = &buffer.filled()[before..];
        let already = state.read;
        state.read = already.saturating_add(came.len());
        let Err(mut breach) = state.guard.admit(came, &self.limits) else {
            return Poll::Ready(Ok(()));
        };
        if breach.refusal == Refusal::Preface {
            match behind_preface(already, came) {
                Some(rest) => state.rest = rest.to_vec(),
                None => breach.refusal = Refusal::UnknownVersion,
            }
        }
        state.breach = Some(breach);
        state.reached = breach.sound == 0;
        buffer.set_filled(before + breach.sound);
        if breach.sound > 0 { Poll::Ready(Ok(())) } else { poll_refused(breach) }
    }

    /// What a client of HTTP/2 has sent.
    pub(crate) fn preface(&self) -> Bytes {
        [PREFACE_LINE, &self.state().rest].concat().into()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What came behind HTTP/2's first line, if that is the connection's first line as well.
fn behind_preface(already: usize, came: &[u8]) -> Option<&[u8]> {
    came.strip_prefix(PREFACE_LINE.get(already..)?)
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
