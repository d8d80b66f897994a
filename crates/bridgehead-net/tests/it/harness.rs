//! A served address, its application and its clients.
//!
//! The application answers nothing by itself: what is dispatched waits in [`Site::next`] until the test takes it.
//!
//! Invariant: every wait ends after [`PATIENCE`] with a panic that says where.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bridgehead_admission::AdmissionLimits;
use bridgehead_asgi::{ResponseHead, ResponseParts};
use bridgehead_executor::Executor;
use bridgehead_heads::HeadLimits;
use bridgehead_net::{
    App, Arrival, Config, Connections, Departures, Http2, Lifetimes, Limits, Listener, Ownership, PaceLimits,
    Pings, Reasons, Refusals, Signal, Stage, Tally, Token,
};
use http::HeaderMap;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

/// Two busy cores, debug builds: only a failing test waits this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A keep-alive that a test can wait for.
pub(crate) const SHORT: Duration = Duration::from_millis(50);

/// A keep-alive that no test waits for.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// The token of tests that park once.
pub(crate) const TOKEN: Token = Token(7);

pub(crate) const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n";

/// Waits, but not for ever.
#[track_caller]
pub(crate) fn within<T>(wait: impl Future<Output = T>) -> impl Future<Output = T> {
    let place = std::panic::Location::caller();
    async move {
        let waited = tokio::time::timeout(PATIENCE, wait).await;
        waited.unwrap_or_else(|_| panic!("nothing came within {PATIENCE:?} at {place}"))
    }
}

/// The head of an answer.
pub(crate) fn head(status: i64, headers: &[(&str, &str)]) -> ResponseParts {
    let mut head = ResponseHead::new(status).expect("a status");
    for (name, value) in headers {
        head.header(name.as_bytes(), value.as_bytes()).expect("a header");
    }
    head.into_parts()
}

/// Settings that add nothing to an answer.
pub(crate) fn plain(keep_alive: Duration) -> Config {
    Config {
        keep_alive,
        bounds: Limits {
            first_byte: Some(keep_alive),
            head_time: Some(keep_alive),
            connections: None,
            lifetimes: Lifetimes { time: None, requests: None },
            head: HeadLimits { target: 8 * 1024, bytes: 32 * 1024, fields: 100 },
            body: None,
            upload: PaceLimits::default(),
            download: PaceLimits::default(),
            request_time: None,
            departures: Departures::Told,
            admission: AdmissionLimits { permits: None, queue: 0, patience: None },
        },
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
        forwarding: None,
        proxy_protocol: None,
        request_ids: None,
        unconfirmed: |_| None,
        give_back: || {},
        websockets: None,
        rota: None,
    }
}

/// Puts what comes where the test finds it.
struct Desk {
    arrivals: mpsc::UnboundedSender<Box<Arrival>>,
    progress: mpsc::UnboundedSender<Token>,
    cancels: mpsc::UnboundedSender<Token>,
    refusing: AtomicBool,
}

impl App for Desk {
    fn dispatch(&self, arrival: Box<Arrival>) -> Result<(), Box<Arrival>> {
        if self.refusing.load(Ordering::Relaxed) {
            return Err(arrival);
        }
        self.arrivals.send(arrival).map_err(|error| error.0)
    }

    fn progress(&self, token: Token) {
        // A test that is over listens no more.
        let _ = self.progress.send(token);
    }

    fn cancel(&self, token: Token) {
        let _ = self.cancels.send(token);
    }
}

/// A served address.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) signal: Option<Signal>,
    pub(crate) served: JoinHandle<()>,
    desk: Arc<Desk>,
    tokens: AtomicUsize,
    arrivals: Mutex<mpsc::UnboundedReceiver<Box<Arrival>>>,
    progress: Mutex<mpsc::UnboundedReceiver<Token>>,
    cancels: Mutex<mpsc::UnboundedReceiver<Token>>,
}

