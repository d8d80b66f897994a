//! Whom a request is of, by which scheme it came and under which name and path, as the proxies in front of us say it.
//!
//! `X-Forwarded-For` and `X-Forwarded-Proto` with the meaning that uvicorn gives them; the others and `Forwarded`
//! (`forwarded_list`) where they are asked for. Not whom to believe, which is `proxies`'s.
//!
//! Invariant: what a client that is no trusted proxy says of itself changes nothing, and nothing becomes a host or a path
//! that could not have been one in a request.

use std::borrow::Cow;

use http::header::{FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue};
use http::request;

use crate::forwarded_list::{self, Element, MOST};
use crate::peer::{Address, Facade, Peer, Scheme};
use crate::proxies::{Known, Proxies};

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const SEEN_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const SEEN_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// Who a client is whom no trusted proxy has named in words that can be read: RFC 7239's own word for it. The proxy's
/// address would be one that applications may trust.
const UNKNOWN: &str = "unknown";

/// Who may name other clients, and by which headers.
#[derive(Clone, Debug)]
pub struct Forwarding {
    /// Whose word is taken.
    pub proxies: Proxies,
    /// In which headers.
    pub taken: Taken,
}

/// Which headers are taken. A proxy passes on those that it does not know, so each has to be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// `X-Forwarded-For`.
    pub client: bool,
    /// `X-Forwarded-Proto`.
    pub scheme: bool,
    /// `X-Forwarded-Host`.
    pub host: bool,
    /// `X-Forwarded-Port`.
    pub port: bool,
    /// `X-Forwarded-Prefix`.
    pub prefix: bool,
    /// `Forwarded`, for client, scheme and host.
    pub standard: bool,
}

/// What proxies said, as far as it can be used.
#[derive(Default)]
struct Said {
    client: Option<Address>,
    scheme: Option<Scheme>,
    host: Option<Vec<u8>>,
}

impl Forwarding {
    /// Who sent this request by way of `peer`, one of the trusted; nothing if it says no other than itself.
    #[must_use]
    pub fn see_through(&self, peer: &Peer, head: &request::Parts) -> Option<Peer> {
        let headers = &head.headers;
        // A look at each name costs less than looking for each of ours, which most requests have none of.
        if !headers.keys().any(is_told_by_proxies) {
            return None;
        }
        let said = if self.taken.standard { self.in_standard(headers) } else { self.in_custom(headers) };
        let scheme = said.scheme.unwrap_or(peer.scheme);
        let facade = self.facade(said.host, scheme, head);
        if said.scheme.is_none() && said.client.is_none() && facade.is_none() {
            return None;
        }
        Some(Peer {
            client: said.client.unwrap_or_else(|| peer.client.clone()),
            server: peer.server.clone(),
            scheme,
            tls: peer.tls.clone(),
            facade,
        })
    }

    fn in_custom(&self, headers: &HeaderMap) -> Said {
        let scheme = || scheme(latin(headers.get_all(PROTO).iter().next_back()?.as_bytes()).trim());
        Said {
            scheme: if self.taken.scheme { scheme() } else { None },
            client: if self.taken.client && headers.contains_key(FOR) { self.client(headers) } else { None },
            host: if self.taken.host { last_word(headers, &SEEN_HOST).and_then(valid_host) } else { None },
        }
    }

    /// Each proxy adds whom it heard at the end. An empty word says nothing of anybody.
    fn client(&self, headers: &HeaderMap) -> Option<Address> {
        let lists = || headers.get_all(FOR).iter().map(HeaderValue::as_bytes);
        let read = |word| host_and_port(latin(word).trim());
        let (host, port) = match &self.proxies {
            Proxies::All => lists().flat_map(|list| list.split(|byte| *byte == b',')).next().map(read),
            Proxies::Known(known) => {
                let words = lists().rev().flat_map(|list| list.rsplit(|byte| *byte == b',')).map(read);
                until_foreign(words, known)
            }
        }?;
        if host.is_empty() { None } else { Some(Address::Forwarded { host, port }) }
    }

