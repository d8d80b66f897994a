//! What one connection's requests share: its socket, its client, how far it is.
//!
//! Not the waiting (`connection`), and not the answers (`service`).
//!
//! Invariant: only the connection's own task changes how far it is.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Instant;

use bridgehead_metrics::{Counter, Gauge};
use bridgehead_proxies::Peer;
use http::request;

use crate::accept::Worker;
use crate::app::App;
use crate::client::Successor;
use crate::client_half::{Encore, Witness};
use crate::config::Config;
use crate::crowd::Crowd;
use crate::departure::Breach;
use crate::exchange::After;
use crate::farewell;
use crate::inspector::{Inspector, Standing};
use crate::lifetime::Lifetime;
use crate::shutdown::Stage;
use crate::socket::Socket;
use crate::turn::Turn;

/// A connection as its requests see it.
pub(crate) struct Line {
    pub(crate) socket: Arc<Socket>,
    pub(crate) peer: Arc<Peer>,
    pub(crate) inspector: Arc<Inspector>,
    // Whether the client gets time to read what it was told last.
    lingers: AtomicBool,
    pub(crate) draining: AtomicBool,
    // Whether the worker is about to, or the connection has had its time: an answer is then the connection's last.
    pub(crate) last_call: AtomicBool,
    lifetime: Lifetime,
    pub(crate) app: Arc<dyn App>,
    pub(crate) config: Arc<Config>,
    crowd: Crowd,
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
    Busy(Lookout),
    Encore(Encore),
    Idle(Instant),
    Rest,
    Closing,
}

/// Who is to hear when the client of a running request leaves.
#[derive(Debug)]
pub(crate) enum Lookout {
    Nobody,
    Witness(Witness),
    /// Its request has not been read whole, so it is looked at only now and then: next at this time.
    Unread(Witness, Instant),
    /// It sends no more, and not all of what it sent has been read.
    Tail(Witness, Breach),
    /// It sends no more, and its application knows.
    Breach(Breach),
}

impl Line {
    pub(crate) fn new(mut socket: Socket, peer: Arc<Peer>, worker: &Worker) -> Self {
        socket.set_pace(worker.config.bounds.download);
        let now = Instant::now();
        if let Some(meters) = &worker.config.meters {
            socket.counts_on(meters.sheet.clone());
        }
        let spoken = socket.spoken();
        Self {
            socket: Arc::new(socket),
            trusted: worker.config.forwarding.as_ref().is_some_and(|each| each.proxies.trust(&peer.client)),
            peer,
            inspector: Arc::new(Inspector::new(worker.config.bounds.head, spoken)),
            lingers: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            last_call: AtomicBool::new(worker.watch.is_past(Stage::LastCall)),
            lifetime: Lifetime::new(worker.config.bounds.lifetimes, now),
            app: Arc::clone(&worker.app),
            config: Arc::clone(&worker.config),
            crowd: worker.crowd.clone(),
            phase: Mutex::new(Phase::Fresh(now)),
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

    /// The next answer is the connection's last.
    pub(crate) fn ends_with_next(&self) {
        self.last_call.store(true, Ordering::Relaxed);
    }

    /// The connection's time belongs to a request from here on.
    pub(crate) fn begin(self: &Arc<Self>, head: &request::Parts) -> Turn {
        *self.phase() = Phase::Busy(Lookout::Nobody);
        if self.lifetime.count() {
            self.outlive();
        }
        if let Some(meters) = &self.config.meters {
            meters.sheet.up(Gauge::Http1Busy);
        }
        Turn::new(Arc::clone(self), self.peer_of(head), head)
    }

    /// Nothing is asked from here on.
    pub(crate) fn rest(&self) -> Phase {
        let now = Instant::now();
        self.look_at_lifetime(now);
        Phase::Idle(now)
    }

    /// A connection that has had its time has one more answer.
    pub(crate) fn look_at_lifetime(&self, now: Instant) {
        if self.lifetime.is_over(now) {
            self.outlive();
        }
    }

    /// The connection has had its time, or its requests: one answer is left to it.
    pub(crate) fn outlive(&self) {
        if !self.last_call.swap(true, Ordering::Relaxed) {
            self.config.tally.closed(Counter::LifetimeEnds);
        }
    }

    /// It is closed, since nothing was asked for too long.
    pub(crate) fn was_idle(&self) {
        let usual = self.crowd.keep_alive(self.config.keep_alive) == self.config.keep_alive;
        self.config.tally.closed(if usual { Counter::IdleEnds } else { Counter::HurriedEnds });
    }

    /// When the connection has had its time, and whether it has with a request that has come.
    pub(crate) fn lifetime(&self) -> &Lifetime {
        &self.lifetime
    }

    /// A request of HTTP/2, which shares the connection with others.
    pub(crate) fn begin_stream(self: &Arc<Self>, head: &request::Parts) -> Turn {
        Turn::beside_others(Arc::clone(self), self.peer_of(head), head)
    }

    /// Who sent this request: the client, or whom a trusted proxy names.
    fn peer_of(&self, head: &request::Parts) -> Arc<Peer> {
        let forwarding = self.config.forwarding.as_ref().filter(|_| self.trusted);
        let seen = forwarding.and_then(|forwarding| forwarding.see_through(&self.peer, head));
        seen.map_or_else(|| Arc::clone(&self.peer), Arc::new)
    }

    /// Waits until the application is through with the answer before: no two requests of a connection run at once.
    pub(crate) async fn previous_is_through(&self) -> After {
        poll_fn(|cx| match &mut *self.phase() {
            Phase::Encore(encore) => encore.poll_followed(cx),
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

    pub(crate) fn is_fresh(&self) -> bool {
        matches!(*self.phase(), Phase::Fresh(_) | Phase::Head(_))
    }

    pub(crate) fn idle_since(&self) -> Option<Instant> {
        if let Phase::Idle(since) = *self.phase() { Some(since) } else { None }
    }

    /// When an idle connection is closed.
    pub(crate) fn idles_until(&self, since: Instant) -> Instant {
        since + self.crowd.keep_alive(self.config.keep_alive)
    }
}
