//! One connection, from its first byte until it is done.
//!
//! hyper parses and writes; this file decides when to stop waiting for a client, when to look whether it is still
//! there, and how a connection ends with its worker. Judging a request is `service`'s.
//!
//! | phase | is left by |
//! |---|---|
//! | `Fresh` | the first request; the keep-alive time; draining, after a moment for a request that is on its way |
//! | `Busy` | the answer's end; a broken socket |
//! | `Encore` | the application's last word on an answer that is already written in full |
//! | `Idle` | the next request; the keep-alive time; draining, at once |
//! | `Closing` | the connection's end |
//!
//! Invariant: a connection has one timer, and a busy one is never timed out here.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::request;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use crate::accept::{Worker, driver_turn};
use crate::access::Record;
use crate::app::{App, Report};
use crate::client_half::{Encore, Witness};
use crate::config::{Config, Refusals};
use crate::exchange::After;
use crate::executor::Executor;
use crate::peer::Peer;
use crate::refusal;
use crate::request_id::Trace;
use crate::service;
use crate::shutdown::Stage;
use crate::socket::{Io, Sight, Socket};
use crate::timers::Sleep;
use crate::told::Told;

/// What hyper reads ahead and keeps for writing; a head may be up to about twice as long, as a read can add as much
/// again. Its own 400 KiB would let ten thousand slow clients hold 4 GB.
const BUFFER: usize = 64 * 1024;

/// A client that was let in while the worker drains has its request on its way; nobody else is waited for.
const FRESH_GRACE: Duration = Duration::from_millis(250);

/// A connection as its requests see it.
pub(crate) struct Line {
    pub(crate) socket: Arc<Socket>,
    peer: Arc<Peer>,
    app: Arc<dyn App>,
    config: Arc<Config>,
    /// Whether its client may be a proxy that names others.
    trusted: bool,
    // Only the connection's own task comes here, but hyper wants what it polls to be shareable.
    phase: Mutex<Phase>,
}

#[derive(Debug)]
enum Phase {
    Fresh(Instant),
    Busy(Option<Witness>),
    Encore(Encore),
    Idle(Instant),
    Closing,
}

/// One request's time on the connection; dropping it makes the connection idle and writes the access line.
#[derive(Debug)]
pub(crate) struct Turn {
    line: Arc<Line>,
    peer: Arc<Peer>,
    record: Option<Box<Record>>,
    trace: Option<Arc<Trace>>,
    next: Next,
}

/// What a turn leaves behind.
#[derive(Debug)]
enum Next {
    Idle,
    Encore(Encore),
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
    /// An answer asked for the connection to be closed.
    Closing,
}

/// Serves one client.
pub(crate) async fn run(socket: Socket, peer: Arc<Peer>, worker: Worker) {
    let line = Arc::new(Line::new(socket, peer, &worker));
    let _told = Told::of(&worker, &line.peer);
    let mut watch = worker.watch.clone();
    let executor = worker.executor.clone();
    let protocol = protocol(&worker.config);
    let service = service_fn(|request| service::answer(Arc::clone(&line), worker.clone(), request));
    let mut http = pin!(protocol.serve_connection(TokioIo::new(Io(Arc::clone(&line.socket))), service));
    let mut timer = pin!(executor.sleep(line.config.first_request));
    let mut ready_to_drain = pin!(line.ready_to_drain(&executor));
    let mut drain = Drain::Unasked;
    let mut asked = false;
    loop {
        let event = tokio::select! {
            biased;
            ended = http.as_mut() => Event::Done(ended),
            stage = watch.reached(drain.next_stage()) => Event::Stage(stage),
            () = ready_to_drain.as_mut(), if drain == Drain::Asked => Event::Last,
            event = poll_fn(|cx| line.poll_event(timer.as_mut(), asked, cx)) => event,
        };
        match event {
            Event::Done(ended) => return line.record_refusal(ended),
            Event::Over | Event::Stage(Stage::Aborting) => return,
            Event::Stage(_) => drain = Drain::Asked,
            // Half a head is no request: hyper would wait for the rest of it.
            Event::Last if line.is_fresh() => return,
            Event::Last => {
                drain = Drain::Begun;
                http.as_mut().graceful_shutdown();
            }
            Event::Closing => {
                asked = true;
                http.as_mut().graceful_shutdown();
            }
        }
    }
}

