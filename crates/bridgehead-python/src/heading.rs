//! Whose event the loop's thread handles, for a thread that looks at it meanwhile without the GIL.
//!
//! Not whose steps of asyncio's own are, of which only Python knows.
//!
//! Invariant: what is read is of one event, and whole; the loop's thread waits for nobody to say it.

#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};

/// Bytes of a path that are kept; a record of shared memory has as many for all of it.
#[cfg(not(loom))]
pub(crate) const LONGEST: usize = 128;
// Every order of fewer words: what holds for one beside another holds for all.
#[cfg(loom)]
const LONGEST: usize = 8;
const WORD: usize = size_of::<u64>();

/// Method and path of a request, and for which event.
#[derive(Debug)]
pub(crate) struct Heading {
    // The loop's thread writes them, the one that looks reads them: odd while the rest changes; the event; how many bytes the
    // path has; the method, of which a word is enough; the path. A lock would cost each request what this does not.
    version: AtomicU64,
    event: AtomicU64,
    length: AtomicU64,
    method: AtomicU64,
    path: [AtomicU64; LONGEST / WORD],
}

impl Default for Heading {
    fn default() -> Self {
        Self {
            version: AtomicU64::new(0),
            event: AtomicU64::new(0),
            length: AtomicU64::new(0),
            method: AtomicU64::new(0),
            path: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Heading {
    /// This event is for this request. For the loop's thread.
    pub(crate) fn say(&self, event: u64, method: &str, path: &str) {
        let path = path.as_bytes();
        let path = path.get(..LONGEST).unwrap_or(path);
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        // Whoever sees one of these sees the odd version as well.
        fence(Ordering::Release);
        self.event.store(event, Ordering::Relaxed);
        self.length.store(path.len() as u64, Ordering::Relaxed);
        self.method.store(packed(method.as_bytes()), Ordering::Relaxed);
        for (word, bytes) in self.path.iter().zip(path.chunks(WORD)) {
            word.store(packed(bytes), Ordering::Relaxed);
        }
        self.version.store(version + 2, Ordering::Release);
    }

    /// What was said for this event; `None` if nothing was, or something is being said.
    pub(crate) fn of(&self, event: u64) -> Option<String> {
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let version = self.version.load(Ordering::Acquire);
        let (about, length, method) = (read(&self.event), read(&self.length), read(&self.method));
        let path: Vec<u8> = self.path.iter().flat_map(|word| read(word).to_le_bytes()).collect();
        fence(Ordering::Acquire);
        if !version.is_multiple_of(2) || self.version.load(Ordering::Relaxed) != version || about != event {
            return None;
        }
        let method: Vec<u8> = method.to_le_bytes().into_iter().take_while(|byte| *byte != 0).collect();
        let path = path.get(..usize::try_from(length).ok()?)?;
        Some(format!("{} {}", String::from_utf8_lossy(&method), String::from_utf8_lossy(path)))
    }
}

/// The first bytes of these that fit, and zeroes.
fn packed(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_for_an_event_is_read_of_that_and_of_no_other() {
        let heading = Heading::default();
        assert_eq!(heading.of(7), None);
        heading.say(7, "GET", "/reports/7");
        assert_eq!(heading.of(7).as_deref(), Some("GET /reports/7"));
        assert_eq!(heading.of(8), None);
        heading.say(8, "PUT", "/");
        assert_eq!((heading.of(7), heading.of(8).as_deref()), (None, Some("PUT /")));
    }

    #[test]
    fn what_is_longer_than_its_room_is_cut() {
        let heading = Heading::default();
        heading.say(1, "BASELINE-CONTROL", &"/é".repeat(100));
        let said = heading.of(1).expect("it was said");
        assert!(said.starts_with("BASELINE /é/é") && said.len() <= 9 + LONGEST + 2, "{said}");
    }
}
