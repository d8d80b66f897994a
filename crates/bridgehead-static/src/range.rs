//! Which part of a file is wanted (RFC 9110 section 14).
//!
//! Of several ranges none is honoured: the whole file is an answer to them too, and costs what it costs, however many
//! there are.
//!
//! Invariant: a part has at least one byte and ends within the file.

use http::HeaderMap;
use http::header::RANGE;

/// What of a file is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    Whole,
    Part {
        first: u64,
        /// Inclusive.
        last: u64,
    },
    /// It begins behind the end.
    Unsatisfiable,
}

impl Range {
    pub(crate) fn of(headers: &HeaderMap, size: u64) -> Self {
        let mut values = headers.get_all(RANGE).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => {
                value.to_str().ok().and_then(|text| read(text, size)).unwrap_or(Self::Whole)
            }
            _ => Self::Whole,
        }
    }
}

/// `None` for what is not understood, which is to be ignored.
fn read(text: &str, size: u64) -> Option<Range> {
    let (unit, ranges) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = ranges.trim().split_once('-')?;
    let part = match (first.is_empty(), last.is_empty()) {
        (true, true) => return None,
        (true, false) => {
            let count = number(last)?;
            (size.saturating_sub(count), if count == 0 { None } else { size.checked_sub(1) })
        }
        (false, true) => (number(first)?, size.checked_sub(1)),
        (false, false) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            (first, size.checked_sub(1).map(|end| end.min(last)))
        }
    };
    Some(match part {
        (first, Some(last)) if first <= last => Range::Part { first, last },
        _ => Range::Unsatisfiable,
    })
}

/// What is too large for us is larger than any file.
fn number(digits: &str) -> Option<u64> {
    let all = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    all.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn of(text: &str, size: u64) -> Range {
        let mut headers = HeaderMap::new();
        headers.append(RANGE, HeaderValue::from_str(text).expect("a value"));
        Range::of(&headers, size)
    }

    #[test]
    fn a_part_is_cut_to_the_file() {
        for (text, first, last) in [
            ("bytes=0-0", 0, 0),
            ("bytes=0-", 0, 9),
            ("bytes=3-5", 3, 5),
            ("bytes=3-500", 3, 9),
            ("bytes=-3", 7, 9),
            ("bytes=-300", 0, 9),
            ("BYTES=9-9", 9, 9),
            ("bytes = 2-3 ", 2, 3),
            ("bytes=0-99999999999999999999999", 0, 9),
        ] {
            assert_eq!(of(text, 10), Range::Part { first, last }, "{text}");
        }
    }

    #[test]
    fn what_begins_behind_the_end_cannot_be_had() {
        for text in ["bytes=10-", "bytes=10-12", "bytes=-0", "bytes=99999999999999999999999-"] {
            assert_eq!(of(text, 10), Range::Unsatisfiable, "{text}");
        }
        assert_eq!(of("bytes=0-", 0), Range::Unsatisfiable);
        assert_eq!(of("bytes=-1", 0), Range::Unsatisfiable);
    }

    #[test]
    fn what_is_not_understood_and_what_asks_for_several_is_ignored() {
        for text in [
            "bytes=",
            "bytes=-",
            "bytes",
            "lines=0-1",
            "bytes=5-2",
            "bytes=a-b",
            "bytes=+1-2",
            "bytes=0-1,3-4",
        ] {
            assert_eq!(of(text, 10), Range::Whole, "{text}");
        }
        let many = format!("bytes={}", vec!["0-"; 3000].join(","));
        assert_eq!(of(&many, 10), Range::Whole);
        let mut headers = HeaderMap::new();
        assert_eq!(Range::of(&headers, 10), Range::Whole);
        headers.append(RANGE, HeaderValue::from_static("bytes=0-1"));
        headers.append(RANGE, HeaderValue::from_static("bytes=2-3"));
        assert_eq!(Range::of(&headers, 10), Range::Whole);
    }

    proptest! {
        #[test]
        fn no_part_is_empty_or_leaves_the_file(text in "bytes=[0-9]{0,21}-[0-9]{0,21}", size in 0_u64..100) {
            if let Range::Part { first, last } = of(&text, size) {
                prop_assert!(first <= last && last < size);
            }
        }
    }
}
