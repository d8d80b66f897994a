//! An HTTP server that is slow, wrong and broken as told: what tests put in the place of a service they depend on.
//!
//! Not under load itself and no stub of an interface: each answer is `body_size` bytes of `x`, whatever was asked.
//!
//! Invariant: the nth request that arrives meets the same fault in every run of the same seed.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::io;
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::random::Random;

/// What is wrong with the answers. Each rate is the share of all requests that it happens to, from 0 to 1; together
/// they are 1 at most.
#[derive(Clone, Debug)]
pub struct Faults {
    /// How long each answer takes at least.
    pub latency: Duration,
    /// Up to how much longer it takes, evenly.
    pub jitter: Duration,
    /// Answered with `error_status`.
    pub error_rate: f64,
    /// What an error says.
    pub error_status: StatusCode,
    /// Not answered: the connection is reset.
    pub reset_rate: f64,
    /// Answered by half of the body that was announced.
    pub truncate_rate: f64,
    /// Not answered for as long as the client waits.
    pub hang_rate: f64,
    /// Bytes of each body.
    pub body_size: usize,
    /// What the faults are drawn from.
    pub seed: u64,
}

/// What has been asked so far, and what became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Heads of requests that arrived.
    pub requests: u64,
    /// Answers as they should be.
    pub answers: u64,
    /// Answers with `error_status`.
    pub errors: u64,
    /// Connections reset instead of an answer.
    pub resets: u64,
    /// Bodies that ended early.
    pub truncated: u64,
    /// Requests left without an answer.
    pub hung: u64,
}

/// A running upstream; dropping it ends it and its connections.
#[derive(Debug)]
pub struct Upstream {
    port: u16,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    // Whoever holds the upstream changes it while connections read it.
    faults: Mutex<Faults>,
    // Counted by connections, read by whoever holds the upstream.
    arrived: AtomicU64,
    counts: Mutex<Counts>,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    Error,
    Reset,
    Truncated,
    Hang,
}