/// How far a connection has heard of its worker's draining.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Drain {
    Unasked,
    /// It has a moment for what is on its way.
    Asked,
    /// hyper knows.
    Begun,
}

impl Drain {
    /// The stage that is waited for.
    fn next_stage(self) -> Stage {
        if self == Self::Unasked { Stage::Draining } else { Stage::Aborting }
    }
}

/// hyper's side of a connection, as every connection wants it.
fn protocol(config: &Config) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .half_close(true)
        .max_buf_size(BUFFER)
        .auto_date_header(config.date_header)
        .header_read_timeout(None);
    builder
}

impl std::fmt::Debug for Line {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Line").field("peer", &self.peer).field("phase", &self.phase).finish_non_exhaustive()
    }
}

impl Line {
    fn new(socket: Socket, peer: Arc<Peer>, worker: &Worker) -> Self {
        Self {
            socket: Arc::new(socket),
            trusted: worker.config.proxies.as_ref().is_some_and(|proxies| proxies.trust(&peer.client)),
            peer,
            app: Arc::clone(&worker.app),
            config: Arc::clone(&worker.config),
            phase: Mutex::new(Phase::Fresh(Instant::now())),
        }
    }

    /// hyper answers a head that it cannot read, or closes, and no request comes of it: it is told of here.
    fn record_refusal(&self, ended: hyper::Result<()>) {
        let Err(error) = ended else { return };
        if error.is_parse_version_h2() {
            return self.tell_refusal(&self.peer, || refusal::OTHER_HTTP.to_owned(), None);
        }
        let Some(status) = refusal::status_of(&error) else { return };
        self.tell_refusal(
            &self.peer,
            || format!("{}: {error}", status.canonical_reason().unwrap_or_default()),
            None,
        );
        if let Some(log) = &self.config.access_log {
            log.write(&Record::unread(status), &self.peer, None, &*self.app);
        }
    }

    /// The connection's time belongs to a request from here on.
    pub(crate) fn begin(self: &Arc<Self>, head: &request::Parts) -> Turn {
        *self.phase() = Phase::Busy(None);
        let record = self.config.access_log.as_ref().map(|log| Record::new(log, head));
        let trace = self.config.request_ids.as_ref().map(|ids| Arc::new(ids.trace(&head.headers)));
        Turn { line: Arc::clone(self), peer: self.peer_of(head), record, trace, next: Next::Idle }
    }

    /// Who sent this request: the client, or whom a trusted proxy names.
    fn peer_of(&self, head: &request::Parts) -> Arc<Peer> {
        let proxies = self.config.proxies.as_ref().filter(|_| self.trusted);
        let seen = proxies.and_then(|proxies| proxies.see_through(&self.peer, &head.headers));
        seen.map_or_else(|| Arc::clone(&self.peer), Arc::new)
    }

    /// Says to who wants to know why a request did not reach the application.
    fn tell_refusal(&self, peer: &Peer, reason: impl FnOnce() -> String, trace: Option<&Arc<Trace>>) {
        if self.config.refusals == Refusals::Reported {
            self.app.report(Report::Refused {
                client: peer.client.escaped(),
                reason: reason(),
                trace: trace.cloned(),
            });
        }
    }

