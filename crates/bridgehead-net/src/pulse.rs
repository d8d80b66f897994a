//! Whether a client of HTTP/2 that waits for answers is still there: it is asked when it has been silent for long.
//!
//! TCP alone does not tell of a client whose system is gone when there is nothing to send to it. A WebSocket has pings of
//! its own (`heart`), and a connection on which nothing runs its idle time.
//!
//! Invariant: whatever a client sends is a sign of life, and one that is waited for since it reads slowly is not asked.

use std::task::Context;
use std::time::Instant;

use h2::{Ping, PingPong};

use crate::config::Pings;

/// One connection's.
pub(crate) struct Pulse {
    pings: Pings,
    pinger: Option<PingPong>,
    /// When it was asked last.
    asked: Option<Instant>,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    /// It is asked.
    Asks,
    /// It was asked, and has said nothing.
    Stops,
}

impl Pulse {
    pub(crate) fn new(pings: Pings, pinger: Option<PingPong>) -> Self {
        Self { pings, pinger, asked: None }
    }

    /// When something is due of a client that was heard last then.
    pub(crate) fn next(&self, heard: Instant) -> Option<Instant> {
        match self.owed(heard) {
            Some(asked) => self.pings.timeout.map(|timeout| asked + timeout),
            None => self.pings.interval.map(|interval| heard + interval),
        }
    }

    /// Its time has come.
    pub(crate) fn beat(&mut self, heard: Instant, cx: &mut Context<'_>) -> Beat {
        if self.owed(heard).is_some() {
            return Beat::Stops;
        }
        self.asked = Some(Instant::now());
        if let Some(pinger) = &mut self.pinger {
            // The answer to the one before is taken out, so that there is room for another. Who never answered that is
            // not asked twice.
            let _ = pinger.poll_pong(cx);
            let _ = pinger.send_ping(Ping::opaque());
        }
        Beat::Asks
    }

    /// When it was asked, if it has said nothing since.
    fn owed(&self, heard: Instant) -> Option<Instant> {
        self.asked.filter(|asked| *asked >= heard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    fn pulse(interval: Option<Duration>, timeout: Option<Duration>) -> Pulse {
        Pulse::new(Pings { interval, timeout }, None)
    }

    #[test]
    fn who_is_silent_is_asked_and_given_up_unless_it_says_something() {
        let mut cx = Context::from_waker(Waker::noop());
        let heard = Instant::now();
        let mut pulse = pulse(Some(30 * SECOND), Some(10 * SECOND));
        assert_eq!(pulse.next(heard), Some(heard + 30 * SECOND));
        assert_eq!(pulse.beat(heard, &mut cx), Beat::Asks);
        let due = pulse.next(heard).expect("an answer is due");
        assert!(due >= heard + 10 * SECOND && due < heard + 20 * SECOND);
        assert_eq!(pulse.beat(heard, &mut cx), Beat::Stops);
        let later = heard + 60 * SECOND;
        assert_eq!(pulse.next(later), Some(later + 30 * SECOND));
        assert_eq!(pulse.beat(later, &mut cx), Beat::Asks);
    }

    #[test]
    fn without_an_interval_nobody_is_asked_and_without_a_timeout_nobody_given_up() {
        let heard = Instant::now();
        assert_eq!(pulse(None, Some(SECOND)).next(heard), None);
        let mut patient = pulse(Some(SECOND), None);
        patient.beat(heard, &mut Context::from_waker(Waker::noop()));
        assert_eq!(patient.next(heard), None);
    }
}
