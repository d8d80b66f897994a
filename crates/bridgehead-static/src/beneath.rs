//! Opens what is below a directory, and nothing else.
//!
//! Not whether a name is sound (`name`). Links may lead wherever they like within the directory; whoever swaps one while it
//! is being opened wins nothing, since the kernel looks at each step as it takes it (`openat2`, `RESOLVE_BENEATH`). Where it
//! cannot, no link is followed at all.
//!
//! Invariant: what is opened is looked at afterwards, by its descriptor, and never before, by its name. Nothing that is
//! no regular file is ever read, and opening waits for nobody: a pipe has no writer to wait for.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, open, openat};
use rustix::io::Errno;

/// A pipe, and some devices, would hold whoever opens them.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Somebody moved a directory meanwhile, and the kernel could not tell whether it is still below.
#[cfg(target_os = "linux")]
const TRIES: usize = 8;

/// A directory that files are opened in.
#[derive(Debug)]
pub(crate) struct Tree(OwnedFd);

/// What was found.
#[derive(Debug)]
pub(crate) enum Found {
    File(File, Stat),
    Folder,
}

/// Why there is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nothing {
    /// There is none, or it is elsewhere, or no file.
    NotThere,
    /// It may not be read.
    Forbidden,
    /// There are no descriptors left, or no memory.
    Shortage,
    /// The file system does not work.
    Broken,
}

impl Tree {
    /// The directory itself may be reached by links: its path is the operator's.
    pub(crate) fn open(folder: &Path) -> Result<Self, Nothing> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        open(folder, flags, Mode::empty()).map(Self).map_err(Nothing::from)
    }

    /// A file or a directory by its sound name; none is the directory itself.
    pub(crate) fn find(&self, name: &[u8]) -> Result<Found, Nothing> {
        if name.is_empty() {
            return Ok(Found::Folder);
        }
        let file = self.descend(name)?;
        let stat = fstat(&file)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Found::File(File::from(file), stat)),
            FileType::Directory => Ok(Found::Folder),
            _ => Err(Nothing::NotThere),
        }
    }

    #[cfg(target_os = "linux")]
    fn descend(&self, name: &[u8]) -> Result<OwnedFd, Errno> {
        use rustix::fs::{ResolveFlags, openat2};
        let below = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..TRIES {
            match openat2(&self.0, name, READ, Mode::empty(), below) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                // A kernel before 5.6, or a sandbox that does not know the call.
                Err(Errno::NOSYS | Errno::PERM) => return self.walk(name),
                opened => return opened,
            }
        }
        Err(Errno::NOENT)
    }

    #[cfg(not(target_os = "linux"))]
    fn descend(&self, name: &[u8]) -> Result<OwnedFd, Errno> {
        self.walk(name)
    }

    /// Part by part, past no link.
    fn walk(&self, name: &[u8]) -> Result<OwnedFd, Errno> {
        let folder = READ | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let mut parts = name.split(|byte| *byte == b'/');
        let last = parts.next_back().unwrap_or_default();
        let mut inner: Option<OwnedFd> = None;
        for part in parts {
            let next = openat(inner.as_ref().unwrap_or(&self.0), part, folder, Mode::empty())?;
            inner = Some(next);
        }
        openat(inner.as_ref().unwrap_or(&self.0), last, READ | OFlags::NOFOLLOW, Mode::empty())
    }
}