    /// Waits until the application is through with the answer before: no two requests of a connection run at once.
    pub(crate) async fn previous_is_through(&self) -> After {
        poll_fn(|cx| match &*self.phase() {
            Phase::Encore(encore) => encore.poll_through(cx),
            Phase::Closing => Poll::Ready(After::Close),
            Phase::Fresh(_) | Phase::Busy(_) | Phase::Idle(_) => Poll::Ready(After::KeepAlive),
        })
        .await
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_fresh(&self) -> bool {
        matches!(*self.phase(), Phase::Fresh(_))
    }

    fn poll_event(&self, timer: Pin<&mut Sleep>, asked: bool, cx: &mut Context<'_>) -> Poll<Event> {
        let mut phase = self.phase();
        let fresh = matches!(*phase, Phase::Fresh(_));
        match &mut *phase {
            Phase::Busy(witness) => self.poll_client(witness, cx),
            Phase::Encore(encore) => match encore.poll_through(cx) {
                // hyper has read the next request and looks no further, so this has to.
                Poll::Pending => match self.socket.poll_sight(cx) {
                    // It has all there is, and sends no more.
                    Poll::Ready(Sight::Broken | Sight::Closed) => Poll::Ready(Event::Over),
                    Poll::Ready(Sight::Bytes) | Poll::Pending => Poll::Pending,
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
            Phase::Closing => Poll::Pending,
            Phase::Fresh(since) | Phase::Idle(since) => {
                let patience = if fresh { self.config.first_request } else { self.config.keep_alive };
                if self.socket.is_held_up() {
                    // hyper has given the answer's end away, and still has bytes of it: idleness begins after them.
                    *since = Instant::now();
                }
                let deadline = *since + patience;
                drop(phase);
                poll_deadline(timer, deadline, cx)
            }
        }
    }

    /// Looks after the client while its answer is made, once the request has been read.
    fn poll_client(&self, witness: &mut Option<Witness>, cx: &mut Context<'_>) -> Poll<Event> {
        let Some(seen) = witness.take_if(|witness| witness.is_read()) else { return Poll::Pending };
        match self.socket.poll_sight(cx) {
            Poll::Pending => {
                *witness = Some(seen);
                Poll::Pending
            }
            Poll::Ready(Sight::Broken) => Poll::Ready(Event::Over),
            Poll::Ready(Sight::Closed) => {
                seen.half_closed();
                Poll::Pending
            }
            // The next request waits behind this one; an end behind it is seen when its turn comes.
            Poll::Ready(Sight::Bytes) => Poll::Pending,
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

/// One timer for the whole connection, moved on only when it fires: a request costs it nothing. It is moved back once,
/// since a first request may have longer than the next ones.
fn poll_deadline(mut timer: Pin<&mut Sleep>, deadline: Instant, cx: &mut Context<'_>) -> Poll<Event> {
    if timer.deadline() > deadline {
        timer.as_mut().reset(deadline);
    }
    loop {
        if timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        if Instant::now() >= deadline {
            return Poll::Ready(Event::Over);
        }
        timer.as_mut().reset(deadline);
    }
}

impl Turn {
    /// Whose request this is: it hears of the client's leaving.
    pub(crate) fn watched_by(&self, witness: Witness) {
        *self.line.phase() = Phase::Busy(Some(witness));
    }

    /// Who sent it.
    pub(crate) fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// What it is called, if ids are given.
    pub(crate) fn trace(&self) -> Option<&Arc<Trace>> {
        self.trace.as_ref()
    }

    /// Whose body is counted for its access line.
    pub(crate) fn counts(&mut self, upload: &Witness) {
        if let Some(record) = &mut self.record {
            record.counts(upload);
        }
    }

    /// The head of its answer is complete.
    pub(crate) fn answered(&mut self, status: http::StatusCode, headers: &http::HeaderMap) {
        if let (Some(record), Some(log)) = (&mut self.record, &self.line.config.access_log) {
            record.answered(log, status, headers);
        }
    }

    /// It does not reach the application, for this reason.
    pub(crate) fn refused(&self, reason: &str) {
        self.line.tell_refusal(&self.peer, || reason.to_owned(), self.trace.as_ref());
    }

    pub(crate) fn wrote(&mut self, bytes: usize) {
        if let Some(record) = &mut self.record {
            record.wrote(bytes);
        }
    }

    pub(crate) fn close_after(&mut self) {
        self.next = Next::Closing;
    }

    /// Every byte is written; the application has the last word on what comes then.
    pub(crate) fn wait_for(&mut self, encore: Encore) {
        self.next = Next::Encore(encore);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.line.phase() = match std::mem::replace(&mut self.next, Next::Idle) {
            Next::Idle => Phase::Idle(Instant::now()),
            Next::Encore(encore) => Phase::Encore(encore),
            Next::Closing => Phase::Closing,
        };
        if let (Some(record), Some(log)) = (self.record.take(), &self.line.config.access_log) {
            log.write(&record, &self.peer, self.trace.as_ref(), &*self.line.app);
        }
    }
}
