//! One connection of HTTP/2, from its preface until it is done.
//!
//! `h2` parses, writes and keeps the windows; this file decides how long a client is waited for and how a connection
//! ends. One request is `stream`'s, what a client may send beside its requests `flood`'s, how many streams it may have
//! us break off `broken_off`'s.
//!
//! | the connection ends | how |
//! |---|---|
//! | idle for the keep-alive time, or without a first request | GOAWAY |
//! | a head takes too long, a flood | GOAWAY, "enhance your calm" |
//! | what ran last was given up, since the client made no room for its answer | GOAWAY, "enhance your calm" |
//! | a client that reads too slowly, or does not answer a ping | a reset |
//! | the worker drains or is about to, an application asks for it, it has had its time or its requests | GOAWAY twice, and its last stream |
//!
//! Invariant: a connection has one timer, and whatever is asked of `h2`, its end has a deadline.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bridgehead_admission::{Admission, AdmissionLimits};
use bridgehead_executor::{Sleep, poll_deadline};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::Request;
use tokio::sync::watch;

use crate::accept::Worker;
use crate::config::{Http2, Pings, Refusals};
use crate::farewell;
use crate::http2_handshake::{CONNECTION_WINDOW, Connection, STREAMS, shake_hands};
use crate::line::Line;
use crate::pulse::{Beat, Pulse};
use crate::refusal::Refusal;
use crate::shutdown::{Stage, Watch};
use crate::tally::Hardship;
use crate::traffic::{Look, Traffic, Wire};
use crate::{overheard, stream};

/// Applications at a time that run for one connection. A stream that is broken off makes room for another at once, what
/// runs for it may go on.
const RUNNING: AdmissionLimits = AdmissionLimits {
    permits: Some(STREAMS as usize),
    queue: STREAMS as usize,
    patience: Some(Duration::from_secs(1)),
};

/// Time for a client to take a GOAWAY, or to answer one.
const PATIENCE: Duration = Duration::from_secs(1);

type Accepted = Option<Result<(Request<RecvStream>, SendResponse<Bytes>), h2::Error>>;

/// What ended the wait for all that may come.
enum Event {
    /// It is closed in order.
    Ended,
    /// The client's framing is wrong, or its socket is broken.
    Failed(h2::Error),
    /// The worker is at this stage.
    Stage(Stage),
    /// The connection is to be closed for this reason.
    Leave(Leave),
    /// The socket is broken, or time is up.
    Over,
    /// The client reads too slowly.
    Stalled,
    /// It has said nothing for long, or not what it was asked.
    Silent,
}

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leave {
    /// It has been idle.
    Idle,
    /// An answer asked for it.
    Asked,
    /// It has lasted long enough.
    Outlived,
    Flood,
    /// A frame is none.
    Wrong(Reason),
    SlowHead,
    /// What ran was given up, since the client made no room for it.
    Unread,
}

/// How far a connection's end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    No,
    /// Its streams may finish; the client heard of it then.
    Graceful(Instant),
    /// The last word was said then.
    Abrupt(Instant),
}

/// How the socket is closed when all is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Close {
    AtOnce,
    /// When the client has taken the last word.
    BehindLastWord,
}

/// Serves a client that speaks HTTP/2; `ahead` is what it was already heard to say.
pub(crate) async fn run(line: Arc<Line>, worker: Arc<Worker>, ahead: Bytes) {
    let traffic = Traffic::new();
    let wire = Wire::new(Arc::clone(&line), ahead, traffic.clone());
    let mut watch = worker.watch.clone();
    let mut timer = pin!(worker.executor.sleep(line.config.keep_alive));
    let Some(mut connection) = shake_hands(wire, &line, &mut watch, timer.as_mut()).await else {
        return;
    };
    let (alive, _) = watch::channel(());
    let pings = match line.config.http2 {
        Http2::Spoken(pings) => pings,
        Http2::Off => Pings { interval: None, timeout: None },
    };
    let mut session = Session {
        last_call: line.is_last_call().then(Instant::now),
        line,
        worker,
        traffic,
        admission: Admission::new(RUNNING),
        alive,
        pulse: Pulse::new(pings, connection.ping_pong()),
        ending: Ending::No,
    };
    let close = session.serve(&mut connection, &mut watch, timer).await;
    drop(connection);
    if close == Close::BehindLastWord {
        session.linger(&mut watch).await;
    }
    session.worker.reclaim.has_ended(session.traffic.most());
}

/// The next request; says why `h2` has refused others, if anybody wants to know.
fn poll_accept(connection: &mut Connection, line: &Line, cx: &mut Context<'_>) -> Poll<Accepted> {
    if line.config.refusals != Refusals::Reported {
        return connection.poll_accept(cx);
    }
    let (accepted, reasons) = overheard::during(|| connection.poll_accept(cx));
    for reason in reasons {
        line.tell_refusal(&line.peer, || reason.to_owned(), None);
    }
    accepted
}

