//! The one seam to whoever answers requests.
//!
//! The bridge implements [`App`] by queueing for the loop thread; tests implement it in a few lines of Rust. Both
//! methods are called on the network's thread and must not block it.

use std::sync::Arc;

use bridgehead_admission::Permit;
use bridgehead_otel::Collector;
use bridgehead_proxies::Peer;
use http::{HeaderMap, Method, Uri, Version};

use crate::app_half::AppHalf;
use crate::request_id::Trace;
use crate::rota::Beat;
use crate::story::Story;
use crate::websocket_half::WebSocketHalf;

/// Answers requests. The network hands over, the implementor decides when and where to run.
pub trait App: Send + Sync + 'static {
    /// A new request: its head, and the half of its exchange through which it is answered.
    ///
    /// # Errors
    /// Gives the arrival back when there is no room for it; the client is then told so.
    fn dispatch(&self, arrival: Box<Arrival>) -> Result<(), Box<Arrival>>;

    /// What the holder of `token` parked for may have come: body to read, or the client left.
    fn progress(&self, token: Token);

    /// The request that `token` was named for in [`AppHalf::known_as`] is to be cancelled: whoever asks
    /// [`AppHalf::is_cancelled`] finds it so.
    fn cancel(&self, _token: Token) {}

    /// Shows that whoever answers requests is not held by something: the beat is answered where they are answered.
    fn show_life(&self, beat: Beat) {
        beat.answer();
    }

    /// Something that its operator wants to read; asked for by [`crate::Config`], and of no use to who asked for nothing.
    fn report(&self, _report: Report) {}
}

/// What the network has to say to whoever runs it.
#[derive(Debug)]
pub enum Report {
    /// A request is over.
    Access(Box<AccessRecord>),
    /// A connection was made, or is gone.
    Connection {
        /// Whose it is.
        client: String,
        /// What became of it.
        event: &'static str,
    },
    /// Clients wait in the backlog, for want of something; said once a second at most.
    Shortage {
        /// Of what.
        reason: String,
    },
    /// Spans find no collector, or find it again.
    Collector(Collector),
    /// A request never reached the application.
    Refused {
        /// Whose it was.
        client: String,
        /// What it was told, in one sentence.
        reason: String,
        /// What the request is called, if ids are given.
        trace: Option<Arc<Trace>>,
    },
}

/// What became of a request, for whoever writes access lines by other means than a descriptor.
#[derive(Debug)]
pub struct AccessRecord {
    /// Address and port.
    pub client: String,
    /// As it came.
    pub method: String,
    /// Escaped, below the root path.
    pub target: String,
    /// Of HTTP.
    pub version: &'static str,
    /// 499 for a client that left before.
    pub status: u16,
    /// The whole line, as the layout has it.
    pub line: String,
    /// What the request is called, if ids are given.
    pub trace: Option<Arc<Trace>>,
}

/// Names one exchange to its [`App`]; chosen by the application's side when it parks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(pub usize);

/// A request that has just come in.
#[derive(Debug)]
pub struct Arrival {
    /// What was asked.
    pub head: RequestHead,
    /// Who asked, and on which of our addresses.
    pub peer: Arc<Peer>,
    /// When that was complete, and what is to be told of it, if anything is measured.
    pub story: Option<Arc<Story>>,
    /// The way to the client.
    pub half: AppHalf,
    /// To be kept until nothing of the request runs any more.
    pub permit: Permit,
    /// Present when it asks for a WebSocket: `half` is then for accepting it, or for an answer in its place.
    pub websocket: Option<WebSocketRequest>,
}

/// What a request asks for that asks for a WebSocket.
#[derive(Debug)]
pub struct WebSocketRequest {
    /// What the client offers, in its order.
    pub subprotocols: Vec<String>,
    /// The way to the client once it is accepted.
    pub half: WebSocketHalf,
}

/// A request's head, judged: its host and target are well formed.
#[derive(Debug)]
pub struct RequestHead {
    /// An upper-case token.
    pub method: Method,
    /// The target as it came, in origin, absolute or asterisk form.
    pub target: Uri,
    /// HTTP/1.0, HTTP/1.1 or HTTP/2.
    pub version: Version,
    /// Lower-case names, values of one name in their order.
    pub headers: HeaderMap,
    /// What the request is called, if ids are given.
    pub trace: Option<Arc<Trace>>,
}
