//! Whose word is taken for who a client is, and what is taken of it, as Python has read it.
//!
//! Not the rules, which are `bridgehead-proxies`'s.

use std::collections::HashSet;
use std::net::IpAddr;

use bridgehead_proxies::{Known, Network, Taken};
use pyo3::prelude::*;

/// `bridgehead.forwarded.Trusted`: whose word is taken for who a client is.
#[derive(FromPyObject)]
pub(crate) struct Proxies {
    everybody: bool,
    addresses: Vec<IpAddr>,
    networks: Vec<(IpAddr, u8)>,
    names: Vec<String>,
}

impl Proxies {
    pub(crate) fn read(&self) -> bridgehead_proxies::Proxies {
        if self.everybody {
            return bridgehead_proxies::Proxies::All;
        }
        let networks = self.networks.iter().map(|&(base, prefix)| Network { base, prefix }).collect();
        bridgehead_proxies::Proxies::Known(Known {
            addresses: self.addresses.iter().copied().collect(),
            networks,
            names: self.names.iter().cloned().collect(),
        })
    }
}

/// `bridgehead.forwarded.Forwarding`: who may name other clients, and by which headers.
#[derive(FromPyObject)]
pub(crate) struct Forwarding {
    proxies: Proxies,
    headers: HashSet<String>,
}

impl Forwarding {
    pub(crate) fn read(&self) -> bridgehead_proxies::Forwarding {
        let has = |word| self.headers.contains(word);
        let taken = Taken {
            client: has("for"),
            scheme: has("proto"),
            host: has("host"),
            port: has("port"),
            prefix: has("prefix"),
            standard: has("forwarded"),
        };
        bridgehead_proxies::Forwarding { proxies: self.proxies.read(), taken }
    }
}
