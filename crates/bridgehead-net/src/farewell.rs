//! The last words to a client whose connection ends: why, and time to read it.
//!
//! Not the refusals and answers that hyper writes, but the time to read them. Closing a socket that still holds unread bytes resets it, and takes
//! from the client what it was told; so what it sends is read for a while and thrown away.
//!
//! Invariant: both waits end.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use crate::config::Config;
use crate::executor::Executor;
use crate::refusal::Refusal;
use crate::shutdown::{Stage, Watch};
use crate::socket::Socket;

/// Time for a client to notice, and to stop sending.
const LINGER: Duration = Duration::from_secs(2);

/// Bytes that are on their way to any client; one that has more before it reads behind.
const IN_FLIGHT: u64 = 64 * 1024;

/// Says why nothing comes of what was sent.
pub(crate) async fn say(refusal: Refusal, socket: &Socket, config: &Config, executor: &Executor) {
    let answer = written(refusal, config);
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
    let mut patience = pin!(executor.sleep(LINGER));
    poll_fn(|cx| if socket.poll_end(cx).is_ready() { Poll::Ready(()) } else { patience.as_mut().poll(cx) })
        .await;
    poll_fn(
        |cx| {
            if socket.poll_discard(cx).is_ready() { Poll::Ready(()) } else { patience.as_mut().poll(cx) }
        },
    )
    .await;
}

/// An answer as it leaves.
fn written(refusal: Refusal, config: &Config) -> Vec<u8> {
    let response = refusal.response();
    let mut head = format!("HTTP/1.1 {}\r\n", response.status()).into_bytes();
    let mut add = |name: &str, value: &[u8]| {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    };
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
    let text = response.body();
    add("content-length", text.len().to_string().as_bytes());
    head.extend_from_slice(b"\r\n");
    head.extend_from_slice(text.as_bytes());
    head
}
