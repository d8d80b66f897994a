//! Early hints of HTTP/1.1, below hyper, which writes no 103.
//!
//! hyper flushes its stream only when it keeps nothing back. What is written there stands behind the whole answer
//! before, and ahead of a head that the application's answer has not given yet: the answer waits until they have left.
//!
//! | stage    | the answer                | whoever writes                                              |
//! |----------|---------------------------|-------------------------------------------------------------|
//! | `None`   | comes                     | writes what hyper gives                                     |
//! | `Said`   | waits                     | goes on with what hyper has; then begins with these         |
//! | `Begun`  | waits                     | writes the rest of these, before anything else of hyper's   |
//!
//! Invariant: a hint stands whole between two things that hyper writes, and never between a head and its body's end.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{BufMut, BytesMut};
use http::HeaderMap;

use crate::client_half::{ClientHalf, Spoken};
use crate::exchange::Answer;
use crate::header_line::put_section;
use crate::socket::Socket;

const STATUS_LINE: &[u8] = b"HTTP/1.1 103 Early Hints\r\n";

/// The hints of a connection's request that have not left.
#[derive(Debug, Default)]
pub(crate) struct Interim {
    // Whether there are any: most connections never have one, and pay no lock.
    said: AtomicBool,
    // Only the connection's own task comes here, but hyper wants what it polls to be shareable.
    stage: Mutex<Stage>,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    None,
    Said(BytesMut),
    Begun(BytesMut),
}

impl Interim {
    /// The application's answer, behind the hints that came before it.
    pub(crate) fn poll_answer(&self, client: &mut ClientHalf, cx: &mut Context<'_>) -> Poll<Answer> {
        if self.said.load(Ordering::Relaxed) {
            // Whoever writes them wakes.
            return Poll::Pending;
        }
        match ready!(client.poll_spoken(cx)) {
            Spoken::Answer(answer) => Poll::Ready(answer),
            Spoken::Hints(hints) => {
                let mut bytes = BytesMut::new();
                hints.iter().for_each(|links| put(&mut bytes, links));
                *self.stage() = Stage::Said(bytes);
                self.said.store(true, Ordering::Relaxed);
                // hyper does not always flush behind a poll that came to nothing, but does so in its next round.
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    /// hyper keeps nothing back: what was said leaves.
    pub(crate) fn poll_leave(&self, cx: &mut Context<'_>, socket: &Socket) -> Poll<io::Result<()>> {
        if !self.said.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let mut stage = self.stage();
        if let Stage::Said(bytes) = &mut *stage {
            *stage = Stage::Begun(std::mem::take(bytes));
        }
        ready!(poll_rest(&mut stage, cx, socket))?;
        self.said.store(false, Ordering::Relaxed);
        cx.waker().wake_by_ref();
        Poll::Ready(Ok(()))
    }

    /// hyper has something to write: it comes behind what was begun.
    pub(crate) fn poll_out_of_the_way(&self, cx: &mut Context<'_>, socket: &Socket) -> Poll<io::Result<()>> {
        if !self.said.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        poll_rest(&mut self.stage(), cx, socket)
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes what is left of hints that were begun.
fn poll_rest(stage: &mut Stage, cx: &mut Context<'_>, socket: &Socket) -> Poll<io::Result<()>> {
    if let Stage::Begun(bytes) = stage {
        ready!(socket.poll_say_all(cx, bytes))?;
        *stage = Stage::None;
    }
    Poll::Ready(Ok(()))
}

/// One interim answer (RFC 8297).
fn put(bytes: &mut BytesMut, links: &HeaderMap) {
    bytes.put_slice(STATUS_LINE);
    put_section(bytes, links);
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::LINK;

    use super::*;

    #[test]
    fn a_hint_is_a_status_line_and_a_line_for_each_link() {
        let mut links = HeaderMap::new();
        links.append(LINK, HeaderValue::from_static("</a.css>; rel=preload"));
        links.append(LINK, HeaderValue::from_static("</b.js>"));
        let mut bytes = BytesMut::new();
        put(&mut bytes, &links);
        let written = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\nlink: </b.js>\r\n\r\n";
        assert_eq!(bytes, written);
    }
}
