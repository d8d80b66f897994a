//! The network's deadlines, kept by ourselves: whoever turns Tokio has to know when the next one is.
//!
//! An event loop that polls for the network as well (`nested` in `bridgehead-python`) asks how long it may wait, and a
//! standby whether a loop is late; Tokio's own timers do not say. There are few, a connection has one, and a request
//! moves none.
//!
//! Invariant: a deadline passes only when [`Timers::fire`] is called, which is after Tokio's driver was asked: what had
//! arrived by then is seen first.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Who waits for which instant. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    // Tasks register here on the thread that polls them; the loop's thread and the standby look.
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// By deadline, then by the number of the sleeper.
    sleepers: BTreeMap<(Instant, u64), Waker>,
    last_number: u64,
}

impl Timers {
    pub(crate) fn sleep_until(&self, deadline: Instant) -> Sleep {
        let number = {
            let mut waiting = self.lock();
            waiting.last_number += 1;
            waiting.last_number
        };
        Sleep { timers: self.clone(), deadline, number, state: State::Unpolled }
    }

    /// The first deadline that somebody waits for.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.lock().sleepers.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    /// Wakes whoever's deadline has passed.
    pub(crate) fn fire(&self) {
        let Some(first) = self.next() else { return };
        let now = Instant::now();
        if now < first {
            return;
        }
        let mut waiting = self.lock();
        let later = waiting.sleepers.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut waiting.sleepers, later);
        drop(waiting);
        due.into_values().for_each(Waker::wake);
    }

    /// Wakes everybody, and nobody's deadline passes: what they wait for may be due sooner than they thought.
    pub(crate) fn wake_all(&self) {
        let wakers: Vec<Waker> = self.lock().sleepers.values().cloned().collect();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Forgets who waits: nobody turns this network any more.
    pub(crate) fn clear(&self) {
        let forgotten = std::mem::take(&mut self.lock().sleepers);
        drop(forgotten);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for an instant.
pub struct Sleep {
    timers: Timers,
    deadline: Instant,
    number: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unpolled,
    /// Somebody is to be woken.
    Registered,
    Over,
}

impl Sleep {
    /// When it is over.
    #[must_use]
    #[inline]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Waits for another instant.
    #[inline]
    pub fn reset(&mut self, deadline: Instant) {
        self.unregister();
        (self.deadline, self.state) = (deadline, State::Unpolled);
    }

    fn unregister(&mut self) {
        if self.state == State::Registered {
            let waker = self.timers.lock().sleepers.remove(&(self.deadline, self.number));
            drop(waker);
        }
    }
}

impl Future for Sleep {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let key = (this.deadline, this.number);
        let mut waiting = this.timers.lock();
        match (this.state, waiting.sleepers.get_mut(&key)) {
            (State::Over, _) => return Poll::Ready(()),
            (State::Registered, Some(waker)) => waker.clone_from(cx.waker()),
            // It was taken out as it fired.
            (State::Registered, None) => {
                this.state = State::Over;
                return Poll::Ready(());
            }
            (State::Unpolled, _) => {
                waiting.sleepers.insert(key, cx.waker().clone());
                this.state = State::Registered;
            }
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.unregister();
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sleep").field("deadline", &self.deadline).field("state", &self.state).finish()
    }
}

/// Whether a deadline has passed, by a timer that is moved on only when it fires: who moves the deadline pays nothing.
#[inline]
pub fn poll_deadline(
    mut timer: Pin<&mut Sleep>,
    deadline: Option<Instant>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    let Some(deadline) = deadline else { return Poll::Pending };
    if timer.deadline() > deadline {
        timer.as_mut().reset(deadline);
    }
    loop {
        if timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        if Instant::now() >= deadline {
            return Poll::Ready(());
        }
        timer.as_mut().reset(deadline);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::time::Duration;

    fn poll(sleep: Pin<&mut Sleep>) -> Poll<()> {
        sleep.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_deadline_passes_when_it_is_fired_and_not_by_itself() {
        let timers = Timers::default();
        let mut past = pin!(timers.sleep_until(Instant::now()));
        assert!(poll(past.as_mut()).is_pending());
        assert!(poll(past.as_mut()).is_pending());
        timers.fire();
        assert!(poll(past.as_mut()).is_ready());
        assert!(poll(past.as_mut()).is_ready());
    }

    #[test]
    fn the_first_deadline_is_the_next_one_and_a_later_one_does_not_fire() {
        let timers = Timers::default();
        let soon = Instant::now();
        let late = soon + Duration::from_secs(60);
        let (mut first, mut second) = (pin!(timers.sleep_until(late)), pin!(timers.sleep_until(soon)));
        assert_eq!(timers.next(), None);
        assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
        assert_eq!(timers.next(), Some(soon));
        timers.fire();
        assert_eq!(timers.next(), Some(late));
        assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_ready());
    }

    #[test]
    fn who_is_dropped_or_moved_on_leaves_nothing_behind() {
        let timers = Timers::default();
        let late = Instant::now() + Duration::from_secs(60);
        let mut sleep = Box::pin(timers.sleep_until(Instant::now()));
        assert!(poll(sleep.as_mut()).is_pending());
        sleep.reset(late);
        assert_eq!(timers.next(), None);
        assert!(poll(sleep.as_mut()).is_pending());
        assert_eq!(timers.next(), Some(late));
        drop(sleep);
        assert_eq!(timers.next(), None);
    }
}
