//! The guard of one connection, between its socket and hyper.
//!
//! hyper answers a line that cannot go on well as soon as it sees that, and without a word. So it gets the lines of a head
//! whole: a part of one is kept back until the rest has come.
//!
//! Invariant: once something was refused, hyper reads nothing more, and of a head it reads only lines that were judged.

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

/// What there is for a reader without a look at the socket.
#[derive(Debug)]
pub(crate) enum Ahead {
    /// This is what the read comes to.
    Polled(Poll<io::Result<()>>),
    /// A part of a line, for which the rest is waited.
    HalfLine,
    Nothing,
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
    /// What was let through behind a line that had been kept back.
    passed: Bytes,
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

    /// What a read comes to without a look at the socket: to what was let through already, or after something was
    /// refused.
    pub(crate) fn poll_ahead(&self, buffer: &mut ReadBuf<'_>) -> Ahead {
        let mut state = self.state();
        if !state.passed.is_empty() {
            let count = buffer.remaining().min(state.passed.len());
            buffer.put_slice(&state.passed.split_to(count));
            return Ahead::Polled(Poll::Ready(Ok(())));
        }
        state.reached = state.breach.is_some();
        match state.breach {
            Some(breach) => Ahead::Polled(poll_refused(breach)),
            None if state.guard.half_line().is_empty() => Ahead::Nothing,
            None => Ahead::HalfLine,
        }
    }

    /// Looks at what was read behind `before`, and takes out what is not let through. `None` if that is all of it, and
    /// more may be.
    pub(crate) fn poll_look(&self, buffer: &mut ReadBuf<'_>, before: usize) -> Option<Poll<io::Result<()>>> {
        let mut state = self.state();
        let came = &buffer.filled()[before..];
        let breach = state.judge(came, &self.limits);
        let sound = breach.map_or(came.len() - state.guard.half_line().len(), |breach| breach.sound);
        let is_end = came.is_empty();
        buffer.set_filled(before + sound);
        match breach {
            Some(breach) if sound == 0 => Some(poll_refused(breach)),
            _ if sound > 0 || is_end => Some(Poll::Ready(Ok(()))),
            _ => None,
        }
    }

    /// Looks at what came behind a part of a line.
    pub(crate) fn look_behind_half_line(&self, came: &[u8]) {
        let mut state = self.state();
        let mut passed = [state.guard.half_line(), came].concat();
        let kept = passed.len() - came.len();
        let sound = match state.judge(came, &self.limits) {
            None => passed.len() - state.guard.half_line().len(),
            Some(Breach { sound: 0, .. }) => 0,
            Some(breach) => kept + breach.sound,
        };
        passed.truncate(sound);
        state.passed = passed.into();
    }

    /// What a client of HTTP/2 has sent.
    pub(crate) fn preface(&self) -> Bytes {
        [PREFACE_LINE, &self.state().rest].concat().into()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn judge(&mut self, came: &[u8], limits: &HeadLimits) -> Option<Breach> {
        let already = self.read;
        self.read = already.saturating_add(came.len());
        let mut breach = self.guard.admit(came, limits).err()?;
        if breach.refusal == Refusal::Preface {
            match behind_preface(already, came) {
                Some(rest) => self.rest = rest.to_vec(),
                None => breach.refusal = Refusal::UnknownVersion,
            }
        }
        self.breach = Some(breach);
        self.reached = breach.sound == 0;
        Some(breach)
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
