//! hyper alone, on one thread: the limit of what a server on hyper can answer, and what load generators are measured
//! against. `/` is a hello, `/size/10240` so many bytes, `/stream` 100 pieces of 1 KB, `/echo` what was sent.
//!
//! Not a server for anything else.
//!
//! Invariant: `bare PORT` prints its address once it listens; port 0 takes a free one.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::OnceLock;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

const LARGEST: usize = 1 << 20;
const PIECE: usize = 1024;
static BYTES: OnceLock<Bytes> = OnceLock::new();

/// The same bytes, so often.
struct Answer {
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

async fn answer(request: Request<Incoming>) -> Result<Response<Answer>, hyper::Error> {
    let bytes = BYTES.get_or_init(|| vec![b'x'; LARGEST].into());
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

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok()).unwrap_or(0);
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).await?;
    #[expect(clippy::print_stdout, reason = "whoever started it reads where it listens")]
    {
        println!("{}", listener.local_addr()?);
    }
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)));
    }
}
