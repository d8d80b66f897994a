//! One connection, from its first byte until it is done.
//!
//! hyper parses and writes; this file decides when to stop waiting for a client, when to look whether it is still
//! there, and how a connection ends with its worker. Judging a request is `service`'s, its framing `guard`'s.
//!
//! | phase | is left by |
//! |---|---|
//! | `Fresh` | a first byte; its time; draining, after a moment for a request that is on its way |
//! | `Head` | the rest of a head; its time: 408; a head that is refused |
//! | `Busy` | the answer's end; a broken socket; a client that reads too slowly |
//! | `Encore` | the application's last word on an answer that is already written in full |
//! | `Idle` | the next request; the keep-alive time; draining, at once |
//! | `Rest` | the end of a body that nobody reads, which is thrown away; draining, at once |
//! | `Closing` | the connection's end |
//!
//! Invariant: a connection has one timer, which is for its phase, or for its slow reader.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use http::request;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use crate::accept::{Worker, driver_turn};
use crate::app::App;
use crate::client::{Left, Successor};
use crate::client_half::{Encore, Witness};
use crate::config::{Config, Http2};
use crate::departure::Departure;
use crate::exchange::After;
use crate::executor::Executor;
use crate::farewell;
use crate::http1;
use crate::inspector::{Inspector, Standing};
use crate::peer::Peer;
use crate::refusal::Refusal;
use crate::service;
use crate::shutdown::{Drain, Stage};
use crate::socket::{Io, Socket};
use crate::tally::Hardship;
use crate::timers::{Sleep, poll_deadline};
use crate::turn::Turn;

/// A client that was let in while the worker drains has its request on its way; nobody else is waited for.
pub(crate) const FRESH_GRACE: Duration = Duration::from_millis(250);

/// A connection as its requests see it.
pub(crate) struct Line {
    pub(crate) socket: Arc<Socket>,
    pub(crate) peer: Arc<Peer>,
    inspector: Arc<Inspector>,
    // Whether the client gets time to read what it was told last.
    lingers: AtomicBool,
    draining: AtomicBool,
    // Whether the worker is about to: an answer is then the connection's last.
    last_call: AtomicBool,
    pub(crate) app: Arc<dyn App>,
    pub(crate) config: Arc<Config>,
    crowd: crate::crowd::Crowd,
    /// Whether its client may be a proxy that names others.
    trusted: bool,
    // Only the connection's own task comes here, and below, but hyper wants what it polls to be shareable.
    phase: Mutex<Phase>,
    /// What takes over when hyper is through.
    pub(crate) successor: Successor,
}

#[derive(Debug)]
pub(crate) enum Phase {
    Fresh(Instant),
    Head(Instant),
    Busy(Option<Witness>),
    Encore(Encore),
    Idle(Instant),
    Rest,
    Closing,
}

/// What ended the wait for all that may come.
enum Event {
    /// hyper is done with the connection.
    Done(hyper::Result<()>),
    /// The worker is at this stage.
    Stage(Stage),
    /// Since the worker drains, this request is to be the last.
    Last,
    /// The socket is broken, or its time is up.
    Over,
    /// Nothing came at all.
    Silence,
    /// Nothing comes of what the client has sent, or began to send.
    Refused(Refusal),
    /// The worker drains, and only the rest of a body that nobody reads is left.
    Unread,
    /// An answer asked for the connection to be closed.
    Closing,
}

/// Answers requests, until there are no more.
pub(crate) async fn serve(line: &Arc<Line>, worker: &Worker) -> Left {
    let mut watch = worker.watch.clone();
    let executor = &worker.executor;
    let protocol = http1::protocol(&worker.config);
    let service = service_fn(|request| service::answer(Arc::clone(line), worker.clone(), request));
    let io = Io { socket: Arc::clone(&line.socket), inspector: Some(Arc::clone(&line.inspector)) };
    let mut http = protocol.serve_connection(TokioIo::new(io), service);
    let mut timer = pin!(executor.sleep(line.config.bounds.first_byte.unwrap_or(line.config.keep_alive)));
    let mut ready_to_drain = pin!(line.ready_to_drain(executor));
    let mut drain = Drain::Unasked;
    let mut asked = false;
    loop {
        let event = tokio::select! {
            biased;
            ended = &mut http => Event::Done(ended),
            stage = watch.reached(drain.next_stage()) => Event::Stage(stage),
            () = ready_to_drain.as_mut(), if drain == Drain::Asked => Event::Last,
            event = poll_fn(|cx| line.poll_event(timer.as_mut(), asked, cx)) => event,
        };
        match event {
            Event::Done(ended) => {
                if let Some(opened) = line.successor.take() {
                    return Left::HandedOver(opened, http.into_parts().read_buf);
                }
                line.record_refusal(ended);
                return Left::Ended;
            }
            Event::Refused(Refusal::Preface) if line.config.http2 == Http2::Spoken => {
                return Left::Http2(line.inspector.preface());
            }
            Event::Refused(refusal) => {
                line.refuse(refusal, executor).await;
                return Left::Ended;
            }
            Event::Stage(Stage::Aborting) => return Left::Gone,
            Event::Stage(Stage::LastCall) => {
                drain = Drain::Warned;
                line.last_call.store(true, Ordering::Relaxed);
            }
            Event::Stage(_) => {
                drain = Drain::Asked;
                line.draining.store(true, Ordering::Relaxed);
            }
            Event::Over | Event::Unread => return Left::Ended,
            Event::Silence => {
                worker.config.tally.met(Hardship::Silence);
                return Left::Ended;
            }
            // Half a head is no request: hyper would wait for the rest of it.
            Event::Last if line.is_fresh() => return Left::Ended,
            Event::Last => {
                drain = Drain::Begun;
                Pin::new(&mut http).graceful_shutdown();
            }
            Event::Closing => {
                asked = true;
                Pin::new(&mut http).graceful_shutdown();
            }
        }
    }
}

