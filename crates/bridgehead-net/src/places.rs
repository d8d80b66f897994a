//! Who is in the middle of a handshake: so many at once, and of them who keeps us waiting makes room for who waits.
//!
//! Not when a client asks for a place (`handshake`): one has it that has said all there is to answer.
//!
//! Invariant: there are never more places than were made. One is given up for another only by a client that had its
//! turn, while nobody else came any further, or that has had its turn for far longer than an answer takes.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bridgehead_executor::Executor;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Nobody comes any further, and somebody waits: what is left in the middle after this is left there by its client.
const STANDSTILL: Duration = Duration::from_millis(150);

/// So long no client takes that answers, though others come further.
const FAR_TOO_LONG: Duration = Duration::from_secs(1);

/// The places that there are.
#[derive(Debug)]
pub(crate) struct Places {
    free: Arc<Semaphore>,
    inside: Mutex<Inside>,
}

/// Who has them.
#[derive(Debug)]
struct Inside {
    /// Who came first is first.
    guests: BTreeMap<u64, Guest>,
    next: u64,
    /// When one of them was through last.
    moved: Instant,
}

#[derive(Debug)]
struct Guest {
    since: Instant,
    /// Told when another wants its place.
    wanted: Arc<Notify>,
}

/// One client's.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    wanted: Arc<Notify>,
    // Free again when the guest was struck out.
    _permit: OwnedSemaphorePermit,
}

impl Places {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let inside = Inside { guests: BTreeMap::new(), next: 0, moved: Instant::now() };
        Arc::new(Self { free: Arc::new(Semaphore::new(most)), inside: Mutex::new(inside) })
    }

    /// Waits for a place. `None`: there are none any more.
    pub(crate) async fn enter(self: &Arc<Self>, executor: &Executor) -> Option<Place> {
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(self.seat(permit));
        }
        let mut permit = pin!(Arc::clone(&self.free).acquire_owned());
        loop {
            tokio::select! {
                biased;
                permit = permit.as_mut() => return Some(self.seat(permit.ok()?)),
                () = executor.sleep(STANDSTILL) => self.ask_for_room(Instant::now()),
            }
        }
    }

    fn seat(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Place {
        let wanted = Arc::new(Notify::new());
        let number = self.inside().admit(Arc::clone(&wanted));
        Place { places: Arc::clone(self), number, wanted, _permit: permit }
    }

    /// Tells the first that may have to go that its place is wanted, if there is one.
    fn ask_for_room(&self, now: Instant) {
        if let Some(guest) = self.inside().take_slowest(now) {
            guest.wanted.notify_one();
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn admit(&mut self, wanted: Arc<Notify>) -> u64 {
        self.next += 1;
        self.guests.insert(self.next, Guest { since: Instant::now(), wanted });
        self.next
    }

    fn take_slowest(&mut self, now: Instant) -> Option<Guest> {
        let stands_still = now.saturating_duration_since(self.moved) >= STANDSTILL;
        let first = self.guests.first_entry()?;
        let had = now.saturating_duration_since(first.get().since);
        let makes_room = had >= if stands_still { STANDSTILL } else { FAR_TOO_LONG };
        makes_room.then(|| first.remove())
    }
}

impl Place {
    /// Until another wants it, who has waited for long enough. To be followed by [`Self::keep`], or by its end.
    pub(crate) async fn is_wanted(&self) {
        self.wanted.notified().await;
    }

    /// The client has answered after all: who is next makes room.
    pub(crate) fn keep(&mut self) {
        self.number = self.places.inside().admit(Arc::clone(&self.wanted));
        self.places.ask_for_room(Instant::now());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inside = self.places.inside();
        // Who had to go is not there any more, and has not come any further.
        if inside.guests.remove(&self.number).is_some() {
            inside.moved = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn now_or_never<T>(mut work: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        work.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    fn entered(places: &Arc<Places>) -> Option<Place> {
        match now_or_never(pin!(places.enter(&Executor::default()))) {
            Poll::Ready(place) => place,
            Poll::Pending => None,
        }
    }

    fn is_wanted(place: &Place) -> bool {
        now_or_never(pin!(place.is_wanted())).is_ready()
    }

    #[test]
    fn there_are_as_many_as_were_made_and_one_that_is_left_is_free() {
        let places = Places::new(2);
        let (first, second) = (entered(&places), entered(&places));
        assert!(first.is_some() && second.is_some());
        let executor = Executor::default();
        let mut third = pin!(places.enter(&executor));
        assert!(now_or_never(third.as_mut()).is_pending());
        drop(second);
        assert!(matches!(now_or_never(third), Poll::Ready(Some(_))));
        assert!(entered(&places).is_some());
    }

    #[test]
    fn who_came_first_makes_room_when_nobody_comes_any_further() {
        let places = Places::new(3);
        let [first, second, third] = [0; 3].map(|_| entered(&places).expect("a place"));
        let now = Instant::now();
        places.ask_for_room(now);
        assert!(!is_wanted(&first), "it has just come");
        places.ask_for_room(now + STANDSTILL);
        assert!(is_wanted(&first));
        assert!(!is_wanted(&second));
        // Who had to go is no sign that anybody comes further.
        drop(first);
        places.ask_for_room(now + STANDSTILL);
        assert!(is_wanted(&second));
        assert!(!is_wanted(&third));
    }

    #[test]
    fn while_others_come_further_a_client_has_far_longer() {
        let places = Places::new(2);
        let [slow, quick] = [0; 2].map(|_| entered(&places).expect("a place"));
        let now = Instant::now() + STANDSTILL;
        drop(quick);
        places.inside().moved = now;
        places.ask_for_room(now);
        assert!(!is_wanted(&slow));
        places.ask_for_room(now + FAR_TOO_LONG);
        assert!(is_wanted(&slow));
    }

    #[test]
    fn who_has_answered_after_all_keeps_its_place_and_the_next_makes_room() {
        let places = Places::new(2);
        let [mut first, second] = [0; 2].map(|_| entered(&places).expect("a place"));
        let long_ago = Instant::now().checked_sub(STANDSTILL).expect("a machine that is up");
        {
            let mut inside = places.inside();
            inside.moved = long_ago;
            inside.guests.values_mut().for_each(|guest| guest.since = long_ago);
        }
        places.ask_for_room(Instant::now());
        assert!(is_wanted(&first));
        first.keep();
        assert!(is_wanted(&second));
        assert!(!is_wanted(&first));
    }
}
