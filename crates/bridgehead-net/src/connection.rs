//! One connection, from its first byte until it is done.
//!
//! hyper parses and writes; this file decides when to stop waiting for a client, when to look whether it is still
//! there, and how a connection ends with its worker. Judging a request is `service`'s, its framing `bridgehead-heads`'s.
//!
//! | phase | is left by |
//! |---|---|
//! | `Fresh` | a first byte, until which it sleeps (`dormant`); its time; draining, after a moment for a request that is on its way |
//! | `Head` | the rest of a head; its time: 408; a head that is refused |
//! | `Busy` | the answer's end; a broken socket; a client that reads too slowly |
//! | `Encore` | the application's last word on an answer that is already written in full |
//! | `Idle` | the next request; the keep-alive time, for most of which it sleeps (`dormant`); draining, after a moment |
//! | `Rest` | the end of a body that nobody reads, which is thrown away; draining, at once |
//! | `Closing` | the connection's end |
//!
//! Invariant: a connection has one timer, which is for its phase, or for its slow reader.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bridgehead_executor::{Executor, Sleep, poll_deadline};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use crate::accept::{Worker, driver_turn};
use crate::client::Left;
use crate::config::Http2;
use crate::departure::{Breach, Departure};
use crate::dormant::{self, AWAKE};
use crate::exchange::After;
use crate::http1;
use crate::inspected::Io;
use crate::inspector::{Spoken, Standing};
use crate::line::{Line, Lookout, Phase};
use crate::refusal::Refusal;
use crate::service;
use crate::shutdown::{Drain, Stage};
use crate::socket::Sight;
use crate::tally::Hardship;

/// Whoever leaves in the middle of a body that nobody reads is missed after this at the latest.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// A client that was let in while the worker drains has its request on its way; nobody else is waited for.
pub(crate) const FRESH_GRACE: Duration = Duration::from_millis(250);

/// A client that has asked a moment ago, and not for long enough to sleep, may be asking again.
const IDLE_GRACE: Duration = Duration::from_millis(100);

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
    /// Nothing has come for as long as may be.
    Idle,
    /// Nothing has come for a while.
    Asleep(Instant),
    /// The connection has had its time, between two requests.
    Outlived,
}

/// What hyper's part of a connection comes to.
enum Part {
    Left(Left),
    Asleep(Instant),
}

/// Answers requests, until there are no more.
pub(crate) async fn serve(line: &Arc<Line>, worker: &Arc<Worker>) -> Left {
    if let Some(left) = dormant::before_the_first_byte(line, worker).await {
        return left;
    }
    loop {
        // Apart, so that it takes no room while the connection sleeps.
        match Box::pin(serve_awake(line, worker)).await {
            Part::Left(left) => return left,
            Part::Asleep(since) => {
                if let Some(left) = dormant::sleep(line, since, worker).await {
                    return left;
                }
                line.look_at_lifetime(Instant::now());
            }
        }
    }
}

