//! Which answers get a coding, and what their heads say then.
//!
//! Invariant: an answer that has one already, that asks to be left as it is, that is a part, or that nobody decodes (its
//! digest is of the bytes as they are) gets none; and whoever might have got one hears of it by `vary`.

use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    HeaderName, HeaderValue, VARY,
};
use http::{HeaderMap, StatusCode};

use crate::coding::Coding;

/// Digests of what a coding is a part of (RFC 9530, and what was before it).
const DIGESTS: [HeaderName; 4] = [
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-md5"),
];

/// Which answers are worth it.
#[derive(Debug)]
pub struct Policy {
    /// What they hold.
    pub kinds: Kinds,
    /// Bytes of the smallest body.
    pub least: u64,
}

/// Media types: `text/html`, `text/*`, `+json`.
#[derive(Debug, Default)]
pub struct Kinds {
    whole: Vec<String>,
    families: Vec<String>,
    suffixes: Vec<String>,
}

impl Kinds {
    /// As an operator writes them.
    #[must_use]
    pub fn new(written: impl IntoIterator<Item = String>) -> Self {
        let mut kinds = Self::default();
        for kind in written {
            match kind.strip_suffix('*') {
                Some(family) => kinds.families.push(family.to_owned()),
                None if kind.starts_with('+') => kinds.suffixes.push(kind),
                None => kinds.whole.push(kind),
            }
        }
        kinds
    }

    fn hold(&self, value: &HeaderValue) -> bool {
        let Some(kind) = value.to_str().ok().and_then(|text| text.split(';').next()) else { return false };
        let kind = kind.trim().to_ascii_lowercase();
        self.whole.contains(&kind)
            || self.families.iter().any(|family| kind.starts_with(family))
            || self.suffixes.iter().any(|suffix| kind.ends_with(suffix))
    }
}

impl Policy {
    /// Whether an answer gets a coding from who takes one. Its length is `None` where nobody knows it.
    #[must_use]
    pub fn covers(&self, status: StatusCode, headers: &HeaderMap, length: Option<u64>) -> bool {
        // Neither a part, which is one of bytes as they are, nor what has no body.
        let status = !status.is_informational()
            && !matches!(
                status,
                StatusCode::NO_CONTENT
                    | StatusCode::RESET_CONTENT
                    | StatusCode::PARTIAL_CONTENT
                    | StatusCode::NOT_MODIFIED
            );
        status
            && length.is_none_or(|length| length >= self.least)
            && headers.get(CONTENT_TYPE).is_some_and(|kind| self.kinds.hold(kind))
            && is_open(headers)
    }

    /// A 304 says of its answer what the 200 said (RFC 9110 section 15.4.5): it varies, and its tag is weak for who holds the
    /// weak one, or a cache may not renew by it what it has (RFC 9111 section 4.3.4). Most name no type; what they do not
    /// say might have got a coding.
    pub fn confirms(&self, headers: &mut HeaderMap, held: &[HeaderValue]) {
        if headers.get(CONTENT_TYPE).is_some_and(|kind| !self.kinds.hold(kind)) || !is_open(headers) {
            return;
        }
        Self::varies(headers);
        if let Some(weak) = headers.get(ETAG).and_then(weakened)
            && held.iter().any(|tags| holds(tags.as_bytes(), weak.as_bytes()))
        {
            headers.insert(ETAG, weak);
        }
    }

    /// Says that another client may get another coding.
    pub fn varies(headers: &mut HeaderMap) {
        let said = headers.get_all(VARY).iter().filter_map(|value| value.to_str().ok());
        let mut names = said.flat_map(|value| value.split(',')).map(str::trim);
        if !names.any(|name| name == "*" || name.eq_ignore_ascii_case("accept-encoding")) {
            // An answer that is full of headers goes without it.
            let _ = headers.try_append(VARY, HeaderValue::from_static("accept-encoding"));
        }
    }

    /// Says that the answer has this coding: its length is another, no part of it can be had, and it is not the same byte
    /// for byte as without.
    pub fn encodes(headers: &mut HeaderMap, coding: Coding) {
        headers.insert(CONTENT_ENCODING, coding.value());
        if headers.contains_key(CONTENT_LENGTH) || headers.contains_key(ACCEPT_RANGES) {
            *headers = without(headers, &[CONTENT_LENGTH, ACCEPT_RANGES]);
        }
        if let Some(weak) = headers.get(ETAG).and_then(weakened) {
            headers.insert(ETAG, weak);
        }
    }
}

/// The others, in their order: `HeaderMap::remove` would put the last one into the place of the one that goes.
fn without(headers: &HeaderMap, dropped: &[HeaderName]) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| !dropped.contains(name)) {
        // They fit: a map has held more already.
        let _ = kept.try_append(name, value.clone());
    }
    kept
}

fn weakened(tag: &HeaderValue) -> Option<HeaderValue> {
    let tag = tag.as_bytes();
    tag.starts_with(b"\"").then(|| HeaderValue::from_bytes(&[b"W/", tag].concat()).ok())?
}

/// No tag has a quote within, so one that is found is a whole one.
fn holds(tags: &[u8], tag: &[u8]) -> bool {
    tags.windows(tag.len()).any(|window| window == tag)
}

