//! What a proxy says of a connection before its first byte, where the PROXY protocol is spoken.
//!
//! Not how that is written (`bridgehead-proxies`). What follows, TLS or not, begins as if the client had connected itself.
//!
//! Invariant: where it is spoken, nobody is let in without it, and nobody whose word is not taken.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bridgehead_proxies::{
    Address, Peer,
    proxy_protocol::{self, Header, Said},
};
use tokio::io::ReadBuf;

use crate::accept::{Worker, enter};
use crate::app::Report;
use crate::config::Refusals;
use crate::connection::FRESH_GRACE;
use crate::listen::Door;
use crate::shutdown::Stage;
use crate::socket::Socket;
use crate::tally::Hardship;

/// For a whole header: a proxy sends it with the connection.
const TIME: Duration = Duration::from_secs(3);

/// Lets one client in by `door`, if whoever connected may speak for it and does.
pub(crate) async fn run(socket: Socket, peer: Peer, door: Door, worker: Arc<Worker>) {
    let speaks = worker.config.proxy_protocol.as_ref().is_some_and(|proxies| proxies.trust(&peer.client));
    if !speaks {
        return tell("it may not speak for others by the PROXY protocol", &peer, &worker);
    }
    let heard = {
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
        let mut came = Vec::new();
        tokio::select! {
            biased;
            heard = poll_fn(|cx| poll_header(&socket, &mut came, cx)) => heard,
            () = late.as_mut() => Err(io::Error::other("its PROXY header did not come in its time")),
            () = drained.as_mut() => Err(io::Error::other("the worker drains")),
        }
    };
    match heard {
        Ok(said) => enter(socket, named(said, peer), door, worker),
        Err(error) => tell(&error.to_string(), &peer, &worker),
    }
}

/// Whose connection it is.
fn named(said: Said, peer: Peer) -> Peer {
    match said {
        Said::Nothing => peer,
        Said::Ends { client, server } => {
            Peer { client: Address::inet(client), server: Address::inet(server), ..peer }
        }
        Said::Unix => Peer { client: Address::Unix(None), ..peer },
    }
}

/// Takes what is the header's, and nothing of what is behind it.
fn poll_header(socket: &Socket, came: &mut Vec<u8>, cx: &mut Context<'_>) -> Poll<io::Result<Said>> {
    loop {
        let missing = match proxy_protocol::read(came) {
            Ok(Header::Whole(said)) => return Poll::Ready(Ok(said)),
            Ok(Header::Missing(count)) => count,
            Err(malformed) => return Poll::Ready(Err(io::Error::other(malformed))),
        };
        let known = came.len();
        came.resize(known + missing, 0);
        let mut buffer = ReadBuf::new(&mut came[known..]);
        let polled = socket.poll_read_wire(cx, &mut buffer);
        let count = buffer.filled().len();
        came.truncate(known + count);
        ready!(polled)?;
        if count == 0 {
            return Poll::Ready(Err(io::Error::other("it ended before its PROXY header did")));
        }
    }
}

fn tell(reason: &str, peer: &Peer, worker: &Worker) {
    worker.config.tally.met(Hardship::NoPreamble);
    if worker.config.refusals == Refusals::Reported {
        let reason = format!("no connection came of it: {reason}");
        worker.app.report(Report::Refused { client: peer.client.escaped(), reason, trace: None });
    }
}
