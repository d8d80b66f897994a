//! How much one request may do before the loop comes first.
//!
//! A `send()` that is answered at once does not suspend its coroutine, so a hundred thousand of them would be one step.
//!
//! Invariant: while a callback of the loop waits for its turn no request has more than [`MESSAGES`] messages answered at once, however
//! often it waits and goes on meanwhile; nor, without a wait, more than [`FREE`] and then those of a [`SHARE`]. A `send()` that
//! yields is taken before it does, and so is one after it if it had to wait instead.

use std::time::{Duration, Instant};

/// Messages answered without suspending, then one yield.
pub(crate) const MESSAGES: u32 = 128;

/// Messages that no clock is looked at for, unless something is kept back: most answers have no more.
const FREE: u32 = 3;

/// Time within which they are answered without suspending; asyncio warns of a slow callback at 100 ms.
const SHARE: Duration = Duration::from_millis(5);

/// What is left of a request's share. A new turn of the loop means that others had theirs, or want none.
#[derive(Debug)]
pub(crate) struct Budget {
    turn: u64,
    since: Option<Instant>,
    used: u32,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { turn: 0, since: None, used: 0 }
    }

    /// Counts one message, and says whether the loop has to come first.
    pub(crate) fn is_spent(&mut self, turn: u64) -> bool {
        if self.turn != turn || self.used == 0 {
            *self = Self { turn, since: None, used: 1 };
            return false;
        }
        let is_watched = self.used >= FREE || self.since.is_some();
        if self.used >= MESSAGES || is_watched && self.is_late() {
            return true;
        }
        self.used += 1;
        false
    }

    /// From now on the clock counts: something is kept back until the next pause, and who takes long is to make one.
    pub(crate) fn watch(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    fn is_late(&mut self) -> bool {
        let now = Instant::now();
        now.duration_since(*self.since.get_or_insert(now)) >= SHARE
    }

    /// The coroutine yields to the loop.
    pub(crate) fn rest(&mut self) {
        (self.since, self.used) = (None, 0);
    }

    /// The coroutine waits: time goes on, but it may go on before the loop's own callbacks do.
    pub(crate) fn wait(&mut self) {
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(budget: &mut Budget, turn: u64) -> u32 {
        let mut count = 0;
        while !budget.is_spent(turn) {
            count += 1;
        }
        count
    }

    #[test]
    fn a_request_yields_after_its_messages_and_has_them_again_afterwards() {
        let mut budget = Budget::new();
        assert!(allowed(&mut budget, 1) <= MESSAGES);
        budget.rest();
        assert!(!budget.is_spent(1));
    }

    #[test]
    fn a_wait_makes_no_share_fresh_that_the_loop_has_not_turned_for() {
        let mut budget = Budget::new();
        let mut count = 0;
        while !budget.is_spent(1) {
            count += 1;
            budget.wait();
        }
        assert_eq!(count, MESSAGES);
        budget.wait();
        assert!(budget.is_spent(1));
        assert!(!budget.is_spent(2));
    }

    #[test]
    fn a_turn_of_the_loop_makes_the_share_fresh() {
        let mut budget = Budget::new();
        for turn in 0..1000 {
            assert!(!budget.is_spent(turn));
        }
    }

    #[test]
    fn a_share_that_took_too_long_is_spent() {
        let mut budget = Budget::new();
        assert!((0..=FREE).all(|_| !budget.is_spent(1)));
        budget.since = Instant::now().checked_sub(SHARE);
        assert!(budget.is_spent(1));
    }
}
