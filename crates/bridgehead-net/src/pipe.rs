//! One end of a pair in memory, in the place of a client's stream: a connection of a fuzzer or of a test needs no system.
//!
//! Invariant: readiness is told as Tokio tells that of a socket, once for what came and for ever of an end, so that who
//! forgets to ask again waits for ever here, too.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// What is taken over at once.
const PIECE: usize = 4096;

/// The server's end.
#[derive(Debug)]
// Only the connection's own task comes here, but hyper wants what it polls to be shareable.
pub(crate) struct Pipe(Mutex<State>);

#[derive(Debug)]
struct State {
    stream: DuplexStream,
    /// What has come and was not read.
    ahead: VecDeque<u8>,
    readiness: Readiness,
    /// Who is told of what comes, and of room. Kept for calls that have nobody to tell: a pair forgets the one before.
    reader: Waker,
    writer: Waker,
    room: Room,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readiness {
    None,
    /// Something came since the last time that nothing was left.
    News,
    /// Nothing comes behind what is there.
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Unknown,
    /// The last write found none; its waker is told.
    None,
}

impl Pipe {
    pub(crate) fn new(stream: DuplexStream) -> Self {
        let (reader, writer) = (Waker::noop().clone(), Waker::noop().clone());
        let (ahead, readiness, room) = (VecDeque::new(), Readiness::None, Room::Unknown);
        Self(Mutex::new(State { stream, ahead, readiness, reader, writer, room }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.state();
        state.reader.clone_from(cx.waker());
        state.take_over();
        if state.readiness == Readiness::None { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.state();
        state.writer.clone_from(cx.waker());
        match std::mem::replace(&mut state.room, Room::Unknown) {
            Room::Unknown => Poll::Ready(Ok(())),
            Room::None => Poll::Pending,
        }
    }

    pub(crate) fn try_read(&self, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
        let mut state = self.state();
        state.look()?;
        let count = state.read(buffer.initialize_unfilled())?;
        buffer.advance(count);
        Ok(count)
    }

    pub(crate) fn try_peek(&self) -> io::Result<usize> {
        let mut state = self.state();
        state.look()?;
        state.peek()
    }

    pub(crate) fn peek(&self) -> io::Result<usize> {
        let mut state = self.state();
        state.take_over();
        state.peek()
    }

    pub(crate) fn read(&self, space: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state();
        state.take_over();
        state.read(space)
    }

    pub(crate) fn was_drained(&self) {
        self.state().was_drained();
    }

    pub(crate) fn is_read_closed(&self) -> bool {
        let mut state = self.state();
        state.take_over();
        state.readiness == Readiness::Ended
    }

    pub(crate) fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = self.state();
        let State { stream, writer, room, .. } = &mut *state;
        match Pin::new(stream).poll_write_vectored(&mut Context::from_waker(writer), slices) {
            Poll::Ready(written) => written,
            Poll::Pending => {
                *room = Room::None;
                Err(io::ErrorKind::WouldBlock.into())
            }
        }
    }

    pub(crate) fn write_nothing(&self) -> io::Result<usize> {
        self.try_write(&[IoSlice::new(&[])])
    }

    pub(crate) fn end(&self) {
        let State { stream, writer, .. } = &mut *self.state();
        // It is done at once.
        let _ = Pin::new(stream).poll_shutdown(&mut Context::from_waker(writer));
    }
}

impl State {
    /// What the client has sent so far; the reader is told when there is more.
    fn take_over(&mut self) {
        while self.readiness != Readiness::Ended {
            let mut space = [0; PIECE];
            let mut buffer = ReadBuf::new(&mut space);
            let mut cx = Context::from_waker(&self.reader);
            match Pin::new(&mut self.stream).poll_read(&mut cx, &mut buffer) {
                Poll::Pending => return,
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    self.ahead.extend(buffer.filled());
                    self.readiness = Readiness::News;
                }
                Poll::Ready(_) => self.readiness = Readiness::Ended,
            }
        }
    }

    fn look(&mut self) -> io::Result<()> {
        match self.readiness {
            Readiness::None => Err(io::ErrorKind::WouldBlock.into()),
            Readiness::News if self.ahead.is_empty() => {
                self.was_drained();
                Err(io::ErrorKind::WouldBlock.into())
            }
            Readiness::News | Readiness::Ended => Ok(()),
        }
    }

    fn was_drained(&mut self) {
        if self.readiness == Readiness::News {
            self.readiness = Readiness::None;
        }
    }

    fn peek(&self) -> io::Result<usize> {
        if self.ahead.is_empty() { self.end_or_nothing() } else { Ok(1) }
    }

    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        if self.ahead.is_empty() { self.end_or_nothing() } else { self.ahead.read(space) }
    }

    fn end_or_nothing(&self) -> io::Result<usize> {
        if self.readiness == Readiness::Ended { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }
}
