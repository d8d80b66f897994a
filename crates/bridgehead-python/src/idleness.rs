//! Whether the loop waits for events, as its thread is seen from another: without waking it.
//!
//! Not who asks (`lookout.rs`). Its clock says whether it has run since the last look; if it has, the system says whether it
//! waits for events now. An application may do that inside a step, for events of its own: a rest is proven by one question
//! to the loop, after which it goes back to where it waits.
//!
//! | the loop's thread | the loop |
//! |---|---|
//! | has not run since its rest was proven | rests |
//! | has run, and waits for events again | rests, and is asked once if it does so for [`PROOF`] looks |
//! | does anything else, whether it runs or waits | is asked |
//! | is not shown by the system | is asked |
//!
//! Invariant: what holds the loop is not taken for a rest for longer than [`PROOF`] looks.

use std::time::Duration;

use crate::ffi::ThreadClock;
use crate::suspicion::Suspect;

/// Looks after which a rest is to be proven.
const PROOF: u32 = 3;
/// Looks after which it is one that lasts: what happens every few seconds is looked at closely.
const LASTS: u32 = 60;

/// What is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loop {
    /// It waits for events.
    Rests,
    /// It may be held.
    Stirs,
    /// Nothing.
    Unknown,
}

/// What was seen of the loop's thread.
pub(crate) struct Idleness {
    suspect: Suspect,
    clock: Option<ThreadClock>,
    seen: Seen,
}

#[derive(Debug, Default)]
struct Seen {
    ran: Option<Duration>,
    polls: bool,
    proven: bool,
    /// It has answered since the last look.
    answered: bool,
    /// Looks since it was seen to have run.
    still: u32,
}

impl Idleness {
    /// Of the loop that runs on this thread.
    pub(crate) fn of_this_thread(suspect: Suspect) -> Self {
        Self { suspect, clock: ThreadClock::of_this_thread(), seen: Seen::default() }
    }

    /// The loop was asked, and has answered.
    pub(crate) fn answered(&mut self) {
        self.seen.answered = true;
    }

    /// Whether it rests, and has done so for long.
    pub(crate) fn lasts(&self) -> bool {
        self.seen.lasts()
    }

    pub(crate) fn look(&mut self) -> Loop {
        let Some(ran) = self.clock.as_ref().and_then(ThreadClock::read) else { return Loop::Unknown };
        self.seen.look(ran, || self.suspect.polls())
    }
}

impl Seen {
    fn lasts(&self) -> bool {
        self.polls && self.proven && self.still >= LASTS
    }

    /// It has run for so long. Whether it waits for events is looked at later than that.
    fn look(&mut self, ran: Duration, polls: impl FnOnce() -> bool) -> Loop {
        let answered = std::mem::take(&mut self.answered);
        if self.ran.replace(ran) == Some(ran) {
            self.still = self.still.saturating_add(1);
        } else {
            (self.still, self.polls) = (0, polls());
            self.proven = answered && self.polls;
        }
        if self.polls && (self.proven || self.still < PROOF) { Loop::Rests } else { Loop::Stirs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_loop_that_waits_for_events_rests_and_has_to_prove_it_once() {
        let mut seen = Seen::default();
        let looks: Vec<_> = (0..5).map(|_| seen.look(ran(7), || true)).collect();
        assert_eq!(looks, [Loop::Rests, Loop::Rests, Loop::Rests, Loop::Stirs, Loop::Stirs]);
        seen.answered = true;
        assert!((0..LASTS).all(|_| seen.look(ran(8), || true) == Loop::Rests && !seen.lasts()));
        assert!(seen.look(ran(8), || true) == Loop::Rests && seen.lasts());
        assert!(seen.look(ran(9), || true) == Loop::Rests && !seen.lasts());
    }

    #[test]
    fn one_that_waits_for_anything_else_stirs_though_it_does_not_run() {
        let mut seen = Seen::default();
        assert!((0..50).all(|_| seen.look(ran(7), || false) == Loop::Stirs));
        assert_eq!(seen.look(ran(9), || true), Loop::Rests);
    }

    #[test]
    fn what_it_did_before_it_answered_proves_nothing_of_what_it_does_later() {
        let mut seen = Seen { answered: true, ..Seen::default() };
        assert_eq!(seen.look(ran(1), || false), Loop::Stirs, "it does something else already");
        assert_eq!(seen.look(ran(2), || true), Loop::Rests);
        let looks: Vec<_> = (0..3).map(|_| seen.look(ran(2), || true)).collect();
        assert_eq!(looks, [Loop::Rests, Loop::Rests, Loop::Stirs]);
    }

    #[test]
    fn a_thread_that_sleeps_is_not_taken_for_one_that_waits_for_events() {
        let (sender, told) = std::sync::mpsc::channel();
        let (over, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let idleness = Idleness::of_this_thread(Suspect::this_thread());
            sender.send(idleness).expect("it is waited for");
            let _ = ended.recv();
        });
        let mut idleness = told.recv().expect("it is sent");
        assert_ne!((0..10).map(|_| idleness.look()).last(), Some(Loop::Rests));
        drop(over);
        thread.join().expect("no panic");
    }
}