struct Session {
    line: Arc<Line>,
    worker: Arc<Worker>,
    traffic: Traffic,
    admission: Admission,
    /// Dropped with the connection, which its streams hear of.
    alive: watch::Sender<()>,
    pulse: Pulse,
    /// Since when its worker is about to drain.
    last_call: Option<Instant>,
    ending: Ending,
}

impl Session {
    /// Until the connection is to be closed. Borrows what is large: an argument that is moved has its room twice.
    async fn serve(
        &mut self,
        connection: &mut Connection,
        watch: &mut Watch,
        mut timer: Pin<&mut Sleep>,
    ) -> Close {
        let mut next_stage = Stage::LastCall;
        let line = Arc::clone(&self.line);
        loop {
            let event = tokio::select! {
                biased;
                accepted = poll_fn(|cx| poll_accept(connection, &line, cx)) => match accepted {
                    Some(Ok((request, respond))) => {
                        self.spawn(request, respond);
                        if self.line.lifetime().count() {
                            self.leave(Leave::Outlived, connection);
                        }
                        continue;
                    }
                    Some(Err(error)) => Event::Failed(error),
                    None => Event::Ended,
                },
                stage = watch.reached(next_stage) => Event::Stage(stage),
                event = poll_fn(|cx| self.poll_event(timer.as_mut(), cx)) => event,
            };
            match event {
                Event::Stage(Stage::Aborting) | Event::Over => return Close::AtOnce,
                Event::Stage(Stage::LastCall) => {
                    next_stage = Stage::Draining;
                    self.last_call = Some(Instant::now());
                }
                Event::Stage(_) => {
                    next_stage = Stage::Aborting;
                    self.leave_gracefully(connection);
                }
                Event::Leave(leave) => self.leave(leave, connection),
                Event::Stalled => {
                    self.line.cut_off(Hardship::SlowReader);
                    self.line.socket.close_will_reset();
                    return Close::AtOnce;
                }
                Event::Silent => {
                    self.worker.config.tally.met(Hardship::NoPong);
                    self.complain("the client has not answered a ping");
                    self.line.socket.close_will_reset();
                    return Close::AtOnce;
                }
                Event::Failed(error) => {
                    self.tell(&error);
                    return Close::BehindLastWord;
                }
                Event::Ended => return Close::BehindLastWord,
            }
        }
    }

    fn spawn(&self, request: Request<RecvStream>, respond: SendResponse<Bytes>) {
        let stream = stream::Stream {
            line: Arc::clone(&self.line),
            worker: Arc::clone(&self.worker),
            running: self.traffic.enter(),
            admission: self.admission.clone(),
            alive: self.alive.subscribe(),
        };
        self.worker.executor.spawn(stream.answer(request, respond));
    }

    fn leave_gracefully(&mut self, connection: &mut Connection) {
        if self.ending == Ending::No {
            self.ending = Ending::Graceful(Instant::now());
            connection.graceful_shutdown();
        }
    }

    fn leave(&mut self, leave: Leave, connection: &mut Connection) {
        let reason = match leave {
            Leave::Asked => return self.leave_gracefully(connection),
            Leave::Outlived => {
                self.line.outlive();
                return self.leave_gracefully(connection);
            }
            Leave::Idle => {
                self.line.was_idle();
                Reason::NO_ERROR
            }
            Leave::Flood => {
                self.worker.config.tally.met(Hardship::Flood);
                self.complain("a flood of frames that are no requests, or of requests that are broken off");
                Reason::ENHANCE_YOUR_CALM
            }
            Leave::Wrong(reason) => {
                self.worker.config.tally.met(Hardship::BadFrames);
                self.complain(match reason {
                    Reason::FRAME_SIZE_ERROR => {
                        "Bad Request: a frame has not the length that its kind has to have"
                    }
                    Reason::FLOW_CONTROL_ERROR => {
                        "Bad Request: the first window of streams is larger than one may be"
                    }
                    _ => "Bad Request: the first frame is not the client's settings",
                });
                reason
            }
            Leave::SlowHead => {
                self.worker.config.tally.refused(Refusal::SlowHead);
                self.complain("Request Timeout: the request's head, or the client's settings, took too long");
                Reason::ENHANCE_YOUR_CALM
            }
            Leave::Unread => {
                self.worker.config.tally.met(Hardship::SlowReader);
                self.complain("the client makes no room for its answers");
                Reason::ENHANCE_YOUR_CALM
            }
        };
        self.ending = Ending::Abrupt(Instant::now());
        connection.abrupt_shutdown(reason);
    }

    /// `h2` has said to the client why.
    fn tell(&self, error: &h2::Error) {
        if error.is_library() && error.is_go_away() {
            self.worker.config.tally.met(Hardship::BadFrames);
            self.complain(&format!("Bad Request: {error}"));
        }
    }

