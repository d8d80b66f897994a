//! Finds changes by looking: where the system does not tell of them.
//!
//! Invariant: a file that was replaced differs from before, though it may have the same length and the same second.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::selection::Selection;
use crate::walk::{Found, walk};

/// Every file that counts, as it was.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot(HashMap<PathBuf, Stamp>);

/// What differs once a file was written or touched, and not when only its rights were changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    seconds: i64,
    nanoseconds: i64,
    size: u64,
    inode: u64,
}

impl Stamp {
    pub(crate) fn of(file: &Metadata) -> Self {
        Self { seconds: file.mtime(), nanoseconds: file.mtime_nsec(), size: file.size(), inode: file.ino() }
    }
}

impl Snapshot {
    pub(crate) fn take(selection: &Selection) -> Self {
        let mut files = HashMap::new();
        for folder in &selection.folders {
            walk(folder, selection, |found| {
                if let Found::File(path, metadata) = found {
                    files.insert(path.to_owned(), Stamp::of(metadata));
                }
            });
        }
        Self(files)
    }

    /// Files that came, went or changed since `before`.
    pub(crate) fn since(&self, before: &Self) -> Vec<PathBuf> {
        let new = self.0.iter().filter(|(path, stamp)| before.0.get(*path) != Some(*stamp));
        let gone = before.0.iter().filter(|(path, _)| !self.0.contains_key(*path));
        new.chain(gone).map(|(path, _)| path.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(files: &[(&str, i64, i64, u64, u64)]) -> Snapshot {
        Snapshot(
            files
                .iter()
                .map(|&(path, seconds, nanoseconds, size, inode)| {
                    (PathBuf::from(path), Stamp { seconds, nanoseconds, size, inode })
                })
                .collect(),
        )
    }

    #[test]
    fn what_came_went_or_changed_is_found() {
        let before = snapshot(&[
            ("same", 1, 1, 1, 1),
            ("gone", 1, 1, 1, 2),
            ("touched", 1, 1, 1, 3),
            ("replaced", 1, 1, 1, 4),
            ("older", 9, 1, 1, 5),
        ]);
        let now = snapshot(&[
            ("same", 1, 1, 1, 1),
            ("touched", 1, 2, 1, 3),
            ("replaced", 1, 1, 1, 40),
            ("older", 1, 1, 1, 5),
            ("new", 1, 1, 1, 6),
        ]);
        let mut found = now.since(&before);
        found.sort();
        assert_eq!(found, ["gone", "new", "older", "replaced", "touched"].map(PathBuf::from));
        assert!(now.since(&now).is_empty());
    }
}