impl Site {
    pub(crate) fn open(config: Config) -> Self {
        Self::on(listener(), config)
    }

    /// Serves a listener on which clients may wait already.
    pub(crate) fn on(listener: std::net::TcpListener, config: Config) -> Self {
        let address = listener.local_addr().expect("an address");
        Self::with(
            address,
            Listener::new(OwnedFd::from(listener), Ownership::Ours).expect("a listener"),
            config,
        )
    }

    pub(crate) fn with(address: SocketAddr, listener: Listener, config: Config) -> Self {
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let (progressed, progress) = mpsc::unbounded_channel();
        let (cancelled, cancels) = mpsc::unbounded_channel();
        let desk = Arc::new(Desk {
            arrivals: arrived,
            progress: progressed,
            cancels: cancelled,
            refusing: AtomicBool::new(false),
        });
        let (signal, stage) = bridgehead_net::shutdown_channel();
        let app: Arc<dyn App> = Arc::clone(&desk) as Arc<dyn App>;
        let executor = Executor::default();
        let serving =
            bridgehead_net::serve(config, vec![listener], app, stage, &executor).expect("a runtime");
        Self {
            address,
            signal: Some(signal),
            served: tokio::spawn(async move { executor.drive(serving).await }),
            desk,
            tokens: AtomicUsize::new(100),
            arrivals: Mutex::new(arrivals),
            progress: Mutex::new(progress),
            cancels: Mutex::new(cancels),
        }
    }

    pub(crate) fn refuse(&self, refusing: bool) {
        self.desk.refusing.store(refusing, Ordering::Relaxed);
    }

    pub(crate) fn advance(&self, stage: Stage) {
        self.signal.as_ref().expect("the signal is there").advance(stage);
    }

    /// The next request.
    pub(crate) async fn next(&self) -> Arrival {
        let mut arrivals = self.arrivals.lock().await;
        *within(arrivals.recv()).await.expect("the desk is open")
    }

    /// Whether no request has come that was not taken.
    pub(crate) async fn is_quiet(&self) -> bool {
        self.arrivals.lock().await.is_empty()
    }

    /// A token that no other exchange of this site parks with.
    pub(crate) fn token(&self) -> Token {
        Token(self.tokens.fetch_add(1, Ordering::Relaxed))
    }

    /// Until a parked token was told; what others are told is passed over.
    pub(crate) async fn told(&self, token: Token) {
        let mut progress = self.progress.lock().await;
        while within(progress.recv()).await.expect("the desk is open") != token {}
    }

    /// Until a request is to be cancelled, which has to be this one.
    pub(crate) async fn cancelled(&self, token: Token) {
        let mut cancels = self.cancels.lock().await;
        assert_eq!(within(cancels.recv()).await, Some(token));
    }

    pub(crate) async fn connect(&self) -> Client<TcpStream> {
        Client::new(within(TcpStream::connect(self.address)).await.expect("the site listens"))
    }

    /// A client that takes little while it does not read.
    pub(crate) async fn connect_narrow(&self) -> Client<TcpStream> {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("a small buffer");
        Client::new(within(socket.connect(self.address)).await.expect("the site listens"))
    }

    /// A client that has sent a request, and the request.
    pub(crate) async fn ask(&self, request: &[u8]) -> (Client<TcpStream>, Arrival) {
        let mut client = self.connect().await;
        client.send(request).await;
        (client, self.next().await)
    }
}

/// A site at a path of its own.
pub(crate) fn unix_site(name: &str, config: Config) -> (Site, std::path::PathBuf) {
    let path = std::env::temp_dir().join(format!("bridgehead-net-{}-{name}", std::process::id()));
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("a free path");
    let nowhere = ([127, 0, 0, 1], 0).into();
    let listener = Listener::new(OwnedFd::from(listener), Ownership::Ours).expect("a listener");
    (Site::with(nowhere, listener, config), path)
}

