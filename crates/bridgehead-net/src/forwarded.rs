//! Whom a request is of, and by which scheme it came, as the proxies in front of us say it.
//!
//! `X-Forwarded-For` and `X-Forwarded-Proto`, with the meaning that uvicorn gives them. Another way to say the same is
//! one more function from a peer that is trusted to another [`Peer`].
//!
//! Invariant: what a client that is no trusted proxy says of itself changes nothing.

use std::borrow::Cow;
use std::collections::HashSet;
use std::net::IpAddr;

use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::peer::{Address, Peer, Scheme};

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

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

    fn has_named(&self, host: &str) -> bool {
        if let Ok(address) = host.parse() {
            return self.has(address);
        }
        // An address of one link: `fe80::1%eth0`.
        let of_link = host.split_once('%').and_then(|(address, _)| address.parse().ok());
        of_link.is_some_and(|address| self.networks.iter().any(|network| network.contains(address)))
            || self.names.contains(host)
    }
}

impl Proxies {
    /// Whether whoever is at the other end is one of them. Asked once for each connection.
    pub(crate) fn trust(&self, client: &Address) -> bool {
        match (self, client) {
            (Self::All, _) => true,
            // A socket for both families has written it as an address of IPv6.
            (Self::Known(known), Address::Inet(client)) => match client.ip() {
                IpAddr::V4(short) => known.has(short.into()) || known.has(short.to_ipv6_mapped().into()),
                long @ IpAddr::V6(_) => known.has(long),
            },
            (Self::Known(_), Address::Unix(_) | Address::Forwarded { .. }) => false,
        }
    }

    /// Who sent this request by way of `peer`, one of us; nothing if it says no other than itself.
    pub(crate) fn see_through(&self, peer: &Peer, headers: &HeaderMap) -> Option<Peer> {
        let scheme = headers.get_all(PROTO).iter().next_back().and_then(scheme);
        let client = if headers.contains_key(FOR) { self.client(headers) } else { None };
        if scheme.is_none() && client.is_none() {
            return None;
        }
        Some(Peer {
            client: client.unwrap_or_else(|| peer.client.clone()),
            server: peer.server.clone(),
            scheme: scheme.unwrap_or(peer.scheme),
            tls: peer.tls.clone(),
        })
    }

    /// Each proxy adds whom it heard at the end. An empty word says nothing of anybody.
    fn client(&self, headers: &HeaderMap) -> Option<Address> {
        let lists = || headers.get_all(FOR).iter().map(HeaderValue::as_bytes);
        let first = || lists().flat_map(|list| list.split(|byte| *byte == b',')).next().map(host_and_port);
        let stranger = |known: &Known| {
            lists()
                .rev()
                .flat_map(|list| list.rsplit(|byte| *byte == b','))
                .map(host_and_port)
                .find(|(host, _)| !known.has_named(host))
        };
        let (host, port) = match self {
            Self::All => first(),
            Self::Known(known) => stranger(known).or_else(first),
        }?;
        if host.is_empty() { None } else { Some(Address::Forwarded { host, port }) }
    }
}

fn scheme(value: &HeaderValue) -> Option<Scheme> {
    match latin(value.as_bytes()).trim() {
        "http" => Some(Scheme::Http),
        "https" => Some(Scheme::Https),
        "ws" => Some(Scheme::Ws),
        "wss" => Some(Scheme::Wss),
        _ => None,
    }
}

/// `1.2.3.4`, `1.2.3.4:80`, `::1`, `[::1]`, `[::1]:80`; whatever else is a host as it stands. Port 0: it is not known.
fn host_and_port(word: &[u8]) -> (String, u16) {
    let word = latin(word);
    let word = word.trim();
    if let Some(bracketed) = word.strip_prefix('[') {
        return match bracketed.split_once(']') {
            Some((host, "")) => (host.to_owned(), 0),
            Some((host, rest)) if rest.starts_with(':') => (host.to_owned(), port(&rest[1..]).unwrap_or(0)),
            _ => (word.to_owned(), 0),
        };
    }
    match word.split_once(':') {
        Some((host, rest)) if !rest.contains(':') => match port(rest) {
            Some(port) => (host.to_owned(), port),
            None => (word.to_owned(), 0),
        },
        _ => (word.to_owned(), 0),
    }
}

