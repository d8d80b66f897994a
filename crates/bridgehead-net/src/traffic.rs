//! What goes on in one connection of HTTP/2, as its streams and its bytes tell it.
//!
//! Streams are tasks of their own, and `h2` owns the byte stream: both meet the connection here.
//!
//! Invariant: whoever changes something that the connection waits for wakes it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::flood::{Meter, Resets, TooMuch};
use crate::socket::Socket;

/// One connection's. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Traffic(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    running: usize,
    /// Whether a request has come.
    begun: bool,
    /// When the client sent something last.
    heard: Instant,
    /// Since when no stream runs.
    idle_since: Instant,
    /// Since when a head is on its way.
    head_since: Option<Instant>,
    meter: Meter,
    resets: Resets,
    flooded: bool,
    closes: bool,
    waker: Option<Waker>,
}

/// What the connection looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// The client floods us.
    pub(crate) flooded: bool,
    /// An application wants the connection closed.
    pub(crate) closes: bool,
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
            begun: false,
            heard: now,
            idle_since: now,
            head_since: None,
            meter: Meter::new(now),
            resets: Resets::new(now),
            flooded: false,
            closes: false,
            waker: None,
        })))
    }

    /// A stream begins.
    pub(crate) fn enter(&self) -> Running {
        let mut state = self.lock();
        state.running += 1;
        state.begun = true;
        Running(self.clone())
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
            closes: state.closes,
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
pub(crate) struct Running(Traffic);

impl Running {
    /// So many frames of its answer have left.
    pub(crate) fn sent(&self, frames: usize) {
        self.0.lock().meter.earn(frames);
    }

    /// It was broken off.
    pub(crate) fn was_reset(&self) {
        let mut state = self.0.lock();
        if state.resets.count(Instant::now()) == Err(TooMuch) {
            drop(state);
            self.0.change(|state| state.flooded = true);
        }
    }

    /// Its application wants no more requests on this connection.
    pub(crate) fn closes(&self) {
        self.0.change(|state| state.closes = true);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.running -= 1;
        if state.running == 0 {
            state.idle_since = Instant::now();
            drop(state);
            self.0.change(|_| {});
        }
    }
}

/// The byte stream of a connection, from its preface on, with its frames counted.
#[derive(Debug)]
pub(crate) struct Wire {
    socket: Arc<Socket>,
    /// What was read before.
    ahead: Bytes,
    traffic: Traffic,
}

impl Wire {
    pub(crate) fn new(socket: Arc<Socket>, ahead: Bytes, traffic: Traffic) -> Self {
        Self { socket, ahead, traffic }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.traffic.lock().flooded {
            // Nothing that it sends is of any more use.
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        if this.ahead.is_empty() {
            ready!(this.socket.poll_read(cx, buffer))?;
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
        // The connection looks when it has taken what came, in the same turn.
        state.flooded |= admitted == Err(TooMuch);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.socket.poll_write(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_write(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_end(cx).map(Ok)
    }
}