impl Upstream {
    /// Listens on a free port of the loopback, with a thread of its own.
    ///
    /// # Errors
    ///
    /// Whatever the system says when it has no port or no thread.
    pub fn start(faults: Faults) -> io::Result<Self> {
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let arrived = AtomicU64::new(0);
        let shared =
            Arc::new(Shared { faults: Mutex::new(faults), arrived, counts: Mutex::new(Counts::default()) });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let theirs = Arc::clone(&shared);
        let thread = Builder::new().name("faulty-upstream".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = accept(listener, theirs) => {}
                }
            });
        })?;
        Ok(Self { port, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// What is wrong from the next request on.
    pub fn change(&self, faults: Faults) {
        *self.shared.faults.lock().unwrap_or_else(PoisonError::into_inner) = faults;
    }

    /// What has been asked so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let counts = *self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner);
        Counts { requests: self.shared.arrived.load(Ordering::Relaxed), ..counts }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn count(&self, add: impl FnOnce(&mut Counts)) {
        add(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

async fn accept(listener: StdListener, shared: Arc<Shared>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
            // Out of descriptors: an end of a connection clears it.
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // For the reset: hyper has the stream by then.
    let Ok(Ok((stream, second))) = stream.set_nodelay(true).map(|()| twice(stream)) else { return };
    let second = &second;
    let answered = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { answer(request, &shared, second).await }
    });
    // The errors are those that were ordered, and clients that left.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answered).await;
}

fn twice(stream: TcpStream) -> io::Result<(TcpStream, std::net::TcpStream)> {
    let stream = stream.into_std()?;
    let second = stream.try_clone()?;
    Ok((TcpStream::from_std(stream)?, second))
}

async fn answer(
    request: Request<Incoming>,
    shared: &Shared,
    stream: &std::net::TcpStream,
) -> io::Result<Response<Piece>> {
    let number = shared.arrived.fetch_add(1, Ordering::Relaxed);
    let faults = shared.faults.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut random = Random::new(faults.seed, number);
    let late = faults.latency + up_to(faults.jitter, &mut random);
    let fault = faults.draw(&mut random);
    read_out(request.into_body()).await?;
    sleep(late).await;
    let full = Piece::whole(faults.body_size);
    let mut response = Response::new(full);
    match fault {
        Fault::None => shared.count(|counts| counts.answers += 1),
        Fault::Error => {
            shared.count(|counts| counts.errors += 1);
            *response.status_mut() = faults.error_status;
        }
        Fault::Truncated => {
            shared.count(|counts| counts.truncated += 1);
            response.headers_mut().insert(header::CONTENT_LENGTH, faults.body_size.max(1).into());
            *response.body_mut() = Piece::half(faults.body_size);
        }
        Fault::Reset => {
            shared.count(|counts| counts.resets += 1);
            rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Fault::Hang => {
            shared.count(|counts| counts.hung += 1);
            pending::<Infallible>().await;
        }
    }
    Ok(response)
}

/// A time below `most`.
fn up_to(most: Duration, random: &mut Random) -> Duration {
    let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(random.between(0, nanos))
}

async fn read_out(body: Incoming) -> io::Result<()> {
    let mut body = pin!(body);
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        frame.map_err(io::Error::other)?;
    }
    Ok(())
}

impl Faults {
    fn draw(&self, random: &mut Random) -> Fault {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let mut drawn = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let rates = [
            (self.error_rate, Fault::Error),
            (self.reset_rate, Fault::Reset),
            (self.truncate_rate, Fault::Truncated),
            (self.hang_rate, Fault::Hang),
        ];
        for (rate, fault) in rates {
            if drawn < rate {
                return fault;
            }
            drawn -= rate;
        }
        Fault::None
    }
}

/// A body in one piece, and what comes after it.
struct Piece {
    data: Option<Bytes>,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Good,
    /// Once what there is has been written: hyper drops what it holds when a body fails.
    Broken {
        written: bool,
    },
}

impl Piece {
    fn whole(size: usize) -> Self {
        Self { data: Some(vec![b'x'; size].into()), end: End::Good }
    }

    fn half(size: usize) -> Self {
        Self { data: Some(vec![b'x'; size / 2].into()), end: End::Broken { written: false } }
    }
}

impl Body for Piece {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        match (this.data.take(), this.end) {
            (Some(data), _) => Poll::Ready(Some(Ok(Frame::data(data)))),
            (None, End::Good) => Poll::Ready(None),
            (None, End::Broken { written: true }) => {
                Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())))
            }
            (None, End::Broken { written: false }) => {
                this.end = End::Broken { written: true };
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.end == End::Good && self.data.as_ref().is_none_or(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        match self.end {
            End::Good => SizeHint::with_exact(self.data.as_ref().map_or(0, |data| data.len() as u64)),
            End::Broken { .. } => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults() -> Faults {
        Faults {
            latency: Duration::ZERO,
            jitter: Duration::ZERO,
            error_rate: 0.25,
            error_status: StatusCode::INTERNAL_SERVER_ERROR,
            reset_rate: 0.25,
            truncate_rate: 0.25,
            hang_rate: 0.25,
            body_size: 5,
            seed: 3,
        }
    }

    #[test]
    fn rates_that_sum_up_to_one_leave_no_request_without_a_fault() {
        let mut random = Random::new(1, 1);
        assert!((0..10_000).all(|_| !matches!(faults().draw(&mut random), Fault::None)));
    }

    #[test]
    fn a_rate_is_the_share_of_requests_that_it_happens_to() {
        let mut random = Random::new(1, 1);
        let faults = Faults { reset_rate: 0.0, truncate_rate: 0.0, hang_rate: 0.0, ..faults() };
        let errors = (0..10_000).filter(|_| matches!(faults.draw(&mut random), Fault::Error)).count();
        assert!((2_300..2_700).contains(&errors), "{errors}");
    }
}
