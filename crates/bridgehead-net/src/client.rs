//! One client, from when it is let in until it is gone: HTTP, then what HTTP hands its connection over to.
//!
//! Not the requests (`connection`) and not the frames (`websocket_session`).

use std::sync::{Arc, Mutex, PoisonError};

use bridgehead_metrics::{Counter, Gauge};
use bridgehead_proxies::Peer;
use bytes::Bytes;

use crate::accept::Worker;
use crate::connection;
use crate::farewell;
use crate::http2;
use crate::inspected::Io;
use crate::line::Line;
use crate::session_end::Opened;
use crate::socket::Socket;
use crate::told::Told;
use crate::websocket_session;

/// What becomes of a connection when HTTP is through with it.
pub(crate) enum Left {
    /// It is of no use to anybody.
    Gone,
    /// Its client may not have read all that it was told.
    Ended,
    /// It begins anew, in HTTP/2, of which this was read.
    Http2(Bytes),
    /// A WebSocket was accepted; what was read behind its handshake is the first of it.
    HandedOver(Opened, Bytes),
}

/// What takes a connection over when HTTP is through with it, if anything does.
#[derive(Debug, Default)]
// Only the connection's own task comes here, but hyper wants what it polls to be shareable.
pub(crate) struct Successor(Mutex<Option<Opened>>);

impl Successor {
    pub(crate) fn name(&self, opened: Opened) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
    }

    pub(crate) fn take(&self) -> Option<Opened> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Serves one client.
pub(crate) fn serve(socket: Socket, peer: Arc<Peer>, worker: Arc<Worker>) -> impl Future<Output = ()> {
    // Beforehand, or the task would have room for what the line is made of.
    run(Arc::new(Line::new(socket, peer, &worker)), worker)
}

async fn run(line: Arc<Line>, worker: Arc<Worker>) {
    let _told = Told::of(&worker, &line.peer);
    let meters = worker.config.meters.clone();
    let _open = meters.as_ref().map(|meters| {
        meters.sheet.add(Counter::Connections, 1);
        meters.during(Gauge::Connections)
    });
    match connection::serve(&line, &worker).await {
        Left::HandedOver(opened, came) => {
            let io = Io { socket: Arc::clone(&line.socket), inspector: None };
            Box::pin(websocket_session::run(io, came, opened, &worker)).await;
        }
        // Apart, as above, so that a connection of HTTP/1 needs no room for it.
        Left::Http2(ahead) => {
            let _open = meters.as_ref().map(|meters| meters.during(Gauge::Http2));
            Box::pin(http2::run(line, worker, ahead)).await;
        }
        Left::Ended if line.leaves_something_unread() => {
            farewell::linger_unless_cut(&line.socket, &worker.executor, &mut worker.watch.clone()).await;
            // What was refused may have been long, and thousands may have sent it.
            worker.reclaim.is_empty_handed();
        }
        Left::Ended | Left::Gone => {}
    }
}
