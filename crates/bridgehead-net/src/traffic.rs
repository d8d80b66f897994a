//! What goes on in one connection of HTTP/2, as its streams and its bytes tell it.
//!
//! Streams are tasks of their own, and `h2` owns the byte stream: both meet the connection here.
//!
//! Invariant: whoever changes something that the connection waits for wakes it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use h2::Reason;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::broken_off::BrokenOff;
use crate::flood::{Allowance, Before, End, Haste, Meter, TooMuch};
use crate::line::Line;
use crate::stream::Left;
use crate::tally::Hardship;

/// One connection's. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Traffic(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    running: usize,
    /// The most that there were.
    most: usize,
    /// Whether a request has come.
    begun: bool,
    /// When the client sent something last.
    heard: Instant,
    /// Since when no stream runs.
    idle_since: Instant,
    /// Since when a head is on its way.
    head_since: Option<Instant>,
    meter: Meter,
    resets: Allowance,
    haste: Haste,
    /// What became of the streams since none ran last.
    fate: Fate,
    flooded: bool,
    /// What is wrong with what it sends.
    wrong: Option<Reason>,
    closes: bool,
    waker: Option<Waker>,
}

/// What became of streams that ran beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// None has ended.
    None,
    /// Each that has ended was given up, since the client made no room for it.
    Unread,
    /// Something else became of one.
    Served,
}

impl State {
    /// A stream is over that has lasted so long.
    fn ended(&mut self, left: Option<Left>, lasted: Duration, now: Instant) -> Result<(), TooMuch> {
        self.fate = match (self.fate, left) {
            (Fate::None | Fate::Unread, Some(Left::Unread)) => Fate::Unread,
            _ => Fate::Served,
        };
        let is_premature = left == Some(Left::Unanswered) && lasted < Haste::FAIR;
        self.haste.count(if is_premature { End::Premature } else { End::Other })?;
        left.map_or(Ok(()), |_| self.resets.count(now))
    }
}

