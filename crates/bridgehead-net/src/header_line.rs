//! A header as HTTP/1.1 has it on the wire, where we write it ourselves and not hyper.
//!
//! Not a judge of names and values: whoever made them was that.
//!
//! Invariant: a line ends with CR and LF, and what comes next begins a line.

use bytes::BufMut;
use http::HeaderMap;

/// One of them (RFC 9112 §5).
pub(crate) fn put_line(bytes: &mut impl BufMut, name: &str, value: &[u8]) {
    bytes.put_slice(name.as_bytes());
    bytes.put_slice(b": ");
    bytes.put_slice(value);
    bytes.put_slice(b"\r\n");
}

/// All of them, and the empty line behind them.
pub(crate) fn put_section(bytes: &mut impl BufMut, headers: &HeaderMap) {
    for (name, value) in headers {
        put_line(bytes, name.as_str(), value.as_bytes());
    }
    bytes.put_slice(b"\r\n");
}
