//! Goes through folders, into those that a selection enters.
//!
//! Invariant: a folder is entered once, however many links lead to it, so that a circle of links ends.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::selection::Selection;

/// What is found on the way.
pub(crate) enum Found<'a> {
    /// A folder that is entered.
    Folder(&'a Path),
    /// A file that counts.
    File(&'a Path, &'a Metadata),
}

/// Shows what is in `start` and below. What cannot be read, or is gone meanwhile, is passed over.
pub(crate) fn walk(start: &Path, selection: &Selection, mut show: impl FnMut(Found<'_>)) {
    let mut seen = HashSet::new();
    let mut waiting: Vec<PathBuf> = vec![start.to_owned()];
    while let Some(folder) = waiting.pop() {
        // Links are followed, here and below: what is linked is imported.
        let Ok(metadata) = fs::metadata(&folder) else { continue };
        if !metadata.is_dir() || !selection.enters(&folder) || !seen.insert((metadata.dev(), metadata.ino()))
        {
            continue;
        }
        // Before its entries are read: what comes into it meanwhile is then seen by whoever watches it.
        show(Found::Folder(&folder));
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            match fs::metadata(&path) {
                Ok(metadata) if metadata.is_dir() => waiting.push(path),
                Ok(metadata) if selection.counts(&path) => show(Found::File(&path, &metadata)),
                _ => {}
            }
        }
    }
}
