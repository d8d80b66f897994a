//! How a connection of HTTP/2 begins: the client's preface, and what it is told of us by `h2`'s settings.
//!
//! Not what comes behind it, which is `http2`'s.
//!
//! Invariant: a preface has the time of a head, and a worker that drains waits for none.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Instant;

use bridgehead_executor::{Sleep, poll_deadline};
use bytes::Bytes;
use h2::server;

use crate::config::Config;
use crate::line::Line;
use crate::refusal::Refusal;
use crate::shutdown::{Stage, Watch};
use crate::stream_head;
use crate::traffic::Wire;

/// Streams at a time; RFC 9113 section 6.5.2 advises no fewer.
pub(crate) const STREAMS: u32 = 100;

/// What a client may send of a body that nobody reads: a stream's whole window.
const STREAM_WINDOW: u32 = 64 * 1024;

/// Room for all streams, so that those that are not read hold up no other.
pub(crate) const CONNECTION_WINDOW: u32 = STREAMS * STREAM_WINDOW;

/// What `h2` keeps of an answer that the socket does not take.
const SEND_BUFFER: usize = 64 * 1024;

/// What `h2` counts for a header beside its name and value.
const HEADER_OVERHEAD: usize = 32;

/// `:method`, `:scheme`, `:authority` and `:path`.
const PSEUDO_HEADERS: usize = 4;

/// A host and a method fit beside the target.
const SPARE: usize = 1024;

/// Streams that are broken off before they are looked at: as many as there may be.
const UNSEEN_RESETS: usize = STREAMS as usize;

pub(crate) type Connection = server::Connection<Wire, Bytes>;

/// Waits for the rest of the preface.
pub(crate) async fn shake_hands(
    wire: Wire,
    line: &Line,
    watch: &mut Watch,
    mut timer: Pin<&mut Sleep>,
) -> Option<Connection> {
    let config = &line.config;
    let deadline = config.bounds.head_time.map(|time| Instant::now() + time);
    tokio::select! {
        biased;
        connection = protocol(config).handshake(wire) => connection.ok(),
        _ = watch.reached(Stage::Draining) => None,
        () = poll_fn(|cx| poll_deadline(timer.as_mut(), deadline, cx)) => {
            config.tally.refused(Refusal::SlowHead);
            let why = || "Request Timeout: the client's preface took too long".to_owned();
            line.tell_refusal(&line.peer, why, None);
            None
        }
    }
}

/// `h2`'s side of a connection, as every connection wants it.
fn protocol(config: &Config) -> server::Builder {
    let head = &config.bounds.head;
    // What is allowed is judged by the same measure as for HTTP/1; `h2` only bounds what there is to be judged. Cookies
    // come in crumbs, each a header.
    let list = head.bytes
        + head.target
        + SPARE
        + HEADER_OVERHEAD * ((1 + stream_head::CRUMBS) * head.fields + PSEUDO_HEADERS);
    let mut builder = server::Builder::new();
    builder
        .max_concurrent_streams(STREAMS)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_header_list_size(u32::try_from(list).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(UNSEEN_RESETS)
        // For a connection's whole life; `broken_off` bounds them by time.
        .max_local_error_reset_streams(None);
    if config.websockets.is_some() {
        builder.enable_connect_protocol();
    }
    builder
}
