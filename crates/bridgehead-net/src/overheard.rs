//! What `h2` says of the streams that it breaks off by itself.
//!
//! It refuses what HTTP/2 does not allow before anybody sees it, and says why to `tracing` alone. Not the counting, which
//! `broken_off` does by what leaves, and not a connection's end, whose reason comes with its error.
//!
//! Invariant: until somebody listens, `h2` finds nobody to say it to, and its words cost nothing.

use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::Once;

use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Dispatch, Event, Level, LevelFilter, Metadata, Subscriber, dispatcher};

use crate::refusal::Refusal;

/// Where a head's headers are judged, which is said at `trace` alone.
const HEADERS: &str = "h2::frame::headers";

/// Where streams are broken off.
const STREAMS: [&str; 4] =
    ["h2::server", "h2::codec::framed_read", "h2::proto::streams::recv", "h2::proto::streams::streams"];

/// How it begins when a stream is broken off.
const REFUSED: [&str; 2] = ["stream error ", "malformed headers: "];

/// What is wrong with a head's headers; that it is refused is said later.
static DETAILS: [(&str, &str); 4] = [
    (
        "connection level header",
        "Bad Request: Connection, Keep-Alive, Proxy-Connection, Transfer-Encoding and Upgrade are not for HTTP/2",
    ),
    ("TE header not set to trailers", "Bad Request: TE may only say trailers in HTTP/2"),
    ("pseudo not at head of block", "Bad Request: a pseudo-header came behind the other headers"),
    ("repeated pseudo", "Bad Request: a pseudo-header came twice"),
];

/// What is wrong with a stream that is refused; the first that is found.
static REASONS: [(&str, &str); 18] = [
    ("content-length overflow", "Bad Request: the body is longer than its Content-Length"),
    ("content-length underflow", "Bad Request: the body is shorter than its Content-Length"),
    ("content-length is not zero", "Bad Request: the body is shorter than its Content-Length"),
    ("parse content-length", "Bad Request: one Content-Length of digits was due"),
    ("conflicting content-length", "Bad Request: one Content-Length of digits was due"),
    ("missing method", "Bad Request: :method is missing"),
    ("missing scheme", "Bad Request: :scheme is missing"),
    ("missing path", "Bad Request: :path is missing or empty"),
    ("error building request", "Bad Request: :path is missing, or no target"),
    (
        "malformed path",
        r#"Bad Request: the request target must begin with /, and what is no letter of a URL (", <, >, `, blanks) be percent-encoded"#,
    ),
    ("malformed authority", "Bad Request: :authority is not a host with an optional port"),
    ("malformed scheme", "Bad Request: :scheme is not the scheme of a URL"),
    (" in CONNECT", "Bad Request: a CONNECT has neither :scheme nor :path"),
    (":protocol", "Bad Request: :protocol is for the CONNECT of a WebSocket, where these are served"),
    (":status", "Bad Request: a request has no :status"),
    ("trailers frame was not EOS", "Bad Request: a second block of headers that does not end the request"),
    ("dependency ID", "Bad Request: a stream that depends on itself"),
    ("malformed", "Bad Request: headers that HTTP/2 does not allow"),
];

thread_local! {
    /// What is heard while somebody listens on this thread.
    static HEARD: RefCell<Option<Heard>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Heard {
    detail: Option<&'static str>,
    reasons: Vec<&'static str>,
}

/// What drives `h2`, and why streams were broken off meanwhile.
pub(crate) fn during<T>(driving: impl FnOnce() -> T) -> (T, Vec<&'static str>) {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        // Whoever has set another one before hears instead.
        let _ = dispatcher::set_global_default(Dispatch::new(Ear));
    });
    HEARD.set(Some(Heard::default()));
    let done = driving();
    (done, HEARD.take().unwrap_or_default().reasons)
}

/// To whom `h2` says it.
struct Ear;

impl Subscriber for Ear {
    /// No spans, nor what only shows frames.
    fn enabled(&self, said: &Metadata<'_>) -> bool {
        let audible = match *said.level() {
            Level::DEBUG => STREAMS.contains(&said.target()),
            Level::TRACE => said.target() == HEADERS,
            _ => false,
        };
        audible && said.is_event() && said.fields().len() == 1
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::TRACE)
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Listener);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Listener;

impl Visit for Listener {
    fn record_debug(&mut self, _: &Field, said: &dyn Debug) {
        HEARD.with_borrow_mut(|heard| {
            if let Some(heard) = heard {
                heard.hear(&format!("{said:?}"));
            }
        });
    }
}

impl Heard {
    fn hear(&mut self, said: &str) {
        if let Some(detail) = meaning(said, &DETAILS) {
            self.detail = Some(detail);
        } else if REFUSED.iter().any(|word| said.starts_with(word)) {
            self.reasons.push(self.reason(said));
            self.detail = None;
        }
    }

    fn reason(&self, said: &str) -> &'static str {
        if said.contains("over size") {
            return Refusal::LargeHead.text();
        }
        let reason = meaning(said, &REASONS).unwrap_or("Bad Request: HTTP/2 does not allow it");
        self.detail.unwrap_or(reason)
    }
}

fn meaning(said: &str, known: &[(&str, &'static str)]) -> Option<&'static str> {
    known.iter().find(|(word, _)| said.contains(word)).map(|(_, meaning)| *meaning)
}
