//! Whom to believe: proxies by address, by network, by name.
//!
//! Not what they say, which is read in `forwarded` and `proxy_protocol`.
//!
//! Invariant: nobody is trusted who is not named.

use std::collections::HashSet;
use std::net::IpAddr;

use crate::peer::Address;

/// The name under which clients on Unix sockets are trusted.
const UNIX: &str = "unix";

/// How nginx writes such a client into a list.
const UNIX_IN_LISTS: &str = "unix:";

/// Whose word is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proxies {
    /// Anybody's, also on a Unix socket. Then the first address of a list is the client's.
    All,
    /// Theirs alone. The client is the last of a list who is none of them.
    Known(Known),
}

/// Some proxies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// By address.
    pub addresses: HashSet<IpAddr>,
    /// By network.
    pub networks: Vec<Network>,
    /// Words that stand in a list of addresses, and are none.
    pub names: HashSet<String>,
}

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// One of them.
    pub base: IpAddr,
    /// How many bits that are.
    pub prefix: u8,
}

impl Network {
    fn contains(&self, address: IpAddr) -> bool {
        let differing = match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => (base.to_bits() ^ address.to_bits()).leading_zeros(),
            (IpAddr::V6(base), IpAddr::V6(address)) => (base.to_bits() ^ address.to_bits()).leading_zeros(),
            _ => return false,
        };
        differing >= u32::from(self.prefix)
    }
}

impl Known {
    fn has(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address) || self.networks.iter().any(|network| network.contains(address))
    }

    pub(crate) fn has_named(&self, host: &str) -> bool {
        if let Ok(address) = host.parse() {
            return self.has(address);
        }
        // An address of one link: `fe80::1%eth0`.
        let of_link = host.split_once('%').and_then(|(address, _)| address.parse().ok());
        of_link.is_some_and(|address| self.networks.iter().any(|network| network.contains(address)))
            || self.names.contains(host)
            || host == UNIX_IN_LISTS && self.trusts_unix()
    }

    fn trusts_unix(&self) -> bool {
        self.names.contains(UNIX)
    }
}

impl Proxies {
    /// Whether whoever is at the other end is one of them. Asked once for each connection.
    #[must_use]
    #[inline]
    pub fn trust(&self, client: &Address) -> bool {
        match (self, client) {
            (Self::All, _) => true,
            // By IPv4's words alone where a socket for both families has written it as an address of IPv6, too: who
            // names networks of IPv6 does not mean all of IPv4.
            (Self::Known(known), Address::Inet(client)) => known.has(client.ip()),
            (Self::Known(known), Address::Unix(_)) => known.trusts_unix(),
            (Self::Known(_), Address::Forwarded { .. }) => false,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn known(words: &[&str]) -> Proxies {
        let mut known = Known::default();
        for word in words {
            if let Some((base, prefix)) = word.split_once('/') {
                let base = base.parse().expect("an address");
                known.networks.push(Network { base, prefix: prefix.parse().expect("a number") });
            } else if let Ok(address) = word.parse() {
                known.addresses.insert(address);
            } else {
                known.names.insert((*word).to_owned());
            }
        }
        Proxies::Known(known)
    }

    #[test]
    fn a_peer_is_trusted_by_its_address_however_that_was_written() {
        let inet = |text: &str| Address::inet(text.parse().expect("an address"));
        let cases: &[(&[&str], &str, bool)] = &[
            (&["127.0.0.1"], "127.0.0.1:1", true),
            (&["127.0.0.1"], "[::ffff:127.0.0.1]:1", true),
            (&["::ffff:127.0.0.1"], "127.0.0.1:1", false),
            (&["::ffff:127.0.0.1"], "[::ffff:127.0.0.1]:1", false),
            (&["::/0"], "127.0.0.1:1", false),
            (&["::/0"], "[::ffff:127.0.0.1]:1", false),
            (&["::ffff:0:0/96"], "127.0.0.1:1", false),
            (&["127.0.0.1"], "127.0.0.2:1", false),
            (&["127.0.0.1"], "[::1]:1", false),
            (&["127.0.0.0/8"], "127.9.9.9:1", true),
            (&["::/0"], "[2001:db8::1]:1", true),
            (&["0.0.0.0/0"], "[2001:db8::1]:1", false),
            (&[], "127.0.0.1:1", false),
        ];
        for (trusted, client, expected) in cases {
            assert_eq!(known(trusted).trust(&inet(client)), *expected, "{trusted:?} {client}");
        }
        assert!(Proxies::All.trust(&Address::Unix(None)));
        assert!(!known(&["127.0.0.1"]).trust(&Address::Unix(None)));
        assert!(known(&["127.0.0.1", "unix"]).trust(&Address::Unix(None)));
    }
}
