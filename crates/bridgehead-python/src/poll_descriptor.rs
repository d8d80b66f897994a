//! Finds the descriptor of Tokio's epoll set, which Tokio does not give away, so that another poll can watch it.
//!
//! Linux tells of each epoll set which descriptors are in it. A descriptor that nobody else knows is put into Tokio's;
//! the set that has it is Tokio's, whatever other threads open and close meanwhile. It is told by its inode as well: a set keeps
//! what was closed, under the number that it had, for as long as a duplicate of it lives.
//!
//! Invariant: what is returned was seen to become readable when something in Tokio's set did.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;

use tokio::runtime::Runtime;

use crate::ffi;
use crate::fused::is_readable;

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
    // A socket has an inode of its own; that of an eventfd is everybody's.
    let (mark, mut other) = UnixStream::pair()?;
    let watched = ffi::watch(mark.into())?;
    let number = find_set_with(&Member::of(watched.get_ref())?)?.ok_or(NotFound::NoSet)?;
    let found = ffi::duplicate(number)?;
    other.write_all(&[0])?;
    if is_readable(&found) { Ok(found) } else { Err(NotFound::NotNested) }
}

/// A descriptor in an epoll set.
#[derive(Debug, PartialEq, Eq)]
struct Member {
    number: RawFd,
    inode: u64,
    /// Of the file system that has the inode, as the kernel writes it.
    device: u64,
}

impl Member {
    fn of(descriptor: &OwnedFd) -> io::Result<Self> {
        let about = File::from(descriptor.try_clone()?).metadata()?;
        let device = about.dev();
        // Programs are told another form of it than the kernel has.
        let major = (device >> 32) & 0xffff_f000 | (device >> 8) & 0xfff;
        let minor = (device >> 12) & 0xffff_ff00 | device & 0xff;
        Ok(Self { number: descriptor.as_raw_fd(), inode: about.ino(), device: major << 20 | minor })
    }

    /// As a line of fdinfo has it. From a kernel that tells no inodes there is none.
    fn read(line: &str) -> Option<Self> {
        let number = line.strip_prefix("tfd:")?.split_whitespace().next()?.parse().ok()?;
        let hexadecimal = |name: &str| {
            let word = line.split_whitespace().find_map(|word| word.strip_prefix(name))?;
            u64::from_str_radix(word, 16).ok()
        };
        Some(Self { number, inode: hexadecimal("ino:")?, device: hexadecimal("sdev:")? })
    }
}

/// The first epoll descriptor of this process whose set has `member`.
fn find_set_with(member: &Member) -> Result<Option<RawFd>, NotFound> {
    for entry in fs::read_dir("/proc/self/fd").map_err(NotFound::Proc)? {
        let entry = entry.map_err(NotFound::Proc)?;
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // What another thread has closed meanwhile is no longer there.
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        if target.as_os_str() != "anon_inode:[eventpoll]" {
            continue;
        }
        let Ok(told) = fs::read_to_string(format!("/proc/self/fdinfo/{number}")) else { continue };
        if members(&told).any(|each| each == *member) {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// The descriptors in an epoll set, as its fdinfo lists them.
fn members(told: &str) -> impl Iterator<Item = Member> {
    told.lines().filter_map(Member::read)
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
        let told = "pos:\t0\nino:\t1038\ntfd:       10 events: 80000019 data: 0 pos:0 ino:c4a004 sdev:900001\n\
                    tfd:        7 events:       19 data: 1  pos:0 ino:7 sdev:e\ntfd:        8 events:       19 data: 1\n";
        let first = Member { number: 10, inode: 0xc4_a004, device: 0x90_0001 };
        let second = Member { number: 7, inode: 7, device: 0xe };
        assert_eq!(members(told).collect::<Vec<_>>(), [first, second]);
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
        let (mark, _other) = UnixStream::pair().expect("two sockets");
        let member = Member::of(&mark.into()).expect("an inode");
        assert!(matches!(find_set_with(&member), Ok(None)));
    }

    #[test]
    fn what_a_set_has_is_not_taken_for_what_has_its_number_later() {
        let runtime = runtime();
        let _entered = runtime.enter();
        let ((had, _one), (has, _other)) =
            (UnixStream::pair().expect("two sockets"), UnixStream::pair().expect("two sockets"));
        let watched = ffi::watch(had.into()).expect("a runtime watches");
        let listed = Member::of(watched.get_ref()).expect("an inode");
        assert!(matches!(find_set_with(&listed), Ok(Some(_))));
        let later = Member { number: listed.number, ..Member::of(&has.into()).expect("an inode") };
        assert!(matches!(find_set_with(&later), Ok(None)));
    }
}
