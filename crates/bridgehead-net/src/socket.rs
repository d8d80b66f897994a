//! A client's socket, readable by hyper and watchable beside it.
//!
//! hyper owns its IO and does not look at it while an application works; [`Socket`] is shared, so that the connection
//! can see a client leave without taking bytes out of the stream. Whether it is TCP, a Unix stream or TLS over either is
//! nobody's business above.
//!
//! Invariant: reading, writing and watching happen in the connection's one task, so the single waker that Tokio keeps
//! per direction is always that task's.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use bridgehead_metrics::{Counter, Sheet};
use bytes::Buf;
use tokio::io::ReadBuf;
use tokio::net::{TcpStream, UnixStream};

use crate::config::Unconfirmed;
use crate::crowd::Seat;
use crate::family::Stream;
use crate::inspector::Spoken;
use crate::interim::Interim;
use crate::pace::PaceLimits;
use crate::reading::Reading;
use crate::session::{Session, Wire};
use crate::trailer_section::TrailerSection;

/// A connected stream, and what is known of it.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) stream: Stream,
    pub(crate) layer: Layer,
    // Whether a close is a reset, or comes behind the client's own end: no word can be taken back by it any more.
    final_word: AtomicBool,
    // Whether bytes were left in the stream when it was looked at, of which no readiness tells any more.
    pub(crate) looked_past: AtomicBool,
    // Whether the last bytes to be written were not taken. Only the connection's own task comes here, and below, but
    // hyper wants what it polls to be shareable.
    held_up: AtomicBool,
    reading: Mutex<Reading>,
    pub(crate) trailers: TrailerSection,
    pub(crate) interim: Interim,
    // Bytes that the system has taken.
    written: AtomicU64,
    // Where bytes are counted, if they are.
    meters: Option<Sheet>,
    // Behind the stream, which is closed when it is free again.
    seat: Option<Seat>,
}

/// What is between the stream and who reads and writes.
#[derive(Debug)]
pub(crate) enum Layer {
    None,
    // As below.
    Tls(Box<Mutex<Session>>),
}

/// What a look at the socket showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// More bytes wait, the next request for instance.
    Bytes,
    /// The client sends no more; it may still read.
    Closed,
    /// The connection is broken.
    Broken,
}

impl Socket {
    pub(crate) fn tcp(stream: TcpStream) -> Self {
        Self::new(Stream::tcp(stream))
    }

