//! A connection in memory for fuzzers: the whole way from its first byte to its last, by one thread and without the system.
//!
//! Not what is sent, and not what has to come of it (`fuzzed_connection`). Time is the machine's: deadlines ask the clock
//! themselves, so they are too long to pass here.
//!
//! Invariant: a connection whose client has sent its last byte ends, and nothing of it is left.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bridgehead_admission::{AdmissionLimits, Permit};
use bridgehead_asgi::{Acceptance, More, Reply, ResponseHead, is_valid_host};
use bridgehead_executor::Executor;
use bridgehead_heads::HeadLimits;
use bridgehead_proxies::{Address, Forwarding, Peer, Proxies, Scheme, Taken};
use bytes::Bytes;
use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::accept::{Worker, enter};
use crate::app::{App, Arrival, Token};
use crate::app_half::{AppHalf, Reception};
use crate::config::{Config, Connections, Departures, Http2, Lifetimes, Limits, Pings, Refusals, WebSockets};
use crate::family::Stream;
use crate::listen::Door;
use crate::pace::PaceLimits;
use crate::pipe::Pipe;
use crate::preamble;
use crate::reason::Reasons;
use crate::shutdown;
use crate::socket::Socket;
use crate::tally::Tally;
use crate::websocket_half::{Heard, WebSocketHalf};

/// Longer than any fuzzer waits.
const LONG: Duration = Duration::from_secs(600);

/// Far longer than any connection in memory takes: who is not through by then waits for what never comes.
const PATIENCE: Duration = Duration::from_secs(20);

/// The largest message of a WebSocket.
const MESSAGE: usize = 64 * 1024;

/// What a client does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Script<'a> {
    pub(crate) begins: Begins<'a>,
    pub(crate) bytes: &'a [u8],
    /// So many bytes may be on their way at a time, in either direction.
    pub(crate) room: usize,
}

/// What is in front of a client's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Begins<'a> {
    Nothing,
    /// A PROXY header, which is the first of them.
    Preamble,
    /// A request for a WebSocket, whose answer is waited for. The client sends on until what comes behind that is the
    /// end: without it, an end of what it sends would cut off what it is sent.
    Handshake {
        request: &'a [u8],
        until: fn(&[u8]) -> bool,
    },
}

/// What the server says to a client, until it ends the connection.
pub(crate) fn ask(script: &Script<'_>) -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let mut said = Vec::new();
    runtime.block_on(async {
        let executor = Executor::default();
        let (_signal, stage) = shutdown::channel();
        let (watch, last) = shutdown::watch(stage);
        let worker =
            Arc::new(Worker::new(config(script.begins), Arc::new(Desk::default()), watch, executor.clone()));
        let (client, server) = tokio::io::duplex(script.room);
        let socket = Socket::new(Stream::Memory(Pipe::new(server)));
        match script.begins {
            Begins::Preamble => executor.spawn(preamble::run(socket, peer(), Door::Open, worker)),
            Begins::Nothing | Begins::Handshake { .. } => enter(socket, peer(), Door::Open, worker),
        }
        let conversation = async {
            said = converse(client, script).await;
            last.gone().await;
        };
        tokio::time::timeout(PATIENCE, executor.drive(conversation)).await.expect("the connection ends");
    });
    said
}

async fn converse(mut client: DuplexStream, script: &Script<'_>) -> Vec<u8> {
    let mut said = Vec::new();
    let mut until: fn(&[u8]) -> bool = |_| true;
    if let Begins::Handshake { request, until: end } = script.begins {
        until = end;
        let _ = client.write_all(request).await;
        while !said.ends_with(b"\r\n\r\n") {
            said.push(client.read_u8().await.expect("an answer"));
        }
    }
    let head = said.len();
    let (mut reader, mut writer) = tokio::io::split(client);
    let (told, ends) = tokio::sync::oneshot::channel::<()>();
    let sends = async {
        // A server that has refused reads no more.
        let _ = writer.write_all(script.bytes).await;
        let _ = ends.await;
        let _ = writer.shutdown().await;
    };
    let reads = async {
        while !until(&said[head..]) && reader.read_buf(&mut said).await.is_ok_and(|count| count > 0) {}
        drop(told);
        // A pair has no errors, only an end.
        let _ = reader.read_to_end(&mut said).await;
    };
    tokio::join!(sends, reads);
    said
}

fn peer() -> Peer {
    let local = Address::Inet(SocketAddr::from(([127, 0, 0, 1], 5000)));
    Peer { client: local.clone(), server: local, scheme: Scheme::Http, tls: None, facade: None }
}

