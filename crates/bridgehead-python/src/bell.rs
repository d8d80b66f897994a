//! Reaches the loop's thread while nobody turns the network, and the loop polls by itself (`nested.rs`).
//!
//! From another thread it is a descriptor that the loop watches. From the loop's own thread, inside one of our calls, it
//! is a note: whoever made the call schedules one turn for all that it was rung for.
//!
//! Invariant: a ring is followed by a turn of the network that begins after it.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::Wake;
use std::thread::{self, ThreadId};

use crate::standby::Presence;
use crate::wake::Descriptor;

/// The loop's thread is not in a call of ours.
const ELSEWHERE: u8 = 0;
/// It is, and looks at the note before it leaves.
const TENDED: u8 = 1;
/// The note: a turn is wanted.
const WANTED: u8 = 2;

/// Rung by whoever has something for the network or for the loop. A waker.
#[derive(Debug)]
pub(crate) struct Bell {
    descriptor: Descriptor,
    // Set by whoever writes to the descriptor, cleared by the loop's thread.
    rung: AtomicBool,
    // The loop's thread only; a waker has to be shareable.
    note: AtomicU8,
    thread: ThreadId,
    presence: Arc<Presence>,
}

impl Bell {
    /// For the loop of this thread.
    pub(crate) fn new(presence: Arc<Presence>) -> io::Result<Self> {
        Ok(Self {
            descriptor: Descriptor::new()?,
            rung: AtomicBool::new(false),
            note: AtomicU8::new(ELSEWHERE),
            thread: thread::current().id(),
            presence,
        })
    }

    /// What the loop has to watch.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.descriptor.number()
    }

    pub(crate) fn ring(&self) {
        // The loop may be away for long.
        self.presence.rouse();
        if self.note.load(Ordering::Relaxed) != ELSEWHERE && thread::current().id() == self.thread {
            self.note.store(WANTED, Ordering::Relaxed);
        } else if !self.rung.swap(true, Ordering::SeqCst) {
            self.descriptor.signal();
        }
    }

    /// The loop's thread comes, and looks at everything that it could have been rung for.
    pub(crate) fn quiet(&self) {
        if self.rung.load(Ordering::SeqCst) {
            self.descriptor.clear();
            self.rung.store(false, Ordering::SeqCst);
        }
    }

    /// Does something on the loop's thread, and says whether a turn is wanted for it.
    pub(crate) fn tend<T>(&self, work: impl FnOnce() -> T) -> (T, bool) {
        self.note.store(TENDED, Ordering::Relaxed);
        let done = work();
        (done, self.note.swap(ELSEWHERE, Ordering::Relaxed) == WANTED)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bell() -> Arc<Bell> {
        Arc::new(Bell::new(Arc::new(Presence::default())).expect("a descriptor"))
    }

    #[test]
    fn a_ring_inside_a_call_is_a_note_and_elsewhere_a_write() {
        let bell = bell();
        assert_eq!(bell.tend(|| bell.ring()), ((), true));
        assert_eq!(bell.tend(|| ()), ((), false));
        assert!(!bell.rung.load(Ordering::SeqCst));
        bell.ring();
        assert!(bell.rung.load(Ordering::SeqCst));
        bell.quiet();
        assert!(!bell.rung.load(Ordering::SeqCst));
    }

    #[test]
    fn a_ring_of_another_thread_is_a_write_whatever_the_loops_thread_does() {
        let bell = bell();
        let other = Arc::clone(&bell);
        let ((), wanted) = bell.tend(|| thread::spawn(move || other.ring()).join().expect("a thread"));
        assert!(!wanted);
        assert!(bell.rung.load(Ordering::SeqCst));
    }
}
