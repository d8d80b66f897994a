//! The guard of one connection, between its socket and hyper.
//!
//! hyper answers a line that cannot go on well as soon as it sees that, and without a word; and of a head that grows it keeps
//! about twice what has come. So it gets a head whole: a part of one is kept back until the rest has come.
//!
//! It hands on what comes between two reads piece by piece, too, so many small chunks are one to it.
//!
//! Invariant: once something was refused, hyper reads nothing more, and it reads only heads that were judged.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use bridgehead_heads::{Breach, Fault, Guard, HeadLimits, join_crumbs};
use bytes::Bytes;
use tokio::io::ReadBuf;

use crate::refusal::Refusal;

/// What HTTP/2 begins with, as far as HTTP/1 takes it for a line.
pub(crate) const PREFACE_LINE: &[u8; 16] = b"PRI * HTTP/2.0\r\n";

/// What a connection may begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// Its first line tells.
    #[default]
    Either,
    /// By TLS, where nothing else was agreed on.
    Http1,
    /// Agreed on by TLS.
    Http2,
}

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
    spoken: Spoken,
    // Only the connection's own task comes here, but hyper wants what it polls to be shareable.
    state: Mutex<State>,
}

/// What there is for a reader without a look at the socket.
#[derive(Debug)]
pub(crate) enum Ahead {
    /// This is what the read comes to.
    Polled(Poll<io::Result<()>>),
    /// A part of a head, for which the rest is waited.
    HalfHead,
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
    /// What a client of HTTP/2 has begun with.
    preface: Vec<u8>,
    /// A head that had been kept back, and what was let through behind it.
    passed: Bytes,
}

impl Inspector {
    pub(crate) fn new(limits: HeadLimits, spoken: Spoken) -> Self {
        Self { limits, spoken, state: Mutex::default() }
    }

    /// In what the connection may begin.
    pub(crate) fn spoken(&self) -> Spoken {
        self.spoken
    }

    /// How far the client is.
    pub(crate) fn standing(&self) -> Standing {
        let state = self.state();
        match state.breach {
            // Until then hyper may have requests that came before, whose answers go first.
            Some(Breach { in_head: true, .. }) if !state.reached => Standing::Between,
            Some(Breach { fault, in_head: true, .. }) => Standing::Refused(fault.into()),
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
            None if state.guard.half_head().is_empty() => Ahead::Nothing,
            None => Ahead::HalfHead,
        }
    }

    /// Looks at what was read behind `before`, and takes out what is not let through. `None` if that is all of it, and
    /// more may be.
    pub(crate) fn poll_look(&self, buffer: &mut ReadBuf<'_>, before: usize) -> Option<Poll<io::Result<()>>> {
        let mut state = self.state();
        let came = &buffer.filled()[before..];
        let breach = state.judge(came, self);
        let sound = breach.map_or(came.len() - state.guard.half_head().len(), |breach| breach.sound);
        let is_end = came.is_empty();
        buffer.set_filled(before + sound);
        if let (Some(first), None) = (state.guard.crumbs(), breach) {
            let left = join_crumbs(&mut buffer.filled_mut()[before..], first);
            buffer.set_filled(before + left);
        }
        match breach {
            Some(breach) if sound == 0 => Some(poll_refused(breach)),
            _ if sound > 0 || is_end => Some(Poll::Ready(Ok(()))),
            _ => None,
        }
    }

    /// Looks at what came behind a part of a head.
    pub(crate) fn look_behind_half_head(&self, came: &[u8]) {
        let mut state = self.state();
        let kept = state.guard.half_head().len();
        let breach = state.judge(came, self);
        let mut passed = state.guard.take_head();
        if !passed.is_empty() {
            let sound = breach.map_or(came.len() - state.guard.half_head().len(), |breach| breach.sound);
            passed.extend_from_slice(&came[passed.len() - kept..sound]);
            state.passed = passed.into();
        }
    }

    /// Whether the head that is refused, or late, is one of HEAD.
    pub(crate) fn asks_head(&self) -> bool {
        let state = self.state();
        state
            .breach
            .map_or_else(|| bridgehead_heads::asks_head(state.guard.half_head()), |breach| breach.asks_head)
    }

