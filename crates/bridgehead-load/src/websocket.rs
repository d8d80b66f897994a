//! One WebSocket: a message goes out, one comes back.
//!
//! Not the frames, which are tungstenite's; the handshake is hyper's answer, judged here.
//!
//! Invariant: one message is under way at a time, and what the server asks of a client in between (a pong, a close) is
//! given.

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use data_encoding::BASE64;
use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use sha1_smol::Sha1;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tungstenite::Message;
use tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};

use crate::channel::Answer;
use crate::expect::Expect;
use crate::fault::{Fault, Kind};
use crate::payload::Payload;
use crate::random::Random;
use crate::secure::Line;

/// RFC 6455 §1.3.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// How long a server may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);
/// What is read at once: as much as a message of the usual kind has, since there are many connections.
const READ: usize = 16 << 10;
/// A message that comes back may be as long as one that can be sent.
const LARGEST: usize = 1 << 30;
/// What is written at once: everything, since each message is waited for.
const WRITE: usize = 0;

/// An open WebSocket.
#[derive(Debug)]
pub(crate) struct WebSocket {
    line: Line,
    frames: Box<WebSocketContext>,
}

impl WebSocket {
    /// Asks for one on this connection.
    pub(crate) async fn open(
        line: Line,
        mut request: Request<Payload>,
        random: &mut Random,
    ) -> Result<Self, Fault> {
        let refused = |said: String| Fault::new(Kind::Connect, said);
        let key = ask_in(&mut request, random);
        let (mut sender, mut connection) =
            http1::handshake(TokioIo::new(line)).await.map_err(|error| refused(error.to_string()))?;
        let mut asked = pin!(sender.send_request(request));
        let mut is_over = false;
        let answer = poll_fn(|cx| {
            // Driven by hand, for hyper gives the socket back once it has the answer.
            is_over = is_over || connection.poll_without_shutdown(cx).is_ready();
            asked.as_mut().poll(cx)
        });
        let answer = answer.await.map_err(|error| Fault { kind: Kind::Connect, ..Fault::of_head(&error) })?;
        judge(&answer, &key).map_err(refused)?;
        let parts = connection.into_parts();
        let config = WebSocketConfig::default()
            .read_buffer_size(READ)
            .write_buffer_size(WRITE)
            .max_frame_size(Some(LARGEST))
            .max_message_size(Some(LARGEST));
        let frames =
            WebSocketContext::from_partially_read(parts.read_buf.to_vec(), Role::Client, Some(config));
        Ok(Self { line: parts.io.into_inner(), frames: Box::new(frames) })
    }

    /// Whether the server has not closed it meanwhile. What it said unasked is passed over.
    pub(crate) async fn is_open(&mut self) -> bool {
        poll_fn(|cx| {
            loop {
                match self.poll(cx, |frames, line| frames.read(line)) {
                    Poll::Ready(Ok(Message::Close(_)) | Err(_)) => return Poll::Ready(false),
                    Poll::Ready(Ok(_)) => {}
                    Poll::Pending => return Poll::Ready(true),
                }
            }
        })
        .await
    }

    /// A message, and the one that comes back; `None` if the connection ended before it could be sent.
    pub(crate) async fn exchange(
        &mut self,
        message: Message,
        expect: &Expect,
    ) -> Result<Option<Answer>, Fault> {
        let due = message.clone();
        // What is written is kept by the frames, so that a write that waits is gone on with by flushing.
        let mut unsent = Some(message);
        let sent = poll_fn(|cx| {
            self.poll(cx, |frames, line| match unsent.take() {
                Some(message) => frames.write(line, message).and_then(|()| frames.flush(line)),
                None => frames.flush(line),
            })
        });
        sent.await.map_err(|error| Fault::of_message(&error))?;
        let came = self.next().await?;
        let mut search = expect.search();
        let wrong = if expect.body.is_some() {
            search.see(&came.clone().into_data());
            expect.of_body(&search)
        } else {
            (came != due).then(|| difference(&came, &due))
        };
        Ok(Some(Answer { status: None, bytes: came.len() as u64, wrong }))
    }

