//! Whether a connection stays for another request: what a client asks for, and what it is told (RFC 9112 §9.3).
//!
//! Not when else it ends, which is the network's, and not in HTTP/2, where no header says it.
//!
//! Invariant: what is behind a request that asks for the end is read by nobody, however that is asked for.

use http::header::{CONNECTION, HeaderValue};
use http::{Response, Version, request};

use crate::letters::trimmed;

/// Says that the connection ends with this answer.
pub fn say_close<B>(response: &mut Response<B>, version: Version) {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    if version == Version::HTTP_10 {
        // To a client of 1.0 that asked for it, hyper promises to keep the connection as well, unless the answer is of
        // 1.0 itself.
        *response.version_mut() = version;
    }
}

/// Whether a client asks for its connection to be kept.
#[must_use]
pub fn keeps_connection(head: &request::Parts) -> bool {
    if head.version == Version::HTTP_11 {
        !has_option(head, b"close")
    } else {
        has_option(head, b"keep-alive")
    }
}

/// Whether a client asks for its connection to be closed in a value that hyper passes over, for it is not ASCII. Whoever
/// stands in front may have heard it: then what comes behind is nobody's request.
#[must_use]
pub fn asks_unheard_to_close(head: &request::Parts) -> bool {
    let odd = head.headers.get_all(CONNECTION).iter().any(|value| value.to_str().is_err());
    odd && has_option(head, b"close")
}

/// Whether this is among what a client wants of its connection (RFC 9110 §7.6.1).
fn has_option(head: &request::Parts, option: &[u8]) -> bool {
    let values = head.headers.get_all(CONNECTION).iter().map(HeaderValue::as_bytes);
    let mut options = values.flat_map(|value| value.split(|byte| *byte == b',')).map(trimmed);
    options.any(|each| each.eq_ignore_ascii_case(option))
}
