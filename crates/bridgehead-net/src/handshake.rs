//! How a connection becomes a secret: beside the accepting, a bounded number at once, each in its time.
//!
//! A client that has not said all of its hello holds a socket, and no place among those that are being answered; one
//! that is answered and says nothing gives its place up for those who wait (`places`).
//!
//! Invariant: after its time, or a moment after the worker began to drain, a handshake is over.

use std::future::poll_fn;
use std::io::{self, Read};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bridgehead_executor::Executor;
use bridgehead_proxies::{Peer, Scheme};
use bridgehead_tls::{Credentials, Facts, Served};
use rustls::ServerConnection;
use rustls::server::{Accepted, AcceptedAlert, Acceptor};

use crate::accept::Worker;
use crate::app::Report;
use crate::client;
use crate::config::Refusals;
use crate::connection::FRESH_GRACE;
use crate::farewell;
use crate::places::{Place, Places};
use crate::record_ends::RecordEnds;
use crate::session::{Session, Wire, polled};
use crate::shutdown::Stage;
use crate::socket::{Sight, Socket};
use crate::tally::Hardship;

/// For a whole handshake, from the moment the client was let in.
const TIME: Duration = Duration::from_secs(10);

/// Handshakes at once: each costs some milliseconds of a processor, and tens of kilobytes.
const AT_ONCE: usize = 1024;

/// By what the clients of a listener are greeted.
#[derive(Clone, Debug)]
pub(crate) struct Doorway {
    credentials: Arc<Credentials>,
    places: Arc<Places>,
}

impl Doorway {
    pub(crate) fn new(credentials: Arc<Credentials>) -> Self {
        Self { credentials, places: Places::new(AT_ONCE) }
    }
}

/// Serves one client, if its handshake succeeds.
pub(crate) async fn run(mut socket: Socket, peer: Peer, door: Doorway, worker: Arc<Worker>) {
    let greeted = {
        let mut watch = worker.watch.clone();
        let executor = worker.executor.clone();
        let mut late = pin!(executor.sleep(TIME));
        let mut drained = pin!(async {
            watch.reached(Stage::Draining).await;
            tokio::select! {
                biased;
                _ = watch.reached(Stage::Aborting) => {}
                () = executor.sleep(FRESH_GRACE) => {}
            }
        });
        tokio::select! {
            biased;
            greeted = greet(&socket, &door, &executor) => greeted,
            () = late.as_mut() => Err(io::Error::new(io::ErrorKind::TimedOut, "its time is over")),
            () = drained.as_mut() => Err(io::Error::other("the worker drains")),
        }
    };
    let (session, facts) = match greeted {
        Ok(greeted) => greeted,
        Err(error) => {
            tell(&error, &peer, &worker);
            // The client has been told by an alert, if it could be. One of TLS 1.3 may take its handshake for good, and be
            // sending: a close would take the alert from it.
            if error.kind() == io::ErrorKind::InvalidData {
                farewell::linger_unless_cut(&socket, &worker.executor, &mut worker.watch.clone()).await;
            }
            return;
        }
    };
    let peer = Peer { scheme: Scheme::Https, tls: Some(Arc::new(facts)), ..peer };
    socket.secure(session);
    client::serve(socket, Arc::new(peer), worker).await;
}

fn tell(error: &io::Error, peer: &Peer, worker: &Worker) {
    worker.config.tally.met(Hardship::NoHandshake);
    if worker.config.refusals == Refusals::Reported {
        let reason = format!("no handshake came of it: {error}");
        worker.app.report(Report::Refused { client: peer.client.escaped(), reason, trace: None });
    }
}

async fn greet(socket: &Socket, door: &Doorway, executor: &Executor) -> io::Result<(Session, Facts)> {
    // Who says nothing has no memory for a hello.
    if poll_fn(|cx| socket.poll_sight(cx)).await != Sight::Bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let (mut acceptor, mut ends) = (Acceptor::default(), RecordEnds::default());
    let accepted =
        poll_fn(|cx| poll_hello(&mut acceptor, &mut Seen { wire: Wire { socket, cx }, ends: &mut ends }))
            .await?;
    drop(acceptor);
    let Some(mut place) = door.places.enter(executor).await else {
        return Err(io::Error::other("there are no places any more"));
    };
    let set = door.credentials.current();
    let served = set.choose(&accepted.client_hello());
    let mut session = Session::new(answered(accepted, served, socket)?);
    tokio::select! {
        biased;
        done = poll_fn(|cx| session.poll_handshake(&mut Wire { socket, cx }, &mut ends)) => done?,
        () = is_replaced(&mut place, socket) => {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "its client was waited for, and others for its place"));
        }
    }
    let facts = Facts::of(session.connection(), served);
    Ok((session, facts))
}

/// Until the place is given to another, since nothing has come of this client.
async fn is_replaced(place: &mut Place, socket: &Socket) {
    loop {
        place.is_wanted().await;
        if !socket.has_unread() {
            return;
        }
        place.keep();
    }
}

/// What somebody else reads, and where its records end.
struct Seen<'a, 'b> {
    wire: Wire<'a, 'b>,
    ends: &'a mut RecordEnds,
}

impl Read for Seen<'_, '_> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let count = self.wire.read(space)?;
        self.ends.pass(&space[..count]);
        Ok(count)
    }
}

fn poll_hello(acceptor: &mut Acceptor, seen: &mut Seen<'_, '_>) -> Poll<io::Result<Accepted>> {
    loop {
        match acceptor.accept() {
            Ok(Some(accepted)) => return Poll::Ready(Ok(accepted)),
            Ok(None) => {}
            Err((error, alert)) => return Poll::Ready(Err(refused(error, alert, seen.wire.socket))),
        }
        let count = ready!(polled(acceptor.read_tls(seen)))?;
        if count == 0 {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
    }
}

fn answered(accepted: Accepted, served: &Served, socket: &Socket) -> io::Result<ServerConnection> {
    accepted.into_connection(served.config()).map_err(|(error, alert)| refused(error, alert, socket))
}

/// Says why, if the socket takes it at once.
fn refused(error: rustls::Error, mut alert: AcceptedAlert, socket: &Socket) -> io::Error {
    let mut cx = Context::from_waker(std::task::Waker::noop());
    let _ = alert.write_all(&mut Wire { socket, cx: &mut cx });
    io::Error::new(io::ErrorKind::InvalidData, error)
}
