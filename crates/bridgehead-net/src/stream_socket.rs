//! One stream of HTTP/2 as a stream of bytes, for a WebSocket (RFC 8441).
//!
//! Windows are `h2`'s. What is read makes room in the client's, what is written waits for room in ours.
//!
//! Invariant: no more is given to `h2` than the client has room for, and nothing is kept of what was read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use h2::{RecvStream, SendStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::traffic::Running;

/// Bytes of one write: a stream's window, as most clients have it.
const MOST: usize = 64 * 1024;

/// The largest frame that is written: what a client takes that has not said otherwise.
const FRAME: usize = 16 * 1024;

/// A stream whose head has been answered. Dropped before its end, it is broken off.
pub(crate) struct StreamSocket<'a> {
    came: RecvStream,
    /// Of the last piece that came.
    unread: Bytes,
    send: SendStream<Bytes>,
    running: &'a Running,
    ended: bool,
}

impl<'a> StreamSocket<'a> {
    pub(crate) fn new(came: RecvStream, send: SendStream<Bytes>, running: &'a Running) -> Self {
        Self { came, unread: Bytes::new(), send, running, ended: false }
    }
}

impl AsyncRead for StreamSocket<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.unread.is_empty() {
            match ready!(this.came.poll_data(cx)) {
                // An empty piece is no end.
                Some(piece) => this.unread = piece.map_err(io::Error::other)?,
                None => return Poll::Ready(Ok(())),
            }
        }
        let taken = this.unread.len().min(buffer.remaining());
        buffer.put_slice(&this.unread[..taken]);
        this.unread.advance(taken);
        // An error is of a stream that is over.
        let _ = this.came.flow_control().release_capacity(taken);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for StreamSocket<'_> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let size = slices.iter().map(|slice| slice.len()).sum::<usize>().min(MOST);
        this.send.reserve_capacity(size);
        while this.send.capacity() == 0 {
            match ready!(this.send.poll_capacity(cx)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            }
        }
        let granted = this.send.capacity().min(size);
        let mut data = BytesMut::with_capacity(granted);
        for slice in slices {
            let room = granted - data.len();
            data.put_slice(&slice[..slice.len().min(room)]);
        }
        this.running.sent(1 + granted / FRAME);
        this.send.send_data(data.freeze(), false).map_err(io::Error::other)?;
        Poll::Ready(Ok(granted))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// The connection writes by itself.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !std::mem::replace(&mut this.ended, true) {
            this.send.send_data(Bytes::new(), true).map_err(io::Error::other)?;
        }
        Poll::Ready(Ok(()))
    }
}
