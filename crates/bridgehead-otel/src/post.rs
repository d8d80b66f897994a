//! One post to a collector, as OTLP over HTTP/1.1 has it: a connection, a request, what came of it.
//!
//! Not when there is one, nor whether it is tried again (`export`).
//!
//! Invariant: a post has a deadline, and of an answer so much is read at most.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, RETRY_AFTER};
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use prost::Message;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use zlib_rs::{DeflateConfig, ReturnCode, compress_bound, compress_slice};

use crate::export::{Coding, Destination};
use crate::message::ExportTraceServiceResponse;

/// Of an answer.
const LONGEST_ANSWER: usize = 64 * 1024;
/// zlib's word for gzip's frame around a window of 32 KiB, and what that frame adds.
const GZIP: i32 = 16 + 15;
const FRAME: usize = 32;

/// What came of a post.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The collector has it, but for so many spans.
    Taken { rejected: u64 },
    /// It may have it another time.
    Later { why: String, collector: Presence },
    /// It does not want it.
    Never(String),
}

/// Whether there is somebody who may take a post later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// After this pause, if it has asked for one.
    Busy(Option<Duration>),
    /// Nobody listens there.
    None,
}

/// Within the destination's time.
pub(crate) async fn send(destination: &Destination, body: Bytes) -> Outcome {
    match timeout(destination.timeout, exchange(destination, body)).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => {
            let refused = error.kind() == io::ErrorKind::ConnectionRefused;
            let collector = if refused { Presence::None } else { Presence::Busy(None) };
            Outcome::Later { why: error.to_string(), collector }
        }
        Err(_) => {
            let why = format!("there was no answer within {:?}", destination.timeout);
            Outcome::Later { why, collector: Presence::Busy(None) }
        }
    }
}

/// Smaller, for who pays for bytes.
pub(crate) fn gzip(plain: &[u8]) -> Bytes {
    let mut room = vec![0; compress_bound(plain.len()) + FRAME];
    let config = DeflateConfig { window_bits: GZIP, ..DeflateConfig::default() };
    let (written, code) = compress_slice(&mut room, plain, config);
    assert_eq!(code, ReturnCode::Ok, "there is room for the worst case");
    let length = written.len();
    room.truncate(length);
    room.into()
}

/// On a connection of its own: there is one every few seconds.
async fn exchange(destination: &Destination, body: Bytes) -> io::Result<Outcome> {
    let host = destination.endpoint.host().unwrap_or_default();
    let host = host.trim_matches(['[', ']']);
    let usual = if destination.tls.is_some() { 443 } else { 80 };
    let port = destination.endpoint.port_u16().unwrap_or(usual);
    let stream = TcpStream::connect((host, port)).await?;
    match &destination.tls {
        None => ask(stream, destination, body).await,
        Some(config) => {
            let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
            let stream = TlsConnector::from(Arc::clone(config)).connect(name, stream).await?;
            ask(stream, destination, body).await
        }
    }
}

async fn ask<S>(stream: S, destination: &Destination, body: Bytes) -> io::Result<Outcome>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // Ends with this request: nobody else has the other side.
    tokio::spawn(connection);
    let endpoint = &destination.endpoint;
    let path = endpoint.path_and_query().map_or("/", |path| path.as_str());
    let authority = endpoint.authority().map_or("", |authority| authority.as_str());
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let mut request = Request::post(path).header(HOST, host).header(CONTENT_TYPE, "application/x-protobuf");
    if destination.coding == Coding::Gzip {
        request = request.header(CONTENT_ENCODING, "gzip");
    }
    for (name, value) in &destination.headers {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(body)).map_err(io::Error::other)?;
    let answer = sender.send_request(request).await.map_err(io::Error::other)?;
    Ok(judged(answer).await)
}

async fn judged(answer: Response<Incoming>) -> Outcome {
    let status = answer.status();
    let why = || format!("it answered {status}");
    if status.is_success() {
        let read = Limited::new(answer.into_body(), LONGEST_ANSWER).collect().await;
        // It has taken the post, whatever else it had to say.
        let said = read.ok().and_then(|read| ExportTraceServiceResponse::decode(read.to_bytes()).ok());
        let rejected = said.and_then(|said| said.partial_success).map_or(0, |part| part.rejected_spans);
        return Outcome::Taken { rejected: u64::try_from(rejected).unwrap_or_default() };
    }
    // OTLP names those that may pass.
    match status.as_u16() {
        429 | 502 | 503 | 504 => {
            Outcome::Later { why: why(), collector: Presence::Busy(pause(answer.headers())) }
        }
        _ => Outcome::Never(why()),
    }
}

/// In seconds; a date is not followed.
fn pause(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_is_gzip_and_smaller() {
        let plain = b"the same words, again and again; ".repeat(100);
        let packed = gzip(&plain);
        assert_eq!(packed[..3], [0x1f, 0x8b, 8]);
        assert!(packed.len() < plain.len() / 5);
        assert_eq!(gzip(b"")[..2], [0x1f, 0x8b]);
    }
}
