//! The body of a request, as hyper pulls it.
//!
//! Not a template: what is sent whole has been filled already.
//!
//! Invariant: a stream makes its chunks when they are pulled, so that its size costs no memory.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

/// A body.
#[derive(Debug)]
pub(crate) enum Payload {
    /// Empty when it has been taken.
    Whole(Bytes),
    Stream(Pin<Box<Stream>>),
}

/// What is made as it is sent.
#[derive(Debug)]
pub(crate) struct Stream {
    left: u64,
    chunk: Bytes,
    every: Duration,
    declared: bool,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Payload {
    /// `size` bytes, as many at a time as `chunk` has.
    pub(crate) fn stream(size: u64, chunk: Bytes, every: Duration, declared: bool) -> Self {
        Self::Stream(Box::pin(Stream { left: size, chunk, every, declared, pause: None }))
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match self.get_mut() {
            Self::Whole(bytes) => std::mem::take(bytes),
            Self::Stream(stream) => ready!(stream.poll_chunk(cx)),
        };
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Stream(stream) => stream.left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(stream) if stream.declared => SizeHint::with_exact(stream.left),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

impl Stream {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.chunk.len());
        self.left -= length as u64;
        if self.left > 0 && !self.every.is_zero() {
            self.pause = Some(Box::pin(sleep_until(Instant::now() + self.every)));
        }
        Poll::Ready(self.chunk.slice(..length))
    }
}
