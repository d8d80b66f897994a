//! Takes clients in until the worker drains, then those that already wait, then no more; of a listener that is called
//! back nobody, from that moment on.
//!
//! Not the connections themselves: each is a task of its own and outlives the listener.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::watch;

use crate::admission::Admission;
use crate::app::App;
use crate::config::Config;
use crate::connection;
use crate::executor::Executor;
use crate::handshake;
use crate::listen::{Door, Listener, Open};
use crate::peer::Peer;
use crate::redirect::Redirect;
use crate::shutdown::{self, Stage, Watch};
use crate::socket::Socket;

/// EMFILE clears only when a connection ends, so wait instead of spinning.
const PAUSE: Duration = Duration::from_millis(100);

/// A deadline passes after the driver was asked, however near it is.
const DRIVER_TURN: Duration = Duration::from_millis(1);

/// What every connection of a worker shares.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) config: Arc<Config>,
    pub(crate) app: Arc<dyn App>,
    pub(crate) watch: Watch,
    pub(crate) executor: Executor,
    pub(crate) admission: Admission,
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
    let open: Vec<Open> = listeners.into_iter().map(Listener::open).collect::<Result<_, _>>()?;
    let (watch, last) = shutdown::watch(stage);
    let admission = Admission::new(config.bounds.admission);
    let worker = Worker { config: Arc::new(config), app, watch, executor: executor.clone(), admission };
    for listener in open {
        executor.spawn(accept(listener, worker.clone()));
    }
    drop(worker);
    Ok(last.gone())
}

async fn accept(listener: Open, worker: Worker) {
    let mut watch = worker.watch.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            () = poll_fn(|cx| listener.poll_recalled(cx)) => return,
            _ = watch.reached(Stage::Draining) => break,
            accepted = poll_fn(|cx| listener.poll_accept(cx)) => accepted,
        };
        match accepted {
            Ok(client) => take_in(client, &listener, &worker),
            Err(error) if is_shortage(&error) => worker.executor.sleep(PAUSE).await,
            // Any other error is of that one client, which has gone again.
            Err(_) => {}
        }
    }
    listener.shut_gate();
    // What the kernel has already greeted for us would be reset by closing the listener. Tokio has heard of it once
    // its driver had a turn.
    driver_turn(&worker.executor).await;
    while let Some(Ok(client)) = waiting(&listener).await {
        take_in(client, &listener, &worker);
    }
}

/// Until Tokio's driver has had a turn. Not `yield_now`: what that puts off is lost when whoever turns Tokio stops.
pub(crate) async fn driver_turn(executor: &Executor) {
    executor.sleep(DRIVER_TURN).await;
}

fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

fn take_in((socket, peer): (Socket, Peer), listener: &Open, worker: &Worker) {
    let mut worker = worker.clone();
    let executor = worker.executor.clone();
    match listener.door() {
        Door::Secured(doorway) => {
            return executor.spawn(handshake::run(socket, peer, doorway.clone(), worker));
        }
        Door::Redirecting(port) => worker.app = Arc::new(Redirect { port: *port, app: worker.app }),
        Door::Open => {}
    }
    executor.spawn(connection::run(socket, Arc::new(peer), worker));
}

/// The next client that is already there, and is ours.
async fn waiting(listener: &Open) -> Option<io::Result<(Socket, Peer)>> {
    tokio::task::unconstrained(poll_fn(|cx| {
        if listener.poll_recalled(cx).is_ready() {
            return Poll::Ready(None);
        }
        Poll::Ready(match listener.poll_accept(cx) {
            Poll::Ready(accepted) => Some(accepted),
            Poll::Pending => None,
        })
    }))
    .await
}
