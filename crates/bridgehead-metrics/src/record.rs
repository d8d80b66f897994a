//! Words that fit together: a few numbers and two short texts, written by one process and read by another.
//!
//! Not what they mean (`slowest`, `places`).
//!
//! Invariant: a record is read whole or not at all. One whose writer died in the middle is never read again, and costs its place
//! until the sheet is blank.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Numbers of a record.
#[cfg(not(loom))]
pub(crate) const NUMBERS: usize = 4;
/// Bytes of its texts; what is longer is cut.
#[cfg(not(loom))]
const LONGEST: [usize; 2] = [192, 128];
// Every order of fewer words: what holds for one beside another holds for all.
#[cfg(loom)]
pub(crate) const NUMBERS: usize = 2;
#[cfg(loom)]
const LONGEST: [usize; 2] = [8, 0];
/// The version, the numbers, the lengths of the texts, the texts.
pub(crate) const WORDS: usize = 2 + NUMBERS + LONGEST[0] / 8 + LONGEST[1] / 8;
const LENGTHS: usize = 1 + NUMBERS;
const TEXTS: usize = LENGTHS + 1;

/// What a record says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) numbers: [u64; NUMBERS],
    pub(crate) texts: [String; 2],
}

/// Its place.
#[derive(Clone, Copy)]
pub(crate) struct Slot<'a>(pub(crate) &'a [AtomicU64]);

impl Slot<'_> {
    /// Writes it, unless somebody else writes there just now.
    pub(crate) fn write(self, numbers: [u64; NUMBERS], texts: [&str; 2]) {
        let Some(version) = self.0.first() else { return };
        let before = version.load(Ordering::Relaxed);
        let free = before.is_multiple_of(2)
            && version.compare_exchange(before, before + 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if !free {
            return;
        }
        // Whoever sees one of these words sees the odd version as well.
        fence(Ordering::Release);
        let texts = [cut(texts[0], LONGEST[0]), cut(texts[1], LONGEST[1])];
        let lengths = (texts[1].len() as u64) << 32 | texts[0].len() as u64;
        let rest = numbers.into_iter().chain([lengths]);
        let words = rest.chain(packed(texts[0], LONGEST[0])).chain(packed(texts[1], LONGEST[1]));
        self.0[1..].iter().zip(words).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        version.store(before + 2, Ordering::Release);
    }

    /// What it says; `None` while nothing, or something else is being written.
    pub(crate) fn read(self) -> Option<Record> {
        let version = self.0.first()?;
        let before = version.load(Ordering::Acquire);
        if before == 0 || !before.is_multiple_of(2) {
            return None;
        }
        let words: Vec<u64> = self.0.iter().map(|word| word.load(Ordering::Relaxed)).collect();
        fence(Ordering::Acquire);
        if version.load(Ordering::Relaxed) != before {
            return None;
        }
        let lengths = *words.get(LENGTHS)?;
        let second = TEXTS + LONGEST[0] / 8;
        Some(Record {
            numbers: std::array::from_fn(|at| words.get(1 + at).copied().unwrap_or_default()),
            texts: [
                unpacked(words.get(TEXTS..second)?, (lengths & 0xffff_ffff) as usize),
                unpacked(words.get(second..WORDS)?, (lengths >> 32) as usize),
            ],
        })
    }

    /// One number, as it is now: for who writes here.
    #[cfg(not(loom))]
    pub(crate) fn number(self, at: usize) -> u64 {
        self.0.get(1 + at).map_or(0, |word| word.load(Ordering::Relaxed))
    }
}

/// What is kept of a first text.
#[cfg(not(loom))]
pub(crate) fn kept(text: &str) -> &str {
    cut(text, LONGEST[0])
}

/// At the end of a character.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    &text[..end]
}

pub(crate) fn packed(text: &str, most: usize) -> impl Iterator<Item = u64> + '_ {
    (0..most / 8).map(move |at| {
        let mut bytes = [0; 8];
        let here = text.as_bytes().get(at * 8..).unwrap_or_default();
        bytes.iter_mut().zip(here).for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(bytes)
    })
}

pub(crate) fn unpacked(words: &[u64], length: usize) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take(length).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn words() -> Vec<AtomicU64> {
        (0..WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn a_record_says_what_was_written_last() {
        let words = words();
        let slot = Slot(&words);
        assert_eq!(slot.read(), None);
        slot.write([1, 2, 3, 4], ["ä place", "GET /"]);
        slot.write([5, 6, 7, 8], ["another", ""]);
        let read = slot.read().expect("it was written");
        assert_eq!((read.numbers, read.texts), ([5, 6, 7, 8], ["another".to_owned(), String::new()]));
        assert_eq!(slot.number(3), 8);
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_at_the_end_of_a_character() {
        let words = words();
        let long = format!("x{}", "ä".repeat(200));
        Slot(&words).write([0; 4], [&long, &long]);
        let [first, second] = Slot(&words).read().expect("it was written").texts;
        assert_eq!((first.len(), second.len()), (191, 127));
        assert!(long.starts_with(&first) && long.starts_with(&second));
    }

    #[test]
    fn what_is_half_written_is_not_read() {
        let words = words();
        Slot(&words).write([1; 4], ["a", "b"]);
        words[0].fetch_add(1, Ordering::Relaxed);
        assert_eq!(Slot(&words).read(), None);
        Slot(&words).write([2; 4], ["c", "d"]);
        assert_eq!(Slot(&words).read(), None, "its writer has died");
    }

    #[test]
    fn who_reads_while_others_write_never_sees_two_records_in_one() {
        let words = words();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for number in 0..20_000 {
                    let text = number.to_string();
                    Slot(&words).write([number; 4], [&text, &text]);
                }
            });
            while !writer.is_finished() {
                if let Some(read) = Slot(&words).read() {
                    let text = read.numbers[0].to_string();
                    assert_eq!((read.numbers, read.texts), ([read.numbers[0]; 4], [text.clone(), text]));
                }
            }
        });
    }
}
