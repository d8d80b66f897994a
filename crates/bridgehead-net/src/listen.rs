//! A listening socket that somebody else has bound.
//!
//! Binding, and its errors, are Python's (`sockets.py`); here a descriptor becomes a stream of clients.

use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bridgehead_proxies::{Address, Peer, Scheme};
use bridgehead_tls::Credentials;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Notify;

use crate::forked;
use crate::gate::{drop_newcomers, has_greeted};
use crate::handshake::Doorway;
use crate::socket::Socket;

/// A descriptor that cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Neither TCP nor a Unix stream.
    #[error("the descriptor is a socket of another kind; a TCP or Unix listener was due")]
    Family,
    /// The kernel's word.
    #[error("the descriptor cannot be listened on: {0}")]
    Io(#[from] io::Error),
}

/// Whether somebody else goes on listening on the same socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Nobody does: it was bound for this worker.
    Ours,
    /// Our parent and its other workers do, and nobody else.
    Parents,
    /// Whoever gave it to us may: it is left as it is.
    Shared,
}

/// Has one listener let nobody in any more but those who wait, while connections go on. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Shutter(Arc<Notify>);

impl Shutter {
    /// From any thread; once is enough.
    pub fn fall(&self) {
        // Kept until the one task that takes the clients looks.
        self.0.notify_one();
    }
}

/// What becomes of a listener's clients.
#[derive(Clone, Debug)]
pub(crate) enum Door {
    /// They are served.
    Open,
    /// They are, once their handshake is over.
    Secured(Doorway),
    /// They are sent to this port.
    Redirecting(u16),
}

/// Bound and listening, not yet known to Tokio.
#[derive(Debug)]
pub struct Listener {
    kind: Kind<std::net::TcpListener, std::os::unix::net::UnixListener>,
    ownership: Ownership,
    recall: Option<std::os::unix::net::UnixStream>,
    shutter: Shutter,
    door: Door,
    /// Whose it is, if it is another worker's.
    slot: Option<usize>,
}

/// The same, driven by the runtime it was opened in.
#[derive(Debug)]
pub(crate) struct Open {
    // Before the listener, so that it is given up first: see `Socket`.
    _owned: forked::Claim,
    kind: Kind<TcpListener, UnixListener>,
    ownership: Ownership,
    recall: Option<UnixStream>,
    shutter: Shutter,
    door: Door,
    silence: Option<Duration>,
}

#[derive(Debug)]
enum Kind<T, U> {
    Tcp(T),
    Unix(U, Option<String>),
}

impl Listener {
    /// Takes a listening descriptor.
    ///
    /// # Errors
    /// When it is not a TCP or Unix socket.
    pub fn new(descriptor: OwnedFd, ownership: Ownership) -> Result<Self, ListenError> {
        let socket = socket2::Socket::from(descriptor);
        // A datagram socket would be asked for clients for ever.
        if socket.r#type()? != socket2::Type::STREAM {
            return Err(ListenError::Family);
        }
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let kind = if address.as_socket().is_some() {
            Kind::Tcp(socket.into())
        } else if address.is_unix() {
            let path = address.as_pathname().map(|path| path.to_string_lossy().into_owned());
            Kind::Unix(socket.into(), path)
        } else {
            return Err(ListenError::Family);
        };
        Ok(Self { kind, ownership, recall: None, shutter: Shutter::default(), door: Door::Open, slot: None })
    }

    /// One that is lent to this worker until whoever lent it says something on this socket, or closes its end. From then
    /// on nobody is let in, nor those who wait: they are the next one's.
    ///
    /// # Errors
    /// When that is no such socket.
    pub fn lent_until(self, recall: OwnedFd) -> io::Result<Self> {
        let recall = std::os::unix::net::UnixStream::from(recall);
        recall.set_nonblocking(true)?;
        Ok(Self { recall: Some(recall), ..self })
    }

    /// One whose clients speak TLS.
    #[must_use]
    pub fn secured(self, credentials: Arc<Credentials>) -> Self {
        Self { door: Door::Secured(Doorway::new(credentials)), ..self }
    }

    /// One whose clients are sent to this port, by TLS.
    #[must_use]
    pub fn redirecting(self, port: u16) -> Self {
        Self { door: Door::Redirecting(port), ..self }
    }

    /// One of another worker's slot: clients are let in while nobody else keeps it.
    #[must_use]
    pub fn of_slot(self, slot: usize) -> Self {
        Self { slot: Some(slot), ..self }
    }

    /// By which it is shut before its worker drains.
    #[must_use]
    pub fn shutter(&self) -> Shutter {
        self.shutter.clone()
    }

    /// Whose it is, if it is another worker's.
    pub(crate) fn slot(&self) -> Option<usize> {
        self.slot
    }

    /// Another descriptor of the same socket.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let kind = match &self.kind {
            Kind::Tcp(listener) => Kind::Tcp(listener.try_clone()?),
            Kind::Unix(listener, path) => Kind::Unix(listener.try_clone()?, path.clone()),
        };
        let recall = self.recall.as_ref().map(std::os::unix::net::UnixStream::try_clone).transpose()?;
        let (shutter, door) = (self.shutter.clone(), self.door.clone());
        Ok(Self { kind, ownership: self.ownership, recall, shutter, door, slot: self.slot })
    }

    /// No child that the application forks keeps it.
    pub(crate) fn claim(&self) -> forked::Claim {
        match &self.kind {
            Kind::Tcp(listener) => forked::Claim::on(listener),
            Kind::Unix(listener, _) => forked::Claim::on(listener),
        }
    }

    /// Makes it known to the current runtime.
    pub(crate) fn open(self) -> io::Result<Open> {
        let Self { kind, ownership, recall, shutter, door, .. } = self;
        let recall = recall.map(UnixStream::from_std).transpose()?;
        Ok(match kind {
            Kind::Tcp(listener) => {
                let listener = TcpListener::from_std(listener)?;
                let _owned = forked::Claim::on(&listener);
                Open { _owned, kind: Kind::Tcp(listener), ownership, recall, shutter, door, silence: None }
            }
            Kind::Unix(listener, path) => {
                let listener = UnixListener::from_std(listener)?;
                let _owned = forked::Claim::on(&listener);
                let kind = Kind::Unix(listener, path);
                Open { _owned, kind, ownership, recall, shutter, door, silence: None }
            }
        })
    }
}

