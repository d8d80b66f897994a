//! hyper's settings for HTTP/1.
//!
//! Invariant: hyper has room for whatever the guard of heads lets through, and no timer of its own.

use hyper::server::conn::http1;

use crate::config::Config;

/// What hyper reads ahead and keeps for writing; a head may be up to about twice as long, as a read can add as much
/// again. Its own 400 KiB would let ten thousand slow clients hold 4 GB.
const BUFFER: usize = 64 * 1024;

/// A method, a version and line ends fit beside the target and the header lines.
const SPARE: usize = 1024;

/// The header lines that hyper has room for by itself.
const HEADERS: usize = 100;

/// hyper's side of a connection, as every connection wants it.
pub(crate) fn protocol(config: &Config) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .half_close(true)
        .max_buf_size(BUFFER.max(config.bounds.head.target + config.bounds.head.bytes + SPARE))
        .auto_date_header(config.date_header)
        .header_read_timeout(None);
    if config.bounds.head.fields != HEADERS {
        // Set, it has hyper allocate for each head.
        builder.max_headers(config.bounds.head.fields);
    }
    builder
}
