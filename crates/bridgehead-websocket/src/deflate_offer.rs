//! permessage-deflate in a handshake (RFC 7692 §7.1): what a client offers, and what we agree to.
//!
//! Not the compression itself, which is `deflate`'s.
//!
//! Invariant: the first offer that we can keep to is taken, word by word; one that holds anything unknown, twice or out of
//! range is as good as none.

use http::header::{HeaderMap, HeaderValue, SEC_WEBSOCKET_EXTENSIONS as EXTENSIONS};

const NAME: &[u8] = b"permessage-deflate";

/// Bits of the windows that we ask for, of 15: 4 KiB.
const BITS: u8 = 12;

/// zlib has no raw window of 8 bits to write with.
const FEWEST: u8 = 9;

/// Bits of a window whose size nobody has said.
const MOST: u8 = 15;

/// How both sides compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// Bits of our window.
    pub(crate) ours: u8,
    /// Bits of the client's, if it lets us say.
    theirs: Option<u8>,
    /// Each of our messages is compressed by itself.
    pub(crate) we_forget: bool,
    /// Each of the client's is.
    pub(crate) they_forget: bool,
}

/// The first offer that can be kept to.
#[must_use]
pub fn agree(headers: &HeaderMap) -> Option<Agreement> {
    let values = headers.get_all(EXTENSIONS).iter();
    values.flat_map(|value| split(value.as_bytes(), b',')).find_map(Agreement::of)
}

impl Agreement {
    fn of(offer: &[u8]) -> Option<Self> {
        let mut words = split(offer, b';');
        if !words.next()?.eq_ignore_ascii_case(NAME) {
            return None;
        }
        let (mut ours, mut theirs, mut we, mut they) = (None, None, None, None);
        for word in words {
            let (name, value) = parameter(word);
            let name = name.to_ascii_lowercase();
            let known = match (name.as_slice(), value) {
                (b"server_max_window_bits", Some(value)) => ours.replace(bits(value)?).is_none(),
                (b"client_max_window_bits", None) => theirs.replace(MOST).is_none(),
                (b"client_max_window_bits", Some(value)) => theirs.replace(bits(value)?).is_none(),
                (b"server_no_context_takeover", None) => we.replace(()).is_none(),
                (b"client_no_context_takeover", None) => they.replace(()).is_none(),
                _ => false,
            };
            if !known {
                return None;
            }
        }
        let ours = ours.unwrap_or(MOST).min(BITS);
        (ours >= FEWEST).then_some(Self {
            ours,
            theirs: theirs.map(|bits| bits.min(BITS)),
            we_forget: we.is_some(),
            they_forget: they.is_some(),
        })
    }

    /// Bits of the window that the client's messages are read with.
    pub(crate) fn theirs(&self) -> u8 {
        self.theirs.unwrap_or(MOST).max(FEWEST)
    }

    /// As the handshake's answer has it.
    #[must_use]
    pub fn answer(&self) -> HeaderValue {
        let mut text = format!("permessage-deflate; server_max_window_bits={}", self.ours);
        if let Some(bits) = self.theirs {
            text.push_str(&format!("; client_max_window_bits={bits}"));
        }
        if self.we_forget {
            text.push_str("; server_no_context_takeover");
        }
        if self.they_forget {
            text.push_str("; client_no_context_takeover");
        }
        // All of it is ASCII.
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("permessage-deflate"))
    }
}

/// What is between separators that are in no quotes.
fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    text.split(move |byte| {
        quoted ^= *byte == b'"';
        !quoted && *byte == separator
    })
    .map(<[u8]>::trim_ascii)
}

fn parameter(word: &[u8]) -> (&[u8], Option<&[u8]>) {
    match word.iter().position(|byte| *byte == b'=') {
        Some(at) => (word[..at].trim_ascii_end(), Some(word[at + 1..].trim_ascii_start())),
        None => (word, None),
    }
}

/// From 8 to 15, without a zero in front; in quotes, or without.
fn bits(value: &[u8]) -> Option<u8> {
    let bare = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
    match bare.unwrap_or(value) {
        [digit @ (b'8' | b'9')] => Some(digit - b'0'),
        [b'1', digit @ b'0'..=b'5'] => Some(10 + digit - b'0'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_to(offers: &[&'static str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for offer in offers {
            headers.append(EXTENSIONS, HeaderValue::from_static(offer));
        }
        agree(&headers).map(|agreed| agreed.answer().to_str().expect("ASCII").to_owned())
    }

    #[test]
    fn an_offer_is_answered_by_what_is_kept_to() {
        for (offer, answer) in [
            ("permessage-deflate", "permessage-deflate; server_max_window_bits=12"),
            (
                "Permessage-Deflate; Client_max_window_bits",
                "permessage-deflate; server_max_window_bits=12; client_max_window_bits=12",
            ),
            (
                "permessage-deflate;client_max_window_bits=8;server_max_window_bits=\"9\"",
                "permessage-deflate; server_max_window_bits=9; client_max_window_bits=8",
            ),
            (
                "permessage-deflate ; server_max_window_bits = 15 ; client_max_window_bits=15",
                "permessage-deflate; server_max_window_bits=12; client_max_window_bits=12",
            ),
            (
                "permessage-deflate; client_no_context_takeover; server_no_context_takeover",
                "permessage-deflate; server_max_window_bits=12; server_no_context_takeover; \
                 client_no_context_takeover",
            ),
        ] {
            assert_eq!(answer_to(&[offer]).as_deref(), Some(answer), "{offer}");
        }
    }

    #[test]
    fn an_offer_that_is_not_understood_in_full_is_declined() {
        for offer in [
            "",
            "x-webkit-deflate-frame",
            "permessage-deflate; x",
            "permessage-deflate;",
            "permessage-deflate; server_max_window_bits",
            "permessage-deflate; server_max_window_bits=8",
            "permessage-deflate; server_max_window_bits=7",
            "permessage-deflate; server_max_window_bits=16",
            "permessage-deflate; server_max_window_bits=010",
            "permessage-deflate; server_max_window_bits=1\"0\"",
            "permessage-deflate; server_max_window_bits=10; server_max_window_bits=10",
            "permessage-deflate; client_max_window_bits=",
            "permessage-deflate; client_max_window_bits; client_max_window_bits=10",
            "permessage-deflate; server_no_context_takeover=true",
            "permessage-deflate; client_no_context_takeover; client_no_context_takeover",
        ] {
            assert_eq!(answer_to(&[offer]), None, "{offer}");
        }
    }

    #[test]
    fn the_first_offer_that_can_be_kept_to_is_taken() {
        let taken = Some("permessage-deflate; server_max_window_bits=10".to_owned());
        let offers = "permessage-deflate; y, foo; x=\"a,permessage-deflate\", permessage-deflate; \
                      server_max_window_bits=10, permessage-deflate";
        assert_eq!(answer_to(&[offers]), taken);
        assert_eq!(answer_to(&["foo", "permessage-deflate; server_max_window_bits=10"]), taken);
    }
}
