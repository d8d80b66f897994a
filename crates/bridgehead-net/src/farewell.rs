//! The last words to a client whose connection ends: why, and time to read it.
//!
//! Not the refusals and answers that hyper writes, but the time to read them. Closing a socket that still holds unread bytes resets it, and takes
//! from the client what it was told; so what it sends is read for a while and thrown away.
//!
//! Invariant: both waits end, and what is thrown away has a bound.

use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::pin::pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use bridgehead_executor::Executor;
use tokio::io::ReadBuf;

use crate::config::Config;
use crate::header_line::put_line;
use crate::line::Line;
use crate::refusal::Refusal;
use crate::shutdown::{Stage, Watch};
use crate::socket::Socket;

/// Time for a client to notice, and to stop sending.
const LINGER: Duration = Duration::from_secs(2);

/// Bytes that are on their way to any client; one that has more before it reads behind.
const IN_FLIGHT: u64 = 64 * 1024;

/// Of what a client still sends, so much is thrown away: a client that reads only after a form or a picture gets to its
/// answer, and one that sends for ever costs no more than the wait.
pub(crate) const THROWN_AWAY: usize = 2 * 1024 * 1024;

/// Says why nothing comes of what was sent; how many bytes of the answer's body have left.
pub(crate) async fn say(refusal: Refusal, line: &Line, executor: &Executor) -> usize {
    let socket = &line.socket;
    let body = if line.inspector.asks_head() { "" } else { refusal.text() };
    let mut answer = head(refusal, &line.config);
    answer.extend_from_slice(body.as_bytes());
    let mut rest = answer.as_slice();
    let mut patience = pin!(executor.sleep(LINGER));
    poll_fn(|cx| {
        while !rest.is_empty() {
            match socket.poll_say(cx, rest) {
                Poll::Ready(Ok(count)) => rest = &rest[count..],
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => return patience.as_mut().poll(cx),
            }
        }
        if socket.poll_end(cx).is_ready() { Poll::Ready(()) } else { patience.as_mut().poll(cx) }
    })
    .await;
    // The body is what comes last.
    body.len().saturating_sub(rest.len())
}

/// Whether a close now could take back what the client has not read yet: it resets the connection if there is something
/// that nobody has read, and later, should something come.
pub(crate) fn is_due(socket: &Socket, config: &Config) -> bool {
    socket.has_unread() || socket.unconfirmed(config.unconfirmed) > IN_FLIGHT
}

/// The same as `linger`, until the worker has no time.
pub(crate) async fn linger_unless_cut(socket: &Socket, executor: &Executor, watch: &mut Watch) {
    tokio::select! {
        biased;
        _ = watch.reached(Stage::Aborting) => {}
        () = linger(socket, executor) => {}
    }
}

/// Says that nothing more comes, and lets the client read what it was told.
pub(crate) async fn linger(socket: &Socket, executor: &Executor) {
    linger_for(socket, executor, THROWN_AWAY).await;
}

/// The same, with a bound of its own for what is read and thrown away. A client that sends more still has its time: a
/// close would be a reset, and take from it what it has not read yet.
pub(crate) async fn linger_for(socket: &Socket, executor: &Executor, mut most: usize) {
    let mut patience = pin!(executor.sleep(LINGER));
    poll_fn(|cx| if socket.poll_end(cx).is_ready() { Poll::Ready(()) } else { patience.as_mut().poll(cx) })
        .await;
    poll_fn(|cx| {
        let discarded = poll_discard(socket, &mut most, cx);
        if discarded.is_ready() { Poll::Ready(()) } else { patience.as_mut().poll(cx) }
    })
    .await;
}

/// Takes and forgets what has come, up to `most`. Ready at the end of the stream, or when it is broken.
fn poll_discard(socket: &Socket, most: &mut usize, cx: &mut Context<'_>) -> Poll<()> {
    if *most == 0 {
        return Poll::Pending;
    }
    let mut space = [MaybeUninit::uninit(); 16 * 1024];
    let mut buffer = ReadBuf::uninit(&mut space);
    match ready!(socket.poll_read(cx, &mut buffer)) {
        Ok(()) if !buffer.filled().is_empty() => {
            *most = most.saturating_sub(buffer.filled().len());
            // Others have their turn in between.
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        _ => Poll::Ready(()),
    }
}

/// An answer as it leaves, without its body.
fn head(refusal: Refusal, config: &Config) -> Vec<u8> {
    let response = refusal.response();
    let mut head = format!("HTTP/1.1 {}\r\n", response.status()).into_bytes();
    let mut add = |name: &str, value: &[u8]| put_line(&mut head, name, value);
    for (name, value) in response.headers() {
        add(name.as_str(), value.as_bytes());
    }
    for (name, values) in &config.default_headers {
        if !response.headers().contains_key(name) {
            values.iter().for_each(|value| add(name.as_str(), value.as_bytes()));
        }
    }
    if config.date_header {
        add("date", httpdate::fmt_http_date(SystemTime::now()).as_bytes());
    }
    add("content-length", response.body().len().to_string().as_bytes());
    head.extend_from_slice(b"\r\n");
    head
}
