//! The memory that the workers of one server share: who lets clients in at which slot, and how each worker fares.
//!
//! A slot is a listening socket (one for each address) and outlives whoever serves there; a place is one process's. Where the
//! memory is from is the bridge's: here it is a row of words.
//!
//! Invariant: every word is whole in itself. Nobody reads two of them that have to fit together, so there is no lock,
//! and a process that dies in the middle leaves nothing half done.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Words of each slot and place, in one line of a processor's cache: nobody's is slowed down by another's.
const WORDS: usize = 8;

/// How many slots there may be, and how many places.
pub(crate) const PLACES: usize = 1024;

/// Until when clients are let in at this slot, in milliseconds of the clock; zero is never. Written by its worker.
const UNTIL: usize = 0;
/// How often this worker's network has looked around. Written by that, read by the parent.
const ROUNDS: usize = 1;
/// For how many milliseconds its loop has given no sign of life, as that network has counted.
const SILENCE: usize = 2;
/// Requests that were handed to its application.
const REQUESTS: usize = 3;

/// The words, as every process sees them.
#[derive(Clone, Copy, Debug)]
pub struct Board {
    words: &'static [AtomicU64],
    clock: fn() -> Duration,
}

/// How a worker fares, in its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// A number that changes while its network runs.
    pub rounds: u64,
    /// For how long its loop has given no sign of life.
    pub silence: Duration,
    /// Requests that were handed to its application.
    pub requests: u64,
}

impl Board {
    /// Words that the board takes.
    pub const WORDS: usize = WORDS * PLACES;

    /// A board on this memory. The clock is one for all processes, and never goes back.
    pub fn new(words: &'static [AtomicU64], clock: fn() -> Duration) -> Self {
        Self { words, clock }
    }

    /// Clients are let in at this slot, for so long from now.
    pub fn keep(&self, slot: usize, time: Duration) {
        self.store(slot, UNTIL, milliseconds((self.clock)().saturating_add(time)));
    }

    /// Nobody lets clients in at this slot any more.
    pub fn give_up(&self, slot: usize) {
        self.store(slot, UNTIL, 0);
    }

    /// Whether somebody lets clients in at this slot.
    #[must_use]
    pub fn is_kept(&self, slot: usize) -> bool {
        self.load(slot, UNTIL) > milliseconds((self.clock)())
    }

    /// How the worker at this place fares.
    #[must_use]
    pub fn look(&self, place: usize) -> Condition {
        Condition {
            rounds: self.load(place, ROUNDS),
            silence: Duration::from_millis(self.load(place, SILENCE)),
            requests: self.load(place, REQUESTS),
        }
    }

    /// Nothing is known of this place: somebody else's turn.
    pub fn clear(&self, place: usize) {
        [ROUNDS, SILENCE, REQUESTS].into_iter().for_each(|word| self.store(place, word, 0));
    }

    /// The network of the worker at this place has looked around, and found its loop silent for so long.
    pub(crate) fn tell(&self, place: usize, silence: Duration) {
        if let Some(rounds) = self.word(place, ROUNDS) {
            rounds.fetch_add(1, Ordering::Relaxed);
        }
        self.store(place, SILENCE, milliseconds(silence));
    }

    /// One more request was handed to the application of the worker at this place.
    pub fn count_request(&self, place: usize) {
        if let Some(requests) = self.word(place, REQUESTS) {
            requests.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn word(&self, number: usize, word: usize) -> Option<&AtomicU64> {
        self.words.get(number * WORDS + word)
    }

    fn load(&self, number: usize, word: usize) -> u64 {
        self.word(number, word).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn store(&self, number: usize, word: usize, value: u64) {
        if let Some(word) = self.word(number, word) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn board(clock: fn() -> Duration) -> Board {
        let words = (0..Board::WORDS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        Board::new(Vec::leak(words), clock)
    }

    #[test]
    fn a_slot_is_kept_until_its_time_is_over_or_it_is_given_up() {
        let board = board(|| SECOND);
        assert!(!board.is_kept(3));
        board.keep(3, Duration::ZERO);
        assert!(!board.is_kept(3));
        board.keep(3, SECOND);
        assert!(board.is_kept(3) && !board.is_kept(2) && !board.is_kept(4));
        board.give_up(3);
        assert!(!board.is_kept(3));
    }

    #[test]
    fn a_slot_and_a_place_of_the_same_number_know_nothing_of_each_other() {
        let board = board(|| SECOND);
        board.keep(5, SECOND);
        board.tell(5, 3 * SECOND);
        board.count_request(5);
        assert_eq!(board.look(5), Condition { rounds: 1, silence: 3 * SECOND, requests: 1 });
        board.clear(5);
        assert_eq!(board.look(5), Condition { rounds: 0, silence: Duration::ZERO, requests: 0 });
        assert!(board.is_kept(5));
    }

    #[test]
    fn what_is_not_on_the_board_is_never_kept() {
        let board = board(|| SECOND);
        board.keep(PLACES, SECOND);
        assert!(!board.is_kept(PLACES));
    }
}
