//! Which paths are files', and of which directory.
//!
//! Not whether such a file is there.
//!
//! Invariant: of the mounts that a path is below, the one with the longest path has it. A path is compared by its parts, as
//! they are once percent-decoded: `/static` has neither `/static-secret` nor `/app/../static`.

use std::path::PathBuf;
use std::sync::Arc;

use http::HeaderValue;
use percent_encoding::percent_decode_str;

use crate::name::Name;

/// A directory at a path.
#[derive(Debug)]
pub struct Mount {
    /// As it is requested: `/static`, or `/`.
    pub url: String,
    /// Without one, the path is the application's.
    pub folder: Option<PathBuf>,
    /// A file of it that stands for a page that is not there.
    pub fallback: Option<String>,
}

/// All of them.
#[derive(Debug)]
pub struct Mounts {
    mounts: Vec<Arc<Mount>>,
    max_age: Option<HeaderValue>,
}

/// What a request asks of a mount.
#[derive(Debug)]
pub struct Asked {
    pub(crate) mount: Arc<Mount>,
    /// `None` where no file could have such a name.
    pub(crate) name: Option<Name>,
    pub(crate) max_age: Option<HeaderValue>,
}

impl Mounts {
    /// Files that clients may keep for so many seconds before they ask again; pages they ask for again each time.
    #[must_use]
    pub fn new(mut mounts: Vec<Mount>, max_age: Option<u64>) -> Self {
        mounts.sort_by_key(|mount| std::cmp::Reverse(mount.prefix().len()));
        let max_age = max_age.and_then(|seconds| HeaderValue::try_from(format!("max-age={seconds}")).ok());
        Self { mounts: mounts.into_iter().map(Arc::new).collect(), max_age }
    }

    /// What the target's path asks for, if it is below a mount.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<Asked> {
        let path = std::borrow::Cow::from(percent_decode_str(path));
        let mount = self.mounts.iter().find(|mount| mount.rest(&path).is_some())?;
        mount.folder.as_ref()?;
        let name = mount.rest(&path).and_then(Name::read);
        let asked = Asked { mount: Arc::clone(mount), name, max_age: self.max_age.clone() };
        // What no file's name is may be anything else, but where a page stands for all that is not there.
        let concerned = asked.name.is_some() || asked.mount.is_alone() || asked.mount.fallback.is_some();
        concerned.then_some(asked)
    }
}

impl Mount {
    /// Without the slash of `/`.
    fn prefix(&self) -> &str {
        self.url.trim_end_matches('/')
    }

    fn rest<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        let rest = path.strip_prefix(self.prefix().as_bytes())?;
        matches!(rest.first(), None | Some(b'/')).then_some(rest)
    }

    /// Whether nobody else answers below it. A directory at `/` shares its paths with the application.
    pub(crate) fn is_alone(&self) -> bool {
        !self.prefix().is_empty()
    }
}

impl Asked {
    /// Whether the application is not asked, whatever is found.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.mount.is_alone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts() -> Mounts {
        let mount = |url: &str, folder: Option<&str>| Mount {
            url: url.to_owned(),
            folder: folder.map(PathBuf::from),
            fallback: None,
        };
        Mounts::new(
            vec![
                mount("/", Some("root")),
                mount("/api", None),
                mount("/s", Some("s")),
                mount("/s/t", Some("t")),
            ],
            None,
        )
    }

    fn found(path: &str) -> Option<(String, Option<String>)> {
        let asked = mounts().find(path)?;
        let name = asked.name.map(|name| String::from_utf8(name.path).expect("text"));
        Some((asked.mount.folder.as_ref()?.display().to_string(), name))
    }

    #[test]
    fn the_longest_path_has_a_request() {
        let some = |folder: &str, name: &str| Some((folder.to_owned(), Some(name.to_owned())));
        assert_eq!(found("/s/a"), some("s", "a"));
        assert_eq!(found("/s/t/a"), some("t", "a"));
        assert_eq!(found("/s/tea"), some("s", "tea"));
        assert_eq!(found("/%73/a"), some("s", "a"));
        assert_eq!(found("/a"), some("root", "a"));
        assert_eq!(found("/s-secret"), some("root", "s-secret"));
    }

    #[test]
    fn a_mount_without_a_directory_is_the_applications() {
        assert_eq!(found("/api/users"), None);
        assert_eq!(found("/api"), None);
        assert!(found("/apis").is_some());
    }

    #[test]
    fn what_no_file_is_called_is_nobodys_below_a_mount_and_the_applications_below_the_root() {
        assert_eq!(found("/s/../a"), Some(("s".to_owned(), None)));
        assert_eq!(found("/s/%2e%2e/a"), Some(("s".to_owned(), None)));
        assert_eq!(found("/s/..%2fa"), Some(("s".to_owned(), None)));
        assert_eq!(found("/a/../b"), None);
        assert_eq!(found("*"), None);
    }
}
