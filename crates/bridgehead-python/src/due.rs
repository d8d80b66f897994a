//! An end that is due: of a process that was told to stop, or whose application has yet to start, should it still be there.
//!
//! Not who waits for it, and what is said then of its reason (`control.rs`).
//!
//! Invariant: what the loop does, or does not, changes nothing about it.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The exit code of a process whose time is over, if it was told to end by a signal.
const OVERDUE: i32 = 1;

/// Before the application has started nobody waits for an answer, so that a signal gives it no more than this.
const NOBODY_WAITS: Duration = Duration::from_secs(5);

/// A loop that is free says by itself that the time to start is over.
const HEARING: Duration = Duration::from_secs(1);

/// An end that is due.
#[derive(Clone, Copy)]
pub(crate) struct Due {
    pub(crate) at: Instant,
    /// When it was asked for, how much time there was, and why.
    since: Instant,
    time: Duration,
    why: Why,
    /// The exit code of who is too late.
    pub(crate) code: i32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Signal,
    Told,
    /// Nobody asked for it: the application does not start in the time that it has.
    Start,
}

impl Due {
    /// Behind a signal that came now. `before` is what was due.
    pub(crate) fn after_a_signal(patience: Duration, before: Option<Self>) -> Self {
        let since = Instant::now();
        let starts = before.is_some_and(Self::is_a_start);
        let patience = if starts { patience.min(NOBODY_WAITS) } else { patience };
        Self { at: since + patience, since, time: patience, why: Why::Signal, code: OVERDUE }
    }

    /// Told so by somebody else; said again, the last word counts.
    pub(crate) fn told(within: Duration, code: i32, before: Option<Self>) -> Self {
        let now = Instant::now();
        let since = before.filter(|before| !before.is_a_start()).map_or(now, |before| before.since);
        let at = now + within;
        Self { at, since, time: at - since, why: Why::Told, code }
    }

    /// Unless the application has started by then.
    pub(crate) fn unless_started(within: Duration, code: i32) -> Self {
        let since = Instant::now();
        Self { at: since + within + HEARING, since, time: within, why: Why::Start, code }
    }

    pub(crate) fn is_a_start(self) -> bool {
        self.why == Why::Start
    }

    /// Once it is too late.
    pub(crate) async fn reached(due: Option<Self>) -> Self {
        match due {
            Some(due) => {
                sleep_until(due.at).await;
                due
            }
            None => std::future::pending().await,
        }
    }

    /// What did not happen in time.
    pub(crate) fn in_words(self) -> String {
        // More of it nobody wants to know.
        let seconds = (self.time.as_secs_f64() * 10.0).round() / 10.0;
        match self.why {
            Why::Signal => format!("Bridgehead did not stop within {seconds} s of the signal"),
            Why::Told => format!("Bridgehead did not stop within {seconds} s of being told to"),
            Why::Start => format!("The application did not start within {seconds} s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(28);

    #[test]
    fn a_signal_gives_less_time_before_the_application_has_started() {
        let start = Due::unless_started(Duration::from_secs(61), 3);
        let (early, late) = (Due::after_a_signal(LONG, Some(start)), Due::after_a_signal(LONG, None));
        assert_eq!((early.time, late.time), (NOBODY_WAITS, LONG));
        assert_eq!(start.in_words(), "The application did not start within 61 s");
        assert_eq!(early.in_words(), "Bridgehead did not stop within 5 s of the signal");
    }

    #[test]
    fn who_is_told_again_has_been_told_since_the_first_time() {
        let first = Due::told(Duration::from_secs(2), 4, Some(Due::unless_started(LONG, 3)));
        let again = Due::told(LONG, 4, Some(first));
        assert_eq!(again.since, first.since);
        assert!(!again.is_a_start() && again.at > first.at);
    }
}
