//! A connection's socket as the byte stream that hyper wants.
//!
//! Not what is looked for in what comes, which is the inspector's.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::inspector::Inspector;
use crate::socket::Socket;

/// A shared [`Socket`] as the byte stream that hyper wants, with somebody who looks at what is read.
#[derive(Debug)]
pub(crate) struct Io {
    pub(crate) socket: Arc<Socket>,
    /// `None` once what comes is no HTTP any more.
    pub(crate) inspector: Option<Arc<Inspector>>,
}

impl AsyncRead for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(inspector) = &self.inspector else { return self.socket.poll_read(cx, buffer) };
        if let Some(polled) = inspector.poll_closed() {
            return polled;
        }
        let before = buffer.filled().len();
        ready!(self.socket.poll_read(cx, buffer))?;
        inspector.poll_look(buffer, before)
    }
}

impl AsyncWrite for Io {
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
        // hyper would tell of a connection that is gone instead of why it ended.
        self.socket.poll_end(cx).map(Ok)
    }
}