/// Whether nothing in a head forbids a coding.
fn is_open(headers: &HeaderMap) -> bool {
    !headers.contains_key(CONTENT_ENCODING)
        && !headers.contains_key(CONTENT_RANGE)
        && !DIGESTS.iter().any(|name| headers.contains_key(name))
        && !is_to_stay(headers)
}

fn is_to_stay(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|each| each.trim().eq_ignore_ascii_case("no-transform"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Policy {
        let kinds = ["text/*", "application/json", "+xml"].map(str::to_owned);
        Policy { kinds: Kinds::new(kinds), least: 100 }
    }

    fn headers(written: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in written {
            headers.append(*name, HeaderValue::from_str(value).expect("a value"));
        }
        headers
    }

    fn covers(written: &[(&'static str, &str)]) -> bool {
        policy().covers(StatusCode::OK, &headers(written), Some(100))
    }

    #[test]
    fn kinds_are_covered_by_name_family_and_suffix() {
        for kind in [
            "text/html",
            "TEXT/plain; charset=utf-8",
            "application/json",
            "image/svg+xml",
            "text/event-stream",
        ] {
            assert!(covers(&[("content-type", kind)]), "{kind}");
        }
        for kind in ["image/png", "application/jsonish", "application/octet-stream", "textual/html", ""] {
            assert!(!covers(&[("content-type", kind)]), "{kind}");
        }
        assert!(!covers(&[]));
    }

    #[test]
    fn what_is_short_and_what_is_no_whole_body_is_left_as_it_is() {
        let text = headers(&[("content-type", "text/plain")]);
        let policy = policy();
        assert!(
            policy.covers(StatusCode::OK, &text, None)
                && policy.covers(StatusCode::NOT_FOUND, &text, Some(100))
        );
        assert!(!policy.covers(StatusCode::OK, &text, Some(99)));
        for status in [204, 205, 206, 304] {
            assert!(!policy.covers(StatusCode::from_u16(status).expect("a status"), &text, None), "{status}");
        }
    }

    #[test]
    fn what_has_a_coding_or_asks_to_be_left_alone_is() {
        let text = ("content-type", "text/plain");
        for other in [
            ("content-encoding", "gzip"),
            ("content-encoding", "identity"),
            ("cache-control", "public, No-Transform"),
            ("content-range", "bytes 0-1/2"),
            ("content-digest", "sha-256=:AAAA:"),
            ("repr-digest", "sha-256=:AAAA:"),
            ("digest", "sha-256=AAAA"),
            ("content-md5", "AAAA"),
        ] {
            assert!(!covers(&[text, other]), "{other:?}");
        }
        assert!(covers(&[text, ("cache-control", "public")]));
    }

    #[test]
    fn a_head_says_what_has_become_of_its_body() {
        let mut said = headers(&[("etag", "\"a\""), ("content-length", "5"), ("accept-ranges", "bytes")]);
        Policy::encodes(&mut said, Coding::Zstd);
        assert_eq!(said, headers(&[("etag", "W/\"a\""), ("content-encoding", "zstd")]));
        Policy::encodes(&mut said, Coding::Zstd);
        assert_eq!(said["etag"], "W/\"a\"");
    }

    #[test]
    fn a_304_has_the_tag_of_what_its_client_holds() {
        let strong = &[("etag", "\"a\"")][..];
        let held = |tags: &'static str| [HeaderValue::from_static(tags)];
        for (tags, tag) in [
            ("W/\"a\"", "W/\"a\""),
            ("\"x\", W/\"a\"", "W/\"a\""),
            ("\"a\"", "\"a\""),
            ("W/\"ab\", \"a\"", "\"a\""),
            ("*", "\"a\""),
        ] {
            let mut said = headers(strong);
            policy().confirms(&mut said, &held(tags));
            assert_eq!(said, headers(&[("etag", tag), ("vary", "accept-encoding")]), "{tags}");
        }
        for other in [("content-type", "image/png"), ("cache-control", "no-transform")] {
            let (before, mut said) = (headers(&[strong[0], other]), headers(&[strong[0], other]));
            policy().confirms(&mut said, &held("W/\"a\""));
            assert_eq!(said, before);
        }
        let mut said = headers(&[("etag", "W/\"a\""), ("vary", "*")]);
        policy().confirms(&mut said, &[]);
        assert_eq!(said, headers(&[("etag", "W/\"a\""), ("vary", "*")]));
    }

    #[test]
    fn a_head_keeps_its_order() {
        let mut said = headers(&[("content-length", "5"), ("a", "1"), ("b", "2"), ("a", "3"), ("c", "4")]);
        Policy::encodes(&mut said, Coding::Gzip);
        let names: Vec<_> = said.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "a", "b", "c", "content-encoding"]);
    }

    #[test]
    fn vary_is_said_once() {
        for (before, after) in [
            (&[][..], &["accept-encoding"][..]),
            (&["Origin"], &["Origin", "accept-encoding"]),
            (&["Origin, Accept-Encoding"], &["Origin, Accept-Encoding"]),
            (&["*"], &["*"]),
        ] {
            let pairs: Vec<_> = before.iter().map(|value| ("vary", *value)).collect();
            let mut said = headers(&pairs);
            Policy::varies(&mut said);
            assert_eq!(said.get_all(VARY).iter().collect::<Vec<_>>(), after);
        }
    }
}
