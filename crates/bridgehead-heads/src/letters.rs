//! Which letters the parts of a head may have.
//!
//! As strict as hyper, which answers what it refuses by itself, without a word. Not where lines begin and end, which is
//! `guard`'s, and not what a method, a target or a host means, which is `judge`'s.
//!
//! Invariant: hyper takes what passes here.

use http::Uri;
use memchr::memchr;

/// What `http::Uri` keeps at most.
const LONGEST_TARGET: usize = 65_534;

/// A byte of a method or of a header's name (RFC 9110 section 5.6.2).
const TOKEN: u8 = 1;
/// Of a path, or of a query: what URLs have there, and what is seen there all the same (`"`, `{`, `|`).
const PATH: u8 = 2;
const QUERY: u8 = 4;

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        classes[at] = match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => TOKEN | PATH | QUERY,
            b'!' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'|' | b'~' => {
                TOKEN | PATH | QUERY
            }
            b'(' | b')' | b',' | b'/' | b':' | b';' | b'=' | b'@' | b'[' | b'\\' | b']' | b'{' | b'}' => {
                PATH | QUERY
            }
            b'`' => TOKEN | QUERY,
            // A fragment is the client's own.
            b'#' => TOKEN,
            b'"' => PATH,
            b'?' => QUERY,
            _ => 0,
        };
        at += 1;
    }
    classes
}

/// Whether something can be a method.
pub(crate) fn is_token(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(|byte| is(*byte, TOKEN))
}

/// Whether something can be a target, be it one that nobody serves.
pub(crate) fn is_target(word: &[u8]) -> bool {
    match word {
        [b'/', ..] => are_of_urls(word),
        // A fragment would be cut off, and bytes beyond ASCII are to be escaped.
        _ => word.is_ascii() && memchr(b'#', word).is_none() && Uri::try_from(word).is_ok(),
    }
}

/// Whether every byte of a target may stand where it does, in a path or in a query.
#[must_use]
pub fn are_of_urls(target: &[u8]) -> bool {
    let query = memchr(b'?', target).unwrap_or(target.len());
    let (path, query) = target.split_at(query);
    path.iter().all(|byte| is(*byte, PATH)) && query.iter().all(|byte| is(*byte, QUERY))
}

/// Whether a target is longer than anybody could read it.
pub(crate) fn is_too_long(target: &[u8]) -> bool {
    target.len() > LONGEST_TARGET
}

/// The name and the value of a header line.
pub(crate) fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = line.iter().position(|byte| !is(*byte, TOKEN))?;
    let (name, value) = line.split_at(end);
    let value = value.strip_prefix(b":")?;
    (!name.is_empty() && is_text(value)).then_some((name, value))
}

/// Whether it goes on with the line before it, as was once allowed.
pub(crate) fn is_folded(line: &[u8]) -> bool {
    matches!(line, [b' ' | b'\t', ..])
}

/// Without the blanks around it.
pub(crate) fn trimmed(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// A length is digits, and nothing else.
pub(crate) fn decimal(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    if digits { std::str::from_utf8(value).ok()?.parse().ok() } else { None }
}

/// Whether there is no control character but tabs. Looked at by eight bytes, since every head comes by here.
fn is_text(value: &[u8]) -> bool {
    let (words, rest) = value.as_chunks::<8>();
    let words = words.iter().all(|word| has_no_control(u64::from_ne_bytes(*word)) || are_text(word));
    words && are_text(rest)
}

/// Whether none of these eight bytes is below a space, or a delete. False also now and then where none is.
fn has_no_control(bytes: u64) -> bool {
    const EACH: u64 = u64::MAX / 0xff;
    const HIGH: u64 = EACH * 0x80;
    let below_space = bytes.wrapping_sub(EACH * 0x20) & !bytes;
    let unlike_delete = bytes ^ (EACH * 0x7f);
    let delete = unlike_delete.wrapping_sub(EACH) & !unlike_delete;
    (below_space | delete) & HIGH == 0
}

fn are_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control())
}

fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue, Method};

    use super::*;

    /// Every byte in every place of a part that is longer than a word of eight.
    fn variants(part: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        (0..=255).flat_map(move |byte| {
            (0..part.len()).map(move |place| {
                let mut other = part.to_vec();
                other[place] = byte;
                other
            })
        })
    }

    #[test]
    fn a_target_is_what_hyper_takes_for_one_in_ascii_and_without_a_fragment() {
        let forms: [&[u8]; 5] = [b"/", b"/a/b?c=d?e", b"http://host:80/a?b", b"host:443", b"*"];
        for target in forms.into_iter().flat_map(variants) {
            let taken = Uri::try_from(&*target).is_ok() && target.is_ascii() && !target.contains(&b'#');
            assert_eq!(is_target(&target), taken, "{}", target.escape_ascii());
        }
        assert!(!is_target(b""));
    }

    #[test]
    #[cfg_attr(miri, ignore = "64 KiB take too long")]
    fn the_longest_target_is_as_long_as_hyper_takes() {
        let mut target = [b"/", [b'a'; LONGEST_TARGET - 1].as_slice()].concat();
        assert!(!is_too_long(&target) && Uri::try_from(&*target).is_ok());
        target.push(b'a');
        assert!(is_too_long(&target) && Uri::try_from(&*target).is_err());
    }

    #[test]
    fn a_method_is_a_token() {
        for method in variants(b"GET") {
            assert_eq!(is_token(&method), Method::from_bytes(&method).is_ok(), "{}", method.escape_ascii());
        }
        assert!(!is_token(b""));
    }

    #[test]
    fn a_header_line_is_a_token_a_colon_and_text() {
        for name in variants(b"x-name") {
            let line = [&name, b": v".as_slice()].concat();
            // A colon ends it.
            let taken =
                HeaderName::from_bytes(&name).is_ok() || name.iter().skip(1).any(|byte| *byte == b':');
            assert_eq!(field(&line).is_some(), taken, "{}", line.escape_ascii());
        }
        for value in variants(b"a value with some words\xff") {
            let taken = HeaderValue::from_bytes(&value).is_ok();
            let line = [b"n:", &*value].concat();
            assert_eq!(field(&line).is_some(), taken, "{}", line.escape_ascii());
        }
        assert_eq!(field(b"a:b:c"), Some((b"a".as_slice(), b"b:c".as_slice())));
        assert_eq!([b"".as_slice(), b":", b": v", b"a", b"a v"].map(field), [None; 5]);
    }
}
