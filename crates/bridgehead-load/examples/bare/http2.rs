//! HTTP/2 by h2: a hello for each stream.
//!
//! Not a server for anything else: bodies are not read.
//!
//! Invariant: a stream is answered where it is accepted, without a task of its own.

use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderValue, Response};
use tokio::io::{AsyncRead, AsyncWrite};

/// Answers each request of a connection.
pub(crate) async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((_, answer))) = connection.accept().await {
        // An error is a stream that has been given up.
        drop(hello(answer));
    }
}

fn hello(mut answer: SendResponse<Bytes>) -> Result<(), h2::Error> {
    let mut head = Response::new(());
    let headers = head.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("text/plain"));
    headers.insert("content-length", HeaderValue::from_static("5"));
    answer.send_response(head, false)?.send_data(Bytes::from_static(b"hello"), true)
}
