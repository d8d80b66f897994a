//! Takes clients in until the worker drains or the listener is shut, then those that already wait, then no more; of a
//! listener that is called back nobody, from that moment on.
//!
//! Not the connections themselves: each is a task of its own and outlives the listener.

use std::future::poll_fn;
use std::io;
use std::os::unix::process::parent_id;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bridgehead_admission::{Admission, Capacity, Permit, TurnedAway};
use bridgehead_executor::Executor;
use bridgehead_metrics::Gauge;
use bridgehead_proxies::Peer;
use bridgehead_websocket::Memory;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::app::{App, Report};
use crate::client;
use crate::config::Config;
use crate::crowd::Crowd;
use crate::gate::{GREETING_PAUSE, GREETING_TIME};
use crate::handshake;
use crate::listen::{Door, Listener, Open};
use crate::loop_life;
use crate::preamble;
use crate::reclaim::Reclaim;
use crate::redirect::Redirect;
use crate::relief;
use crate::rota::{Keeper, Turn};
use crate::shutdown::{self, Stage, Watch};
use crate::socket::Socket;
use crate::tally::Hardship;

/// EMFILE clears only when a connection ends, so wait instead of spinning.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// How often it is said that clients wait.
const SAID_AGAIN: Duration = Duration::from_secs(1);

/// A deadline passes after the driver was asked, however near it is.
const DRIVER_TURN: Duration = Duration::from_millis(1);

/// From a parent's last word, which its death says as well, to another parent in its place.
const REPARENTED: Duration = Duration::from_millis(50);

/// What every connection of a worker shares.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) config: Arc<Config>,
    pub(crate) app: Arc<dyn App>,
    pub(crate) watch: Watch,
    pub(crate) executor: Executor,
    /// What may block is done there.
    pub(crate) pool: Handle,
    pub(crate) admission: Admission,
    pub(crate) crowd: Crowd,
    pub(crate) memory: Memory,
    pub(crate) reclaim: Reclaim,
    /// Who has started this process.
    parent: u32,
}

impl Worker {
    /// To be made within the runtime that drives its sockets.
    pub(crate) fn new(config: Config, app: Arc<dyn App>, watch: Watch, executor: Executor) -> Self {
        let admission = config.admission.get_or_init(|| admission(&config)).clone();
        let crowd = Crowd::new(config.bounds.connections, executor.clone());
        let memory = Memory::of_a_worker();
        let reclaim = Reclaim::new(config.give_back, executor.clone());
        let (config, pool, parent) = (Arc::new(config), Handle::current(), parent_id());
        Self { config, app, watch, executor, pool, admission, crowd, memory, reclaim, parent }
    }

    /// Whether the parent of several workers is gone, so that none of them has a successor.
    fn is_orphan(&self) -> bool {
        self.config.rota.is_some() && parent_id() != self.parent
    }

    /// The same, soon after that has ended: the system closes its files before it has another one take its place.
    pub(crate) async fn has_lost_its_parent(&self) -> bool {
        if self.config.rota.is_some() && !self.is_orphan() {
            self.executor.sleep(REPARENTED).await;
        }
        self.is_orphan()
    }

    /// A permit, as soon as there is one; who waits for it is counted.
    pub(crate) async fn admit(&self) -> Result<Permit, TurnedAway> {
        if let Some(permit) = self.admission.try_enter() {
            return Ok(permit);
        }
        let _waits = self.config.meters.as_ref().map(|meters| meters.during(Gauge::Waiting));
        self.admission.enter(|patience| self.executor.sleep(patience)).await
    }
}

/// What the operator has set, or what follows how long requests take.
fn admission(config: &Config) -> Admission {
    match config.adapts.clone() {
        Some(sheet) => {
            let told = move |Capacity { permits, queue }: Capacity| {
                sheet.set(Gauge::Limit, permits as u64);
                sheet.set(Gauge::QueueLimit, queue as u64);
            };
            Admission::adapting(config.bounds.admission, Box::new(told))
        }
        None => Admission::new(config.bounds.admission),
    }
}