impl Open {
    /// One whose clients' systems may be silent for so long while they have something to confirm: one that is gone
    /// without a word never does.
    pub(crate) fn bears_silence_for(self, time: Option<Duration>) -> Self {
        Self { silence: time, ..self }
    }

    /// What becomes of its clients.
    pub(crate) fn door(&self) -> &Door {
        &self.door
    }

    /// Lets nobody new knock, so that those who have are all there are: closing a listener resets whoever still waits.
    pub(crate) fn shut_gate(&self) {
        self.only_of(&[Ownership::Ours]).iter().for_each(drop_newcomers);
    }

    /// The same of one whose parent is gone, for all that have it.
    pub(crate) fn shut_gate_for_all(&self) {
        self.only_of(&[Ownership::Ours, Ownership::Parents]).iter().for_each(drop_newcomers);
    }

    /// Whether somebody who knocked before the gate was shut may still come.
    pub(crate) fn expects_somebody(&self) -> bool {
        // A parent's is shut by that, which has waited for them.
        let socket = self.only_of(&[Ownership::Ours]);
        let port =
            socket.and_then(|socket| socket.local_addr().ok()?.as_socket()).map(|address| address.port());
        port.is_some_and(has_greeted)
    }

    /// Then nobody listens any more, whoever has the socket besides: clients are refused, and the port is free. Those who wait
    /// are reset, so none may.
    pub(crate) fn disband(&self) {
        // One that another worker has disbanded is refused.
        let disband = |socket: &socket2::SockRef<'_>| drop(socket.shutdown(Shutdown::Both));
        self.only_of(&[Ownership::Ours, Ownership::Parents]).iter().for_each(disband);
    }

