//! What fuzzers drive, each with what has to hold for any bytes (`fuzz/`). Not there in any other build but that of the
//! tests, which run the seeds that are kept.
//!
//! Here is what reads by itself; whole connections are `fuzzed_connection`'s, messages of applications `fuzzed_messages`'.
//!
//! Invariant: nothing in here is read by anybody but a fuzzer and those tests, and each fuzzer has one line in [`TARGETS`].

use std::io::Write;

use bridgehead_asgi::ResponseHead;
use bridgehead_heads::{Breach, Guard, HeadLimits};
use bridgehead_proxies::{
    Address, Forwarding, Known, Peer, Proxies, Scheme, Taken, escape,
    proxy_protocol::{self, Header},
};
use bridgehead_tls::{Clients, Credentials, Demand, Files, Policy, Settings, Source, Version};
use bridgehead_websocket::{Decoder, Deflation, Event, Failure, Memory};
use http::header::SEC_WEBSOCKET_EXTENSIONS;
use http::{HeaderMap, HeaderName, HeaderValue};

pub use crate::fuzzed_connection::{http1, http2, websocket};
pub use crate::fuzzed_messages::messages;

/// One of them.
pub type Target = fn(&[u8]);

/// All of them, by the names of their files and of the folders of their seeds.
pub const TARGETS: &[(&str, Target)] = &[
    ("answer", answer),
    ("forwarded", forwarded),
    ("framing", framing),
    ("http1", http1),
    ("http2", http2),
    ("log_text", log_text),
    ("messages", messages),
    ("pem", pem),
    ("proxy_header", proxy_header),
    ("static_path", bridgehead_static::fuzzed),
    ("websocket", websocket),
    ("websocket_frames", websocket_frames),
];

/// Heads of answers as applications send them: none that is taken can be two.
pub fn answer(bytes: &[u8]) {
    let mut lines = bytes.split(|byte| *byte == 0xff);
    let status = lines.next().and_then(|word| std::str::from_utf8(word).ok()?.parse().ok()).unwrap_or(200);
    let Ok(mut head) = ResponseHead::new(status) else { return };
    for line in lines {
        let cut = line.iter().position(|byte| *byte == 0xfe).unwrap_or(line.len());
        let (name, value) = (&line[..cut], line.get(cut + 1..).unwrap_or_default());
        if head.header(name, value).is_ok() {
            assert!(!name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic() && *byte != b':'));
            assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        }
    }
    let parts = head.into_parts();
    assert!(!parts.headers.contains_key("transfer-encoding"));
}

/// Files of certificates and keys: they are read, or it is said why not.
pub fn pem(bytes: &[u8]) {
    let path = std::env::temp_dir().join(format!("bridgehead-fuzz-{}.pem", std::process::id()));
    std::fs::File::create(&path).and_then(|mut file| file.write_all(bytes)).expect("a folder for it");
    let _ = Credentials::load(Settings {
        identities: vec![Source::Files(Files {
            options: ("certificates", "key"),
            certificates: path.clone(),
            key: Some(path.clone()),
            password: None,
        })],
        clients: Clients { demand: Demand::None, authorities: None, revocations: Vec::new() },
        policy: Policy { versions: vec![Version::Tls13], ciphers: None },
        protocols: Vec::new(),
    });
    let _ = std::fs::remove_file(path);
}

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
            assert!(seen.prefix().is_none_or(is_root));
            log_text(seen.client.to_string().as_bytes());
        }
    }
}

/// Whether an application may take it for a root path, as it sees it.
fn is_root(prefix: &str) -> bool {
    let seen = bridgehead_asgi::decode_path(prefix);
    let is_path = seen.starts_with('/') && !seen.starts_with("//") && !seen.ends_with('/');
    seen.is_empty() || is_path && !seen.contains(char::is_control)
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

/// Frames, which may be compressed if the first byte says so: pieces come to what the whole comes to.
pub fn websocket_frames(bytes: &[u8]) {
    let Some((&first, script)) = bytes.split_first() else { return };
    let (compressed, size) = (first & 0x80 != 0, usize::from(first & 0x7f));
    let whole = frames(script, script.len().max(1), compressed);
    let pieces = frames(script, size.max(1), compressed);
    // A compressed message that is wrong in two ways is refused for the one that is seen first.
    if compressed {
        assert_eq!((pieces.0, pieces.1.is_some()), (whole.0, whole.1.is_some()));
    } else {
        assert_eq!(pieces, whole);
    }
}

fn frames(script: &[u8], piece: usize, compressed: bool) -> (Vec<Event>, Option<Failure>) {
    let memory = Memory::of_a_worker();
    let offer = HeaderMap::from_iter([(
        SEC_WEBSOCKET_EXTENSIONS,
        HeaderValue::from_static("permessage-deflate; client_max_window_bits"),
    )]);
    let agreed = bridgehead_websocket::agree(&offer).filter(|_| compressed);
    let deflation = agreed.and_then(|agreed| Deflation::new(agreed, &memory));
    let mut decoder = Decoder::new(64 * 1024, memory, deflation.map(|both| both.inflater));
    let mut events = Vec::new();
    for mut input in script.chunks(piece) {
        loop {
            match decoder.next(&mut input) {
                // Who has had much inflated comes back for the rest.
                Ok(Some(Event::Turn)) => {}
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn folder(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(name)
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let found = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        found.map(|each| each.expect("a name").path()).collect()
    }

    #[test]
    fn what_has_to_hold_for_any_bytes_holds_for_the_seeds_that_are_kept() {
        for (name, target) in TARGETS {
            let seeds = files(&folder("seeds").join(name));
            assert!(!seeds.is_empty(), "{name} has no seeds");
            for seed in seeds {
                target(&fs::read(seed).expect("its bytes"));
            }
        }
    }

    #[test]
    fn each_fuzzer_is_among_those_whose_seeds_are_run() {
        let stem = |path: &PathBuf| path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
        let named: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
        let built: BTreeSet<_> = files(&folder("fuzz_targets")).iter().filter_map(stem).collect();
        let kept: BTreeSet<_> = files(&folder("seeds")).iter().filter_map(stem).collect();
        assert_eq!((&built, &kept), (&named, &named));
    }
}
