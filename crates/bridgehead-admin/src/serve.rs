//! The port for operators: HTTP/1.1, a few paths, all of them read.
//!
//! Not what they say (`exposition`, `status`, `judgement`).
//!
//! Invariant: so many connections and no more, each with its deadlines, and the one that has asked nothing for longest makes
//! room for the next, so that nobody takes this port away from a probe.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bridgehead_metrics::Sheets;
use bridgehead_net::Claim;
use http::header::{ALLOW, CONTENT_SECURITY_POLICY, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::accept::wants_openmetrics;
use crate::document::{Text, document, words};
use crate::history::{History, LOOK};
use crate::seats::Seats;
use crate::{Facts, Rules, exposition, status};

/// Connections at a time: probes and scrapers of a few systems, and some pages.
const CONNECTIONS: u32 = 128;
/// For a head, which is also how long an idle connection is kept: longer than a minute's scrapes are apart.
const HEAD: Duration = Duration::from_secs(75);
/// For a connection as a whole, so that one that is not read ends too.
const CONNECTION: Duration = Duration::from_secs(3600);
/// EMFILE clears only when something is closed.
const PAUSE: Duration = Duration::from_millis(100);
/// For the last answers, when the server ends.
const LAST: Duration = Duration::from_millis(200);

/// Where operators come in.
#[derive(Debug)]
pub enum Listener {
    /// By TCP.
    Tcp(std::net::TcpListener),
    /// By a Unix socket.
    Unix(std::os::unix::net::UnixListener),
}

/// What is told, and by what it is judged.
#[derive(Debug)]
pub struct Admin {
    sheets: Sheets,
    rules: Rules,
    facts: Facts,
    // Written by the one that looks and read by each connection, all on one thread; tasks want what they share to be
    // shareable.
    history: Mutex<History>,
}

impl Admin {
    /// Of these figures.
    #[must_use]
    pub fn new(sheets: Sheets, rules: Rules, facts: Facts) -> Self {
        Self { sheets, rules, facts, history: Mutex::default() }
    }

    fn look(&self) {
        let seen = self.sheets.read();
        let ready = seen.workers.iter().filter(|(_, each)| self.rules.fault(each).is_none()).count();
        self.history.lock().unwrap_or_else(PoisonError::into_inner).look(Instant::now(), &seen, ready as u64);
    }

    fn answer<B>(&self, request: &Request<B>) -> Response<Text> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut refused = words(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed: GET was due\n");
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        match request.uri().path() {
            "/" => page(),
            "/livez" => judged(self.rules.dead(&self.sheets.read()).into_iter().collect()),
            "/readyz" => judged(self.rules.unready(&self.sheets.read())),
            "/metrics" => self.metrics(request),
            "/status.json" => self.status(),
            _ => words(
                StatusCode::NOT_FOUND,
                "Not Found: /, /livez, /readyz, /metrics and /status.json are here\n",
            ),
        }
    }

    fn metrics<B>(&self, request: &Request<B>) -> Response<Text> {
        let written = exposition::openmetrics(self.sheets.read(), self.rules, &self.facts);
        if wants_openmetrics(request.headers()) {
            document(StatusCode::OK, exposition::OPENMETRICS, written)
        } else {
            document(StatusCode::OK, exposition::PROMETHEUS, exposition::prometheus(&written))
        }
    }

    fn status(&self) -> Response<Text> {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let written = status::written(&self.sheets.read(), &self.rules, &self.facts, &history);
        document(StatusCode::OK, "application/json", written.to_string())
    }
}

/// For people. It loads nothing else but the status, and no other page may show it.
fn page() -> Response<Text> {
    let mut page = document(StatusCode::OK, "text/html; charset=utf-8", include_str!("page.html"));
    page.headers_mut().insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        ),
    );
    page
}

fn judged(faults: Vec<String>) -> Response<Text> {
    if faults.is_empty() {
        words(StatusCode::OK, "ok\n")
    } else {
        words(StatusCode::SERVICE_UNAVAILABLE, faults.join("\n") + "\n")
    }
}

/// Answers operators until `stop` comes, or whoever would say it is gone.
///
/// # Errors
/// When the listener cannot be driven by the current runtime.
pub async fn serve(admin: Arc<Admin>, listener: Listener, stop: oneshot::Receiver<()>) -> io::Result<()> {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let door = Door::open(listener)?;
    let seats = Arc::new(Seats::new(CONNECTIONS));
    let mut stop = pin!(stop);
    let mut guests = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stop => break,
            _ = looks.tick() => admin.look(),
            Some(_) = guests.join_next() => {}
            guest = door.let_in() => {
                guests.spawn(guest.converse(Arc::clone(&admin), Arc::clone(&seats)));
            }
        }
    }
    drop(door);
    // A probe that was let in is answered, though it may have yet to sit down. Others wait at the door.
    let _ = timeout(LAST, async { while guests.join_next().await.is_some() {} }).await;
    Ok(())
}

struct Door {
    open: Open,
    _claim: Claim,
}

enum Open {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Who was let in.
struct Guest {
    stream: Stream,
    _claim: Claim,
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Door {
    fn open(listener: Listener) -> io::Result<Self> {
        Ok(match listener {
            Listener::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                Self { _claim: Claim::on(&listener), open: Open::Tcp(TcpListener::from_std(listener)?) }
            }
            Listener::Unix(listener) => {
                listener.set_nonblocking(true)?;
                Self { _claim: Claim::on(&listener), open: Open::Unix(UnixListener::from_std(listener)?) }
            }
        })
    }

    /// Lets in the next one. Dropped while it waits, it has let in nobody.
    async fn let_in(&self) -> Guest {
        loop {
            match self.accept().await {
                Ok(guest) => return guest,
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    async fn accept(&self) -> io::Result<Guest> {
        Ok(match &self.open {
            Open::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                Guest { _claim: Claim::on(&stream), stream: Stream::Tcp(stream) }
            }
            Open::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Guest { _claim: Claim::on(&stream), stream: Stream::Unix(stream) }
            }
        })
    }
}

impl Guest {
    async fn converse(self, admin: Arc<Admin>, seats: Arc<Seats>) {
        match self.stream {
            Stream::Tcp(stream) => converse(stream, admin, &seats).await,
            Stream::Unix(stream) => converse(stream, admin, &seats).await,
        }
    }
}

async fn converse<S: AsyncRead + AsyncWrite + Unpin>(stream: S, admin: Arc<Admin>, seats: &Arc<Seats>) {
    let seat = Arc::new(seats.take().await);
    let asks = Arc::clone(&seat);
    let service = service_fn(move |request| {
        asks.is_used();
        let answer = admin.answer(&request);
        async move { Ok::<_, Infallible>(answer) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(16 * 1024)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // Who has asked by the time when it is to leave is answered.
        biased;
        // Whatever it comes to, it is over then.
        _ = timeout(CONNECTION, connection) => {}
        () = seat.is_wanted() => {}
    }
}
