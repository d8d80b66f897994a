//! What an application may put into the head of a response.
//!
//! Not what the server adds (`date`, `server`, the framing) and not how a head is written.
//!
//! Invariant: no header here can end its line, frame the body or manage the connection. Those that try to frame or
//! manage are dropped, for the server decides both; `content-length` alone is a promise the application makes.

use http::header::{CONTENT_LENGTH, LINK, TRAILER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::misuse::{Excerpt, Misuse};

/// The bound of the `http` crate, which tells a name that is too long as one of wrong letters.
const LONGEST_NAME: usize = 65_535;

/// What the `http` crate's map holds of different names, 3/4 of 2^15: of one name it would take headers without end.
const MOST_HEADERS: usize = 24_576;

/// No client reads so long a head: Go's, which reads the longest, stops at 10 MB.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// How much the headers of one message have come to, kept or dropped. An application may name them by an iterator that
/// never ends.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeaderCount {
    headers: usize,
    bytes: usize,
}

impl HeaderCount {
    /// Counts one more, before anything else is done about it.
    #[inline]
    pub fn spend(&mut self, name: &[u8], value: &[u8]) -> Result<(), Misuse> {
        self.headers += 1;
        // Both are in memory: their sum is less than all of that.
        self.bytes += name.len() + value.len();
        if self.headers > MOST_HEADERS || self.bytes > MOST_BYTES { Err(self.overspent()) } else { Ok(()) }
    }

    /// Out of the way of what each header passes.
    #[cold]
    fn overspent(self) -> Misuse {
        if self.headers > MOST_HEADERS {
            Misuse::TooManyHeaders { held: MOST_HEADERS }
        } else {
            Misuse::LongHeaders { max: MOST_BYTES }
        }
    }
}

/// Status and headers of a response, judged as they come.
#[derive(Debug, Clone)]
pub struct ResponseHead {
    parts: ResponseParts,
    /// Headers that the application's `connection` names: they would have been that connection's.
    nominated: Vec<HeaderName>,
}

/// A judged head, taken apart.
#[derive(Debug, Clone)]
pub struct ResponseParts {
    /// Status of the response, 200 to 999.
    pub status: StatusCode,
    /// Its headers, in the order in which their names first came.
    pub headers: HeaderMap,
    /// Its `content-length`, which `headers` holds too.
    pub declared: Option<u64>,
    /// True if the application asked by `connection: close` that this response be the connection's last.
    pub close: bool,
    /// True if the application promised trailers.
    pub trailers: bool,
}

impl ResponseHead {
    /// A head of this status, without headers.
    pub fn new(status: i64) -> Result<Self, Misuse> {
        if (100..200).contains(&status) {
            return Err(Misuse::InformationalStatus { came: status });
        }
        let status = u16::try_from(status)
            .ok()
            .and_then(|code| StatusCode::from_u16(code).ok())
            .ok_or_else(|| Misuse::BadStatus { came: Excerpt::of(status.to_string()) })?;
        let headers = HeaderMap::new();
        let parts = ResponseParts { status, headers, declared: None, close: false, trailers: false };
        Ok(Self { parts, nominated: Vec::new() })
    }

    /// The application sends trailers after the body. To be said before the headers come.
    pub fn promise_trailers(&mut self) {
        self.parts.trailers = true;
    }

    /// Judges a header and adds it. Blanks around the value are trimmed, as any recipient would.
    pub fn header(&mut self, name: &[u8], value: &[u8]) -> Result<(), Misuse> {
        let name = judge_name(name)?;
        let value = judge_value(&name, value)?;
        match name.as_str() {
            "content-length" => self.declare(value),
            "connection" => {
                self.parts.close |= names_in(&value).any(|name| name.eq_ignore_ascii_case(b"close"));
                self.nominated.extend(names_in(&value).filter_map(|name| HeaderName::from_bytes(name).ok()));
                Ok(())
            }
            // RFC 9110 §7.6.1: these belong to one connection, and the connection is the server's.
            "keep-alive" | "proxy-connection" | "te" | "transfer-encoding" | "upgrade" => Ok(()),
            // It would announce fields that never come.
            "trailer" if !self.parts.trailers => Ok(()),
            _ => self.append(name, value),
        }
    }

    /// Status of the response.
    pub fn status(&self) -> StatusCode {
        self.parts.status
    }

    /// Length of the body, if the application declared it.
    pub fn declared(&self) -> Option<u64> {
        self.parts.declared
    }

    /// Declares the length of the body, which the application left to the server.
    pub fn declare_length(&mut self, length: u64) -> Result<(), Misuse> {
        self.declare(HeaderValue::from(length))
    }

    /// The promised trailers will not be written, and are not announced.
    pub fn forgo_trailers(&mut self) {
        self.parts.trailers = false;
        self.drop_all(|name| name == TRAILER);
    }

