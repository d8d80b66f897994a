//! What tells one version of a file from another: its entity tag, and when it was changed.
//!
//! Not what a client may do with it (`precondition`).
//!
//! Invariant: two hosts that have the same file, with the same time, give it the same tag; so it holds neither inode nor
//! device. A file's codings have tags of their own.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bridgehead_coding::Coding;
use http::HeaderValue;
use rustix::fs::Stat;

/// The year 10000, which a date has no digits for.
const END_OF_DATES: u64 = 253_402_300_800;

/// One version of one coding of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// With its quotes.
    pub(crate) tag: String,
    /// In whole seconds; not there for a time that no date can say.
    pub(crate) modified: Option<SystemTime>,
}

impl Version {
    pub(crate) fn of(stat: &Stat, coding: Option<Coding>, now: SystemTime) -> Self {
        let (seconds, nanoseconds, size) = (stat.st_mtime, stat.st_mtime_nsec, stat.st_size);
        let suffix = coding.map_or(String::new(), |coding| format!("-{}", coding.token()));
        let modified = u64::try_from(seconds).ok().filter(|seconds| *seconds < END_OF_DATES);
        // A time that is still to come would make a client wait for it (RFC 9110 section 8.8.2.1).
        let modified =
            modified.map(|seconds| (UNIX_EPOCH + Duration::from_secs(seconds)).min(whole_seconds(now)));
        Self { tag: format!("\"{seconds:x}.{nanoseconds:x}-{size:x}{suffix}\""), modified }
    }

    pub(crate) fn tag_value(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.tag).ok()
    }

    pub(crate) fn modified_value(&self) -> Option<HeaderValue> {
        HeaderValue::try_from(httpdate::fmt_http_date(self.modified?)).ok()
    }
}

fn whole_seconds(time: SystemTime) -> SystemTime {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    UNIX_EPOCH + Duration::from_secs(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beneath::tests::Folder;
    use std::fs::{File, FileTimes};

    fn version(time: SystemTime, content: &str, coding: Option<Coding>) -> Version {
        let folder = Folder::new();
        let path = folder.public().join("file");
        std::fs::write(&path, content).expect("a file");
        let file = File::options().write(true).open(&path).expect("it is there");
        file.set_times(FileTimes::new().set_modified(time)).expect("a time");
        Version::of(&rustix::fs::fstat(&file).expect("it is open"), coding, SystemTime::now())
    }

    #[test]
    fn another_time_size_or_coding_is_another_tag_and_another_place_is_not() {
        let then = UNIX_EPOCH + Duration::new(1_700_000_000, 5);
        let one = version(then, "one", None);
        assert_eq!(one, version(then, "two", None));
        assert!(one.tag.starts_with('"') && one.tag.ends_with('"'), "{}", one.tag);
        let others = [
            version(then + Duration::from_nanos(1), "one", None),
            version(then, "three", None),
            version(then, "one", Some(Coding::Brotli)),
            version(then, "one", Some(Coding::Gzip)),
        ];
        assert!(others.iter().all(|other| other.tag != one.tag), "{others:?}");
    }

    #[test]
    fn a_time_that_no_date_can_say_is_not_said() {
        assert_eq!(version(UNIX_EPOCH - Duration::from_secs(5), "", None).modified, None);
        let now = SystemTime::now();
        let ahead = version(now + Duration::from_secs(100_000), "", None).modified;
        assert!(ahead.is_some_and(|time| time <= SystemTime::now()), "{ahead:?}");
        assert!(version(now, "", None).modified_value().is_some());
    }
}
