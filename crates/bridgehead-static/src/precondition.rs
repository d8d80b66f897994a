//! Whether a client wants what there is (RFC 9110 section 13).
//!
//! | header, in this order | else | if it does not hold |
//! |---|---|---|
//! | `If-Match` | `If-Unmodified-Since` | 412 |
//! | `If-None-Match` | `If-Modified-Since` | 304 |
//! | `If-Range` | | the whole file |
//!
//! Invariant: what cannot be read never makes a client keep what it has: it is answered as if it had nothing.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{
    HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE,
};

use crate::version::Version;

/// What a date leaves open: another version may have been changed in the same second.
const SECOND: Duration = Duration::from_secs(1);

/// What a client's conditions come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Send,
    /// It has it.
    NotModified,
    /// It wants another.
    Failed,
}

/// How tags are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Strong,
    Weak,
}

pub(crate) fn judge(headers: &HeaderMap, version: &Version) -> Verdict {
    if headers.contains_key(IF_MATCH) {
        if !matches(headers, IF_MATCH, version, Comparison::Strong) {
            return Verdict::Failed;
        }
    } else if let (Some(since), Some(modified)) = (date(headers, IF_UNMODIFIED_SINCE), version.modified)
        && modified > since
    {
        return Verdict::Failed;
    }
    let has = if headers.contains_key(IF_NONE_MATCH) {
        matches(headers, IF_NONE_MATCH, version, Comparison::Weak)
    } else {
        let since = date(headers, IF_MODIFIED_SINCE);
        since.zip(version.modified).is_some_and(|(since, modified)| modified <= since)
    };
    if has { Verdict::NotModified } else { Verdict::Send }
}

/// Whether a part is of use to a client that has others: of this very version.
pub(crate) fn range_fits(headers: &HeaderMap, version: &Version, now: SystemTime) -> bool {
    let Some(value) = headers.get(IF_RANGE) else { return true };
    match value.as_bytes() {
        [b'"', ..] | [b'W', b'/', ..] => value.as_bytes() == version.tag.as_bytes(),
        // Strong only once the second that it names is over (RFC 9110 section 8.8.2.2).
        _ => {
            date(headers, IF_RANGE).is_some_and(|date| version.modified == Some(date) && date + SECOND <= now)
        }
    }
}

fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

fn matches(headers: &HeaderMap, name: HeaderName, version: &Version, comparison: Comparison) -> bool {
    headers.get_all(name).iter().map(HeaderValue::as_bytes).any(|list| {
        list.trim_ascii() == b"*" || Tags(list).any(|tag| is_same(tag, version.tag.as_bytes(), comparison))
    })
}

/// Ours is a strong one.
fn is_same(theirs: &[u8], ours: &[u8], comparison: Comparison) -> bool {
    match theirs.strip_prefix(b"W/") {
        Some(weak) => comparison == Comparison::Weak && weak == ours,
        None => theirs == ours,
    }
}

/// The tags of a list. A comma within quotes is a tag's own.
struct Tags<'a>(&'a [u8]);