/// Begins to serve the listeners on the current runtime, by tasks of `executor`. What is returned ends when `stage` says so and the last
/// connection is gone.
///
/// # Errors
/// When a listener cannot be driven by the current runtime; nothing was served then.
pub fn serve(
    config: Config,
    listeners: Vec<Listener>,
    app: Arc<dyn App>,
    stage: watch::Receiver<Stage>,
    executor: &Executor,
) -> io::Result<impl Future<Output = ()> + use<>> {
    let silence = config.bounds.download.gap;
    let (others, own): (Vec<_>, Vec<_>) = listeners.into_iter().partition(|each| each.slot().is_some());
    let open = |listener: Listener| Ok(listener.open()?.bears_silence_for(silence));
    let open: Vec<Open> = own.into_iter().map(open).collect::<io::Result<_>>()?;
    let (watch, last) = shutdown::watch(stage);
    let worker = Arc::new(Worker::new(config, app, watch, executor.clone()));
    let mut keeper = worker.config.rota.map(Keeper::new);
    for listener in open {
        let turn = keeper.as_mut().map_or_else(Turn::always, |keeper| keeper.turn(None));
        worker.executor.spawn(accept(listener, turn, Arc::clone(&worker)));
    }
    if let (Some(meters), None) = (&worker.config.meters, &keeper) {
        worker.executor.spawn(loop_life::run(meters.clone(), Arc::clone(&worker)));
    }
    if let Some(mut keeper) = keeper {
        for listener in others {
            let turn = keeper.turn(listener.slot());
            worker.executor.spawn(relief::relieve(listener, turn, Arc::clone(&worker)));
        }
        worker.executor.spawn(keeper.run(Arc::clone(&worker)));
    }
    drop(worker);
    Ok(last.gone())
}

async fn accept(listener: Open, mut turn: Turn, worker: Arc<Worker>) {
    let mut watch = worker.watch.clone();
    let mut shortage = Shortage::new(&worker);
    loop {
        let accepted = tokio::select! {
            biased;
            () = poll_fn(|cx| listener.poll_recalled(cx)) => {
                if worker.has_lost_its_parent().await && turn.is_ours() {
                    break;
                }
                return;
            }
            _ = watch.reached(Stage::Draining) => break,
            () = listener.is_shut() => break,
            accepted = next(&listener, &mut turn, &mut shortage) => accepted,
        };
        shortage.take_in(accepted, &listener).await;
    }
    listener.shut_gate();
    answer_the_last(&listener, &mut shortage).await;
}

/// Lets in those who wait, at a listener's end. Without a parent they are the last, whoever has the socket besides: another
/// worker may be blocked, or stopped.
pub(crate) async fn answer_the_last(listener: &Open, shortage: &mut Shortage) {
    let mut watch = shortage.worker.watch.clone();
    let is_orphan = shortage.worker.is_orphan();
    if is_orphan {
        listener.shut_gate_for_all();
    }
    // What the kernel has already greeted for us would be reset by closing the listener. Tokio has heard of it once
    // its driver had a turn.
    driver_turn(&shortage.worker.executor).await;
    tokio::select! {
        biased;
        _ = watch.reached(Stage::Aborting) => {}
        () = answer_those_who_wait(listener, shortage, is_orphan) => {}
    }
    if is_orphan {
        listener.disband();
    }
}

async fn answer_those_who_wait(listener: &Open, shortage: &mut Shortage, is_orphan: bool) {
    let until = Instant::now() + GREETING_TIME;
    loop {
        while let Some(accepted) = waiting(listener, shortage, is_orphan).await {
            shortage.take_in(accepted, listener).await;
        }
        if !listener.expects_somebody() || Instant::now() >= until {
            return;
        }
        shortage.worker.executor.sleep(GREETING_PAUSE).await;
    }
}

/// Until Tokio's driver has had a turn. Not `yield_now`: what that puts off is lost when whoever turns Tokio stops.
pub(crate) async fn driver_turn(executor: &Executor) {
    executor.sleep(DRIVER_TURN).await;
}

fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

fn take_in((socket, peer): (Socket, Peer), listener: &Open, worker: &Arc<Worker>) {
    let (door, worker) = (listener.door().clone(), Arc::clone(worker));
    if worker.config.proxy_protocol.is_some() {
        let executor = worker.executor.clone();
        executor.spawn(preamble::run(socket, peer, door, worker));
    } else {
        enter(socket, peer, door, worker);
    }
}

