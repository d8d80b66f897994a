//! One WebSocket, from its acceptance until its connection is gone: over whatever stream of bytes it comes.
//!
//! Frames are `bridgehead-websocket`'s, what passes between the network and the application `websocket`'s. Here is what happens by
//! itself: pings are answered and sent, the close handshake is held, deadlines pass, whatever the application does. What follows
//! on what is `course`'s table.
//!
//! Invariant: a close frame is the last that is written, and no wait is without an end.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bridgehead_executor::{Executor, Sleep, poll_deadline};
use bridgehead_websocket::{Decoder, Event, Failure};
use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::accept::Worker;
use crate::course::{Course, Deaf, Late, Reading, Takes};
use crate::farewell::THROWN_AWAY;
use crate::heart::{Beat, Heart};
use crate::meters::Conversation;
use crate::session_end::{Opened, SessionEnd, Wish};
use crate::shutdown::Stage;
use crate::tally::{Hardship, Tally};
use crate::websocket::Ending;
use crate::websocket_outgoing::Outgoing;

/// Bytes that are read at once. Nothing is kept of them while nothing comes.
const READ: usize = 32 * 1024;

/// Reads before others have their turn.
const READS: u32 = 16;

/// Time for a client to answer a close frame.
const CLOSE_TIME: Duration = Duration::from_secs(10);

/// Time for an application to hear of a close frame before it is answered.
const HEARING_TIME: Duration = Duration::from_secs(1);

/// Time for a client to read why it is left, and to stop sending.
const LINGER: Duration = Duration::from_secs(2);

/// RFC 6455 §7.4.1: the server goes, or does not want to stay.
const GOING_AWAY: u16 = 1001;
/// The server could not go on.
const INTERNAL_ERROR: u16 = 1011;
/// IANA: the service restarts; the client may come again.
const SERVICE_RESTART: u16 = 1012;

/// Serves a WebSocket over `io`; what was read of it before is `came`.
pub(crate) async fn run<S>(io: S, came: Bytes, opened: Opened, worker: &Worker)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // Before the session, and so behind it when they go.
    let _held = worker.reclaim.during_websocket(opened.deflation.is_some());
    let executor: &Executor = &worker.executor;
    let mut watch = worker.watch.clone();
    let mut session = Session::new(io, came, opened, worker);
    let mut timer = pin!(executor.sleep(CLOSE_TIME));
    let mut awaited = Stage::Draining;
    loop {
        tokio::select! {
            biased;
            stage = watch.reached(awaited) => match stage {
                Stage::Aborting => return,
                Stage::Serving | Stage::LastCall | Stage::Draining => {
                    awaited = Stage::Aborting;
                    session.end.end(Ending::new(SERVICE_RESTART, "the server stops"));
                }
            },
            () = poll_fn(|cx| session.poll(timer.as_mut(), cx)) => return,
        }
    }
}

struct Session<S> {
    io: S,
    end: SessionEnd,
    decoder: Decoder,
    /// Read, and not looked at since the application has enough.
    unread: Bytes,
    outgoing: Outgoing,
    /// What the application wants once all that it has sent is in frames.
    wish: Wish,
    course: Course,
    /// The client has said that it closes, or cannot be understood any more.
    deaf: Deaf,
    /// Bytes that may come from then on.
    discards: usize,
    heart: Heart,
    reading: Reading,
    idle: Option<Duration>,
    last_message: Instant,
    dies: Option<Instant>,
    tally: Tally,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    fn new(io: S, came: Bytes, opened: Opened, worker: &Worker) -> Self {
        let Opened { mut end, settings, deflation } = opened;
        end.conversation = Conversation::begin(worker.config.meters.as_ref());
        let (inflater, deflater) = deflation.map(|both| (both.inflater, both.deflater)).unzip();
        let now = Instant::now();
        Self {
            io,
            end,
            decoder: Decoder::new(settings.max_size, worker.memory.clone(), inflater),
            unread: came,
            outgoing: Outgoing::new(deflater, worker.config.bounds.download),
            wish: Wish::Nothing,
            course: Course::Open,
            deaf: Deaf::No,
            discards: THROWN_AWAY,
            heart: Heart::new(settings.ping_interval, settings.ping_timeout, now),
            reading: Reading::On,
            idle: settings.idle,
            last_message: now,
            dies: settings.lifetime.map(|lifetime| now + lifetime),
            tally: worker.config.tally.clone(),
        }
    }

