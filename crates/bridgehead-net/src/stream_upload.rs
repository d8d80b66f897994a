//! A request's body as `h2` gives it.
//!
//! Not how far ahead it is read, which is `upload`'s.
//!
//! Invariant: what is taken makes room in the client's windows, and nothing else does.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http::header::{CONTENT_LENGTH, EXPECT, HeaderMap};
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

impl Source for UploadBody {
    /// A framing that is wrong has ended the stream as well.
    fn is_cut_off(_: &h2::Error) -> bool {
        true
    }
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
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
            Some(Err(error)) => Some(Err(error)),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