    fn complain(&self, reason: &str) {
        self.line.tell_refusal(&self.line.peer, || reason.to_owned(), None);
    }

    fn poll_event(&mut self, mut timer: Pin<&mut Sleep>, cx: &mut Context<'_>) -> Poll<Event> {
        let look = self.traffic.look(cx);
        if let Some(reason) = look.wrong
            && !matches!(self.ending, Ending::Abrupt(_))
        {
            return Poll::Ready(Event::Leave(Leave::Wrong(reason)));
        }
        match self.ending {
            Ending::Abrupt(_) => {}
            _ if look.flooded => return Poll::Ready(Event::Leave(Leave::Flood)),
            _ if look.unread => return Poll::Ready(Event::Leave(Leave::Unread)),
            Ending::No if look.closes || self.is_told_now(&look) => {
                return Poll::Ready(Event::Leave(Leave::Asked));
            }
            Ending::No | Ending::Graceful(_) => {}
        }
        loop {
            let (deadline, event) = ready!(self.poll_first(&look));
            ready!(poll_deadline(timer.as_mut(), Some(deadline), cx));
            let waits_on = match event {
                Event::Stalled => !self.line.socket.is_stalled(self.line.config.unconfirmed),
                Event::Silent => self.pulse.beat(look.heard, cx) == Beat::Asks,
                _ => false,
            };
            if !waits_on {
                return Poll::Ready(event);
            }
        }
    }

    /// What time there is, and what comes after it. Pending when there is no end to it.
    fn poll_first(&self, look: &Look) -> Poll<(Instant, Event)> {
        let waits = [
            (self.ends_at(look), Event::Over),
            (self.line.socket.looked_at(), Event::Stalled),
            (self.idles_until(look), Event::Leave(Leave::Idle)),
            (self.untold_until(look), Event::Leave(Leave::Asked)),
            (self.lasts_until(), Event::Leave(Leave::Outlived)),
            (self.silent_until(look), Event::Silent),
            (self.heads_until(look), Event::Leave(Leave::SlowHead)),
        ];
        let timed = waits.into_iter().filter_map(|(at, event)| Some((at?, event)));
        timed.min_by_key(|(at, _)| *at).map_or(Poll::Pending, Poll::Ready)
    }

    /// When a client that was told of the end is not waited for any longer. Streams that run are.
    fn ends_at(&self, look: &Look) -> Option<Instant> {
        match self.ending {
            Ending::No => None,
            Ending::Graceful(since) => look.idle_since.map(|idle| idle.max(since) + PATIENCE),
            Ending::Abrupt(since) => Some(since + PATIENCE),
        }
    }

    /// Whether it hears now that its worker is about to drain. With an answer on their way some clients give that up, and one
    /// that has had none yet would come again for it, and hear it again.
    fn is_told_now(&self, look: &Look) -> bool {
        self.last_call.is_some() && look.begun && look.idle_since.is_some()
    }

    /// When one hears it that always has something on its way.
    fn untold_until(&self, look: &Look) -> Option<Instant> {
        self.last_call.filter(|_| self.ending == Ending::No && look.begun).map(|since| since + PATIENCE)
    }

    fn idles_until(&self, look: &Look) -> Option<Instant> {
        let config = &self.line.config;
        let patience = if look.begun { None } else { config.bounds.first_byte };
        let since = look.idle_since.filter(|_| self.ending == Ending::No)?;
        Some(since + patience.unwrap_or_else(|| self.worker.crowd.keep_alive(config.keep_alive)))
    }

    /// When it has had its time: what runs is finished, and the client begins another.
    fn lasts_until(&self) -> Option<Instant> {
        self.line.lifetime().until().filter(|_| self.ending == Ending::No)
    }

    /// While something runs. One that bytes wait for is looked at by itself.
    fn silent_until(&self, look: &Look) -> Option<Instant> {
        let waits = look.idle_since.is_none() && !matches!(self.ending, Ending::Abrupt(_));
        if waits && !self.line.socket.is_held_up() { self.pulse.next(look.heard) } else { None }
    }

    fn heads_until(&self, look: &Look) -> Option<Instant> {
        let since = look.head_since.filter(|_| !matches!(self.ending, Ending::Abrupt(_)))?;
        Some(since + self.line.config.bounds.head_time?)
    }

    /// The last word reaches a client before a reset does. What may be on its way is a window's; who sends more floods
    /// us, and is read no further.
    async fn linger(&self, watch: &mut Watch) {
        tokio::select! {
            biased;
            _ = watch.reached(Stage::Draining) => {}
            () = farewell::linger_for(&self.line.socket, &self.worker.executor, CONNECTION_WINDOW as usize) => {}
        }
    }
}
