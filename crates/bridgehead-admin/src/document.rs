//! What is answered: a status, a kind of text, the text itself.
//!
//! Not what it says.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;

/// A text that is there at once.
pub(crate) type Text = Full<Bytes>;

/// An answer that nobody keeps: it is another one a moment later.
pub(crate) fn document(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Text> {
    let mut response = Response::new(Text::new(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A few plain words.
pub(crate) fn words(status: StatusCode, text: impl Into<Bytes>) -> Response<Text> {
    document(status, "text/plain; charset=utf-8", text)
}
