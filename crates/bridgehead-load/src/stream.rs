//! A socket of either kind.
//!
//! Not a protocol: bytes go through.
//!
//! Invariant: what is written leaves at once (no Nagle).

use std::io::{self, IoSlice};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::net::UnixStream as BlockingUnixStream;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::plan::{Address, PlanError};

/// How long the first connection may take, at most.
const FIRST: Duration = Duration::from_secs(5);

/// Where to connect.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// A socket that was connected before there was a runtime.
#[derive(Debug)]
pub(crate) enum Opened {
    Tcp(std::net::TcpStream),
    Unix(BlockingUnixStream),
}

/// Looks a name up and connects, to the first of its addresses that answers.
pub(crate) fn find(address: &Address) -> Result<(Place, Opened), PlanError> {
    let unreachable = |address: String| move |source| PlanError::Unreachable { address, source };
    match address {
        Address::Unix(path) => {
            let shown = format!("unix:{}", path.display());
            let stream = BlockingUnixStream::connect(path).map_err(unreachable(shown))?;
            Ok((Place::Unix(path.clone()), Opened::Unix(stream)))
        }
        Address::Tcp(host, port) => {
            let shown =
                if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
            connect(host, *port).map_err(unreachable(shown))
        }
    }
}

fn connect(host: &str, port: u16) -> io::Result<(Place, Opened)> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match std::net::TcpStream::connect_timeout(&address, FIRST) {
            Ok(stream) => return Ok((Place::Tcp(address), Opened::Tcp(stream))),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Opened {
    /// For the runtime of this thread.
    pub(crate) fn adopt(self) -> io::Result<Stream> {
        Ok(match self {
            Self::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Stream::Tcp(TcpStream::from_std(stream)?)
            }
            Self::Unix(stream) => {
                stream.set_nonblocking(true)?;
                Stream::Unix(UnixStream::from_std(stream)?)
            }
        })
    }
}

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub(crate) async fn connect(place: &Place) -> io::Result<Self> {
        Ok(match place {
            Place::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Self::Tcp(stream)
            }
            Place::Unix(path) => Self::Unix(UnixStream::connect(path).await?),
        })
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
