//! Finds the descriptor of Tokio's epoll set, which Tokio does not give away, so that another poll can watch it.
//!
//! Linux tells of each epoll set which descriptors are in it. A descriptor that nobody else knows is put into Tokio's;
//! the set that has it is Tokio's, whatever other threads open and close meanwhile.
//!
//! Invariant: what is returned was seen to become readable when something in Tokio's set did.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use tokio::runtime::Runtime;

use crate::ffi;
use crate::fused::is_readable;
use crate::wake::Descriptor;

/// Why the descriptor could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotFound {
    #[error("/proc cannot be read: {0}")]
    Proc(io::Error),
    #[error("no epoll set of this process has Tokio's descriptors")]
    NoSet,
    #[error("the system does not tell of readiness in one epoll set to another")]
    NotNested,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A descriptor of our own for the runtime's epoll set.
pub(crate) fn find(runtime: &Runtime) -> Result<OwnedFd, NotFound> {
    let _entered = runtime.enter();
    let mark = Descriptor::new()?;
    let watched = ffi::watch(ffi::duplicate(mark.number())?)?;
    let number = find_set_with(watched.get_ref().as_raw_fd())?.ok_or(NotFound::NoSet)?;
    let found = ffi::duplicate(number)?;
    mark.signal();
    if is_readable(&found) { Ok(found) } else { Err(NotFound::NotNested) }
}

/// The first epoll descriptor of this process whose set has `member`.
fn find_set_with(member: RawFd) -> Result<Option<RawFd>, NotFound> {
    for entry in fs::read_dir("/proc/self/fd").map_err(NotFound::Proc)? {
        let entry = entry.map_err(NotFound::Proc)?;
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // What another thread has closed meanwhile is no longer there.
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        if target.as_os_str() != "anon_inode:[eventpoll]" {
            continue;
        }
        let Ok(told) = fs::read_to_string(format!("/proc/self/fdinfo/{number}")) else { continue };
        if members(&told).any(|each| each == member) {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// The descriptors in an epoll set, as its fdinfo lists them.
fn members(told: &str) -> impl Iterator<Item = RawFd> {
    told.lines().filter_map(|line| line.strip_prefix("tfd:")?.split_whitespace().next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::Builder;

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_io().build().expect("a runtime")
    }

    #[test]
    fn members_are_read_as_linux_writes_them() {
        let told = "pos:\t0\nflags:\t02000002\ntfd:       10 events: 80000019 data: 0 pos:0 ino:7 sdev:e\n\
                    tfd:        7 events:       19 data: 1  pos:0 ino:7 sdev:e\n";
        assert_eq!(members(told).collect::<Vec<_>>(), [10, 7]);
    }

    #[test]
    fn the_set_that_is_found_is_the_runtimes_own() {
        let (one, other) = (runtime(), runtime());
        let found = find(&one).expect("Linux tells");
        // Empties the set of what the search has left.
        let poll_driver = |runtime: &Runtime| runtime.block_on(tokio::task::yield_now());
        poll_driver(&one);
        poll_driver(&other);
        assert!(!is_readable(&found));
        let wake = |runtime: &Runtime| {
            let task = runtime.spawn(async {});
            drop(task);
        };
        wake(&other);
        assert!(!is_readable(&found));
        wake(&one);
        assert!(is_readable(&found));
    }

    #[test]
    fn a_descriptor_that_is_in_no_set_is_not_found() {
        let mark = Descriptor::new().expect("a descriptor");
        assert!(matches!(find_set_with(mark.number()), Ok(None)));
    }
}