/// Reads a body whole and answers with it, but HEAD; sends the messages of a WebSocket back.
#[derive(Default)]
struct Desk {
    last: AtomicUsize,
    // Nobody but the connection's thread comes here; an application has to be shareable.
    running: Mutex<HashMap<usize, (Work, Permit)>>,
}

enum Work {
    Body(AppHalf, Reply, Vec<u8>),
    Messages(WebSocketHalf),
}

impl Desk {
    fn running(&self) -> MutexGuard<'_, HashMap<usize, (Work, Permit)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn go_on(&self, token: Token) {
        // What is told late is of nothing any more.
        let Some((work, permit)) = self.running().remove(&token.0) else { return };
        if let Some(waits) = work.go_on(token) {
            self.running().insert(token.0, (waits, permit));
        }
    }
}

impl Work {
    /// As far as it goes. Gives it back if it waits.
    fn go_on(self, token: Token) -> Option<Self> {
        match self {
            Self::Body(half, reply, mut body) => loop {
                match half.receive(token) {
                    Reception::Chunk(piece, more) => {
                        let parts = piece.parts().filter(|_| reply == Reply::Whole);
                        parts.for_each(|part| body.extend_from_slice(part));
                        if more == More::Ends {
                            let head = ResponseHead::new(200).expect("a status");
                            let _ = half.finish(head.into_parts(), Bytes::from(body));
                            return None;
                        }
                    }
                    Reception::Gone => return None,
                    Reception::Nothing => return Some(Self::Body(half, reply, body)),
                }
            },
            Self::Messages(half) => loop {
                match half.receive(token) {
                    Heard::Message(message) => {
                        let _ = half.send(message);
                        half.push_out();
                    }
                    Heard::Over(_) => return None,
                    Heard::Nothing => return Some(Self::Messages(half)),
                }
            },
        }
    }
}

impl App for Desk {
    fn dispatch(&self, arrival: Box<Arrival>) -> Result<(), Box<Arrival>> {
        let Arrival { head, peer, half, permit, websocket, .. } = *arrival;
        assert!(head.method.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(peer.host().is_none_or(is_valid_host));
        let work = match websocket {
            None => {
                let reply = if head.method == Method::HEAD { Reply::HeadOnly } else { Reply::Whole };
                Work::Body(half, reply, Vec::new())
            }
            Some(asked) => {
                let _ = half.accept(Acceptance::default());
                Work::Messages(asked.half)
            }
        };
        let token = Token(self.last.fetch_add(1, Ordering::Relaxed));
        self.running().insert(token.0, (work, permit));
        self.go_on(token);
        Ok(())
    }

    fn progress(&self, token: Token) {
        self.go_on(token);
    }
}

fn config(begins: Begins<'_>) -> Config {
    Config {
        keep_alive: LONG,
        bounds: limits(),
        http2: Http2::Spoken(Pings { interval: None, timeout: None }),
        http1_early_hints: false,
        date_header: false,
        default_headers: Vec::new(),
        reasons: Reasons::default(),
        access_log: None,
        refusals: Refusals::Silent,
        tally: Tally::default(),
        admission: Arc::default(),
        meters: None,
        adapts: None,
        tracer: None,
        health: None,
        files: None,
        compression: None,
        connections: Connections::Silent,
        forwarding: Some(Forwarding { proxies: Proxies::All, taken: taken() }),
        proxy_protocol: matches!(begins, Begins::Preamble).then_some(Proxies::All),
        request_ids: None,
        unconfirmed: |_| None,
        give_back: || {},
        websockets: matches!(begins, Begins::Handshake { .. }).then(websockets),
        rota: None,
    }
}

fn limits() -> Limits {
    Limits {
        first_byte: Some(LONG),
        head_time: Some(LONG),
        connections: None,
        lifetimes: Lifetimes { time: None, requests: None },
        head: HeadLimits { target: 1024, bytes: 4 * 1024, fields: 32 },
        body: Some(8 * 1024),
        upload: PaceLimits::default(),
        download: PaceLimits::default(),
        request_time: None,
        departures: Departures::Told,
        admission: AdmissionLimits { permits: None, queue: 0, patience: None },
    }
}

fn taken() -> Taken {
    Taken { client: true, scheme: true, host: true, port: true, prefix: true, standard: false }
}

fn websockets() -> WebSockets {
    WebSockets {
        max_size: MESSAGE,
        max_queue: 16,
        deflate: true,
        acceptance: None,
        ping_interval: None,
        ping_timeout: None,
        idle: None,
        lifetime: None,
    }
}