impl Line {
    pub(crate) fn new(mut socket: Socket, peer: Arc<Peer>, worker: &Worker) -> Self {
        socket.set_pace(worker.config.bounds.download);
        Self {
            socket: Arc::new(socket),
            trusted: worker.config.proxies.as_ref().is_some_and(|proxies| proxies.trust(&peer.client)),
            peer,
            inspector: Arc::new(Inspector::new(worker.config.bounds.head)),
            lingers: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            last_call: AtomicBool::new(worker.watch.is_past(Stage::LastCall)),
            app: Arc::clone(&worker.app),
            config: Arc::clone(&worker.config),
            crowd: worker.crowd.clone(),
            phase: Mutex::new(Phase::Fresh(Instant::now())),
            successor: Successor::default(),
        }
    }

    /// Whether something has come behind the request that is being answered.
    pub(crate) fn has_more(&self) -> bool {
        self.inspector.has_more()
    }

    /// Whether the client gets time to read what it was told, while what it sends is thrown away.
    pub(crate) fn leaves_something_unread(&self) -> bool {
        let knows = self.lingers.load(Ordering::Relaxed) || self.inspector.standing() == Standing::InBody;
        !self.socket.has_final_word() && (knows || farewell::is_due(&self.socket, &self.config))
    }

    /// What the client was told last closes the connection, and may reach it before what it sends.
    pub(crate) fn will_linger(&self) {
        self.lingers.store(true, Ordering::Relaxed);
    }

    /// Whether an answer that begins now is to be the connection's last.
    pub(crate) fn is_last_call(&self) -> bool {
        self.last_call.load(Ordering::Relaxed)
    }

    /// The connection's time belongs to a request from here on.
    pub(crate) fn begin(self: &Arc<Self>, head: &request::Parts) -> Turn {
        *self.phase() = Phase::Busy(None);
        Turn::new(Arc::clone(self), self.peer_of(head), head)
    }

    /// A request of HTTP/2, which shares the connection with others.
    pub(crate) fn begin_stream(self: &Arc<Self>, head: &request::Parts) -> Turn {
        Turn::beside_others(Arc::clone(self), self.peer_of(head), head)
    }

    /// Who sent this request: the client, or whom a trusted proxy names.
    fn peer_of(&self, head: &request::Parts) -> Arc<Peer> {
        let proxies = self.config.proxies.as_ref().filter(|_| self.trusted);
        let seen = proxies.and_then(|proxies| proxies.see_through(&self.peer, &head.headers));
        seen.map_or_else(|| Arc::clone(&self.peer), Arc::new)
    }

    /// Waits until the application is through with the answer before: no two requests of a connection run at once.
    pub(crate) async fn previous_is_through(&self) -> After {
        poll_fn(|cx| match &*self.phase() {
            Phase::Encore(encore) => encore.poll_through(cx),
            Phase::Closing => Poll::Ready(After::Close),
            Phase::Fresh(_) | Phase::Head(_) | Phase::Busy(_) | Phase::Idle(_) | Phase::Rest => {
                Poll::Ready(After::KeepAlive)
            }
        })
        .await
    }

    pub(crate) fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_fresh(&self) -> bool {
        matches!(*self.phase(), Phase::Fresh(_) | Phase::Head(_))
    }

