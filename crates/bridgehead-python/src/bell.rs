//! Reaches the loop's thread while nobody turns the network, and the loop polls by itself (`nested.rs`).
//!
//! From another thread it is a descriptor that the loop watches. From the loop's own thread, inside one of our calls, it
//! is a note: whoever made the call schedules one turn for all that it was rung for.
//!
//! Invariant: a ring is followed by a turn of the network that begins after it, and the descriptor is quiet after the last one.

use std::io;
use std::sync::Arc;
use std::task::Wake;

#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
#[cfg(not(loom))]
use std::thread::{self, ThreadId};

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU8, Ordering};
#[cfg(loom)]
use loom::thread::{self, ThreadId};

use crate::presence::Presence;
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
    // Set by whoever writes to the descriptor, before and after that; cleared by the loop's thread.
    rung: AtomicBool,
    written: AtomicBool,
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
            written: AtomicBool::new(false),
            note: AtomicU8::new(ELSEWHERE),
            thread: thread::current().id(),
            presence,
        })
    }

    /// What the loop has to watch.
    pub(crate) fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    pub(crate) fn ring(&self) {
        // The loop may be away for long.
        self.presence.rouse();
        if self.note.load(Ordering::Relaxed) != ELSEWHERE && thread::current().id() == self.thread {
            self.note.store(WANTED, Ordering::Relaxed);
        } else if !self.rung.swap(true, Ordering::SeqCst) {
            self.descriptor.signal();
            self.written.store(true, Ordering::SeqCst);
        }
    }

    /// The loop's thread comes, and looks at everything that it could have been rung for.
    ///
    /// A ring may be seen before it is written: what comes late is cleared the next time, or the loop would be woken for it
    /// for ever. Cleared first: whoever rings between the two is seen by the look.
    pub(crate) fn quiet(&self) {
        if self.written.load(Ordering::SeqCst) {
            self.written.store(false, Ordering::SeqCst);
            self.descriptor.clear();
        }
        if self.rung.load(Ordering::SeqCst) {
            // Reads what it overwrites, and so sees what that was rung for.
            self.rung.swap(false, Ordering::SeqCst);
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

#[cfg(all(test, not(loom)))]
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
