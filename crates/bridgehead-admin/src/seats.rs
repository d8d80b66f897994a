//! Who is connected to the port for operators, and who makes room when as many are as may.
//!
//! Not what is asked there (`serve`).
//!
//! Invariant: there are never more seats taken than there are, and who waits for one has somebody asked to leave, once. So no more
//! wait for one than there are to be asked: the others come when one of those has sat down, which may be the next to be asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// All of them.
#[derive(Debug)]
pub(crate) struct Seats {
    free: Arc<Semaphore>,
    // Who may wait for one.
    room: Semaphore,
    // Who has asked nothing for longest is the first. All on one thread; tasks want what they share to be shareable.
    taken: Mutex<VecDeque<Arc<Notify>>>,
}

/// One that is taken.
#[derive(Debug)]
pub(crate) struct Seat {
    _permit: OwnedSemaphorePermit,
    leave: Arc<Notify>,
    seats: Arc<Seats>,
}

impl Seats {
    pub(crate) fn new(most: u32) -> Self {
        let free = Arc::new(Semaphore::new(most as usize));
        Self { free, room: Semaphore::new(most as usize), taken: Mutex::default() }
    }

    /// For one who comes: a free one, or that of the one who has asked nothing for longest.
    pub(crate) async fn take(self: &Arc<Self>) -> Seat {
        let _waiting = self.room.acquire().await.expect("it is never closed");
        if self.free.available_permits() == 0
            && let Some(oldest) = self.taken().pop_front()
        {
            oldest.notify_one();
        }
        let permit = Arc::clone(&self.free).acquire_owned().await.expect("it is never closed");
        let leave = Arc::new(Notify::new());
        self.taken().push_back(Arc::clone(&leave));
        Seat { _permit: permit, leave, seats: Arc::clone(self) }
    }

    fn taken(&self) -> MutexGuard<'_, VecDeque<Arc<Notify>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Something is asked.
    pub(crate) fn is_used(&self) {
        let mut taken = self.seats.taken();
        // One that was asked to leave is not there any more.
        if let Some(at) = taken.iter().position(|each| Arc::ptr_eq(each, &self.leave))
            && let Some(own) = taken.remove(at)
        {
            taken.push_back(own);
        }
    }

    /// Somebody else is to have it.
    pub(crate) async fn is_wanted(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.taken().retain(|each| !Arc::ptr_eq(each, &self.leave));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_comes_behind_a_crowd_that_asks_nothing_has_a_seat_in_the_end() {
        let seats = Arc::new(Seats::new(2));
        let crowd = (0..10).map(|_| {
            let seats = Arc::clone(&seats);
            tokio::spawn(async move { seats.take().await.is_wanted().await })
        });
        let crowd: Vec<_> = crowd.collect();
        // All of them come before the first of those that sit has left.
        let last = tokio::spawn({
            let seats = Arc::clone(&seats);
            async move { seats.take().await }
        });
        let last = tokio::time::timeout(std::time::Duration::from_secs(60), last).await;
        let last = last.expect("somebody is asked to leave").expect("it has a seat");
        assert!(seats.taken().len() <= 2);
        drop(last);
        assert!(crowd.iter().any(|each| !each.is_finished()), "nobody leaves that is not asked");
        crowd.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test]
    async fn who_has_asked_nothing_for_longest_makes_room() {
        let seats = Arc::new(Seats::new(2));
        let (one, other) = (seats.take().await, seats.take().await);
        one.is_used();
        let next = tokio::spawn({
            let seats = Arc::clone(&seats);
            async move { seats.take().await }
        });
        other.is_wanted().await;
        drop(other);
        let next = next.await.expect("it has a seat");
        assert_eq!(seats.taken().len(), 2);
        drop((one, next));
        assert_eq!(seats.free.available_permits(), 2);
        assert!(seats.taken().is_empty());
    }
}
