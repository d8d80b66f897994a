//! What the connections of one thread share: what to ask, when, where, and the record of it.
//!
//! Not shared between threads but for reading the record while it runs.
//!
//! Invariant: the record is locked for a few instructions at a time, and never across an await.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::http2::Http2;
use crate::pace::{Pace, Ticket};
use crate::plan::Protocol;
use crate::random::Random;
use crate::recipe::Recipe;
use crate::record::Record;
use crate::secure::Secrecy;
use crate::stream::{Opened, Place};

/// One thread's desk.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) recipes: Vec<Recipe>,
    pub(crate) pace: Pace,
    pub(crate) place: Place,
    /// By TLS, if at all.
    pub(crate) secrecy: Option<Secrecy>,
    pub(crate) timeout: Duration,
    pub(crate) keep_alive: bool,
    pub(crate) protocol: Protocol,
    pub(crate) connections: usize,
    /// Requests that each connection has at a time.
    pub(crate) streams: usize,
    /// One for each connection of HTTP/2: whoever finds it ended makes the next, and the others wait for that.
    pub(crate) shared: Vec<tokio::sync::Mutex<Option<Http2>>>,
    pub(crate) seed: u64,
    /// Which of how many threads: request numbers are its own.
    pub(crate) share: Share,
    // The thread writes; whoever shows progress looks.
    pub(crate) record: Mutex<Record>,
    /// The connection that proved that somebody is there, until a worker takes it.
    pub(crate) first: Mutex<Option<Opened>>,
}

/// One of several.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) index: usize,
    pub(crate) of: usize,
}

impl Share {
    /// This one's part of a whole number; the parts make up the whole.
    pub(crate) fn part(self, whole: u64) -> u64 {
        let (index, of) = (self.index as u64, self.of as u64);
        whole / of + u64::from(index < whole % of)
    }
}

impl Desk {
    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many have one request at a time.
    pub(crate) fn workers(&self) -> usize {
        self.connections * self.streams
    }

    /// Which scenario is next, by weight.
    pub(crate) fn choose(&self, random: &mut Random) -> usize {
        if self.recipes.len() == 1 {
            return 0;
        }
        let total = self.recipes.iter().map(|recipe| recipe.weight).sum();
        let mut drawn = random.below(total);
        for (index, recipe) in self.recipes.iter().enumerate() {
            if drawn < recipe.weight {
                return index;
            }
            drawn -= recipe.weight;
        }
        unreachable!("what is drawn is below the sum of the weights")
    }

    /// The number of a request among those of all threads.
    pub(crate) fn number(&self, ticket: Ticket) -> u64 {
        ticket.number * self.share.of as u64 + self.share.index as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_make_up_the_whole() {
        for (whole, of) in [(10, 3), (2, 4), (7, 1)] {
            let sum: u64 = (0..of).map(|index| Share { index, of }.part(whole)).sum();
            assert_eq!(sum, whole);
        }
    }
}
