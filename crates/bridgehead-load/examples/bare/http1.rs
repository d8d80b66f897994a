//! HTTP/1.1 by hyper: a hello, so many bytes, a stream, an echo; a handshake becomes a WebSocket.
//!
//! Not a server for anything else.
//!
//! Invariant: an answer is written as it is, without a thread or a task of its own.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::OnceLock;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::header::UPGRADE;
use http::{HeaderValue, Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::websocket;

const LARGEST: usize = 1 << 20;
const PIECE: usize = 1024;
static BYTES: OnceLock<Bytes> = OnceLock::new();

/// The same bytes, so often.
pub(crate) struct Answer {
    piece: Bytes,
    left: usize,
    is_declared: bool,
}

impl Answer {
    const fn whole(piece: Bytes) -> Self {
        Self { piece, left: 1, is_declared: true }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        Poll::Ready(Some(Ok(Frame::data(self.piece.clone()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_declared {
            SizeHint::with_exact((self.left * self.piece.len()) as u64)
        } else {
            SizeHint::default()
        }
    }
}

/// Answers each request of a connection.
pub(crate) async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
    let connection =
        http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).with_upgrades();
    // The errors are clients that left.
    drop(connection.await);
}

async fn answer(request: Request<Incoming>) -> Result<Response<Answer>, hyper::Error> {
    let bytes = BYTES.get_or_init(|| vec![b'x'; LARGEST].into());
    if request.headers().contains_key(UPGRADE) {
        return Ok(websocket::agree(request, Answer::whole(Bytes::new())));
    }
    let path = request.uri().path();
    let body = if let Some(size) = path.strip_prefix("/size/") {
        Answer::whole(bytes.slice(..size.parse().unwrap_or(0).min(LARGEST)))
    } else if path == "/stream" {
        Answer { piece: bytes.slice(..PIECE), left: 100, is_declared: false }
    } else if path == "/echo" {
        Answer::whole(read(request.into_body()).await?)
    } else {
        Answer::whole(Bytes::from_static(b"hello"))
    };
    let mut response = Response::new(body);
    response.headers_mut().insert("content-type", HeaderValue::from_static("text/plain"));
    Ok(response)
}

async fn read(body: Incoming) -> Result<Bytes, hyper::Error> {
    let mut body = pin!(body);
    let mut whole = BytesMut::new();
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        if let Ok(data) = frame?.into_data() {
            whole.extend_from_slice(&data);
        }
    }
    Ok(whole.freeze())
}
