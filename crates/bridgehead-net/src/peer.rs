//! Who is at the other end of a connection, and on which address of ours.
//!
//! Not the trust in forwarded headers: these are the socket's own addresses.

use std::fmt;
use std::net::SocketAddr;

/// One end of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP address; IPv4 that came through a dual-stack socket is IPv4 here.
    Inet(SocketAddr),
    /// A Unix socket's path; clients usually have none.
    Unix(Option<String>),
}

impl Address {
    /// As `accept` gives it, with IPv4-mapped addresses unmapped.
    pub(crate) fn inet(address: SocketAddr) -> Self {
        Self::Inet(SocketAddr::new(address.ip().to_canonical(), address.port()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inet(address) => write!(out, "{}:{}", address.ip(), address.port()),
            Self::Unix(_) => Ok(()),
        }
    }
}

/// Both ends of a connection, made once and shared by its requests.
#[derive(Debug)]
pub struct Peer {
    /// Who connected.
    pub client: Address,
    /// Which of our addresses it reached.
    pub server: Address,
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