    /// What a client of HTTP/2 has sent.
    pub(crate) fn preface(&self) -> Bytes {
        std::mem::take(&mut self.state().preface).into()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn judge(&mut self, came: &[u8], inspector: &Inspector) -> Option<Breach> {
        let already = self.read;
        self.read = already.saturating_add(came.len());
        let mut breach = if inspector.spoken == Spoken::Http2 && !continues_preface(already, came) {
            // Whoever speaks HTTP/2 sees what is wrong with it.
            Breach { sound: 0, fault: Fault::Preface, in_head: true, asks_head: false }
        } else {
            self.guard.admit(came, &inspector.limits).err()?
        };
        if breach.fault == Fault::Preface {
            match PREFACE_LINE.get(..already) {
                Some(before) if inspector.spoken == Spoken::Http2 || ends_preface_line(already, came) => {
                    self.preface = [before, came].concat();
                }
                _ => breach.fault = Fault::UnknownVersion,
            }
        }
        self.breach = Some(breach);
        self.reached = breach.sound == 0;
        Some(breach)
    }
}

/// Whether HTTP/2's first line ends in this, being the connection's first line as well.
fn ends_preface_line(already: usize, came: &[u8]) -> bool {
    PREFACE_LINE.get(already..).is_some_and(|due| came.starts_with(due))
}

/// Whether this may be of HTTP/2's first line, as far as that goes.
fn continues_preface(already: usize, came: &[u8]) -> bool {
    let due = PREFACE_LINE.get(already..).unwrap_or_default();
    due.iter().zip(came).all(|(due, came)| due == came)
}

/// A head is refused by the connection, which sees it when hyper is through with what came before; a body by whoever
/// carries it.
fn poll_refused(breach: Breach) -> Poll<io::Result<()>> {
    if breach.in_head {
        Poll::Pending
    } else {
        Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, Refusal::from(breach.fault).text())))
    }
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use super::*;

    /// What hyper gets of what comes in these pieces, and how far the client is then.
    fn read(pieces: &[&[u8]]) -> (Vec<u8>, Standing) {
        let inspector = Inspector::new(HeadLimits { target: 64, bytes: 256, fields: 4 }, Spoken::Either);
        let mut got = Vec::new();
        for piece in pieces {
            let mut space = [MaybeUninit::uninit(); 32];
            let mut left = *piece;
            loop {
                let mut buffer = ReadBuf::uninit(&mut space);
                match inspector.poll_ahead(&mut buffer) {
                    Ahead::Polled(Poll::Pending) => return (got, inspector.standing()),
                    Ahead::Polled(_) => {}
                    Ahead::HalfHead if left.is_empty() => break,
                    Ahead::HalfHead => inspector.look_behind_half_head(std::mem::take(&mut left)),
                    Ahead::Nothing if left.is_empty() => break,
                    Ahead::Nothing => {
                        let taken = left.split_off(..left.len().min(32)).expect("no more than there is");
                        buffer.put_slice(taken);
                        let _ = inspector.poll_look(&mut buffer, 0);
                    }
                }
                got.extend_from_slice(buffer.filled());
            }
        }
        (got, inspector.standing())
    }

    #[test]
    fn nothing_of_a_head_is_read_before_it_is_whole() {
        let request = b"\r\nPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
        let all = [&request[..], request, b"GET / HT"].concat();
        let (head, end) = (request.len() - 3, request.len());
        // What may be left of a body before it is nobody's head.
        let waits = [0..2, 2..head, end..end + 2, end + 2..end + head, 2 * end..all.len()];
        let whole = |came: usize| waits.iter().find(|it| it.contains(&came)).map_or(came, |it| it.start);
        for cut in 0..all.len() {
            let (first, second) = all.split_at(cut);
            assert_eq!(read(&[first]).0.len(), whole(cut), "{cut}");
            let (got, standing) = read(&[first, second]);
            assert_eq!((&got[..], standing), (&all[..2 * request.len()], Standing::InHead), "{cut}");
        }
    }

    #[test]
    fn what_came_before_a_head_that_is_refused_is_read_and_nothing_of_it() {
        let sound = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let all = [&sound[..], b"GET / HTTP/1.1\r\nHost: a\nA: b\r\n"].concat();
        for cut in 0..all.len() {
            let (first, second) = all.split_at(cut);
            let (got, standing) = read(&[first, second, b"\r\n"]);
            assert_eq!((&got[..], standing), (&sound[..], Standing::Refused(Refusal::BareLineFeed)), "{cut}");
        }
    }

    #[test]
    fn where_http2_was_agreed_on_nothing_else_is_let_through() {
        let limits = HeadLimits { target: 64, bytes: 256, fields: 4 };
        for (all, due) in
            [(&b"PRI * HTTP/2.0\r\n\r\nSM"[..], 16), (b"PRI * HTTP/1.1\r\n\r\n", 12), (b"GET / ", 1)]
        {
            for cut in 0..due {
                let inspector = Inspector::new(limits, Spoken::Http2);
                let (first, second) = all.split_at(cut);
                let mut space = [MaybeUninit::uninit(); 32];
                let mut buffer = ReadBuf::uninit(&mut space);
                buffer.put_slice(first);
                let _ = inspector.poll_look(&mut buffer, 0);
                assert!(buffer.filled().is_empty() && inspector.preface().is_empty());
                inspector.look_behind_half_head(second);
                assert_eq!(inspector.standing(), Standing::Refused(Refusal::Preface), "{cut}");
                assert_eq!(inspector.preface(), all);
            }
        }
    }
}
