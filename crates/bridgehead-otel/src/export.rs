//! Posts spans to a collector: OTLP over HTTP/1.1, in protobuf, many at a time.
//!
//! Not over TLS: what is far away is the collector's business, which runs beside a server.
//!
//! Invariant: every post has a deadline, and one that fails for a reason that may pass is tried again a few times.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use http::{Request, StatusCode, Uri};
use http_body::{Body, Frame, SizeHint};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::message::{ExportTraceServiceRequest, InstrumentationScope, Resource, ResourceSpans, ScopeSpans};
use crate::span::{Attribute, Span, key_value};

/// Attempts at a post, and the pause before the second, which doubles.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);

/// Where spans go, how many at a time, and whose they are.
#[derive(Clone, Debug)]
pub struct Destination {
    /// `http://host:port/v1/traces`.
    pub endpoint: Uri,
    /// Sent with each post.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// For a post, and for the last ones at the end.
    pub timeout: Duration,
    /// Between two posts, if there are fewer than `batch` spans.
    pub delay: Duration,
    /// Spans of a post.
    pub batch: usize,
    /// Spans that may wait.
    pub queue: usize,
    /// Of the resource: `service.name` and others.
    pub resource: Vec<(String, String)>,
    /// Of Bridgehead.
    pub version: String,
}

/// Until it is told to stop. Gives how many spans nobody took.
pub(crate) async fn run(
    destination: Destination,
    mut waiting: mpsc::Receiver<Span>,
    stop: oneshot::Receiver<()>,
) -> u64 {
    let mut stop = pin!(stop);
    let mut lost = 0;
    let mut batch = Vec::with_capacity(destination.batch);
    loop {
        let due = Instant::now() + destination.delay;
        let stopped = loop {
            let room = destination.batch - batch.len();
            tokio::select! {
                biased;
                _ = &mut stop => break true,
                came = waiting.recv_many(&mut batch, room) => if came == 0 || batch.len() >= destination.batch { break false },
                () = sleep_until(due), if !batch.is_empty() => break false,
            }
        };
        if stopped {
            break;
        }
        lost += post(&destination, std::mem::take(&mut batch)).await;
    }
    let last = async {
        let mut lost = 0;
        loop {
            while batch.len() < destination.batch
                && let Ok(span) = waiting.try_recv()
            {
                batch.push(span);
            }
            if batch.is_empty() {
                return lost;
            }
            lost += post(&destination, std::mem::take(&mut batch)).await;
        }
    };
    lost + timeout(destination.timeout, last).await.unwrap_or(1)
}

/// Gives how many were lost.
async fn post(destination: &Destination, spans: Vec<Span>) -> u64 {
    let count = spans.len() as u64;
    if count == 0 {
        return 0;
    }
    let body = Bytes::from(request(destination, spans).encode_to_vec());
    let mut pause = PAUSE;
    for attempt in 1..=ATTEMPTS {
        match timeout(destination.timeout, ask(destination, body.clone())).await {
            Ok(Ok(status)) if status.is_success() => return 0,
            // OTLP names those that may pass.
            Ok(Ok(status)) if !matches!(status.as_u16(), 429 | 502 | 503 | 504) => return count,
            _ => {}
        }
        if attempt < ATTEMPTS {
            sleep(pause).await;
            pause *= 2;
        }
    }
    count
}

fn request(destination: &Destination, spans: Vec<Span>) -> ExportTraceServiceRequest {
    let attribute = |(key, value): &(String, String)| key_value(key.clone(), Attribute::Text(value.clone()));
    let scope = InstrumentationScope { name: "bridgehead".to_owned(), version: destination.version.clone() };
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource { attributes: destination.resource.iter().map(attribute).collect() }),
            scope_spans: vec![ScopeSpans {
                scope: Some(scope),
                spans: spans.into_iter().map(Span::message).collect(),
            }],
        }],
    }
}

/// One post, on a connection of its own: there is one every few seconds.
async fn ask(destination: &Destination, body: Bytes) -> io::Result<StatusCode> {
    let host = destination.endpoint.host().unwrap_or_default();
    let port = destination.endpoint.port_u16().unwrap_or(80);
    let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let connection = tokio::spawn(connection);
    let path = destination.endpoint.path_and_query().map_or("/", |path| path.as_str());
    let authority = destination.endpoint.authority().map_or(host, |authority| authority.as_str());
    let mut request = Request::post(path).header(HOST, authority);
    for (name, value) in &destination.headers {
        request = request.header(name, value);
    }
    let request = request.header(CONTENT_TYPE, "application/x-protobuf").body(Whole(Some(body)));
    let answer = sender.send_request(request.map_err(io::Error::other)?).await.map_err(io::Error::other)?;
    connection.abort();
    Ok(answer.status())
}

/// A body that is there at once.
struct Whole(Option<Bytes>);

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.get_mut().0.take().map(|body| Ok(Frame::data(body))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |body| body.len() as u64))
    }
}
