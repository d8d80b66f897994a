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
//! | `Idle` | the next request; the keep-alive time, for most of which it sleeps (`dormant`); draining, at once |
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

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use crate::accept::{Worker, driver_turn};
use crate::client::Left;
use crate::config::Http2;
use crate::departure::{Breach, Departure};
use crate::dormant::{self, AWAKE};
use crate::exchange::After;
use crate::executor::Executor;
use crate::http1;
use crate::inspected::Io;
use crate::inspector::Standing;
use crate::line::{Line, Lookout, Phase};
use crate::refusal::Refusal;
use crate::service;
use crate::shutdown::{Drain, Stage};
use crate::tally::Hardship;
use crate::timers::{Sleep, poll_deadline};

/// A client that was let in while the worker drains has its request on its way; nobody else is waited for.
pub(crate) const FRESH_GRACE: Duration = Duration::from_millis(250);

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
                line.record_refusal(ended);
                return Part::Left(Left::Ended);
            }
            Event::Refused(Refusal::Preface) if line.config.http2 != Http2::Off => {
                return Part::Left(Left::Http2(line.inspector.preface()));
            }
            Event::Refused(refusal) => {
                line.refuse(refusal, executor).await;
                return Part::Left(Left::Ended);
            }
            Event::Stage(Stage::Aborting) => return Part::Left(Left::Gone),
            Event::Stage(Stage::LastCall) => {
                drain = Drain::Warned;
                line.last_call.store(true, Ordering::Relaxed);
            }
            Event::Stage(_) => {
                drain = Drain::Asked;
                line.draining.store(true, Ordering::Relaxed);
            }
            Event::Over | Event::Unread => return Part::Left(Left::Ended),
            Event::Asleep(since) => return Part::Asleep(since),
            Event::Outlived => line.last_call.store(true, Ordering::Relaxed),
            Event::Silence => {
                worker.config.tally.met(Hardship::Silence);
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
    fn poll_event(&self, timer: Pin<&mut Sleep>, asked: bool, cx: &mut Context<'_>) -> Poll<Event> {
        let mut phase = self.phase();
        match &mut *phase {
            Phase::Busy(lookout) => {
                let polled = self.poll_client(lookout, cx);
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
            _ => (Some(closed), Event::Over),
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
        self.config.tally.met(Hardship::SlowReader);
        self.socket.close_will_reset();
        Poll::Ready(Event::Over)
    }

    /// Looks after the client while its answer is made, once the request has been read.
    fn poll_client(&self, lookout: &mut Lookout, cx: &mut Context<'_>) -> Poll<Event> {
        if let Lookout::Witness(witness) = lookout
            && witness.is_read()
        {
            match ready!(self.socket.poll_departure(cx)) {
                Departure::Broken => return Poll::Ready(Event::Over),
                Departure::HalfClosed => {
                    witness.half_closed();
                    *lookout = Lookout::Breach(Breach::of(Arc::clone(&self.socket)));
                }
            }
        }
        match lookout {
            Lookout::Breach(breach) => breach.poll(cx).map(|()| Event::Over),
            Lookout::Nobody | Lookout::Witness(_) => Poll::Pending,
        }
    }

    /// Whether there is more of what a client has sent that sends no more.
    fn has_requests_behind(&self) -> bool {
        self.has_more() || self.socket.has_unread()
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
