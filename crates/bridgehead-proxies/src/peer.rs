//! Who is at the other end of a connection, and on which address of ours.
//!
//! Not the trust in what proxies say (`forwarded`): what a socket tells by itself is made here.
//!
//! Invariant: an IPv4 client is one, whatever its socket calls it, and what a proxy said of one is written escaped.

use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use bridgehead_tls::Facts;

use crate::escape;

/// One end of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP address; IPv4 that came through a dual-stack socket is IPv4 here.
    Inet(SocketAddr),
    /// A Unix socket's path; clients usually have none.
    Unix(Option<String>),
    /// What a trusted proxy says of whom it heard: not always an address, and never to be written unescaped.
    Forwarded {
        /// As it came.
        host: String,
        /// 0: it is not known.
        port: u16,
    },
}

/// By what a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// By TLS.
    Https,
    /// As `Http`; the word of some proxies for a WebSocket.
    Ws,
    /// As `Https`; likewise.
    Wss,
}

impl Scheme {
    /// As ASGI has it.
    #[must_use]
    #[inline]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Ws => "ws",
            Self::Wss => "wss",
        }
    }
}

impl Scheme {
    /// What a WebSocket comes by that is asked for by this.
    #[must_use]
    #[inline]
    pub fn of_websocket(self) -> Self {
        match self {
            Self::Http | Self::Ws => Self::Ws,
            Self::Https | Self::Wss => Self::Wss,
        }
    }
}

impl Address {
    /// As `accept` gives it, with IPv4-mapped addresses unmapped.
    #[must_use]
    #[inline]
    pub fn inet(address: SocketAddr) -> Self {
        Self::Inet(SocketAddr::new(address.ip().to_canonical(), address.port()))
    }

    /// For a line of text.
    pub fn write_escaped(&self, line: &mut Vec<u8>) {
        match self {
            Self::Forwarded { host, port } => {
                escape::plain(host.as_bytes(), line);
                // Writing to a Vec cannot fail.
                let _ = write!(line, ":{port}");
            }
            Self::Inet(_) | Self::Unix(_) => {
                let _ = write!(line, "{self}");
            }
        }
    }

    /// The same by itself.
    #[must_use]
    pub fn escaped(&self) -> String {
        let mut text = Vec::new();
        self.write_escaped(&mut text);
        // What is written is ASCII.
        String::from_utf8(text).unwrap_or_default()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inet(address) => write!(out, "{}:{}", address.ip(), address.port()),
            Self::Unix(_) => Ok(()),
            Self::Forwarded { host, port } => write!(out, "{host}:{port}"),
        }
    }
}

/// Both ends of a connection, made once and shared by its requests; but for those for which a trusted proxy names
/// another client.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Who connected.
    pub client: Address,
    /// Which of our addresses it reached.
    pub server: Address,
    /// By what.
    pub scheme: Scheme,
    /// What its handshake came to, if there was one.
    pub tls: Option<Arc<Facts>>,
    /// How a trusted proxy shows us, if it says so.
    pub facade: Option<Box<Facade>>,
}

/// Under which name and below which path a proxy shows us to its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facade {
    /// In the place of the request's host; as valid as one.
    pub host: Option<Vec<u8>>,
    /// In the place of the root path: it is empty, or begins with a slash; ends with none, and is as it
    /// stands in a target.
    pub prefix: Option<String>,
}

impl Peer {
    /// In place of the request's own host.
    #[must_use]
    #[inline]
    pub fn host(&self) -> Option<&[u8]> {
        self.facade.as_ref()?.host.as_deref()
    }

    /// In place of the root path.
    #[must_use]
    #[inline]
    pub fn prefix(&self) -> Option<&str> {
        self.facade.as_ref()?.prefix.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_client_of_a_dual_stack_socket_is_an_ipv4_client() {
        let mapped: SocketAddr = "[::ffff:127.0.0.1]:80".parse().expect("literal");
        assert_eq!(Address::inet(mapped).to_string(), "127.0.0.1:80");
    }
}
