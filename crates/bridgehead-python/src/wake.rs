//! Wakes the loop's thread out of its poll, without the GIL.
//!
//! Invariant: however often it is signalled, one `clear` quiets it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;

/// How the loop's thread is reached.
#[derive(Debug)]
pub(crate) enum Wake {
    /// It watches a descriptor.
    Descriptor(Descriptor),
    /// It turns Tokio, and waits in that.
    Turn(Turn),
}

impl Wake {
    pub(crate) fn signal(&self) {
        match self {
            Self::Descriptor(descriptor) => descriptor.signal(),
            Self::Turn(turn) => turn.signal(),
        }
    }

    pub(crate) fn clear(&self) {
        if let Self::Descriptor(descriptor) = self {
            descriptor.clear();
        }
    }

    /// What the loop has to watch, if that is how it is reached.
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        match self {
            Self::Descriptor(descriptor) => Some(descriptor.number()),
            Self::Turn(_) => None,
        }
    }
}

/// Whoever waits in a turn.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    // Set by whoever turns Tokio, taken by whoever pushes.
    waiting: Mutex<Option<Waker>>,
}

impl Turn {
    pub(crate) fn wait(&self, waker: &Waker) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *waiting {
            Some(current) => current.clone_from(waker),
            None => *waiting = Some(waker.clone()),
        }
    }

    fn signal(&self) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

/// A descriptor that becomes readable.
#[derive(Debug)]
pub(crate) struct Descriptor {
    reader: File,
    #[cfg(not(target_os = "linux"))]
    writer: File,
}

impl Descriptor {
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

    /// What to watch.
    pub(crate) fn number(&self) -> RawFd {
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
