//! Whose event the loop's thread handles, for a thread that looks at it meanwhile without the GIL.
//!
//! Not whose steps of asyncio's own are, of which only Python knows.
//!
//! Invariant: what is read is of one event, and whole; the loop's thread waits for nobody to say it.

#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};

/// Bytes that are kept; a record of shared memory has as many.
#[cfg(not(loom))]
const LONGEST: usize = 128;
// Every order of fewer words: what holds for one beside another holds for all.
#[cfg(loom)]
const LONGEST: usize = 16;
const WORD: usize = size_of::<u64>();

/// Method and target of a request, and for which event.
#[derive(Debug)]
pub(crate) struct Heading {
    // The loop's thread writes them, the one that looks reads them: odd while the rest changes; the event; how many bytes
    // there are; the bytes. A lock would cost each request what this does not.
    version: AtomicU64,
    event: AtomicU64,
    length: AtomicU64,
    words: [AtomicU64; LONGEST / WORD],
}

impl Default for Heading {
    fn default() -> Self {
        Self {
            version: AtomicU64::new(0),
            event: AtomicU64::new(0),
            length: AtomicU64::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Heading {
    /// This event is for a request with these words, said one behind the other. For the loop's thread.
    pub(crate) fn say(&self, event: u64, words: [&str; 3]) {
        let (mut bytes, mut length) = ([0; LONGEST], 0);
        for word in words {
            let room = &mut bytes[length..];
            let taken = word.len().min(room.len());
            room[..taken].copy_from_slice(&word.as_bytes()[..taken]);
            length += taken;
        }
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        // Whoever sees one of these sees the odd version as well.
        fence(Ordering::Release);
        self.event.store(event, Ordering::Relaxed);
        self.length.store(length as u64, Ordering::Relaxed);
        for (word, bytes) in self.words.iter().zip(bytes.chunks_exact(WORD)).take(length.div_ceil(WORD)) {
            let value = bytes.try_into().map_or(0, u64::from_le_bytes);
            word.store(value, Ordering::Relaxed);
        }
        self.version.store(version + 2, Ordering::Release);
    }

    /// What was said for this event; `None` if nothing was, or something is being said.
    pub(crate) fn of(&self, event: u64) -> Option<String> {
        let version = self.version.load(Ordering::Acquire);
        let (about, length) = (self.event.load(Ordering::Relaxed), self.length.load(Ordering::Relaxed));
        let bytes: Vec<u8> =
            self.words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        fence(Ordering::Acquire);
        if !version.is_multiple_of(2) || self.version.load(Ordering::Relaxed) != version || about != event {
            return None;
        }
        let said = bytes.get(..usize::try_from(length).ok()?)?;
        Some(String::from_utf8_lossy(said).into_owned())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_for_an_event_is_read_of_that_and_of_no_other() {
        let heading = Heading::default();
        assert_eq!(heading.of(7), None);
        heading.say(7, ["GET", " ", "/reports/7"]);
        assert_eq!(heading.of(7).as_deref(), Some("GET /reports/7"));
        assert_eq!(heading.of(8), None);
        heading.say(8, ["PUT", " ", "/"]);
        assert_eq!((heading.of(7), heading.of(8).as_deref()), (None, Some("PUT /")));
    }

    #[test]
    fn what_is_longer_than_its_room_is_cut() {
        let heading = Heading::default();
        heading.say(1, ["GET", " ", &"/é".repeat(100)]);
        let said = heading.of(1).expect("it was said");
        assert!(said.starts_with("GET /é/é") && said.len() <= LONGEST + 2, "{said}");
    }
}
