//! Whether a path can be a file's at all, before anything is opened.
//!
//! Not whether there is one, and not what links lead to: that is `beneath`'s, whose word is the kernel's.
//!
//! Invariant: a name has no part that means another place than the one below: none is empty, `.` or `..`, hidden, or holds
//! a NUL or a backslash.

use std::path::Path;

/// The one hidden name that is meant for everybody (RFC 8615).
const WELL_KNOWN: &[u8] = b".well-known";

/// What is asked for, below a mount's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// Parts with `/` between them; none for the directory itself.
    pub(crate) path: Vec<u8>,
    pub(crate) end: End,
}

/// How a name was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// As a directory's, with a slash.
    Slash,
    Bare,
}

impl Name {
    /// What is behind a mount's own path, percent-decoded: nothing, or a slash and more.
    pub(crate) fn read(rest: &[u8]) -> Option<Self> {
        let Some(parts) = rest.strip_prefix(b"/") else {
            return rest.is_empty().then(|| Self { path: Vec::new(), end: End::Bare });
        };
        let (path, end) = match parts.strip_suffix(b"/") {
            Some(path) => (path, End::Slash),
            None if parts.is_empty() => return Some(Self { path: Vec::new(), end: End::Slash }),
            None => (parts, End::Bare),
        };
        let sound = path.split(|byte| *byte == b'/').all(is_sound);
        sound.then(|| Self { path: path.to_vec(), end })
    }

    /// A file in the directory that this is the name of.
    pub(crate) fn join(&self, file: &str) -> Vec<u8> {
        let mut path = self.path.clone();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(file.as_bytes());
        path
    }
}

fn is_sound(part: &[u8]) -> bool {
    let hidden = part.first() == Some(&b'.') && part != WELL_KNOWN;
    !part.is_empty() && !hidden && !part.iter().any(|byte| matches!(byte, 0 | b'\\'))
}

/// For a fuzzer: whatever a path is, its name stays below.
pub fn fuzzed(rest: &[u8]) {
    use std::os::unix::ffi::OsStrExt;
    let Some(name) = Name::read(rest) else { return };
    let path = Path::new(std::ffi::OsStr::from_bytes(&name.path));
    assert!(path.components().all(|part| matches!(part, std::path::Component::Normal(_))), "{path:?}");
    assert!(!name.path.contains(&0), "{path:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(rest: &str) -> Option<String> {
        Name::read(rest.as_bytes()).map(|name| String::from_utf8(name.path).expect("as it came"))
    }

    #[test]
    fn a_name_is_what_is_behind_the_mount() {
        for (rest, name) in [("", ""), ("/", ""), ("/a", "a"), ("/a/b.css", "a/b.css"), ("/a/", "a")] {
            assert_eq!(path(rest).as_deref(), Some(name), "{rest}");
        }
        assert_eq!(path("/.well-known/security.txt").as_deref(), Some(".well-known/security.txt"));
    }

    #[test]
    fn what_could_mean_another_place_is_no_name() {
        for rest in ["/..", "/a/..", "/../a", "/a/../b", "/.", "/./a", "//", "//etc", "/a//b", "/a//"] {
            assert_eq!(path(rest), None, "{rest}");
        }
        for rest in ["/a\\b", "/..\\a", "/a\0", "/.git/config", "/a/.env", "/.well-known/.x", "secret"] {
            assert_eq!(path(rest), None, "{rest}");
        }
    }

    #[test]
    fn a_slash_behind_a_name_is_kept_in_mind() {
        let end = |rest: &[u8]| Name::read(rest).map(|name| name.end);
        assert_eq!(end(b"/a/"), Some(End::Slash));
        assert_eq!(end(b"/"), Some(End::Slash));
        assert_eq!(end(b"/a"), Some(End::Bare));
        assert_eq!(end(b""), Some(End::Bare));
    }

    proptest! {
        #[test]
        fn no_name_leaves_its_directory(rest in "(/?[.\\\\a/%\\x00]{0,4}){0,6}") {
            fuzzed(rest.as_bytes());
        }
    }
}