    pub(crate) fn unix(stream: UnixStream) -> Self {
        Self::new(Stream::unix(stream))
    }

    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            stream,
            layer: Layer::None,
            final_word: AtomicBool::new(false),
            looked_past: AtomicBool::new(false),
            held_up: AtomicBool::new(false),
            reading: Mutex::new(Reading::new(PaceLimits::default())),
            trailers: TrailerSection::default(),
            interim: Interim::default(),
            written: AtomicU64::new(0),
            meters: None,
            seat: None,
        }
    }

    /// The connection's place, for as long as it is open.
    pub(crate) fn seated(mut self, seat: Seat) -> Self {
        self.seat = Some(seat);
        self
    }

    /// All that is read and written from now on goes through this session, whose handshake is over.
    pub(crate) fn secure(&mut self, session: Session) {
        self.layer = Layer::Tls(Box::new(Mutex::new(session)));
    }

    /// What was agreed on in the handshake, if there was one.
    pub(crate) fn spoken(&self) -> Spoken {
        match &self.layer {
            Layer::None => Spoken::Either,
            Layer::Tls(session) if locked(session).connection().alpn_protocol() == Some(b"h2") => {
                Spoken::Http2
            }
            Layer::Tls(_) => Spoken::Http1,
        }
    }

    /// Looks whether the client has left, taking nothing from who reads next.
    pub(crate) fn poll_sight(&self, cx: &mut Context<'_>) -> Poll<Sight> {
        if let Layer::Tls(session) = &self.layer {
            return locked(session).poll_sight(&mut Wire { socket: self, cx });
        }
        self.poll_sight_wire(cx)
    }

    pub(crate) fn poll_sight_wire(&self, cx: &mut Context<'_>) -> Poll<Sight> {
        loop {
            if ready!(self.stream.poll_read_ready(cx)).is_err() {
                return Poll::Ready(Sight::Broken);
            }
            match self.stream.try_peek() {
                Ok(0) => return Poll::Ready(Sight::Closed),
                Ok(_) => return Poll::Ready(Sight::Bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Poll::Ready(Sight::Broken),
            }
        }
    }

    /// Waits until there is something to read, or an end; whether it begins with all of `opening`, as far as that can be
    /// seen without reading it.
    pub(crate) async fn begins_with<const LENGTH: usize>(&self, opening: &[u8; LENGTH]) -> bool {
        poll_fn(|cx| {
            if let Layer::Tls(session) = &self.layer {
                return locked(session).poll_sight(&mut Wire { socket: self, cx }).map(|_| false);
            }
            let mut space = [0; LENGTH];
            let mut seen = ReadBuf::new(&mut space);
            // Whoever reads next meets an error as well.
            self.stream.poll_look(cx, &mut seen).map(|_| seen.filled() == opening)
        })
        .await
    }

    /// Makes the coming close a reset: the client must not take what it got for the whole.
    pub(crate) fn close_will_reset(&self) {
        self.stream.close_will_reset();
        self.final_word.store(true, Ordering::Relaxed);
        if let Layer::Tls(session) = &self.layer {
            locked(session).will_not_end();
        }
    }

    /// Counts bytes there from now on, and those that came with the end of a handshake.
    pub(crate) fn counts_on(&mut self, sheet: Sheet) {
        self.meters = Some(sheet);
        if let Layer::Tls(session) = &self.layer {
            self.counts(Counter::BytesIn, locked(session).behind_handshake());
        }
    }

    fn counts(&self, counter: Counter, bytes: usize) {
        if let Some(sheet) = &self.meters {
            sheet.add(counter, bytes as u64);
        }
    }

    /// Says how slowly what is written may be read.
    pub(crate) fn set_pace(&mut self, limits: PaceLimits) {
        self.reading = Mutex::new(Reading::new(limits));
    }

    /// Whether the last bytes to be written were not taken: the client reads more slowly than we write.
    pub(crate) fn is_held_up(&self) -> bool {
        self.held_up.load(Ordering::Relaxed)
    }

    /// How many bytes have left.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Waits until all that was to be written was taken.
    pub(crate) fn poll_at_rest(&self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_held_up() {
            return Poll::Ready(());
        }
        self.reading().wake_at_rest(cx.waker());
        Poll::Pending
    }

    /// When a client that bytes wait for is to be looked at, since it may have read too slowly.
    pub(crate) fn looked_at(&self) -> Option<Instant> {
        if self.is_held_up() { self.reading().deadline() } else { None }
    }

    /// How many bytes the client's system has not confirmed, where that can be known.
    pub(crate) fn unconfirmed(&self, ask: Unconfirmed) -> u64 {
        self.stream.unconfirmed(ask).unwrap_or_default()
    }

    /// Whether the close that comes is one that takes nothing back from the client, whatever it has sent.
    pub(crate) fn has_final_word(&self) -> bool {
        self.final_word.load(Ordering::Relaxed)
    }

    /// Whether it has.
    pub(crate) fn is_stalled(&self, ask: Unconfirmed) -> bool {
        let confirmed = self.written.load(Ordering::Relaxed).saturating_sub(self.unconfirmed(ask));
        self.is_held_up() && self.reading().has_failed(confirmed, Instant::now())
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what it can of the bytes.
    pub(crate) fn poll_say(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write(cx, &[IoSlice::new(bytes)])
    }

    /// Writes all of the bytes, and takes away what has left already.
    pub(crate) fn poll_say_all(&self, cx: &mut Context<'_>, bytes: &mut impl Buf) -> Poll<io::Result<()>> {
        while bytes.has_remaining() {
            match ready!(self.poll_say(cx, bytes.chunk()))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => bytes.advance(count),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Says that nothing more comes, once the client can have all that was written.
    pub(crate) fn poll_end(&self, cx: &mut Context<'_>) -> Poll<()> {
        if let Layer::Tls(session) = &self.layer {
            // A connection that is gone has ended.
            let _ = ready!(locked(session).poll_end(&mut Wire { socket: self, cx }));
        }
        self.was_flushed();
        self.stream.end();
        Poll::Ready(())
    }

    pub(crate) fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &self.layer {
            Layer::None => self.poll_read_wire(cx, buffer),
            Layer::Tls(session) => locked(session).poll_read(&mut Wire { socket: self, cx }, buffer),
        }
    }

    /// Below TLS.
    pub(crate) fn poll_read_wire(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buffer.remaining();
        if self.looked_past.load(Ordering::Relaxed)
            && let Some(read) = self.read_looked_past(buffer)
        {
            return Poll::Ready(read);
        }
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read(buffer) {
                Ok(count) => {
                    self.counts(Counter::BytesIn, count);
                    if 0 < count && count < room {
                        self.was_drained();
                    } else if count < room {
                        self.final_word.store(true, Ordering::Relaxed);
                    }
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Reads what no readiness tells of; nothing when there is no more of it.
    fn read_looked_past(&self, buffer: &mut ReadBuf<'_>) -> Option<io::Result<()>> {
        let space = buffer.initialize_unfilled();
        let room = space.len();
        let read = self.stream.read(space);
        self.looked_past.store(matches!(read, Ok(count) if count == room), Ordering::Relaxed);
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            read => Some(read.map(|count| {
                self.counts(Counter::BytesIn, count);
                buffer.advance(count);
            })),
        }
    }

    /// A read that did not fill its buffer emptied the socket: what comes next is a new event (epoll and kqueue are
    /// used edge-triggered), and a read that would only say so is saved.
    pub(crate) fn was_drained(&self) {
        self.stream.was_drained();
    }

    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match &self.layer {
            Layer::None => self.poll_write_wire(cx, slices),
            Layer::Tls(session) => locked(session).poll_write(&mut Wire { socket: self, cx }, slices),
        }
    }

    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Layer::Tls(session) = &self.layer {
            ready!(locked(session).poll_flush(&mut Wire { socket: self, cx }))?;
        }
        self.was_flushed();
        Poll::Ready(Ok(()))
    }

    /// Below TLS. A client that is waited for is looked after.
    pub(crate) fn poll_write_wire(
        &self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = self.poll_write_once(cx, slices);
        match &polled {
            Poll::Pending => {
                if !self.held_up.swap(true, Ordering::Relaxed) {
                    self.reading().wait(Instant::now());
                }
            }
            Poll::Ready(Ok(count)) => {
                self.written.fetch_add(*count as u64, Ordering::Relaxed);
                self.counts(Counter::BytesOut, *count);
            }
            Poll::Ready(Err(_)) => {}
        }
        polled
    }

    /// Everything that was to be written has been taken.
    fn was_flushed(&self) {
        if self.held_up.load(Ordering::Relaxed) {
            self.held_up.store(false, Ordering::Relaxed);
            let waker = self.reading().rest();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    fn poll_write_once(&self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(cx))?;
            match self.stream.try_write(slices) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

impl Drop for Socket {
    /// A client whose time is up is told that it was not cut off, if the socket takes that at once.
    fn drop(&mut self) {
        if let Layer::Tls(session) = &self.layer {
            let mut cx = Context::from_waker(Waker::noop());
            let _ = locked(session).poll_end(&mut Wire { socket: self, cx: &mut cx });
        }
    }
}

pub(crate) fn locked(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}