impl From<Errno> for Nothing {
    fn from(error: Errno) -> Self {
        match error {
            Errno::ACCESS | Errno::PERM => Self::Forbidden,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM => Self::Shortage,
            // A link that leads out (`XDEV`) or to itself, a socket (`NXIO`), a file where a directory was due.
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::XDEV
            | Errno::LOOP
            | Errno::NAMETOOLONG
            | Errno::NXIO
            | Errno::NODEV
            | Errno::INVAL
            | Errno::ILSEQ => Self::NotThere,
            _ => Self::Broken,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// A directory that is gone with the test.
    pub(crate) struct Folder(pub(crate) PathBuf);

    impl Folder {
        pub(crate) fn new() -> Self {
            static NEXT: AtomicUsize = AtomicUsize::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path =
                std::env::temp_dir().join(format!("bridgehead-static-{}-{number}", std::process::id()));
            std::fs::create_dir_all(path.join("public/inner")).expect("a folder");
            std::fs::write(path.join("public/page.html"), "page").expect("a file");
            std::fs::write(path.join("public/inner/deep.txt"), "deep").expect("a file");
            std::fs::write(path.join("secret"), "secret").expect("a file");
            Self(path)
        }

        pub(crate) fn public(&self) -> PathBuf {
            self.0.join("public")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn ways(tree: &Tree, name: &str) -> [Result<(), Nothing>; 2] {
        let file = |opened: Result<OwnedFd, Errno>| opened.map(drop).map_err(Nothing::from);
        [file(tree.descend(name.as_bytes())), file(tree.walk(name.as_bytes()))]
    }

    #[test]
    fn files_and_directories_below_are_found() {
        let folder = Folder::new();
        let tree = Tree::open(&folder.public()).expect("it is there");
        assert!(matches!(tree.find(b"page.html"), Ok(Found::File(_, stat)) if stat.st_size == 4));
        assert!(matches!(tree.find(b"inner/deep.txt"), Ok(Found::File(..))));
        assert!(matches!(tree.find(b"inner"), Ok(Found::Folder)));
        assert!(matches!(tree.find(b""), Ok(Found::Folder)));
        for missing in ["none", "none/deep", "page.html/deep"] {
            assert_eq!(ways(&tree, missing), [Err(Nothing::NotThere); 2], "{missing}");
        }
        assert_eq!(ways(&tree, &"a".repeat(300)), [Err(Nothing::NotThere); 2]);
    }

    #[test]
    fn no_link_leads_out_and_one_that_stays_is_followed_where_the_kernel_watches() {
        let folder = Folder::new();
        let public = folder.public();
        symlink("../secret", public.join("out")).expect("a link");
        symlink(folder.0.join("secret"), public.join("absolute")).expect("a link");
        symlink("..", public.join("up")).expect("a link");
        symlink("loop", public.join("loop")).expect("a link");
        symlink("inner", public.join("within")).expect("a link");
        let tree = Tree::open(&public).expect("it is there");
        for name in ["out", "absolute", "up/secret", "loop", "../secret"] {
            assert_eq!(ways(&tree, name)[0], Err(Nothing::NotThere), "{name}");
        }
        for name in ["out", "absolute", "up/secret", "loop", "within/deep.txt"] {
            assert_eq!(ways(&tree, name)[1], Err(Nothing::NotThere), "{name}");
        }
        #[cfg(target_os = "linux")]
        assert_eq!(ways(&tree, "within/deep.txt")[0], Ok(()));
    }

    #[test]
    fn what_is_no_file_is_not_there_and_nobody_waits_for_it() {
        let folder = Folder::new();
        let public = folder.public();
        let pipe = public.join("pipe");
        // The call that makes one has another name on each system.
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("it runs").success());
        let _socket = std::os::unix::net::UnixListener::bind(public.join("socket")).expect("a socket");
        let tree = Tree::open(&public).expect("it is there");
        assert_eq!(tree.find(b"pipe").err(), Some(Nothing::NotThere));
        assert_eq!(tree.find(b"socket").err(), Some(Nothing::NotThere));
    }

    #[test]
    fn whoever_swaps_a_directory_for_a_link_meanwhile_wins_nothing() {
        let folder = Folder::new();
        let public = folder.public();
        std::fs::create_dir(folder.0.join("elsewhere")).expect("a folder");
        std::fs::write(folder.0.join("elsewhere/deep.txt"), "stolen").expect("a file");
        symlink("../elsewhere", public.join("bait")).expect("a link");
        let tree = Tree::open(&public).expect("it is there");
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    // The directory and the link take turns at one name.
                    for (from, to) in
                        [("inner", "aside"), ("bait", "inner"), ("inner", "bait"), ("aside", "inner")]
                    {
                        std::fs::rename(public.join(from), public.join(to)).expect("they are there");
                    }
                }
            });
            for _ in 0..5_000 {
                for opened in [tree.descend(b"inner/deep.txt"), tree.walk(b"inner/deep.txt")] {
                    let text = opened.map(|file| std::io::read_to_string(File::from(file)).expect("text"));
                    assert!(text.is_err() || text.as_deref() == Ok("deep"), "{text:?}");
                }
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}