    fn in_standard(&self, headers: &HeaderMap) -> Said {
        let mut elements = Vec::new();
        for value in headers.get_all(FORWARDED) {
            if forwarded_list::read(&latin(value.as_bytes()), &mut elements).is_err() {
                return Said { client: Some(unknown()), ..Said::default() };
            }
        }
        let trusted = &elements[self.first_trusted(&elements)..];
        let client = |first: &Element| {
            let (host, port) = node(first.node.as_deref()?);
            Some(Address::Forwarded { host, port })
        };
        Said {
            client: trusted.first().map(|first| client(first).unwrap_or_else(unknown)),
            scheme: trusted.iter().find_map(|element| scheme(&element.scheme.as_ref()?.to_ascii_lowercase())),
            host: trusted.iter().find_map(|element| valid_host(element.host.as_ref()?.as_bytes())),
        }
    }

    /// The first element that somebody trusted has written: each adds one for whom it heard, who wrote those before.
    fn first_trusted(&self, elements: &[Element]) -> usize {
        let Proxies::Known(known) = &self.proxies else { return 0 };
        let is_known =
            |element: &Element| element.node.as_deref().is_some_and(|word| known.has_named(&node(word).0));
        elements.iter().rposition(|element| !is_known(element)).unwrap_or_default()
    }

    fn facade(&self, host: Option<Vec<u8>>, scheme: Scheme, head: &request::Parts) -> Option<Box<Facade>> {
        let port =
            if self.taken.port { last_word(&head.headers, &SEEN_PORT).and_then(known_port) } else { None };
        let host = match port {
            Some(port) => host_at(host.as_deref().or_else(|| own_host(head))?, port, scheme),
            None => host,
        };
        let prefix = if self.taken.prefix { last_word(&head.headers, &PREFIX).and_then(path) } else { None };
        if host.is_none() && prefix.is_none() {
            return None;
        }
        Some(Box::new(Facade { host, prefix }))
    }
}

/// The first who is none of them; if all are, the farthest that is looked at.
fn until_foreign(words: impl Iterator<Item = (String, u16)>, known: &Known) -> Option<(String, u16)> {
    let mut farthest = None;
    for word in words.take(MOST) {
        let is_foreign = !known.has_named(&word.0);
        farthest = Some(word);
        if is_foreign {
            break;
        }
    }
    farthest
}

/// Whether a proxy may say by this header who it speaks for.
fn is_told_by_proxies(name: &HeaderName) -> bool {
    *name == FORWARDED || name.as_str().starts_with("x-forwarded-")
}

/// What the nearest proxy said: the last word of the last header.
fn last_word<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let value = headers.get_all(name).iter().next_back()?;
    value.as_bytes().rsplit(|byte| *byte == b',').next().map(<[u8]>::trim_ascii)
}

fn valid_host(word: &[u8]) -> Option<Vec<u8>> {
    (!word.is_empty() && bridgehead_asgi::is_valid_host(word)).then(|| word.to_vec())
}

/// The host that a request names by itself, which was judged.
fn own_host(head: &request::Parts) -> Option<&[u8]> {
    let target = head.uri.authority().map(|authority| authority.as_str().as_bytes());
    target.or_else(|| head.headers.get(HOST).map(HeaderValue::as_bytes)).filter(|host| !host.is_empty())
}

/// A host at a port, which is left out where it goes without saying.
fn host_at(host: &[u8], port: u16, scheme: Scheme) -> Option<Vec<u8>> {
    let host = bridgehead_asgi::without_port(std::str::from_utf8(host).ok()?);
    let usual = match scheme {
        Scheme::Http | Scheme::Ws => 80,
        Scheme::Https | Scheme::Wss => 443,
    };
    Some(if port == usual { host.to_owned() } else { format!("{host}:{port}") }.into_bytes())
}

fn known_port(word: &[u8]) -> Option<u16> {
    port(std::str::from_utf8(word).ok()?).filter(|port| *port != 0)
}

