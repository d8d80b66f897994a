//! A hello of hyper alone, on one thread: the limit of what a server on hyper can answer, and what load generators are
//! measured against.
//!
//! Not a server for anything else.
//!
//! Invariant: `bare PORT` prints its address once it listens; port 0 takes a free one.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

struct Hello(Option<Bytes>);

impl Body for Hello {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

async fn hello(_: Request<Incoming>) -> Result<Response<Hello>, Infallible> {
    let mut response = Response::new(Hello(Some(Bytes::from_static(b"hello"))));
    response.headers_mut().insert("content-type", HeaderValue::from_static("text/plain"));
    Ok(response)
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
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(hello)));
    }
}