    fn only_of(&self, owners: &[Ownership]) -> Option<socket2::SockRef<'_>> {
        match &self.kind {
            Kind::Tcp(listener) if owners.contains(&self.ownership) => Some(listener.into()),
            _ => None,
        }
    }

    /// When it is to let nobody in any more, though its worker serves on. For one task.
    pub(crate) async fn is_shut(&self) {
        self.shutter.0.notified().await;
    }

    /// When it has to be given back; never, if it is not lent. For one task.
    pub(crate) fn poll_recalled(&self, cx: &mut Context<'_>) -> Poll<()> {
        // An error is the other's end, too.
        self.recall.as_ref().map_or(Poll::Pending, |recall| recall.poll_read_ready(cx).map(drop))
    }

    /// The next client. A connection that was over before it was looked at is no error of ours and is passed over.
    pub(crate) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Socket, Peer)>> {
        match &self.kind {
            Kind::Tcp(listener) => loop {
                let (stream, client) = match ready!(listener.poll_accept(cx)) {
                    // Disbanded by another worker. Nobody comes any more, and nothing else is due here.
                    Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return Poll::Pending,
                    accepted => accepted?,
                };
                let Ok(server) = stream.local_addr() else { continue };
                limit_silence(&stream, self.silence);
                let peer = Peer {
                    client: Address::inet(client),
                    server: Address::inet(server),
                    scheme: Scheme::Http,
                    tls: None,
                    facade: None,
                };
                return Poll::Ready(Ok((Socket::tcp(stream), peer)));
            },
            Kind::Unix(listener, path) => {
                let (stream, _) = ready!(listener.poll_accept(cx))?;
                let peer = Peer {
                    client: Address::Unix(None),
                    server: Address::Unix(path.clone()),
                    scheme: Scheme::Http,
                    tls: None,
                    facade: None,
                };
                Poll::Ready(Ok((Socket::unix(stream), peer)))
            }
        }
    }
}

/// The kernel does not see progress behind a window that opens in small steps, so it judges well after `reading` does.
#[cfg(target_os = "linux")]
const KERNEL: u32 = 4;

/// Refused, the kernel tries for a quarter of an hour, and a write's own time ends it before.
#[cfg(target_os = "linux")]
fn limit_silence(stream: &TcpStream, time: Option<Duration>) {
    if let Some(time) = time {
        let _ = socket2::SockRef::from(stream).set_tcp_user_timeout(Some(time * KERNEL));
    }
}

/// Elsewhere a write's own time is all there is.
#[cfg(not(target_os = "linux"))]
fn limit_silence(_: &TcpStream, _: Option<Duration>) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::future::poll_fn;
    use std::io::ErrorKind;
    use std::net::{Ipv4Addr, SocketAddr};

    use socket2::{Domain, Socket as RawSocket, Type};

    use super::*;

    /// A listener, and where it listens.
    fn open(ownership: Ownership) -> (Open, SocketAddr) {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let listener = Listener::new(listener.into(), ownership).expect("a listener");
        (listener.open().expect("a runtime"), address)
    }

    /// A client that has asked to be let in, and does not wait for it.
    fn knock(address: SocketAddr) -> RawSocket {
        let client = RawSocket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        client.set_nonblocking(true).expect("a socket option");
        let _ = client.connect(&address.into());
        client
    }

    fn is_let_in(client: &RawSocket) -> bool {
        client.peer_addr().is_ok()
    }

    /// Until the kernel says that it is, or what became of it.
    async fn becomes(client: RawSocket) -> io::Result<()> {
        let client = tokio::net::TcpStream::from_std(client.into())?;
        client.writable().await?;
        client.take_error()?.map_or(Ok(()), Err)
    }

    #[tokio::test]
    async fn a_shut_gate_keeps_those_who_wait_and_lets_nobody_new_in() {
        let (listener, address) = open(Ownership::Ours);
        let early: Vec<_> = (0..3).map(|_| knock(address)).collect();
        while !early.iter().all(is_let_in) {
            tokio::task::yield_now().await;
        }
        listener.shut_gate();
        let late = knock(address);
        for client in &early {
            let (_, peer) = poll_fn(|cx| listener.poll_accept(cx)).await.expect("it waits");
            let own = client.local_addr().expect("an address").as_socket().expect("of TCP");
            assert_eq!(peer.client, Address::inet(own));
        }
        assert!(!is_let_in(&late));
        drop(listener);
        // It was never greeted, so it is refused when it asks again: nothing is reset.
        assert_eq!(becomes(late).await.expect_err("nobody listens").kind(), ErrorKind::ConnectionRefused);
        for client in early {
            becomes(client).await.expect("its connection outlives the listener");
        }
    }

    #[tokio::test]
    async fn the_kernel_is_told_for_how_long_bytes_may_go_unconfirmed() {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let stream = TcpStream::connect(address).await.expect("it listens");
        let known = || socket2::SockRef::from(&stream).tcp_user_timeout().expect("an option");
        let before = known();
        limit_silence(&stream, None);
        assert_eq!(known(), before);
        limit_silence(&stream, Some(Duration::from_secs(30)));
        assert_eq!(known(), Some(Duration::from_secs(120)));
    }

    #[tokio::test]
    async fn the_gate_of_a_listener_that_others_share_stays_open() {
        let (listener, address) = open(Ownership::Shared);
        listener.shut_gate();
        becomes(knock(address)).await.expect("somebody else may let it in");
    }
}