/// A path in front of others, without a slash at its end; `/` is none. What an application sees of it is judged, which is
/// decoded: two slashes at its beginning, or a backslash, would make a host of what follows, and a control character ends
/// lines elsewhere.
fn path(word: &[u8]) -> Option<String> {
    let path =
        std::str::from_utf8(word).ok().filter(|path| path.starts_with('/') && !path.starts_with("//"))?;
    let path = path.trim_end_matches('/');
    let fits = |byte: u8| byte.is_ascii_graphic() && !br##""#<>?[\]^`{|}"##.contains(&byte);
    let seen = bridgehead_asgi::decode_path(path);
    let is_path = !seen.starts_with("//")
        && !seen.ends_with('/')
        && !seen.contains(|letter: char| letter.is_control() || matches!(letter, '\\' | '\u{fffd}'));
    (path.bytes().all(fits) && is_path).then(|| path.to_owned())
}

fn scheme(word: &str) -> Option<Scheme> {
    match word {
        "http" => Some(Scheme::Http),
        "https" => Some(Scheme::Https),
        "ws" => Some(Scheme::Ws),
        "wss" => Some(Scheme::Wss),
        _ => None,
    }
}

/// `1.2.3.4`, `1.2.3.4:80`, `::1`, `[::1]`, `[::1]:80`; whatever else is a host as it stands. Port 0: it is not known.
fn host_and_port(word: &str) -> (String, u16) {
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

/// The same in `Forwarded`, where a port may be hidden behind a name that begins with `_` (RFC 7239, section 6.2).
fn node(word: &str) -> (String, u16) {
    let is_hidden = |rest: &str| {
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    match word.split_once(":_") {
        Some((host, rest)) if !host.contains(':') && is_hidden(rest) => (host.to_owned(), 0),
        _ => host_and_port(word),
    }
}

/// Whom a proxy heard that does not say it, or not in words that can be read.
fn unknown() -> Address {
    Address::Forwarded { host: UNKNOWN.to_owned(), port: 0 }
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
    use proptest::prelude::*;

    use super::*;
    use crate::proxies::tests::known;

    const USUAL: Taken =
        Taken { client: true, scheme: true, host: false, port: false, prefix: false, standard: false };

    fn usual(proxies: Proxies) -> Forwarding {
        Forwarding { proxies, taken: USUAL }
    }

    fn peer() -> Peer {
        Peer {
            client: Address::Inet("127.0.0.1:5000".parse().expect("literal")),
            server: Address::Inet("127.0.0.1:80".parse().expect("literal")),
            scheme: Scheme::Http,
            tls: None,
            facade: None,
        }
    }

    fn head_of(pairs: &[(HeaderName, &str)]) -> request::Parts {
        let mut head = http::Request::new(()).into_parts().0;
        for (name, value) in pairs {
            let latin = value.chars().map(|letter| letter as u8).collect::<Vec<_>>();
            head.headers.append(name.clone(), HeaderValue::from_bytes(&latin).expect("a value"));
        }
        head
    }

    fn seen(forwarding: &Forwarding, pairs: &[(HeaderName, &str)]) -> Option<(String, Scheme)> {
        let seen = forwarding.see_through(&peer(), &head_of(pairs));
        seen.map(|seen| (seen.client.to_string(), seen.scheme))
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
            assert_eq!(seen(&usual(known(trusted)), &[(FOR, list)]), expected, "{list:?}");
        }
    }

    #[test]
    fn a_list_that_ends_with_nothing_says_nothing() {
        for list in ["", " ", "1.2.3.4,", "1.2.3.4, "] {
            assert_eq!(seen(&usual(known(&["127.0.0.1"])), &[(FOR, list)]), None, "{list:?}");
        }
        assert_eq!(seen(&usual(Proxies::All), &[(FOR, ", 1.2.3.4")]), None);
    }

    #[test]
    fn no_more_proxies_are_walked_through_than_there_may_be() {
        let named = |behind: usize| {
            let list = format!("1.2.3.4,{}", vec!["10.0.0.1"; behind].join(","));
            seen(&usual(known(&["10.0.0.1"])), &[(FOR, &list)]).expect("it names somebody").0
        };
        assert_eq!(named(MOST - 1), "1.2.3.4:0");
        assert_eq!(named(MOST), "10.0.0.1:0");
    }

    #[test]
    fn where_all_are_trusted_the_first_is_the_client() {
        let seen = seen(&usual(Proxies::All), &[(FOR, "1.2.3.4:5, 6.6.6.6"), (FOR, "7.7.7.7")]);
        assert_eq!(seen, Some(("1.2.3.4:5".to_owned(), Scheme::Http)));
    }

    #[test]
    fn several_headers_are_one_list() {
        let seen =
            seen(&usual(known(&["10.0.0.0/8"])), &[(FOR, "6.6.6.6, 1.2.3.4"), (FOR, "10.0.0.1, 10.0.0.2")]);
        assert_eq!(seen, Some(("1.2.3.4:0".to_owned(), Scheme::Http)));
    }

    #[test]
    fn a_port_that_is_none_is_no_port() {
        for list in ["10.0.0.1:70000", "10.0.0.1:+8", "10.0.0.1:"] {
            let seen = seen(&usual(known(&["10.0.0.1"])), &[(FOR, list)]);
            assert_eq!(seen, Some((format!("{list}:0"), Scheme::Http)));
        }
    }

    #[test]
    fn the_scheme_is_the_last_that_is_said_if_it_is_one() {
        let at = |values: &[&str]| {
            let pairs: Vec<_> = values.iter().map(|value| (PROTO, *value)).collect();
            seen(&usual(known(&[])), &pairs).map(|(_, scheme)| scheme)
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

    type Standard<'a> = (&'a [&'a str], &'a [&'a str], &'a str, Option<&'a str>);

    /// What `Forwarded` says, who is trusted beside the peer, and client, scheme and host as they are seen.
    const STANDARD: &[Standard] = &[
        (&["for=1.2.3.4"], &[], "1.2.3.4:0 http", None),
        (&["for=1.2.3.4:5;proto=https;host=a.test"], &[], "1.2.3.4:5 https", Some("a.test")),
        (&["For=\"[2001:db8::1]:443\" ; PROTO=HTTPS"], &[], "2001:db8::1:443 https", None),
        (&["for=unknown"], &[], "unknown:0 http", None),
        (&["for=_hidden"], &[], "_hidden:0 http", None),
        (&["for=6.6.6.6;host=evil.test, for=1.2.3.4;host=a.test"], &[], "1.2.3.4:0 http", Some("a.test")),
        (&["for=6.6.6.6;host=evil.test", "for=1.2.3.4"], &[], "1.2.3.4:0 http", None),
        (&["for=1.2.3.4;proto=https, for=10.0.0.1;proto=http"], &["10.0.0.1"], "1.2.3.4:0 https", None),
        (&["for=1.2.3.4, for=10.0.0.1;proto=https"], &["10.0.0.1"], "1.2.3.4:0 https", None),
        (&["for=6.6.6.6, for=1.2.3.4, for=10.0.0.1"], &["10.0.0.0/8"], "1.2.3.4:0 http", None),
        (&["for=10.0.0.2;host=b.test, for=10.0.0.1"], &["10.0.0.0/8"], "10.0.0.2:0 http", Some("b.test")),
        (&["for=6.6.6.6, proto=https, for=10.0.0.1"], &["10.0.0.1"], "unknown:0 https", None),
        (&["for=6.6.6.6, proto=https"], &[], "unknown:0 https", None),
        (&["for=6.6.6.6, by=_here"], &[], "unknown:0 http", None),
        (&["proto=https"], &[], "unknown:0 https", None),
        (&["for=1.2.3.4, for=\"10.0.0.1:_gw\""], &["10.0.0.0/8"], "1.2.3.4:0 http", None),
        (&["for=1.2.3.4, for=\"[2001:db8::1]:_gw\""], &["2001:db8::1"], "1.2.3.4:0 http", None),
        (&["for=\"1.2.3.4:_gw.x-1\""], &[], "1.2.3.4:0 http", None),
        (&["for=\"1.2.3.4:_\""], &[], "1.2.3.4:_:0 http", None),
        (&["for=\"1.2.3.4:_g w\""], &[], "1.2.3.4:_g w:0 http", None),
        (&["proto=gopher;host=\"a b\";for=1.2.3.4"], &[], "1.2.3.4:0 http", None),
        (&["for=1.2.3.4;host=\"a/b\""], &[], "1.2.3.4:0 http", None),
        // What a client wrote in front cannot swallow what a proxy adds.
        (&["for=\"6.6.6.6", "for=1.2.3.4"], &[], "unknown:0 http", None),
        (&["for=\", for=\"[2001:db8::1]\""], &[], "unknown:0 http", None),
        (&["for=6.6.6.6;for=1.2.3.4;proto=https"], &[], "unknown:0 http", None),
        (&["1.2.3.4"], &[], "unknown:0 http", None),
    ];

    #[test]
    fn the_standard_header_is_walked_from_its_end_through_the_trusted() {
        for (values, trusted, expected, host) in STANDARD {
            let forwarding =
                Forwarding { proxies: known(trusted), taken: Taken { standard: true, ..Taken::default() } };
            let pairs: Vec<_> = values.iter().map(|value| (FORWARDED, *value)).collect();
            let peer = forwarding.see_through(&peer(), &head_of(&pairs)).expect("it says something");
            assert_eq!(format!("{} {}", peer.client, peer.scheme.as_str()), *expected, "{values:?}");
            let seen = peer.facade.and_then(|facade| facade.host);
            assert_eq!(seen.as_deref(), host.map(str::as_bytes), "{values:?}");
        }
        let all = Forwarding { proxies: Proxies::All, taken: Taken { standard: true, ..Taken::default() } };
        let first = seen(&all, &[(FORWARDED, "for=1.2.3.4;proto=https, for=6.6.6.6")]);
        assert_eq!(first, Some(("1.2.3.4:0".to_owned(), Scheme::Https)));
        assert_eq!(seen(&all, &[(FORWARDED, "")]), None);
    }

    #[test]
    fn one_header_is_not_taken_for_another() {
        let pairs = [(FOR, "1.2.3.4"), (PROTO, "https"), (SEEN_HOST, "a.test"), (PREFIX, "/a")];
        let nothing = Forwarding { proxies: Proxies::All, taken: Taken::default() };
        assert_eq!(seen(&nothing, &pairs), None);
        let standard = Forwarding { taken: Taken { standard: true, ..Taken::default() }, ..nothing };
        assert_eq!(seen(&standard, &pairs), None);
        assert_eq!(seen(&usual(Proxies::All), &[(FORWARDED, "for=1.2.3.4"), (SEEN_HOST, "a.test")]), None);
    }

    type Hosts<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>);

    /// What is said of host, port and scheme to a request for `own.test:8000`, and which host that is then.
    const HOSTS: &[Hosts] = &[
        (&[("host", "a.test")], Some("a.test")),
        (&[("host", "a.test:81")], Some("a.test:81")),
        (&[("host", "evil.test, a.test")], Some("a.test")),
        (&[("host", "evil.test"), ("host", "a.test")], Some("a.test")),
        (&[("host", "[::1]"), ("port", "81")], Some("[::1]:81")),
        (&[("host", "a.test:1"), ("port", "80")], Some("a.test")),
        (&[("host", "a.test"), ("port", "443"), ("proto", "https")], Some("a.test")),
        (&[("host", "a.test"), ("port", "80"), ("proto", "https")], Some("a.test:80")),
        (&[("port", "81")], Some("own.test:81")),
        (&[("port", "0")], None),
        (&[("port", "+81")], None),
        (&[("port", "99999")], None),
        (&[("host", "a/b?c")], None),
        (&[("host", "user@a.test")], None),
        (&[("host", "")], None),
        (&[("host", "a.test,")], None),
    ];

    #[test]
    fn a_host_is_one_that_a_request_could_have_named() {
        let taken = Taken { host: true, port: true, ..USUAL };
        let forwarding = Forwarding { proxies: Proxies::All, taken };
        for (pairs, expected) in HOSTS {
            let mut head = head_of(&[(HOST, "own.test:8000")]);
            for (name, value) in *pairs {
                let name: HeaderName = format!("x-forwarded-{name}").parse().expect("a name");
                head.headers.append(name, HeaderValue::from_static(value));
            }
            let seen = forwarding.see_through(&peer(), &head).and_then(|peer| peer.facade);
            let host = seen.and_then(|facade| facade.host);
            assert_eq!(host.as_deref(), expected.map(str::as_bytes), "{pairs:?}");
        }
    }

    #[test]
    fn a_prefix_is_a_path_and_no_host() {
        let taken = Taken { prefix: true, ..Taken::default() };
        let forwarding = Forwarding { proxies: Proxies::All, taken };
        let cases = [
            ("/a", Some("/a")),
            ("/a/b/", Some("/a/b")),
            ("/caf%C3%A9", Some("/caf%C3%A9")),
            ("/evil, /a", Some("/a")),
            ("/", Some("")),
            ("/a%2fb", Some("/a%2fb")),
            ("//", None),
            ("", None),
            ("a", None),
            ("%2fa", None),
            ("/%2fevil.test", None),
            ("/%2F/evil.test", None),
            ("/%2f", None),
            ("/a%2f", None),
            ("/%5cevil.test", None),
            ("/a%0d%0aX:y", None),
            ("/a%00b", None),
            ("/a%7f", None),
            ("/a%c2%85", None),
            ("/a%ff", None),
            ("//evil.test", None),
            ("/a?b", None),
            ("/a b", None),
            ("/a\\b", None),
            ("/caf\u{e9}", None),
        ];
        for (value, expected) in cases {
            let seen = forwarding.see_through(&peer(), &head_of(&[(PREFIX, value)]));
            let prefix = seen.and_then(|peer| peer.facade).and_then(|facade| facade.prefix);
            assert_eq!(prefix.as_deref(), expected, "{value}");
        }
    }

    proptest! {
        #[test]
        fn whatever_a_client_writes_in_front_it_is_whom_the_proxy_saw(written in "[ -~]{0,60}") {
            let added = format!("{written}, 1.2.3.4, 10.0.0.1");
            let proxied = Some(("1.2.3.4:0".to_owned(), Scheme::Http));
            let custom = usual(known(&["10.0.0.1"]));
            prop_assert_eq!(&seen(&custom, &[(FOR, &added)]), &proxied);
            prop_assert_eq!(&seen(&custom, &[(FOR, &written), (FOR, "1.2.3.4,10.0.0.1")]), &proxied);

            let standard = Forwarding {
                proxies: known(&["10.0.0.1"]),
                taken: Taken { standard: true, ..Taken::default() },
            };
            let element = "for=1.2.3.4;proto=https;host=a.test";
            let one = format!("{written}, {element}");
            for pairs in [vec![(FORWARDED, &*one)], vec![(FORWARDED, &*written), (FORWARDED, element)]] {
                let peer = standard.see_through(&peer(), &head_of(&pairs)).expect("the proxy says something");
                let host = peer.facade.and_then(|facade| facade.host);
                let told = (peer.client.to_string(), peer.scheme, host.as_deref());
                let whole = ("1.2.3.4:0".to_owned(), Scheme::Https, Some(&b"a.test"[..]));
                let unreadable = ("unknown:0".to_owned(), Scheme::Http, None);
                prop_assert!(told == whole || told == unreadable, "{:?}", told);
            }
        }
    }
}
