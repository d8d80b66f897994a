//! Which files count, and which folders are looked into.
//!
//! A file counts if an included pattern means it and no excluded one does; a pattern without wildcards (`.env`) outranks
//! those excluded. A folder that is excluded, or a virtual environment, is not looked into, and neither is what is below.
//!
//! The only look at the disk is for the marker of a virtual environment.

use std::path::{Path, PathBuf};

use crate::pattern::Pattern;

/// What Python's `venv` and all its successors leave at the top of an environment.
const ENVIRONMENT: &str = "pyvenv.cfg";

/// What to watch.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Where to look; absolute, without links.
    pub folders: Vec<PathBuf>,
    /// Files that count.
    pub include: Vec<Pattern>,
    /// Files that do not count, and folders that are not looked into.
    pub exclude: Vec<Pattern>,
    /// More of such folders, by their absolute paths.
    pub left_out: Vec<PathBuf>,
}

impl Selection {
    /// Whether a change of the file at `path` is to be reported.
    #[must_use]
    pub fn counts(&self, path: &Path) -> bool {
        self.is_meant(path) && path.parent().is_some_and(|folder| self.enters(folder))
    }

    /// Whether the folder at `path` is to be looked into.
    #[must_use]
    pub fn enters(&self, path: &Path) -> bool {
        self.folders.iter().any(|top| {
            path.starts_with(top)
                && path
                    .ancestors()
                    .take_while(|folder| *folder != top.as_path())
                    .all(|folder| self.is_open(folder, top))
        })
    }

    /// Whether `path` is one of the folders at the top.
    pub(crate) fn is_top(&self, path: &Path) -> bool {
        self.folders.iter().any(|top| top == path)
    }

    fn is_meant(&self, path: &Path) -> bool {
        let top = self.folders.iter().find(|top| path.starts_with(top));
        let mut meant = self.include.iter().filter(|pattern| pattern.matches(path)).peekable();
        meant.peek().is_some()
            && (meant.any(Pattern::is_literal) || !self.excludes(path, top.map_or(path, PathBuf::as_path)))
    }

    fn is_open(&self, folder: &Path, top: &Path) -> bool {
        !self.left_out.iter().any(|left_out| left_out == folder)
            && !self.excludes(folder, top)
            && !folder.join(ENVIRONMENT).exists()
    }

    /// Whether a pattern excludes it. What is above the folder at the top is nobody's choice, unless a pattern begins
    /// there.
    fn excludes(&self, path: &Path, top: &Path) -> bool {
        let below = path.strip_prefix(top).unwrap_or(path);
        let named = |pattern: &Pattern| if pattern.is_whole() { path } else { below };
        self.exclude.iter().any(|pattern| pattern.matches(named(pattern)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|text| Pattern::new(text)).collect()
    }

    fn selection() -> Selection {
        Selection {
            folders: vec!["/home/.hidden/shop".into(), "/lib".into(), "/lib/.plugins".into()],
            include: patterns(&["*.py", ".env", "/etc/*.py"]),
            exclude: patterns(&[
                ".*",
                "__pycache__",
                "test_*",
                "old/*.py",
                "/home/.hidden/shop/gone/**",
                "/lib/*.py",
            ]),
            left_out: vec!["/home/.hidden/shop/build".into()],
        }
    }

    #[test]
    fn a_file_counts_if_it_is_included_and_nothing_excludes_it() {
        for (path, expected) in [
            ("/home/.hidden/shop/main.py", true),
            ("/home/.hidden/shop/web/views.py", true),
            ("/home/.hidden/shop/web/views.pyc", false),
            ("/home/.hidden/shop/.env", true),
            ("/home/.hidden/shop/.#main.py", false),
            ("/home/.hidden/shop/.git/hooks/a.py", false),
            ("/home/.hidden/shop/__pycache__/main.py", false),
            ("/home/.hidden/shop/test_main.py", false),
            ("/home/.hidden/shop/old/a.py", false),
            ("/home/.hidden/shop/build/a.py", false),
            ("/home/.hidden/shop/build/deep/a.py", false),
            ("/home/.hidden/shop/build.py", true),
            ("/home/.hidden/shop/gone/a.py", false),
            ("/home/.hidden/shop/gone/deep/a.py", false),
            ("/home/.hidden/shop/web/gone/a.py", true),
            ("/lib/a.py", false),
            ("/lib/deep/a.py", true),
            ("/elsewhere/main.py", false),
            ("/etc/a.py", false),
            ("/lib/.plugins/a.py", true),
            ("/lib/.other/a.py", false),
        ] {
            assert_eq!(selection().counts(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn what_is_excluded_is_not_looked_into() {
        for (path, expected) in [
            ("/home/.hidden/shop", true),
            ("/home/.hidden/shop/web", true),
            ("/home/.hidden/shop/.git", false),
            ("/home/.hidden/shop/.git/objects", false),
            ("/home/.hidden", false),
            ("/home/.hidden/shop/build", false),
        ] {
            assert_eq!(selection().enters(Path::new(path)), expected, "{path}");
        }
    }
}
