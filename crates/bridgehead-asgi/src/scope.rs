//! What a scope says about a request: versions, path and host.
//!
//! Not the dict itself, which the bridge builds, nor the refusal of a bad host, which is `bridgehead-net`'s.
//!
//! Invariant: every function here answers for any bytes, without an error and without a panic.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use http::Version;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, utf8_percent_encode};

/// `asgi.version` of every scope.
pub const ASGI_VERSION: &str = "3.0";

/// `asgi.spec_version` of an `http` or a `websocket` scope.
pub const SPEC_VERSION: &str = "2.5";

/// `asgi.spec_version` of a `lifespan` scope.
pub const LIFESPAN_SPEC_VERSION: &str = "2.0";

/// What a path of RFC 3986 has only in its percent form: all but `pchar` and the slash.
const OF_NO_PATH: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@')
    .remove(b'/');

/// A scope's `path`: percent-decoded, then decoded as UTF-8. As `urllib.parse.unquote` does, a `%` that starts no
/// escape stays, and bytes that are no UTF-8 become U+FFFD. Borrowed when there is nothing to decode.
pub fn decode_path<Raw: AsRef<[u8]> + ?Sized>(raw: &Raw) -> Cow<'_, str> {
    percent_decode(raw.as_ref()).decode_utf8_lossy()
}

/// The same the other way: as a client would have to send it.
#[must_use]
pub fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, &OF_NO_PATH).to_string()
}

/// A scope's `http_version`: "1.0", "1.1" or "2", for ASGI knows no other.
pub fn http_version(version: Version) -> &'static str {
    if version >= Version::HTTP_2 {
        "2"
    } else if version == Version::HTTP_11 {
        "1.1"
    } else {
        "1.0"
    }
}

/// True for what a `host` header may hold: nothing, or a name, an IPv4 or an `[IPv6]` address, and maybe a port
/// (RFC 9110 §7.2, RFC 3986 §3.2).
///
/// Stricter than the grammar in three ways: a comma is refused, as two hosts joined by one are no host; so is a
/// port without a host; and so is an address of a version yet to come.
pub fn is_valid_host(value: &[u8]) -> bool {
    match value {
        [] => true,
        [b'[', bracketed @ ..] => {
            let Some(end) = bracketed.iter().position(|byte| *byte == b']') else { return false };
            is_ipv6(&bracketed[..end]) && is_port_suffix(&bracketed[end + 1..])
        }
        _ => {
            let end = value.iter().position(|byte| *byte == b':').unwrap_or(value.len());
            end > 0 && is_name(&value[..end]) && is_port_suffix(&value[end..])
        }
    }
}

/// A host that was judged, without the port behind it.
#[must_use]
pub fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        // The colons of an address are in its brackets.
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    }
}

fn is_ipv6(address: &[u8]) -> bool {
    std::str::from_utf8(address).is_ok_and(|address| address.parse::<Ipv6Addr>().is_ok())
}

/// RFC 3986 §3.2.3 lets the digits after the colon be none.
fn is_port_suffix(suffix: &[u8]) -> bool {
    match suffix {
        [] | [b':'] => true,
        [b':', digits @ ..] => {
            digits.iter().all(u8::is_ascii_digit)
                && std::str::from_utf8(digits).is_ok_and(|digits| digits.parse::<u16>().is_ok())
        }
        _ => false,
    }
}

/// RFC 3986 §3.2.2 `reg-name`, which every IPv4 address is too.
fn is_name(mut name: &[u8]) -> bool {
    loop {
        name = match name {
            [] => return true,
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => rest,
            [byte, rest @ ..] if is_name_byte(*byte) => rest,
            _ => return false,
        };
    }
}

/// `unreserved` and `sub-delims`, but for the comma.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+;=".contains(&byte)
}
