//! A request's body as `h2` gives it.
//!
//! Not how far ahead it is read, which is `upload`'s.
//!
//! Invariant: what is taken makes room in the client's windows, and nothing else does; trailers are judged as HTTP/1's.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bridgehead_heads::Trailers;
use bytes::Bytes;
use h2::RecvStream;
use http::header::{CONTENT_LENGTH, EXPECT, HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;

use crate::upload::Source;

/// A request's body as `h2` gives it. What is taken makes room in the client's windows.
pub(crate) struct UploadBody {
    body: RecvStream,
    length: Option<u64>,
    /// Told when a body is first asked for that the client holds back.
    asks: Option<oneshot::Sender<()>>,
}

impl UploadBody {
    pub(crate) fn new(body: RecvStream, headers: &HeaderMap) -> (Self, Option<oneshot::Receiver<()>>) {
        let (asks, wanted) = if headers.contains_key(EXPECT) && !body.is_end_stream() {
            let (asks, wanted) = oneshot::channel();
            (Some(asks), Some(wanted))
        } else {
            (None, None)
        };
        // `h2` has refused what is no number.
        let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        (Self { body, length, asks }, wanted)
    }

    pub(crate) fn is_held_back(&self) -> bool {
        self.asks.is_some()
    }
}

/// Why a body has not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The stream is over. So it is where its framing was wrong.
    CutOff,
    /// More follows it than trailers may be.
    Trailers,
}

impl Source for UploadBody {
    fn is_cut_off(broken: &Broken) -> bool {
        *broken == Broken::CutOff
    }
}

/// By the measure of HTTP/1: each as a line of its own.
fn are_in_bounds(trailers: &HeaderMap) -> bool {
    let line = |(name, value): (&HeaderName, &HeaderValue)| {
        [name.as_str().as_bytes(), b": ", value.as_bytes()].concat()
    };
    trailers.iter().map(line).try_fold(Trailers::default(), |judged, line| judged.after(&line)).is_ok()
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = self.get_mut();
        if let Some(asks) = this.asks.take() {
            // Who would have said so to the client is gone with it.
            let _ = asks.send(());
        }
        Poll::Ready(match ready!(this.body.poll_data(cx)) {
            Some(Ok(data)) => {
                // An error is of a stream that is over.
                let _ = this.body.flow_control().release_capacity(data.len());
                Some(Ok(Frame::data(data)))
            }
            Some(Err(_)) => Some(Err(Broken::CutOff)),
            None => match ready!(this.body.poll_trailers(cx)) {
                Ok(Some(trailers)) if !are_in_bounds(&trailers) => Some(Err(Broken::Trailers)),
                // An error is of a stream that was broken off behind its body.
                Ok(_) | Err(_) => None,
            },
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
