//! What is answered: a status, a kind of text, the text itself.
//!
//! Not what it says.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

/// A text that is there at once.
#[derive(Debug)]
pub(crate) struct Text(Option<Bytes>);

impl Body for Text {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.get_mut().0.take().map(|text| Ok(Frame::data(text))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |text| text.len() as u64))
    }
}

/// An answer that nobody keeps: it is another one a moment later.
pub(crate) fn document(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Text> {
    let mut response = Response::new(Text(Some(text.into())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A few plain words.
pub(crate) fn words(status: StatusCode, text: impl Into<Bytes>) -> Response<Text> {
    document(status, "text/plain; charset=utf-8", text)
}
