//! What fuzzers drive by itself, each with what has to hold for any bytes (`fuzz/`). Not there in any other build.
//!
//! Invariant: nothing in here is read by anybody but a fuzzer.

use http::{HeaderName, HeaderValue};

use crate::config::HeadLimits;
use crate::escape;
use crate::forwarded::{Forwarding, Taken};
use crate::frame::{Decoder, Event, Failure};
use crate::guard::{Breach, Guard};
use crate::memory::{self, Memory};
use crate::peer::{Address, Peer, Scheme};
use crate::proxies::{Known, Proxies};
use crate::proxy_protocol::{self, Header};

/// Bytes in front of a connection: what is asked for comes, and is never without an end.
pub fn proxy_header(bytes: &[u8]) {
    let mut came = 0;
    while let Ok(Header::Missing(count)) = proxy_protocol::read(&bytes[..came]) {
        assert!(count > 0 && came + count <= 16 + 4096, "{count} behind {came}");
        came += count;
        if came > bytes.len() {
            return;
        }
    }
}

/// Header lines of a proxy: whatever they say, a host is a host and a path is a path.
pub fn forwarded(bytes: &[u8]) {
    let names = ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port"];
    let mut head = http::Request::new(()).into_parts().0;
    for line in bytes.split(|byte| *byte == b'\n') {
        let Some((kind, value)) = line.split_first() else { continue };
        let name = names.get(usize::from(kind % 6)).copied().unwrap_or("x-forwarded-prefix");
        if let Ok(value) = HeaderValue::from_bytes(value) {
            head.headers.append(HeaderName::from_static(name), value);
        }
    }
    let local = Address::Inet(std::net::SocketAddr::from(([127, 0, 0, 1], 5000)));
    let peer = Peer { client: local.clone(), server: local, scheme: Scheme::Http, tls: None, facade: None };
    let known = Known { addresses: [std::net::IpAddr::from([10, 0, 0, 1])].into(), ..Known::default() };
    for standard in [false, true] {
        let taken = Taken {
            client: !standard,
            scheme: !standard,
            host: !standard,
            port: true,
            prefix: true,
            standard,
        };
        for proxies in [Proxies::All, Proxies::Known(known.clone())] {
            let Some(seen) = (Forwarding { proxies, taken }).see_through(&peer, &head) else { continue };
            assert!(seen.host().is_none_or(|host| !host.is_empty() && bridgehead_asgi::is_valid_host(host)));
            assert!(seen.prefix().is_none_or(|path| path.starts_with('/') && !path.starts_with("//")));
            log_text(seen.client.to_string().as_bytes());
        }
    }
}

/// Texts in a log: one line of printable ASCII, however they came.
pub fn log_text(bytes: &[u8]) {
    for write in [escape::plain, escape::json] {
        let mut line = Vec::new();
        write(bytes, &mut line);
        assert!(line.iter().all(|byte| (b' '..=b'~').contains(byte)), "{line:?}");
        assert!(line.len() <= 6 * 1024 + 8);
    }
}

/// Frames: pieces come to what the whole comes to.
pub fn websocket_frames(bytes: &[u8]) {
    let Some((&size, script)) = bytes.split_first() else { return };
    let whole = frames(script, script.len().max(1));
    assert_eq!(frames(script, usize::from(size).max(1)), whole);
}

fn frames(script: &[u8], piece: usize) -> (Vec<Event>, Option<Failure>) {
    let mut decoder = Decoder::new(64 * 1024, Memory::new(memory::ALL), None);
    let mut events = Vec::new();
    for mut input in script.chunks(piece) {
        loop {
            match decoder.next(&mut input) {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(failure) => return (events, Some(failure)),
            }
        }
    }
    (events, None)
}

/// Requests: what is refused whole is refused in pieces. In which words may depend on what has come.
pub fn framing(bytes: &[u8]) {
    let Some((&size, script)) = bytes.split_first() else { return };
    let whole = refused_in_head(script, script.len().max(1));
    assert_eq!(refused_in_head(script, usize::from(size).max(1)), whole);
}

fn refused_in_head(script: &[u8], piece: usize) -> Option<bool> {
    let limits = HeadLimits { target: 256, bytes: 1024, fields: 8 };
    let mut guard = Guard::default();
    script
        .chunks(piece)
        .find_map(|part| guard.admit(part, &limits).err())
        .map(|breach: Breach| breach.in_head)
}