async fn serve_awake(line: &Arc<Line>, worker: &Arc<Worker>) -> Part {
    let woken = line.idle_since();
    let mut watch = worker.watch.clone();
    let executor = &worker.executor;
    let protocol = http1::protocol(&worker.config);
    let service = service_fn(|request| service::answer(Arc::clone(line), Arc::clone(worker), request));
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
                    return Part::Left(Left::HandedOver(opened, http.into_parts().read_buf));
                }
                // hyper leaves at once who asked for an upgrade and is read no further, with a part of its answer yet to be
                // written. Polled again it writes that, and says once more that it is through.
                if ended.is_ok() && line.socket.is_held_up() {
                    continue;
                }
                line.record_refusal(ended);
                return Part::Left(Left::Ended);
            }
            Event::Refused(Refusal::Preface) if line.speaks_http2() => {
                return Part::Left(Left::Http2(line.inspector.preface()));
            }
            // A client that has agreed on HTTP/2, and not begun it in time, understands no answer.
            Event::Refused(refusal) if line.inspector.spoken() == Spoken::Http2 => {
                worker.config.tally.refused(refusal);
                line.tell_refusal(&line.peer, || refusal.text().to_owned(), None);
                return Part::Left(Left::Ended);
            }
            Event::Refused(refusal) => {
                line.refuse(refusal, executor).await;
                return Part::Left(Left::Ended);
            }
            Event::Stage(Stage::Aborting) => return Part::Left(Left::Gone),
            Event::Stage(Stage::LastCall) => {
                drain = Drain::Warned;
                line.ends_with_next();
            }
            Event::Stage(_) => {
                drain = Drain::Asked;
                line.ends_with_next();
                line.draining.store(true, Ordering::Relaxed);
            }
            Event::Over | Event::Unread => return Part::Left(Left::Ended),
            Event::Asleep(since) => return Part::Asleep(since),
            Event::Outlived => line.outlive(),
            Event::Idle => {
                line.was_idle();
                return Part::Left(Left::Ended);
            }
            Event::Silence => {
                line.cut_off(Hardship::Silence);
                return Part::Left(Left::Ended);
            }
            // Half a head is no request: hyper would wait for the rest of it. So it would for a first request, if it got
            // the connection anew and there were none.
            Event::Last if line.is_fresh() || woken.is_some() && woken == line.idle_since() => {
                return Part::Left(Left::Ended);
            }
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
    fn poll_event(&self, mut timer: Pin<&mut Sleep>, asked: bool, cx: &mut Context<'_>) -> Poll<Event> {
        let mut phase = self.phase();
        match &mut *phase {
            Phase::Busy(lookout) => {
                let polled = self.poll_client(lookout, timer.as_mut(), cx);
                drop(phase);
                if polled.is_ready() { polled } else { self.poll_stall(timer, cx) }
            }
            Phase::Encore(encore) => match encore.poll_through(cx) {
                // hyper has read the next request and looks no further, so this has to.
                Poll::Pending => match self.socket.poll_departure(cx) {
                    Poll::Ready(Departure::HalfClosed)
                        if encore.is_followed() || self.has_requests_behind() =>
                    {
                        encore.half_closed();
                        drop(phase);
                        self.poll_stall(timer, cx)
                    }
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
                    *phase = self.rest();
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
            (Standing::Between, Phase::Rest) => *phase = self.rest(),
            _ => {}
        }
        let config = &self.config;
        let (deadline, late) = match *phase {
            Phase::Head(since) => {
                (config.bounds.head_time.map(|time| since + time), Event::Refused(Refusal::SlowHead))
            }
            Phase::Fresh(since) => (config.bounds.first_byte.map(|time| since + time), Event::Silence),
            Phase::Rest | Phase::Busy(_) | Phase::Encore(_) | Phase::Closing => (None, Event::Over),
            Phase::Idle(since) => self.idles(since),
        };
        drop(phase);
        ready!(poll_deadline(timer, deadline, cx));
        Poll::Ready(late)
    }

    /// How long nothing may come, and what is done then.
    fn idles(&self, since: Instant) -> (Option<Instant>, Event) {
        let (closed, asleep) = (self.idles_until(since), since + AWAKE);
        match self.lifetime().until() {
            Some(until) if until < asleep.min(closed) && !self.is_last_call() => {
                (Some(until), Event::Outlived)
            }
            _ if asleep < closed => (Some(asleep), Event::Asleep(since)),
            _ => (Some(closed), Event::Idle),
        }
    }

    /// A client that reads too slowly loses its connection, and must not take what it got for the whole.
    fn poll_stall(&self, mut timer: Pin<&mut Sleep>, cx: &mut Context<'_>) -> Poll<Event> {
        loop {
            ready!(poll_deadline(timer.as_mut(), self.socket.looked_at(), cx));
            if self.socket.is_stalled(self.config.unconfirmed) {
                break;
            }
        }
        self.cut_off(Hardship::SlowReader);
        self.socket.close_will_reset();
        Poll::Ready(Event::Over)
    }

    /// Looks after the client while its answer is made, whether its request has been read or not.
    fn poll_client(
        &self,
        lookout: &mut Lookout,
        timer: Pin<&mut Sleep>,
        cx: &mut Context<'_>,
    ) -> Poll<Event> {
        match lookout {
            Lookout::Witness(witness) if !witness.is_read() => {
                *lookout = Lookout::Unread(witness.clone(), Instant::now() + BETWEEN_LOOKS);
            }
            Lookout::Unread(witness, _) if witness.is_read() => *lookout = Lookout::Witness(witness.clone()),
            _ => {}
        }
        let departure = match lookout {
            Lookout::Witness(_) => self.socket.poll_departure(cx),
            Lookout::Unread(_, next) => self.poll_departure_now_and_then(next, timer, cx),
            _ => Poll::Pending,
        };
        match (departure, &mut *lookout) {
            (Poll::Ready(Departure::Broken), _) => return Poll::Ready(Event::Over),
            (Poll::Ready(Departure::HalfClosed), Lookout::Witness(witness) | Lookout::Unread(witness, _)) => {
                *lookout = Lookout::Tail(witness.clone(), Breach::of(Arc::clone(&self.socket)));
            }
            _ => {}
        }
        if let Lookout::Tail(witness, _) = lookout
            && (witness.is_read() || self.is_cut_off(cx))
        {
            witness.half_closed();
            *lookout = Lookout::Breach(Breach::of(Arc::clone(&self.socket)));
        }
        match lookout {
            Lookout::Tail(_, breach) | Lookout::Breach(breach) => breach.poll(cx).map(|()| Event::Over),
            Lookout::Nobody | Lookout::Witness(_) | Lookout::Unread(..) => Poll::Pending,
        }
    }

    /// Looks past a body that nobody reads. Not at each piece that comes of one that is read: that would cost more than
    /// the piece.
    fn poll_departure_now_and_then(
        &self,
        next: &mut Instant,
        mut timer: Pin<&mut Sleep>,
        cx: &mut Context<'_>,
    ) -> Poll<Departure> {
        loop {
            ready!(poll_deadline(timer.as_mut(), Some(*next), cx));
            *next = Instant::now() + BETWEEN_LOOKS;
            if let Poll::Ready(departure) = self.socket.poll_departure(cx) {
                return Poll::Ready(departure);
            }
        }
    }

    /// Whether a client that sends no more has left a body without its end, of which hyper has all there is.
    fn is_cut_off(&self, cx: &mut Context<'_>) -> bool {
        self.inspector.standing() == Standing::InBody
            && matches!(self.socket.poll_sight(cx), Poll::Ready(Sight::Closed))
    }

    /// Whether there is more of what a client has sent that sends no more.
    fn has_requests_behind(&self) -> bool {
        self.has_more() || self.socket.has_unread()
    }

    /// Who may be asking has a moment, and what has come by its end is read: closed then, a connection would take it
    /// back unanswered.
    async fn ready_to_drain(&self, executor: &Executor) {
        let time = if self.is_fresh() { FRESH_GRACE } else { IDLE_GRACE };
        let mut grace = pin!(executor.sleep(time));
        poll_fn(|cx| if self.awaits_request() { grace.as_mut().poll(cx) } else { Poll::Ready(()) }).await;
        while self.idle_since().is_some() && self.socket.has_unread() {
            driver_turn(executor).await;
        }
    }

    /// With this client: where there was a handshake, only if it was agreed on there.
    pub(crate) fn speaks_http2(&self) -> bool {
        self.config.http2 != Http2::Off && self.inspector.spoken() != Spoken::Http1
    }

    fn awaits_request(&self) -> bool {
        self.is_fresh() || self.idle_since().is_some()
    }
}
