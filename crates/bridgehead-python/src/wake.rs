//! Wakes the loop's thread out of its poll, without the GIL.
//!
//! Invariant: however often it is signalled, one `clear` quiets it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// A descriptor that becomes readable.
#[derive(Debug)]
pub(crate) struct Wake {
    reader: File,
    #[cfg(not(target_os = "linux"))]
    writer: File,
}

impl Wake {
    #[cfg(target_os = "linux")]
    pub(crate) fn new() -> io::Result<Self> {
        use rustix::event::{EventfdFlags, eventfd};
        let descriptor: OwnedFd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { reader: File::from(descriptor) })
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn new() -> io::Result<Self> {
        use std::os::unix::net::UnixStream;
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(Self { reader: File::from(OwnedFd::from(reader)), writer: File::from(OwnedFd::from(writer)) })
    }

    /// What the loop watches.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.reader.as_raw_fd()
    }

    pub(crate) fn signal(&self) {
        #[cfg(target_os = "linux")]
        let mut writer = &self.reader;
        #[cfg(not(target_os = "linux"))]
        let mut writer = &self.writer;
        // A full pipe or counter is readable already, which is all that is wanted.
        let _ = writer.write(&1u64.to_ne_bytes());
    }

    pub(crate) fn clear(&self) {
        // Nothing to read means that it is quiet already.
        let _ = (&self.reader).read(&mut [0; 64]);
    }
}