/// `parse` would take a sign.
fn port(digits: &str) -> Option<u16> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Headers are Latin-1 to whoever looks at them as text.
fn latin(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.is_ascii() => text.into(),
        _ => bytes.iter().copied().map(char::from).collect::<String>().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(words: &[&str]) -> Proxies {
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

    fn peer() -> Peer {
        Peer {
            client: Address::Inet("127.0.0.1:5000".parse().expect("literal")),
            server: Address::Inet("127.0.0.1:80".parse().expect("literal")),
            scheme: Scheme::Http,
            tls: None,
        }
    }

    fn seen(proxies: &Proxies, pairs: &[(HeaderName, &str)]) -> Option<(String, Scheme)> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name.clone(), HeaderValue::from_str(value).expect("a value"));
        }
        proxies.see_through(&peer(), &headers).map(|seen| (seen.client.to_string(), seen.scheme))
    }

    /// Each line: who is trusted, what the header says, whom uvicorn 0.54 takes for the client.
    const CLIENTS: &[(&[&str], &str, &str)] = &[
        (&["127.0.0.1"], "1.2.3.4", "1.2.3.4:0"),
        (&["127.0.0.1"], "1.2.3.4:567", "1.2.3.4:567"),
        (&["127.0.0.1"], "1.2.3.4, 10.0.0.2", "10.0.0.2:0"),
        (&["127.0.0.1", "10.0.0.2"], "1.2.3.4, 10.0.0.2", "1.2.3.4:0"),
        (&["127.0.0.1", "10.0.0.0/8"], "6.6.6.6, 1.2.3.4,10.0.0.3 ,10.9.9.9:77", "1.2.3.4:0"),
        (&["127.0.0.1", "10.0.0.0/8"], "10.0.0.1:9, 10.0.0.2", "10.0.0.1:9"),
        (&["127.0.0.1", "0.0.0.0/0"], "2001:db8::1, 9.9.9.9", "2001:db8::1:0"),
        (&["127.0.0.1", "2001:db8::/32"], "1.2.3.4, 2001:DB8::5, [2001:db8:1::]:8", "1.2.3.4:0"),
        (&["127.0.0.1", "fe80::/10"], "1.2.3.4, fe80::1%eth0", "1.2.3.4:0"),
        (&["127.0.0.1"], "[2001:DB8::1]", "2001:DB8::1:0"),
        (&["127.0.0.1"], "[2001:db8::1]:443", "2001:db8::1:443"),
        (&["127.0.0.1"], "[2001:db8::1]:x", "2001:db8::1:0"),
        (&["127.0.0.1"], "[2001:db8::1]x", "[2001:db8::1]x:0"),
        (&["127.0.0.1"], "[2001:db8::1", "[2001:db8::1:0"),
        (&["127.0.0.1"], "1.2.3.4:x", "1.2.3.4:x:0"),
        (&["127.0.0.1"], "unknown", "unknown:0"),
        (&["127.0.0.1", "unknown"], "1.2.3.4, unknown", "1.2.3.4:0"),
        (&["127.0.0.1", "10.0.0.1"], "1.2.3.4, ::ffff:10.0.0.1", "::ffff:10.0.0.1:0"),
        (&["127.0.0.1", "10.0.0.1"], "1.2.3.4, 10.0.0.01", "10.0.0.01:0"),
        (&["127.0.0.1"], "caf\u{e9}", "caf\u{e9}:0"),
    ];

    #[test]
    fn the_client_is_the_last_who_is_no_known_proxy() {
        for (trusted, list, client) in CLIENTS {
            let expected = Some(((*client).to_owned(), Scheme::Http));
            let latin = list.chars().map(|letter| letter as u8).collect::<Vec<_>>();
            let mut headers = HeaderMap::new();
            headers.append(FOR, HeaderValue::from_bytes(&latin).expect("a value"));
            let seen = known(trusted).see_through(&peer(), &headers);
            assert_eq!(seen.map(|seen| (seen.client.to_string(), seen.scheme)), expected, "{list:?}");
        }
    }

    #[test]
    fn a_list_that_ends_with_nothing_says_nothing() {
        for list in ["", " ", "1.2.3.4,", "1.2.3.4, "] {
            assert_eq!(seen(&known(&["127.0.0.1"]), &[(FOR, list)]), None, "{list:?}");
        }
        assert_eq!(seen(&Proxies::All, &[(FOR, ", 1.2.3.4")]), None);
    }

    #[test]
    fn where_all_are_trusted_the_first_is_the_client() {
        let seen = seen(&Proxies::All, &[(FOR, "1.2.3.4:5, 6.6.6.6"), (FOR, "7.7.7.7")]);
        assert_eq!(seen, Some(("1.2.3.4:5".to_owned(), Scheme::Http)));
    }

    #[test]
    fn several_headers_are_one_list() {
        let seen = seen(&known(&["10.0.0.0/8"]), &[(FOR, "6.6.6.6, 1.2.3.4"), (FOR, "10.0.0.1, 10.0.0.2")]);
        assert_eq!(seen, Some(("1.2.3.4:0".to_owned(), Scheme::Http)));
    }

    #[test]
    fn a_port_that_is_none_is_no_port() {
        for list in ["10.0.0.1:70000", "10.0.0.1:+8", "10.0.0.1:"] {
            let seen = seen(&known(&["10.0.0.1"]), &[(FOR, list)]);
            assert_eq!(seen, Some((format!("{list}:0"), Scheme::Http)));
        }
    }

    #[test]
    fn the_scheme_is_the_last_that_is_said_if_it_is_one() {
        let at = |values: &[&str]| {
            let pairs: Vec<_> = values.iter().map(|value| (PROTO, *value)).collect();
            seen(&known(&[]), &pairs).map(|(_, scheme)| scheme)
        };
        assert_eq!(at(&["https"]), Some(Scheme::Https));
        assert_eq!(at(&["\t https "]), Some(Scheme::Https));
        assert_eq!(at(&["http", "wss"]), Some(Scheme::Wss));
        assert_eq!(at(&["ws"]), Some(Scheme::Ws));
        for none in ["HTTPS", "https, http", "ftp", ""] {
            assert_eq!(at(&[none]), None, "{none}");
        }
        assert_eq!(at(&["https", "ftp"]), None);
    }

    #[test]
    fn a_peer_is_trusted_by_its_address_however_that_was_written() {
        let inet = |text: &str| Address::inet(text.parse().expect("an address"));
        let cases: &[(&[&str], &str, bool)] = &[
            (&["127.0.0.1"], "127.0.0.1:1", true),
            (&["127.0.0.1"], "[::ffff:127.0.0.1]:1", true),
            (&["::ffff:127.0.0.1"], "127.0.0.1:1", true),
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
    }
}
