//! What ties a request to the lines that others write of it: its id, and the trace it is a part of.
//!
//! Not a secret: an id is told to the client, and may be the client's own.
//!
//! Invariant: an id has at most [`LONGEST`] characters, none of which needs escaping anywhere.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// A client's id that is longer is not taken.
const LONGEST: usize = 128;

/// Where a client gives its id, and where it is told of it.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The length of version 00: two, thirty-two, sixteen and two digits.
const TRACEPARENT_LENGTH: usize = 55;

/// Where in it the trace is named, and where the parent.
const TRACE: Range<usize> = 3..35;
const PARENT: Range<usize> = 36..52;

/// A request's id, and the `traceparent` it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    id: HeaderValue,
    parent: Option<HeaderValue>,
}

impl Trace {
    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.id.to_str().unwrap_or_default()
    }

    /// Whose part this request is, as its client said it.
    #[must_use]
    pub fn parent(&self) -> Option<&str> {
        self.parent.as_ref().and_then(|parent| parent.to_str().ok())
    }

    /// The id, to be sent.
    pub(crate) fn id_value(&self) -> HeaderValue {
        self.id.clone()
    }
}

/// Gives ids to requests that came without.
#[derive(Debug)]
pub struct RequestIds {
    seed: (u64, u64),
    // Connections of one runtime share it; what matters is only that no two get the same.
    next: AtomicU64,
}

impl RequestIds {
    /// With a seed that no other process has.
    #[must_use]
    pub fn new(seed: (u64, u64)) -> Self {
        Self { seed, next: AtomicU64::new(0) }
    }

    /// What a request is called: by its client's word, if that can be taken.
    pub(crate) fn trace(&self, headers: &HeaderMap) -> Trace {
        let given = only(headers, &HEADER).filter(|id| is_id(id.as_bytes()));
        let parent = only(headers, &TRACEPARENT).filter(|parent| is_traceparent(parent.as_bytes()));
        Trace { id: given.cloned().unwrap_or_else(|| self.make()), parent: parent.cloned() }
    }

    fn make(&self) -> HeaderValue {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let half = |which: u8| {
            let mut hasher = DefaultHasher::new();
            (self.seed, which, number).hash(&mut hasher);
            hasher.finish()
        };
        let id = format!("{:016x}{:016x}", half(0), half(1));
        HeaderValue::from_str(&id).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

/// A header's value, if it is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut all = headers.get_all(name).iter();
    all.next().filter(|_| all.next().is_none())
}

fn is_id(text: &[u8]) -> bool {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=:@".contains(byte);
    (1..=LONGEST).contains(&text.len()) && text.iter().all(fits)
}

/// W3C Trace Context, section 3.2: what is not well formed is as good as not there, and so is version ff, a trace that is
/// called nothing but zeros, and a parent that is.
fn is_traceparent(text: &[u8]) -> bool {
    let digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let zeros = |text: &[u8]| text.iter().all(|byte| *byte == b'0');
    text.len() == TRACEPARENT_LENGTH
        && text.split(|byte| *byte == b'-').map(<[u8]>::len).eq([2, 32, 16, 2])
        && text.iter().all(|byte| digit(byte) || *byte == b'-')
        && !text.starts_with(b"ff")
        && !zeros(&text[TRACE])
        && !zeros(&text[PARENT])
}

#[cfg(test)]
mod tests {
    use super::*;

    const WELL_FORMED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn trace(pairs: &[(&'static str, &str)]) -> Trace {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).expect("a value"));
        }
        RequestIds::new((1, 2)).trace(&headers)
    }

    #[test]
    fn a_clients_id_is_taken_if_it_is_one_word_of_harmless_letters() {
        for id in [
            "a",
            "0af7651916cd43dd8448eb211c80319c",
            "Root=1-67891233-abcdef012345678912345678",
            &"x".repeat(128),
        ] {
            assert_eq!(trace(&[("x-request-id", id)]).id(), id);
        }
        for id in ["", "a b", "a\"b", "a\\b", "<a>", "a,b", &"x".repeat(129)] {
            let made = trace(&[("x-request-id", id)]);
            assert_eq!(made.id().len(), 32, "{id:?}");
        }
        assert_eq!(trace(&[("x-request-id", "a"), ("x-request-id", "b")]).id().len(), 32);
    }

    #[test]
    fn ids_differ_within_a_process_and_between_two() {
        let ids: std::collections::HashSet<String> = [(1, 2), (2, 1), (0, 0), (5, 5), (5, 6)]
            .into_iter()
            .flat_map(|seed| {
                let ids = RequestIds::new(seed);
                (0..1000).map(move |_| ids.trace(&HeaderMap::new()).id().to_owned()).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(ids.len(), 5000);
        assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())));
    }

    #[test]
    fn a_traceparent_is_kept_if_it_is_well_formed() {
        assert_eq!(trace(&[("traceparent", WELL_FORMED)]).parent(), Some(WELL_FORMED));
        for parent in [
            "",
            "x",
            &WELL_FORMED.to_uppercase(),
            &WELL_FORMED[1..],
            &WELL_FORMED.replace('-', "0"),
            &format!("{WELL_FORMED}-"),
        ] {
            assert_eq!(trace(&[("traceparent", parent)]).parent(), None, "{parent:?}");
        }
        assert_eq!(trace(&[("traceparent", WELL_FORMED), ("traceparent", WELL_FORMED)]).parent(), None);
        for (what, zeros) in [("0af7651916cd43dd8448eb211c80319c", 32), ("b7ad6b7169203331", 16)] {
            let parent = WELL_FORMED.replace(what, &"0".repeat(zeros));
            assert_eq!(trace(&[("traceparent", &parent)]).parent(), None, "{parent:?}");
        }
        assert_eq!(trace(&[("traceparent", &WELL_FORMED.replacen("00", "ff", 1))]).parent(), None);
        let newer = WELL_FORMED.replacen("00", "01", 1);
        assert_eq!(trace(&[("traceparent", &newer)]).parent(), Some(&*newer));
    }
}
