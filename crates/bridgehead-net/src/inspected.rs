//! A connection's socket as the byte stream that hyper wants.
//!
//! Not what is looked for in what comes, which is the inspector's.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::inspector::{Ahead, Inspector};
use crate::socket::Socket;

/// What is read at once behind a part of a head.
const PIECE: usize = 8192;

/// A head and a body that are no longer than this leave as one piece: the system takes one for less than it takes two.
const JOINED: usize = 1280;

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
        loop {
            match inspector.poll_ahead(buffer) {
                Ahead::Polled(polled) => return polled,
                Ahead::HalfHead => match ready!(self.poll_rest_of_head(cx, inspector))? {
                    // Whoever left in a head gets no answer.
                    0 => return Poll::Ready(Ok(())),
                    _ => continue,
                },
                Ahead::Nothing => {}
            }
            let before = buffer.filled().len();
            ready!(self.socket.poll_read(cx, buffer))?;
            if let Some(polled) = inspector.poll_look(buffer, before) {
                return polled;
            }
        }
    }
}

impl Io {
    /// Reads what comes behind a part of a head; how much that was.
    fn poll_rest_of_head(&self, cx: &mut Context<'_>, inspector: &Inspector) -> Poll<io::Result<usize>> {
        let mut space = [MaybeUninit::uninit(); PIECE];
        let mut came = ReadBuf::uninit(&mut space);
        ready!(self.socket.poll_read(cx, &mut came))?;
        inspector.look_behind_half_head(came.filled());
        Poll::Ready(Ok(came.filled().len()))
    }
}

impl AsyncWrite for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.socket.interim.poll_out_of_the_way(cx, &self.socket))?;
        if self.socket.trailers.is_due() {
            return self.socket.trailers.poll_write(cx, &self.socket, slices);
        }
        let total: usize = slices.iter().map(|slice| slice.len()).sum();
        if slices.len() < 2 || total > JOINED {
            return self.socket.poll_write(cx, slices);
        }
        let mut joined = [0; JOINED];
        let mut rest = &mut joined[..];
        for slice in slices {
            let (place, behind) = rest.split_at_mut(slice.len());
            place.copy_from_slice(slice);
            rest = behind;
        }
        self.socket.poll_write(cx, &[IoSlice::new(&joined[..total])])
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.socket.interim.poll_leave(cx, &self.socket))?;
        ready!(self.socket.poll_flush(cx))?;
        self.socket.trailers.all_is_written(cx);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper would tell of a connection that is gone instead of why it ended.
        self.socket.poll_end(cx).map(Ok)
    }
}
