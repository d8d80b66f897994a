//! The trailers of an answer of HTTP/1.1, below hyper.
//!
//! hyper writes only those that a `trailer` header has announced, and those of a stream are known when its head has
//! left. So hyper ends the body without any, and its last chunk is written here, with the trailers behind it.
//!
//! | stage     | the body            | whoever writes                                             |
//! |-----------|---------------------|------------------------------------------------------------|
//! | `Unasked` | asks, and waits     | writes what comes                                          |
//! | `Asked`   | waits               | has written all that came before: `Due`, and wakes          |
//! | `Due`     | ends                | writes the section where hyper's last chunk comes: `Unasked` |
//!
//! Invariant: nothing but hyper's last chunk is ever written in another form.

use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use crate::header_line::put_section;
use crate::socket::Socket;

/// What hyper ends a chunked body with.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Where the trailers of a connection's answer are.
#[derive(Debug, Default)]
pub(crate) struct TrailerSection {
    // Whether there are any: most answers have none, and cost no lock.
    asked: AtomicBool,
    // Only the connection's own task comes here, but hyper wants what it polls to be shareable.
    stage: Mutex<Stage>,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Unasked,
    Asked(Bytes),
    Due(Bytes),
}

impl TrailerSection {
    /// The body that is being written ends with these.
    pub(crate) fn ask(&self, trailers: &HeaderMap) {
        *self.stage() = Stage::Asked(section(trailers));
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Ready when the body may end: what comes next is its last chunk. Who waits is woken by [`Self::all_is_written`].
    pub(crate) fn poll_due(&self) -> Poll<()> {
        match *self.stage() {
            Stage::Asked(_) => Poll::Pending,
            Stage::Due(_) | Stage::Unasked => Poll::Ready(()),
        }
    }

    /// hyper keeps nothing back any more.
    pub(crate) fn all_is_written(&self, cx: &Context<'_>) {
        if !self.asked.load(Ordering::Relaxed) {
            return;
        }
        let mut stage = self.stage();
        if let Stage::Asked(section) = &mut *stage {
            *stage = Stage::Due(std::mem::take(section));
            cx.waker().wake_by_ref();
        }
    }

    /// Whether what hyper writes next is to be written by [`Self::poll_write`].
    pub(crate) fn is_due(&self) -> bool {
        self.asked.load(Ordering::Relaxed) && matches!(*self.stage(), Stage::Due(_))
    }

    /// Writes the section in the place of the last chunk, with which `slices` begin; gives the length of that.
    pub(crate) fn poll_write(
        &self,
        cx: &mut Context<'_>,
        socket: &Socket,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if !slices.iter().flat_map(|slice| slice.iter()).take(LAST_CHUNK.len()).eq(LAST_CHUNK) {
            return Poll::Ready(Err(io::Error::other("a last chunk was due")));
        }
        let mut stage = self.stage();
        if let Stage::Due(section) = &mut *stage {
            ready!(socket.poll_say_all(cx, section))?;
        }
        *stage = Stage::Unasked;
        self.asked.store(false, Ordering::Relaxed);
        Poll::Ready(Ok(LAST_CHUNK.len()))
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A last chunk with trailers (RFC 9112 §7.1).
fn section(trailers: &HeaderMap) -> Bytes {
    let mut section = BytesMut::from(&b"0\r\n"[..]);
    put_section(&mut section, trailers);
    section.freeze()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn trailers_follow_the_last_chunk_line_by_line() {
        let mut trailers = HeaderMap::new();
        trailers.append("x-one", HeaderValue::from_static("1"));
        trailers.append("x-one", HeaderValue::from_static("2"));
        assert_eq!(section(&trailers), "0\r\nx-one: 1\r\nx-one: 2\r\n\r\n");
        assert_eq!(section(&HeaderMap::new()), LAST_CHUNK);
    }
}
