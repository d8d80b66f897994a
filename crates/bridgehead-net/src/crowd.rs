//! How many connections a worker has: whether one more has room, and whether they run short.
//!
//! Not who is let in (`accept`), nor how a connection ends (`connection`).
//!
//! Invariant: a connection has its seat from before it is accepted until its socket is closed, so there are never more
//! sockets than seats.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bridgehead_admission::{Admission, AdmissionLimits, Permit};
use bridgehead_executor::Executor;

/// Connections run short when so many of a hundred seats are taken …
const SHORT_FROM: usize = 80;

/// … until no more than so many are. Between the two nothing changes, so that one who comes and goes changes nothing.
const SHORT_UNTIL: usize = 60;

/// How long an idle connection is kept while they do.
const HURRIED: Duration = Duration::from_secs(5);

/// Counts the connections of a worker. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    seats: Admission,
    limit: Option<usize>,
    // Only the network's thread comes here; tasks want what they share to be shareable.
    is_short: Arc<AtomicBool>,
    executor: Executor,
}

/// One connection's place.
#[derive(Debug)]
pub(crate) struct Seat {
    // Before the crowd, which is looked at when it is free again.
    permit: Option<Permit>,
    crowd: Crowd,
}

impl Crowd {
    pub(crate) fn new(limit: Option<usize>, executor: Executor) -> Self {
        let limits = AdmissionLimits { permits: limit, queue: usize::MAX, patience: None };
        Self { seats: Admission::new(limits), limit, is_short: Arc::default(), executor }
    }

    /// How many have room.
    pub(crate) fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Room for one, to be taken by [`Self::seat`] when somebody comes.
    pub(crate) fn room(&self) -> Option<Permit> {
        self.seats.try_enter()
    }

    /// Waits until there may be room.
    pub(crate) async fn vacancy(&self) {
        // Without patience nobody is late, and the queue is as long as can be.
        let permit = self.seats.enter(|_| std::future::pending()).await;
        drop(permit);
    }

    /// Takes the room that was found.
    pub(crate) fn seat(&self, permit: Permit) -> Seat {
        if !self.is_short() && self.is_above(SHORT_FROM) {
            self.is_short.store(true, Ordering::Relaxed);
            // Whoever is idle looks at its time again.
            self.executor.wake_sleepers();
        }
        Seat { permit: Some(permit), crowd: self.clone() }
    }

    /// How long an idle connection is kept that would be kept so long.
    pub(crate) fn keep_alive(&self, usual: Duration) -> Duration {
        if self.is_short() { usual.min(HURRIED) } else { usual }
    }

    fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    fn is_above(&self, percent: usize) -> bool {
        self.limit
            .is_some_and(|limit| self.seats.running().saturating_mul(100) > limit.saturating_mul(percent))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        drop(self.permit.take());
        if self.crowd.is_short() && !self.crowd.is_above(SHORT_UNTIL) {
            self.crowd.is_short.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crowd(limit: usize) -> (Crowd, Vec<Seat>) {
        (Crowd::new(Some(limit), Executor::default()), Vec::new())
    }

    fn sit(crowd: &Crowd) -> Seat {
        crowd.seat(crowd.room().expect("room"))
    }

    #[test]
    fn idle_connections_are_kept_for_a_shorter_time_from_four_fifths_until_three_fifths() {
        let (crowd, mut seats) = crowd(10);
        let usual = Duration::from_secs(75);
        seats.extend((0..8).map(|_| sit(&crowd)));
        assert_eq!(crowd.keep_alive(usual), usual);
        seats.push(sit(&crowd));
        assert_eq!(crowd.keep_alive(usual), HURRIED);
        assert_eq!(crowd.keep_alive(Duration::from_secs(1)), Duration::from_secs(1));
        seats.truncate(7);
        assert_eq!(crowd.keep_alive(usual), HURRIED);
        seats.truncate(6);
        assert_eq!(crowd.keep_alive(usual), usual);
    }

    #[test]
    fn there_is_room_for_as_many_as_the_limit_says() {
        let (crowd, mut seats) = crowd(2);
        seats.extend((0..2).map(|_| sit(&crowd)));
        assert!(crowd.room().is_none());
        seats.pop();
        assert!(crowd.room().is_some());
    }

    #[test]
    fn without_a_limit_nothing_runs_short() {
        let crowd = Crowd::new(None, Executor::default());
        let _seats: Vec<_> = (0..1000).map(|_| sit(&crowd)).collect();
        assert_eq!(crowd.keep_alive(Duration::from_secs(75)), Duration::from_secs(75));
    }
}