impl<'a> Iterator for Tags<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b',');
        let start = self.0.iter().position(|byte| !blank(byte))?;
        let rest = &self.0[start..];
        let quote = if rest.starts_with(b"W/") { 2 } else { 0 };
        if rest.get(quote) != Some(&b'"') {
            self.0 = &[];
            return None;
        }
        let length = rest[quote + 1..].iter().position(|byte| *byte == b'"')?;
        let (tag, rest) = rest.split_at(quote + length + 2);
        self.0 = rest;
        Some(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    const TAG: &str = "\"a,b\"";
    // 1994-11-06 08:49:37, RFC 9110's own example.
    const WHEN: u64 = 784_111_777;
    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    fn version() -> Version {
        Version { tag: TAG.to_owned(), modified: Some(UNIX_EPOCH + Duration::from_secs(WHEN)) }
    }

    fn later() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(WHEN + 1)
    }

    fn headers(written: &[(HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in written {
            headers.append(name, HeaderValue::from_str(value).expect("a value"));
        }
        headers
    }

    #[test]
    fn conditions_are_judged_in_the_order_of_the_rfc() {
        use Verdict::{Failed, NotModified, Send};
        for (written, verdict) in [
            (vec![], Send),
            (vec![(IF_NONE_MATCH, TAG)], NotModified),
            (vec![(IF_NONE_MATCH, "W/\"a,b\"")], NotModified),
            (vec![(IF_NONE_MATCH, "\"x\", \"a,b\"")], NotModified),
            (vec![(IF_NONE_MATCH, "*")], NotModified),
            (vec![(IF_NONE_MATCH, "\"x\""), (IF_NONE_MATCH, TAG)], NotModified),
            (vec![(IF_NONE_MATCH, "\"x\"")], Send),
            (vec![(IF_NONE_MATCH, "a,b")], Send),
            (vec![(IF_NONE_MATCH, "\"a")], Send),
            // The tag says more than the date.
            (vec![(IF_NONE_MATCH, "\"x\""), (IF_MODIFIED_SINCE, AFTER)], Send),
            (vec![(IF_MODIFIED_SINCE, DATE)], NotModified),
            (vec![(IF_MODIFIED_SINCE, AFTER)], NotModified),
            (vec![(IF_MODIFIED_SINCE, BEFORE)], Send),
            (vec![(IF_MODIFIED_SINCE, "yesterday")], Send),
            (vec![(IF_MATCH, TAG)], Send),
            (vec![(IF_MATCH, "*")], Send),
            (vec![(IF_MATCH, "W/\"a,b\"")], Failed),
            (vec![(IF_MATCH, "\"x\"")], Failed),
            (vec![(IF_MATCH, "\"x\""), (IF_NONE_MATCH, TAG)], Failed),
            (vec![(IF_MATCH, TAG), (IF_NONE_MATCH, TAG)], NotModified),
            (vec![(IF_UNMODIFIED_SINCE, DATE)], Send),
            (vec![(IF_UNMODIFIED_SINCE, BEFORE)], Failed),
            (vec![(IF_UNMODIFIED_SINCE, "never")], Send),
            (vec![(IF_MATCH, TAG), (IF_UNMODIFIED_SINCE, BEFORE)], Send),
        ] {
            assert_eq!(judge(&headers(&written), &version()), verdict, "{written:?}");
        }
    }

    #[test]
    fn a_part_is_of_use_to_who_has_the_same_version() {
        for (written, fits) in [
            (TAG, true),
            (DATE, true),
            ("W/\"a,b\"", false),
            ("\"x\"", false),
            (BEFORE, false),
            (AFTER, false),
            ("anything", false),
        ] {
            assert_eq!(range_fits(&headers(&[(IF_RANGE, written)]), &version(), later()), fits, "{written}");
        }
        assert!(range_fits(&HeaderMap::new(), &version(), later()));
    }

    #[test]
    fn a_date_whose_second_is_not_over_may_be_that_of_two_versions() {
        let written = [(IF_RANGE, DATE)];
        let within = UNIX_EPOCH + Duration::new(WHEN, 999_999_999);
        assert!(!range_fits(&headers(&written), &version(), within));
        assert!(range_fits(&headers(&written), &version(), later()));
        assert!(range_fits(&headers(&[(IF_RANGE, TAG)]), &version(), within), "a tag says which");
    }

    #[test]
    fn a_day_that_begins_as_a_weak_tag_does_is_a_day() {
        for day in 0..7 {
            let modified = UNIX_EPOCH + Duration::from_secs(WHEN + day * 24 * 60 * 60);
            let (version, written) =
                (Version { modified: Some(modified), ..version() }, httpdate::fmt_http_date(modified));
            assert!(range_fits(&headers(&[(IF_RANGE, &written)]), &version, modified + SECOND), "{written}");
        }
    }

    #[test]
    fn a_file_without_a_date_has_its_tag_alone() {
        let version = Version { modified: None, ..version() };
        for name in [IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE] {
            assert_eq!(judge(&headers(&[(name, AFTER)]), &version), Verdict::Send);
        }
        assert!(!range_fits(&headers(&[(IF_RANGE, DATE)]), &version, later()));
    }
}