    fn poll_event(&self, timer: Pin<&mut Sleep>, asked: bool, cx: &mut Context<'_>) -> Poll<Event> {
        let mut phase = self.phase();
        match &mut *phase {
            Phase::Busy(witness) => {
                let polled = self.poll_client(witness, cx);
                drop(phase);
                if polled.is_ready() { polled } else { self.poll_stall(timer, cx) }
            }
            Phase::Encore(encore) => match encore.poll_through(cx) {
                // hyper has read the next request and looks no further, so this has to.
                Poll::Pending => match self.socket.poll_departure(cx) {
                    // It has all there is, and sends no more.
                    Poll::Ready(Departure::Broken | Departure::HalfClosed) => Poll::Ready(Event::Over),
                    // Of what was declared last, hyper may still have some.
                    Poll::Pending => {
                        drop(phase);
                        self.poll_stall(timer, cx)
                    }
                },
                Poll::Ready(After::Close) => {
                    *phase = Phase::Closing;
                    Poll::Ready(Event::Closing)
                }
                Poll::Ready(After::KeepAlive) => {
                    *phase = Phase::Idle(Instant::now());
                    // The timer is looked at in the next round, which this asks for.
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            },
            Phase::Closing if !asked => Poll::Ready(Event::Closing),
            // hyper has its last bytes, and maybe a client that does not read them.
            Phase::Closing => {
                drop(phase);
                self.poll_stall(timer, cx)
            }
            Phase::Fresh(since) | Phase::Head(since) | Phase::Idle(since) if self.socket.is_held_up() => {
                // hyper has given the answer's end away, and still has bytes of it: idleness begins after them.
                *since = Instant::now();
                drop(phase);
                self.poll_stall(timer, cx)
            }
            Phase::Fresh(_) | Phase::Head(_) | Phase::Idle(_) | Phase::Rest => {
                self.poll_request(phase, timer, cx)
            }
        }
    }

    /// Waits for a request, or for the time that it has.
    fn poll_request(
        &self,
        mut phase: MutexGuard<'_, Phase>,
        timer: Pin<&mut Sleep>,
        cx: &mut Context<'_>,
    ) -> Poll<Event> {
        match (self.inspector.standing(), &*phase) {
            (Standing::Refused(refusal), _) => return Poll::Ready(Event::Refused(refusal)),
            (Standing::InBody, _) if self.draining.load(Ordering::Relaxed) => {
                return Poll::Ready(Event::Unread);
            }
            (Standing::InHead, Phase::Fresh(_) | Phase::Idle(_) | Phase::Rest) => {
                *phase = Phase::Head(Instant::now())
            }
            (Standing::InBody, Phase::Idle(_)) => *phase = Phase::Rest,
            (Standing::Between, Phase::Rest) => *phase = Phase::Idle(Instant::now()),
            _ => {}
        }
        let config = &self.config;
        let (deadline, late) = match *phase {
            Phase::Head(since) => {
                (config.bounds.head_time.map(|time| since + time), Event::Refused(Refusal::SlowHead))
            }
            Phase::Fresh(since) => (config.bounds.first_byte.map(|time| since + time), Event::Silence),
            Phase::Rest | Phase::Busy(_) | Phase::Encore(_) | Phase::Closing => (None, Event::Over),
            Phase::Idle(since) => (Some(since + self.crowd.keep_alive(config.keep_alive)), Event::Over),
        };
        drop(phase);
        ready!(poll_deadline(timer, deadline, cx));
        Poll::Ready(late)
    }

    /// A client that reads too slowly loses its connection, and must not take what it got for the whole.
    fn poll_stall(&self, mut timer: Pin<&mut Sleep>, cx: &mut Context<'_>) -> Poll<Event> {
        loop {
            ready!(poll_deadline(timer.as_mut(), self.socket.looked_at(), cx));
            if self.socket.is_stalled(self.config.unconfirmed) {
                break;
            }
        }
        self.config.tally.met(Hardship::SlowReader);
        self.socket.close_will_reset();
        Poll::Ready(Event::Over)
    }

    /// Looks after the client while its answer is made, once the request has been read.
    fn poll_client(&self, witness: &mut Option<Witness>, cx: &mut Context<'_>) -> Poll<Event> {
        let Some(seen) = witness.take_if(|witness| witness.is_read()) else { return Poll::Pending };
        match self.socket.poll_departure(cx) {
            Poll::Pending => {
                *witness = Some(seen);
                Poll::Pending
            }
            Poll::Ready(Departure::Broken) => Poll::Ready(Event::Over),
            Poll::Ready(Departure::HalfClosed) => {
                seen.half_closed();
                Poll::Pending
            }
        }
    }

    /// Idle connections are ready once their last bytes had a chance to be read, fresh ones after a grace.
    async fn ready_to_drain(&self, executor: &Executor) {
        if self.is_fresh() {
            let mut grace = pin!(executor.sleep(FRESH_GRACE));
            poll_fn(|cx| if self.is_fresh() { grace.as_mut().poll(cx) } else { Poll::Ready(()) }).await;
        } else {
            driver_turn(executor).await;
        }
    }
}