    /// Ready once the connection is of no more use.
    fn poll(&mut self, mut timer: Pin<&mut Sleep>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.poll_io(cx).is_ready() {
                return Poll::Ready(());
            }
            ready!(poll_deadline(timer.as_mut(), self.deadline(), cx));
            if self.be_late(Instant::now()) == Late::Gone {
                return Poll::Ready(());
            }
        }
    }

    /// Reads and writes what it can. Ready once there is nobody to read from or write to.
    fn poll_io(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..READS {
            let takes = self.obey(cx);
            let written = self.outgoing.poll_write(&mut self.io, cx);
            if matches!(written, Poll::Ready(Err(_))) {
                return Poll::Ready(());
            }
            if written.is_ready() && matches!(self.course, Course::Leaving(_)) {
                let ended = Pin::new(&mut self.io).poll_shutdown(cx);
                if ended.is_ready() && self.deaf == Deaf::Closed {
                    return Poll::Ready(());
                }
            }
            match self.poll_read(cx) {
                Poll::Ready(Ok(true)) => {}
                // It has said that it closes, and may still want to be answered.
                Poll::Ready(Ok(false)) if matches!(self.course, Course::Answering(_)) => {
                    self.reading = Reading::Over;
                }
                // An end that nobody announced: the application hears that the connection is gone.
                Poll::Ready(Ok(false) | Err(_)) => return Poll::Ready(()),
                // There is room for what is to be compressed next, and for what nobody has asked the application for.
                Poll::Pending
                    if written.is_ready() && (takes == Takes::Nothing || !self.outgoing.is_framed()) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Takes over what the application sends, and what else it wants.
    fn obey(&mut self, cx: &mut Context<'_>) -> Takes {
        if self.outgoing.frames.is_full() {
            return Takes::Nothing;
        }
        let takes = if self.outgoing.is_framed() { Takes::All } else { Takes::Nothing };
        if takes == Takes::All {
            self.wish = self.end.take(&mut self.outgoing.messages, cx);
        }
        if matches!(self.course, Course::Closing(_) | Course::Leaving(_)) {
            self.outgoing.forget();
            return takes;
        }
        if !self.outgoing.is_framed() {
            self.was_used();
        }
        self.outgoing.frame();
        if !self.outgoing.is_framed() {
            return takes;
        }
        match std::mem::replace(&mut self.wish, Wish::Nothing) {
            Wish::Nothing => {}
            Wish::Close(closing) => self.say_close(Some((closing.code(), closing.reason()))),
            Wish::Answer(ending) => self.say_close(ending.to_say()),
        }
        takes
    }

    fn say_close(&mut self, said: Option<(u16, &str)>) {
        self.outgoing.frames.close(said);
        let now = Instant::now();
        self.course = match self.deaf {
            Deaf::No => Course::Closing(now + CLOSE_TIME),
            Deaf::Closed | Deaf::Failed => Course::Leaving(now + LINGER),
        };
    }

    /// A message has come, or goes.
    fn was_used(&mut self) {
        if self.idle.is_some() {
            self.last_message = Instant::now();
        }
    }

    /// Ready with true when something came, with false at the stream's end.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if self.reading == Reading::Over || self.discards == 0 {
            return Poll::Pending;
        }
        if self.course == Course::Open && !self.end.has_room() {
            self.reading = Reading::Paused;
            return Poll::Pending;
        }
        self.reading = Reading::On;
        if !self.unread.is_empty() {
            let mut unread = std::mem::take(&mut self.unread);
            let taken = self.understand(&unread);
            unread.advance(taken);
            self.unread = unread;
            return Poll::Ready(Ok(true));
        }
        let mut space = [MaybeUninit::uninit(); READ];
        let mut buffer = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer))?;
        if buffer.filled().is_empty() {
            return Poll::Ready(Ok(false));
        }
        self.heart.lives();
        let taken = self.understand(buffer.filled());
        self.unread = Bytes::copy_from_slice(&buffer.filled()[taken..]);
        Poll::Ready(Ok(true))
    }

    /// Takes frames until the application has enough. Gives how many bytes that were.
    fn understand(&mut self, came: &[u8]) -> usize {
        let mut rest = came;
        loop {
            if self.deaf != Deaf::No {
                self.discards = self.discards.saturating_sub(came.len());
                return came.len();
            }
            match self.decoder.next(&mut rest) {
                Ok(None) => return came.len(),
                Ok(Some(event)) => {
                    if !self.take_event(event) {
                        return came.len() - rest.len();
                    }
                }
                Err(failure) => self.fail(failure),
            }
        }
    }

    /// Gives whether more are wanted.
    fn take_event(&mut self, event: Event) -> bool {
        match event {
            Event::Message(message) => {
                self.was_used();
                return self.course != Course::Open || self.end.deliver(message);
            }
            Event::Ping(payload) if self.course == Course::Open => self.outgoing.frames.pong(payload),
            Event::Ping(_) | Event::Pong => {}
            Event::Turn => return false,
            Event::Close(said) => {
                self.deaf = Deaf::Closed;
                let now = Instant::now();
                if self.course == Course::Open {
                    self.course = Course::Answering(Some(now + HEARING_TIME));
                    self.end.closes(Ending::said(said));
                } else {
                    self.course = Course::Leaving(now + LINGER);
                }
            }
        }
        true
    }

    /// What the client sends cannot be understood.
    fn fail(&mut self, failure: Failure) {
        self.deaf = Deaf::Failed;
        self.tally.met(Hardship::of_failure(failure.code));
        let now = Instant::now();
        if self.course == Course::Open {
            // What came before is still answered.
            self.course = Course::Answering(Some(now + HEARING_TIME));
            self.end.closes(Ending::new(failure.code, failure.reason));
        } else {
            self.course = Course::Leaving(now + LINGER);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let stalls = self.outgoing.deadline();
        let course = match self.course {
            Course::Answering(until) => until,
            Course::Closing(until) | Course::Leaving(until) => Some(until),
            Course::Open => {
                let idle = self.idle.map(|idle| self.last_message + idle);
                [self.heart.next(), idle, self.dies].into_iter().flatten().min()
            }
        };
        [stalls, course].into_iter().flatten().min()
    }

    /// Does what is due when a deadline has passed.
    fn be_late(&mut self, now: Instant) -> Late {
        let passed = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        if passed(self.outgoing.deadline()) {
            self.tally.met(Hardship::SlowReader);
            return Late::Gone;
        }
        match self.course {
            Course::Answering(until) if passed(until) => {
                self.course = Course::Answering(None);
                self.end.end_closing();
            }
            Course::Closing(until) | Course::Leaving(until) if until <= now => return Late::Gone,
            Course::Open => self.be_late_in_open(now),
            Course::Answering(_) | Course::Closing(_) | Course::Leaving(_) => {}
        }
        Late::GoesOn
    }

    fn be_late_in_open(&mut self, now: Instant) {
        if self.dies.is_some_and(|dies| dies <= now) {
            self.dies = None;
            self.tally.met(Hardship::OldWebSocket);
            self.end.end(Ending::new(GOING_AWAY, "the connection has had its time"));
        }
        if self.idle.is_some_and(|idle| self.last_message + idle <= now) {
            self.idle = None;
            self.tally.met(Hardship::IdleWebSocket);
            self.end.end(Ending::new(GOING_AWAY, "nothing was said for too long"));
        }
        match self.heart.beat(now, self.reading == Reading::Paused) {
            Beat::Rests => {}
            Beat::Pings(payload) => {
                self.outgoing.rest();
                self.outgoing.frames.ping(&payload);
            }
            Beat::Stops => {
                self.deaf = Deaf::Failed;
                self.tally.met(Hardship::NoPong);
                self.end.end(Ending::lost());
                self.say_close(Some((INTERNAL_ERROR, "no answer to a ping")));
            }
        }
    }
}
