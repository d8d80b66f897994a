//! WebSockets by tungstenite: each message comes back.
//!
//! Not a server for anything else: in the clear only, and without extensions.
//!
//! Invariant: the socket is read and written by the task of its connection alone.

use std::io::{self, Read, Write};

use data_encoding::BASE64;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, on};
use hyper_util::rt::TokioIo;
use sha1_smol::Sha1;
use tokio::net::TcpStream;
use tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};
use tungstenite::{Error, Message};

/// RFC 6455 §1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// What is read at once.
const READ: usize = 16 << 10;

/// The answer to a handshake; what comes after it is echoed.
pub(crate) fn agree<B>(request: Request<Incoming>, nothing: B) -> Response<B> {
    let mut hash = Sha1::new();
    hash.update(request.headers().get(SEC_WEBSOCKET_KEY).map_or(b"", HeaderValue::as_bytes));
    hash.update(GUID);
    let accept = BASE64.encode(&hash.digest().bytes());
    tokio::spawn(echo(on(request)));
    let mut response = Response::new(nothing);
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, HeaderValue::from_str(&accept).expect("base64 is of letters"));
    response
}

async fn echo(upgrade: OnUpgrade) {
    let Ok(upgraded) = upgrade.await else { return };
    let Ok(parts) = upgraded.downcast::<TokioIo<TcpStream>>() else { return };
    let stream = parts.io.into_inner();
    let config = WebSocketConfig::default().read_buffer_size(READ).write_buffer_size(0);
    let read = parts.read_buf.to_vec();
    let mut frames = WebSocketContext::from_partially_read(read, Role::Server, Some(config));
    // The end is a client that has left.
    while echo_one(&mut frames, &stream).await.is_ok() {}
}

async fn echo_one(frames: &mut WebSocketContext, stream: &TcpStream) -> Result<(), Error> {
    let came = loop {
        match frames.read(&mut Tried(stream)) {
            Err(error) if waits(&error) => stream.readable().await?,
            came => break came?,
        }
    };
    if !matches!(came, Message::Text(_) | Message::Binary(_)) {
        return Ok(());
    }
    let mut sent = frames.write(&mut Tried(stream), came);
    loop {
        match sent {
            Err(error) if waits(&error) => stream.writable().await?,
            Err(error) => return Err(error),
            Ok(()) => return Ok(()),
        }
        sent = frames.flush(&mut Tried(stream));
    }
}

fn waits(error: &Error) -> bool {
    matches!(error, Error::Io(cause) if cause.kind() == io::ErrorKind::WouldBlock)
}

/// A socket as tungstenite reads and writes it.
struct Tried<'a>(&'a TcpStream);

impl Read for Tried<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(bytes)
    }
}

impl Write for Tried<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