/// Bound to a free port.
pub(crate) fn listener() -> std::net::TcpListener {
    std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port")
}

/// One connection.
pub(crate) struct Client<S> {
    pub(crate) stream: S,
    buffer: Vec<u8>,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("ASCII"))
    }

    pub(crate) fn closes(&self) -> bool {
        self.header("connection") == Some("close")
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        within(self.stream.write_all(bytes)).await.expect("the server reads");
    }

    /// Sends no more.
    pub(crate) async fn half_close(&mut self) {
        within(self.stream.shutdown()).await.expect("the connection is there");
    }

    /// Reads once; false at the end.
    async fn fill(&mut self) -> io::Result<bool> {
        Ok(within(self.stream.read_buf(&mut self.buffer)).await? > 0)
    }

    /// Everything up to and with `mark`.
    pub(crate) async fn until(&mut self, mark: &[u8]) -> Vec<u8> {
        loop {
            if let Some(at) = self.buffer.windows(mark.len()).position(|window| window == mark) {
                return self.buffer.drain(..at + mark.len()).collect();
            }
            let more = self.fill().await.expect("the connection is there");
            assert!(more, "the stream ended after {:?}", String::from_utf8_lossy(&self.buffer));
        }
    }

    pub(crate) async fn exactly(&mut self, count: usize) -> Vec<u8> {
        while self.buffer.len() < count {
            let more = self.fill().await.expect("the connection is there");
            assert!(more, "the stream ended {} bytes early", count - self.buffer.len());
        }
        self.buffer.drain(..count).collect()
    }

    /// What comes until the end, and whether the end is a reset.
    pub(crate) async fn rest(&mut self) -> (Vec<u8>, io::Result<()>) {
        loop {
            match self.fill().await {
                Ok(true) => {}
                Ok(false) => return (std::mem::take(&mut self.buffer), Ok(())),
                Err(error) => return (std::mem::take(&mut self.buffer), Err(error)),
            }
        }
    }

    /// Nothing more comes but a plain end.
    pub(crate) async fn assert_closed(&mut self) {
        let (rest, end) = self.rest().await;
        assert_eq!((String::from_utf8_lossy(&rest).as_ref(), end.is_ok()), ("", true));
    }

    /// Status and headers.
    pub(crate) async fn head(&mut self) -> Answer {
        let head = self.until(b"\r\n\r\n").await;
        let text = String::from_utf8(head).expect("ASCII");
        let mut lines = text.trim_end().split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status line");
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(": ").expect("a header line");
            let name: http::HeaderName = name.parse().expect("a header's name");
            headers.append(name, value.parse().expect("a header's value"));
        }
        Answer { status: status.parse().expect("a number"), headers, body: Vec::new() }
    }

    /// One answer, framed by its length or by chunks.
    pub(crate) async fn answer(&mut self) -> Answer {
        let mut answer = self.head().await;
        if let Some(length) = answer.header("content-length") {
            let length = length.parse().expect("a number");
            answer.body = self.exactly(length).await;
        } else if answer.header("transfer-encoding") == Some("chunked") {
            loop {
                let chunk = self.chunk().await;
                if chunk.is_empty() {
                    break;
                }
                answer.body.extend(chunk);
            }
        }
        answer
    }

    /// One chunk; the last one is empty.
    pub(crate) async fn chunk(&mut self) -> Vec<u8> {
        let line = self.until(b"\r\n").await;
        let size = std::str::from_utf8(&line).expect("ASCII").trim_end();
        let chunk = self.exactly(usize::from_str_radix(size, 16).expect("a size")).await;
        assert_eq!(self.exactly(2).await, b"\r\n");
        chunk
    }
}

impl Client<TcpStream> {
    /// Leaves by a reset: nobody can take it for a client that only sends no more.
    pub(crate) fn reset(self) {
        socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).expect("a socket option");
    }
}
