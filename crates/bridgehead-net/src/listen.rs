//! A listening socket that somebody else has bound.
//!
//! Binding, and its errors, are Python's (`sockets.py`); here a descriptor becomes a stream of clients.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::net::{TcpListener, UnixListener};

use crate::forked;
use crate::peer::{Address, Peer};
use crate::socket::Socket;

/// `BPF_RET | BPF_K`.
#[cfg(target_os = "linux")]
const BPF_RETURN: u16 = 0x06;

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
    /// Whoever gave it to us may: it is left as it is.
    Shared,
}

/// Bound and listening, not yet known to Tokio.
#[derive(Debug)]
pub struct Listener(Kind<std::net::TcpListener, std::os::unix::net::UnixListener>, Ownership);

/// The same, driven by the runtime it was opened in.
#[derive(Debug)]
pub(crate) struct Open {
    // Before the listener, so that it is given up first: see `Socket`.
    _owned: forked::Claim,
    kind: Kind<TcpListener, UnixListener>,
    ownership: Ownership,
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
        if address.as_socket().is_some() {
            Ok(Self(Kind::Tcp(socket.into()), ownership))
        } else if address.is_unix() {
            let path = address.as_pathname().map(|path| path.to_string_lossy().into_owned());
            Ok(Self(Kind::Unix(socket.into(), path), ownership))
        } else {
            Err(ListenError::Family)
        }
    }

    /// Makes it known to the current runtime.
    pub(crate) fn open(self) -> io::Result<Open> {
        let ownership = self.1;
        Ok(match self.0 {
            Kind::Tcp(listener) => {
                let listener = TcpListener::from_std(listener)?;
                Open { _owned: forked::Claim::on(&listener), kind: Kind::Tcp(listener), ownership }
            }
            Kind::Unix(listener, path) => {
                let listener = UnixListener::from_std(listener)?;
                Open { _owned: forked::Claim::on(&listener), kind: Kind::Unix(listener, path), ownership }
            }
        })
    }
}

impl Open {
    /// Lets nobody new knock, so that those who have are all there are: closing a listener resets whoever still waits.
    pub(crate) fn shut_gate(&self) {
        #[cfg(target_os = "linux")]
        if let (Kind::Tcp(listener), Ownership::Ours) = (&self.kind, self.ownership) {
            // BPF's "return 0": the kernel drops what arrives for the listener, and their clients ask again and are
            // refused. Those who wait already have sockets of their own. A refusal of it leaves the gate open, as it was.
            let _ = socket2::SockRef::from(listener)
                .attach_filter(&[socket2::SockFilter::new(BPF_RETURN, 0, 0, 0)]);
        }
    }

    /// The next client. A connection that was over before it was looked at is no error of ours and is passed over.
    pub(crate) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Socket, Arc<Peer>)>> {
        match &self.kind {
            Kind::Tcp(listener) => loop {
                let (stream, client) = ready!(listener.poll_accept(cx))?;
                let Ok(server) = stream.local_addr() else { continue };
                let peer = Peer { client: Address::inet(client), server: Address::inet(server) };
                return Poll::Ready(Ok((Socket::tcp(stream), Arc::new(peer))));
            },
            Kind::Unix(listener, path) => {
                let (stream, _) = ready!(listener.poll_accept(cx))?;
                let peer = Peer { client: Address::Unix(None), server: Address::Unix(path.clone()) };
                Poll::Ready(Ok((Socket::unix(stream), Arc::new(peer))))
            }
        }
    }
}