/// What the connection looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// The client floods us.
    pub(crate) flooded: bool,
    /// It sends a frame that is none.
    pub(crate) wrong: Option<Reason>,
    /// An application wants the connection closed.
    pub(crate) closes: bool,
    /// Nothing runs, and all that ran was given up, since the client made no room for it.
    pub(crate) unread: bool,
    /// When the client sent something last.
    pub(crate) heard: Instant,
    /// Since when nothing runs, if nothing does.
    pub(crate) idle_since: Option<Instant>,
    /// Whether a request has come.
    pub(crate) begun: bool,
    /// Since when a head is on its way.
    pub(crate) head_since: Option<Instant>,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self(Arc::new(Mutex::new(State {
            running: 0,
            most: 0,
            begun: false,
            heard: now,
            idle_since: now,
            head_since: None,
            meter: Meter::new(now),
            resets: Allowance::of_resets(now),
            haste: Haste::default(),
            fate: Fate::None,
            flooded: false,
            wrong: None,
            closes: false,
            waker: None,
        })))
    }

    /// A stream begins.
    pub(crate) fn enter(&self) -> Running {
        let mut state = self.lock();
        if state.running == 0 {
            state.fate = Fate::None;
        }
        state.running += 1;
        state.most = state.most.max(state.running);
        state.begun = true;
        drop(state);
        Running { traffic: self.clone(), since: Instant::now() }
    }

    /// How many streams there were at once, at most.
    pub(crate) fn most(&self) -> usize {
        self.lock().most
    }

    /// How things are; whoever looks is woken when that changes.
    pub(crate) fn look(&self, cx: &Context<'_>) -> Look {
        let mut state = self.lock();
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => state.waker = Some(cx.waker().clone()),
        }
        Look {
            flooded: state.flooded,
            wrong: state.wrong,
            closes: state.closes,
            unread: state.fate == Fate::Unread && state.running == 0,
            heard: state.heard,
            idle_since: (state.running == 0).then_some(state.idle_since),
            begun: state.begun,
            head_since: state.head_since,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A stream that runs.
#[derive(Debug)]
pub(crate) struct Running {
    traffic: Traffic,
    since: Instant,
}

impl Running {
    /// So many frames of its answer have left.
    pub(crate) fn sent(&self, frames: usize) {
        self.traffic.lock().meter.earn(frames);
    }

    /// So many bytes of a piece have left, and its window has no room for the rest.
    pub(crate) fn sent_a_part(&self, bytes: usize) {
        self.traffic.lock().meter.earn_by_cut(bytes);
    }

    /// It is over; why, if it has not come to its end.
    pub(crate) fn ends(&self, left: Option<Left>) {
        let now = Instant::now();
        let ended = self.traffic.lock().ended(left, now.duration_since(self.since), now);
        if ended == Err(TooMuch) {
            self.traffic.change(|state| state.flooded = true);
        }
    }

    /// Its application wants no more requests on this connection.
    pub(crate) fn closes(&self) {
        self.traffic.change(|state| state.closes = true);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.traffic.lock();
        state.running -= 1;
        if state.running == 0 {
            state.idle_since = Instant::now();
            drop(state);
            self.traffic.change(|_| {});
        }
    }
}

/// The byte stream of a connection, from its preface on, with its frames counted.
pub(crate) struct Wire {
    line: Arc<Line>,
    /// What was read before.
    ahead: Bytes,
    traffic: Traffic,
    broken_off: BrokenOff,
    /// Whether all that was to leave has left since the last read.
    flushed: bool,
}

impl Wire {
    pub(crate) fn new(line: Arc<Line>, ahead: Bytes, traffic: Traffic) -> Self {
        Self { line, ahead, traffic, broken_off: BrokenOff::new(Instant::now()), flushed: false }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let sent = ready!(self.line.socket.poll_write(cx, slices))?;
        let (mut left, now) = (sent, Instant::now());
        for slice in slices {
            let gone = &slice[..left.min(slice.len())];
            left -= gone.len();
            if self.broken_off.see(gone, now) == Err(TooMuch) {
                self.traffic.change(|state| state.flooded = true);
            }
        }
        if let Some(last) = self.broken_off.last_stream() {
            self.traffic.lock().meter.ends_with(last);
        }
        for reason in self.broken_off.taken() {
            self.tell(reason);
        }
        Poll::Ready(Ok(sent))
    }

    /// A stream was broken off for what the client did.
    fn tell(&self, reason: Reason) {
        self.line.config.tally.met(Hardship::BadStream);
        let why = match reason {
            Reason::REFUSED_STREAM => "Bad Request: more requests at a time than are allowed",
            Reason::FLOW_CONTROL_ERROR => "Bad Request: a window was overrun, or became too large",
            // `h2` alone can say why.
            _ => return,
        };
        self.line.tell_refusal(&self.line.peer, || why.to_owned(), None);
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut state = this.traffic.lock();
        if state.flooded || state.wrong.is_some() {
            // Nothing that it sends is of any more use.
            return Poll::Pending;
        }
        if std::mem::take(&mut this.flushed) {
            state.meter.begin_turn();
        } else if state.meter.has_had_its_turn() {
            // `h2` writes once there is nothing to read, and only what leaves is counted.
            state.meter.begin_turn();
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        drop(state);
        let before = buffer.filled().len();
        if this.ahead.is_empty() {
            ready!(this.line.socket.poll_read(cx, buffer))?;
        } else {
            let taken = this.ahead.len().min(buffer.remaining());
            buffer.put_slice(&this.ahead[..taken]);
            this.ahead.advance(taken);
        }
        let now = Instant::now();
        let mut state = this.traffic.lock();
        state.heard = now;
        let admitted = state.meter.admit(&buffer.filled()[before..], now);
        if !state.meter.is_in_head() {
            state.head_since = None;
        } else if state.head_since.is_none() {
            state.head_since = Some(now);
        }
        let came = buffer.filled().len() - before;
        let sound = match admitted {
            Ok(taken) if taken == came => return Poll::Ready(Ok(())),
            Ok(taken) => {
                this.ahead = [&buffer.filled()[before + taken..], &this.ahead].concat().into();
                taken
            }
            // Of what is too much `h2` gets nothing, which it might answer frame by frame.
            Err(Before(sound)) => {
                state.wrong = state.meter.wrong();
                state.flooded = state.wrong.is_none();
                sound
            }
        };
        buffer.set_filled(before + sound);
        // The connection looks when that was taken, in the same turn.
        if sound == 0 { Poll::Pending } else { Poll::Ready(Ok(())) }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_send(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_send(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.line.socket.poll_flush(cx))?;
        this.flushed = true;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.line.socket.poll_end(cx).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of so many streams that are ended by the client at a pace that is put up with.
    fn puts_up_with(count: u32, left: Option<Left>, lasted: Duration) -> bool {
        let (traffic, mut now) = (Traffic::new(), Instant::now());
        let mut state = traffic.lock();
        (0..count).all(|_| {
            now += Duration::from_millis(25);
            state.ended(left, lasted, now).is_ok()
        })
    }

    #[test]
    fn streams_that_are_broken_off_in_vain_are_too_many_at_any_pace() {
        let (soon, later) = (Duration::from_millis(1), Duration::from_secs(1));
        assert!(puts_up_with(250, Some(Left::Unanswered), soon));
        assert!(!puts_up_with(251, Some(Left::Unanswered), soon));
        // Who has waited, or has had something of an answer, has a reason to leave.
        assert!(puts_up_with(5000, Some(Left::Unanswered), later));
        assert!(puts_up_with(5000, Some(Left::Midway), soon));
        assert!(puts_up_with(5000, None, soon));
    }

    #[test]
    fn a_client_has_read_nothing_if_each_stream_that_ran_was_given_up() {
        let (traffic, cx) = (Traffic::new(), Context::from_waker(Waker::noop()));
        let streams = [traffic.enter(), traffic.enter(), traffic.enter()];
        streams.iter().for_each(|stream| stream.ends(Some(Left::Unread)));
        assert!(!traffic.look(&cx).unread, "they run");
        drop(streams);
        assert!(traffic.look(&cx).unread);
        let streams = [traffic.enter(), traffic.enter()];
        streams[0].ends(None);
        streams[1].ends(Some(Left::Unread));
        drop(streams);
        assert!(!traffic.look(&cx).unread);
    }
}