    /// The fields that the application announced as trailers.
    pub fn announced(&self) -> Vec<HeaderName> {
        let names = self.parts.headers.get_all(TRAILER).iter().flat_map(names_in);
        names.filter_map(|name| HeaderName::from_bytes(name).ok()).collect()
    }

    /// True if the application promised trailers.
    pub fn promises_trailers(&self) -> bool {
        self.parts.trailers
    }

    /// True if the application asked that this response be the connection's last.
    pub fn wants_close(&self) -> bool {
        self.parts.close
    }

    /// Takes the head apart.
    pub fn into_parts(mut self) -> ResponseParts {
        // RFC 9110 §7.6.1: they go where `connection` goes. A length is the message's, whoever names it.
        let nominated = std::mem::take(&mut self.nominated);
        if !nominated.is_empty() {
            self.drop_all(|name| name != CONTENT_LENGTH && nominated.contains(name));
        }
        self.parts
    }

    /// Drops headers that are there already. `HeaderMap::remove` would put the last name into the place of the one that
    /// goes, and the others are to stay in the order in which they came.
    fn drop_all(&mut self, dropped: impl Fn(&HeaderName) -> bool) {
        let headers = &mut self.parts.headers;
        if !headers.keys().any(&dropped) {
            return;
        }
        let mut kept = HeaderMap::new();
        for (name, value) in headers.iter().filter(|(name, _)| !dropped(name)) {
            // They fit: a map has held more already.
            let _ = kept.try_append(name, value.clone());
        }
        *headers = kept;
    }

    fn declare(&mut self, value: HeaderValue) -> Result<(), Misuse> {
        let second = parse_length(value.as_bytes())?;
        // RFC 9110 §8.6: a 204 has no `content-length`. One that is well formed is dropped, not refused:
        // frameworks write `content-length: 0` on everything.
        if self.parts.status == StatusCode::NO_CONTENT {
            return Ok(());
        }
        match self.parts.declared {
            Some(first) if first != second => Err(Misuse::TwoContentLengths { first, second }),
            Some(_) => Ok(()),
            None => {
                let is_padded = value.len() > 1 && value.as_bytes().starts_with(b"0");
                self.append(CONTENT_LENGTH, if is_padded { HeaderValue::from(second) } else { value })?;
                self.parts.declared = Some(second);
                Ok(())
            }
        }
    }

    fn append(&mut self, name: HeaderName, value: HeaderValue) -> Result<(), Misuse> {
        let held = self.parts.headers.len();
        // A map has 2^15 slots; `append` would panic beyond.
        match self.parts.headers.try_append(name, value) {
            Ok(_) => Ok(()),
            Err(_) => Err(Misuse::TooManyHeaders { held }),
        }
    }
}

/// Judges a link of a hint and adds it.
pub fn add_link(links: &mut HeaderMap, value: &[u8]) -> Result<(), Misuse> {
    let value = judge_value(&LINK, value)?;
    let held = links.len();
    links.try_append(LINK, value).map(drop).map_err(|_| Misuse::TooManyHeaders { held })
}

pub(crate) fn judge_name(name: &[u8]) -> Result<HeaderName, Misuse> {
    if name.starts_with(b":") {
        return Err(Misuse::PseudoHeader { name: Excerpt::of(name) });
    }
    if name.len() > LONGEST_NAME {
        return Err(Misuse::LongHeaderName { came: name.len(), max: LONGEST_NAME });
    }
    HeaderName::from_bytes(name).map_err(|_| Misuse::BadHeaderName { name: Excerpt::of(name) })
}

pub(crate) fn judge_value(name: &HeaderName, value: &[u8]) -> Result<HeaderValue, Misuse> {
    HeaderValue::from_bytes(trim_blanks(value)).map_err(|_| {
        let at = value.iter().position(|byte| byte.is_ascii_control() && *byte != b'\t').unwrap_or_default();
        let byte = value.get(at).copied().unwrap_or_default();
        Misuse::BadHeaderValue { name: Excerpt::of(name), byte, at }
    })
}

/// Trims what RFC 9110 §5.5 calls optional whitespace. `trim_ascii` would trim a line's end too, and so let it
/// pass.
fn trim_blanks(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Reads RFC 9110 §8.6's `1*DIGIT`; `parse` alone would take a sign.
fn parse_length(value: &[u8]) -> Result<u64, Misuse> {
    Some(value)
        .filter(|value| value.iter().all(u8::is_ascii_digit))
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| Misuse::BadContentLength { came: Excerpt::of(value) })
}

/// The members of a list of names.
fn names_in(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    value.as_bytes().split(|byte| *byte == b',').map(trim_blanks)
}