/// Lets in one client of whom all is known that is known before its first byte.
pub(crate) fn enter(socket: Socket, peer: Peer, door: Door, worker: Arc<Worker>) {
    let executor = worker.executor.clone();
    match door {
        Door::Secured(doorway) => executor.spawn(handshake::run(socket, peer, doorway, worker)),
        Door::Open => executor.spawn(client::serve(socket, Arc::new(peer), worker)),
        Door::Redirecting(port) => {
            let app =
                Arc::new(Redirect { port, app: Arc::clone(&worker.app), refusals: worker.config.refusals });
            let worker = Arc::new(Worker { app, ..Worker::clone(&worker) });
            executor.spawn(client::serve(socket, Arc::new(peer), worker));
        }
    }
}

pub(crate) type Accepted = io::Result<(Socket, Peer)>;

/// What of one listener's clients came to nothing yet, and when that was said.
pub(crate) struct Shortage {
    worker: Arc<Worker>,
    said: Option<Instant>,
}

impl Shortage {
    pub(crate) fn new(worker: &Arc<Worker>) -> Self {
        Self { worker: Arc::clone(worker), said: None }
    }

    pub(crate) async fn take_in(&mut self, accepted: Accepted, listener: &Open) {
        match accepted {
            Ok(client) => take_in(client, listener, &self.worker),
            Err(error) if is_shortage(&error) => {
                self.worker.config.tally.met(Hardship::Shortage);
                self.say(|| format!("clients wait, since no connection can be accepted: {error}"));
                self.worker.executor.sleep(PAUSE).await;
            }
            // Any other error is of that one client, which has gone again.
            Err(_) => {}
        }
    }

    /// Until there is room for a client.
    async fn wait(&mut self) {
        self.worker.config.tally.met(Hardship::Crowd);
        let limit = self.worker.crowd.limit().unwrap_or_default();
        self.say(|| format!("clients wait, since as many connections are open as may be: {limit}"));
        self.worker.crowd.vacancy().await;
    }

    fn say(&mut self, reason: impl FnOnce() -> String) {
        if self.said.is_none_or(|said| said.elapsed() >= SAID_AGAIN) {
            self.said = Some(Instant::now());
            self.worker.app.report(Report::Shortage { reason: reason() });
        }
    }

    /// A client, if there is room for it. `None`: there is not.
    fn poll_client(&self, listener: &Open, cx: &mut Context<'_>) -> Poll<Option<Accepted>> {
        let crowd = &self.worker.crowd;
        let Some(room) = crowd.room() else { return Poll::Ready(None) };
        let accepted = ready!(listener.poll_accept(cx));
        Poll::Ready(Some(accepted.map(|(socket, peer)| (socket.seated(crowd.seat(room)), peer))))
    }
}

/// The next client. Dropped while it waits it has taken nobody.
pub(crate) async fn next(listener: &Open, turn: &mut Turn, shortage: &mut Shortage) -> Accepted {
    loop {
        turn.comes().await;
        let found = poll_fn(|cx| {
            // Looked at also when the client is there that was waited for.
            if turn.is_ours() { shortage.poll_client(listener, cx) } else { Poll::Ready(None) }
        });
        match found.await {
            Some(accepted) => return accepted,
            None if turn.is_ours() => shortage.wait().await,
            None => {}
        }
    }
}

/// The next client that is already there, and is ours: nobody else's who calls the listener back, if there is anybody.
async fn waiting(listener: &Open, shortage: &mut Shortage, is_orphan: bool) -> Option<Accepted> {
    loop {
        let found = tokio::task::unconstrained(poll_fn(|cx| {
            if !is_orphan && listener.poll_recalled(cx).is_ready() {
                return Poll::Ready(None);
            }
            Poll::Ready(match shortage.poll_client(listener, cx) {
                Poll::Ready(accepted) => Some(accepted),
                Poll::Pending => None,
            })
        }))
        .await;
        match found? {
            Some(accepted) => return Some(accepted),
            None => shortage.wait().await,
        }
    }
}