    async fn next(&mut self) -> Result<Message, Fault> {
        loop {
            let came = poll_fn(|cx| self.poll(cx, |frames, line| frames.read(line))).await;
            match came.map_err(|error| Fault::of_message(&error))? {
                message @ (Message::Text(_) | Message::Binary(_)) => return Ok(message),
                Message::Close(None) => return Err(Fault::new(Kind::Closed, "closed without a code")),
                Message::Close(Some(frame)) => {
                    let said = format!("closed with {} {}", u16::from(frame.code), frame.reason);
                    return Err(Fault::new(Kind::Closed, said.trim_end()));
                }
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    /// Says goodbye, and waits for the same a moment.
    pub(crate) async fn finish(mut self) {
        let goodbye = poll_fn(|cx| {
            loop {
                let done = self.poll(cx, |frames, line| match frames.close(line, None) {
                    // Begun already: what is left is the server's half.
                    Ok(()) => frames.read(line).map(drop),
                    Err(error) => Err(error),
                });
                match done {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        });
        // Who does not answer is left.
        let _ = timeout(GOODBYE, goodbye).await;
    }

    fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        work: impl FnOnce(&mut WebSocketContext, &mut Polled<'_, '_>) -> tungstenite::Result<T>,
    ) -> Poll<tungstenite::Result<T>> {
        match work(&mut self.frames, &mut Polled { line: &mut self.line, cx }) {
            Err(tungstenite::Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            done => Poll::Ready(done),
        }
    }
}

/// Makes a request ask for a WebSocket; says by which key.
fn ask_in(request: &mut Request<Payload>, random: &mut Random) -> String {
    let mut nonce = [0; 16];
    for half in nonce.chunks_mut(8) {
        half.copy_from_slice(&random.next().to_ne_bytes());
    }
    let key = BASE64.encode(&nonce);
    let headers = request.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    let value = HeaderValue::from_str(&key).expect("base64 is of letters");
    headers.insert(header::SEC_WEBSOCKET_KEY, value);
    key
}

/// Whether the answer to a handshake is one (RFC 6455 §4.1).
fn judge<T>(answer: &Response<T>, key: &str) -> Result<(), String> {
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(format!("the handshake was answered with status {}", answer.status().as_str()));
    }
    let mut hash = Sha1::from(key);
    hash.update(GUID.as_bytes());
    let due = BASE64.encode(&hash.digest().bytes());
    match answer.headers().get(header::SEC_WEBSOCKET_ACCEPT) {
        Some(came) if came.as_bytes() == due.as_bytes() => Ok(()),
        _ => Err("the handshake was answered with a wrong Sec-WebSocket-Accept".to_owned()),
    }
}

fn difference(came: &Message, due: &Message) -> String {
    let kind = |message: &Message| if message.is_text() { "text" } else { "binary" };
    format!(
        "a {} message of {} bytes instead of the one that was sent ({} of {})",
        kind(came),
        came.len(),
        kind(due),
        due.len()
    )
}

/// A socket as tungstenite reads and writes it: what has to wait says so.
struct Polled<'a, 'b> {
    line: &'a mut Line,
    cx: &'a mut Context<'b>,
}

impl Read for Polled<'_, '_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut bytes = ReadBuf::new(bytes);
        now(Pin::new(&mut *self.line).poll_read(self.cx, &mut bytes))?;
        Ok(bytes.filled().len())
    }
}

impl Write for Polled<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        now(Pin::new(&mut *self.line).poll_write(self.cx, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        now(Pin::new(&mut *self.line).poll_flush(self.cx))
    }
}

fn now<T>(polled: Poll<io::Result<T>>) -> io::Result<T> {
    match polled {
        Poll::Ready(done) => done,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}
