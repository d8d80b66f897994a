//! A connected stream of either family, TCP's or Unix's, as one.
//!
//! Not what is read and written by it, nor when (`socket`): each function here is one call, to whichever it is. Fuzzers and
//! tests have a third family, in memory (`pipe`).
//!
//! Invariant: nobody else asks which family it is.

use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::pin::pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::config::Unconfirmed;
use crate::forked::Claim;
#[cfg(any(fuzzing, test))]
use crate::pipe::Pipe;

/// What a client is connected by.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(Owned<TcpStream>),
    Unix(Owned<UnixStream>),
    #[cfg(any(fuzzing, test))]
    Memory(Pipe),
}

/// A stream that is the system's, and ours.
#[derive(Debug)]
pub(crate) struct Owned<S> {
    // Before the stream, so that it is given up first: a child must never close a number that means something new.
    _claim: Claim,
    stream: S,
}

impl<S: AsFd> Owned<S> {
    fn new(stream: S) -> Self {
        Self { _claim: Claim::on(&stream), stream }
    }
}

/// Calls the same on whichever it is of the system's; and what is behind the arrow on one in memory.
macro_rules! either {
    ($this:expr, $stream:ident => $call:expr, $pipe:ident => $instead:expr) => {
        match $this {
            Stream::Tcp(Owned { stream: $stream, .. }) => $call,
            Stream::Unix(Owned { stream: $stream, .. }) => $call,
            #[cfg(any(fuzzing, test))]
            Stream::Memory($pipe) => $instead,
        }
    };
}

impl Stream {
    pub(crate) fn tcp(stream: TcpStream) -> Self {
        // A refusal of the option only costs latency.
        let _ = stream.set_nodelay(true);
        Self::Tcp(Owned::new(stream))
    }

    pub(crate) fn unix(stream: UnixStream) -> Self {
        Self::Unix(Owned::new(stream))
    }

    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_read_ready(cx), pipe => pipe.poll_read_ready(cx))
    }

    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_write_ready(cx), pipe => pipe.poll_write_ready(cx))
    }

    pub(crate) fn try_read(&self, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
        either!(self, stream => stream.try_read_buf(buffer), pipe => pipe.try_read(buffer))
    }

    pub(crate) fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match slices {
            [slice] => either!(self, stream => stream.try_write(slice), pipe => pipe.try_write(slices)),
            _ => either!(self, stream => stream.try_write_vectored(slices), pipe => pipe.try_write(slices)),
        }
    }

    /// Looks for a byte, or the end, where there is readiness for one; leaves it.
    pub(crate) fn try_peek(&self) -> io::Result<usize> {
        either!(
            self,
            stream => stream.try_io(Interest::READABLE, || peek(&SockRef::from(stream))),
            pipe => pipe.try_peek()
        )
    }

    /// The same, whatever is known of readiness.
    pub(crate) fn peek(&self) -> io::Result<usize> {
        either!(self, stream => peek(&SockRef::from(stream)), pipe => pipe.peek())
    }

    /// Waits for a byte, or the end, and leaves what comes; where the system shows it without reading, `seen` has as much of
    /// it as it has room for.
    pub(crate) fn poll_look(&self, cx: &mut Context<'_>, seen: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Self::Tcp(Owned { stream, .. }) = self {
            return stream.poll_peek(cx, seen).map_ok(drop);
        }
        loop {
            ready!(self.poll_read_ready(cx))?;
            match self.try_peek() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                looked => return Poll::Ready(looked.map(drop)),
            }
        }
    }

    /// Reads, whatever is known of readiness.
    pub(crate) fn read(&self, space: &mut [u8]) -> io::Result<usize> {
        either!(self, stream => (&*SockRef::from(stream)).read(space), pipe => pipe.read(space))
    }

    /// Nothing is left to be read: what comes next is a new event.
    pub(crate) fn was_drained(&self) {
        let nothing = || -> io::Result<()> { Err(io::ErrorKind::WouldBlock.into()) };
        either!(
            self,
            stream => drop(stream.try_io(Interest::READABLE, nothing)),
            pipe => pipe.was_drained()
        );
    }

    /// Makes the coming close a reset. Where that is refused the client sees a plain end, which is all that is left to do.
    pub(crate) fn close_will_reset(&self) {
        either!(
            self,
            stream => drop(SockRef::from(stream).set_linger(Some(Duration::ZERO))),
            _pipe => ()
        );
    }

    /// Says that nothing more comes. A connection that is gone has ended.
    pub(crate) fn end(&self) {
        either!(self, stream => drop(SockRef::from(stream).shutdown(Shutdown::Write)), pipe => pipe.end());
    }

    /// How many bytes the client's system has not confirmed, where that can be known.
    pub(crate) fn unconfirmed(&self, ask: Unconfirmed) -> Option<u64> {
        either!(self, stream => ask(stream.as_fd()), _pipe => None)
    }

    /// Writes nothing, which fails where nothing can be written any more.
    pub(crate) fn write_nothing(&self) -> io::Result<usize> {
        either!(
            self,
            stream => SockRef::from(stream).send_with_flags(&[], libc::MSG_NOSIGNAL),
            pipe => pipe.write_nothing()
        )
    }

    /// Whether its client is known to send no more, behind what it has sent.
    pub(crate) fn is_read_closed(&self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let ready = either!(
            self,
            stream => pin!(stream.ready(Interest::READABLE)).poll(&mut cx),
            pipe => return pipe.is_read_closed()
        );
        matches!(ready, Poll::Ready(Ok(ready)) if ready.is_read_closed())
    }

    /// Until the connection is broken.
    pub(crate) async fn broken(&self) {
        // An error of the looking itself is one of the connection's, too.
        either!(self, stream => drop(stream.ready(Interest::ERROR).await), _pipe => std::future::pending().await);
    }
}

/// One byte is enough to tell bytes from an end.
fn peek(socket: &SockRef<'_>) -> io::Result<usize> {
    socket.peek(&mut [MaybeUninit::uninit()])
}
