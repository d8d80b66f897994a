//! A slow step that is over, until the census has told how long it was: for who asks in between.
//!
//! Not for steps of which nobody knew while they ran: of those all is told at once.
//!
//! Invariant: a length is of the step whose place and request stand beside it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bridgehead_metrics::BlockingPlace;

use crate::lookout::Step;

#[derive(Debug, Default)]
pub(crate) struct JustOver {
    // Put here by the loop's thread, at the end of an event that was noticed: which, and how long it was. Who asks reads it, and
    // so does the next who asks, which a channel does not allow.
    ended: Mutex<Option<(u64, Duration)>>,
    // By the census, of the step that was noticed last; the same holds for it.
    told: Mutex<Option<(Step, BlockingPlace)>>,
}

impl JustOver {
    /// The event is over, and was so long.
    pub(crate) fn ended(&self, event: u64, length: Duration) {
        *lock(&self.ended) = Some((event, length));
    }

    /// This was told of a step; how long it was follows.
    pub(crate) fn told(&self, step: Step, place: BlockingPlace) {
        *lock(&self.told) = Some((step, place));
    }

    /// How long it was is told as well.
    pub(crate) fn told_all(&self) {
        *lock(&self.told) = None;
    }

    /// What was told of the step of which the length follows.
    pub(crate) fn awaited(&self) -> Option<BlockingPlace> {
        lock(&self.told).as_ref().map(|(_, place)| place.clone())
    }

    /// The same if it is over by now, with its length.
    pub(crate) fn seen(&self) -> Option<BlockingPlace> {
        let (step, place) = lock(&self.told).clone()?;
        let longest = match step {
            Step::Event(event) => lock(&self.ended).filter(|(ended, _)| *ended == event)?.1,
            Step::Silence(asked, answer) => answer.get()?.saturating_duration_since(asked),
        };
        Some(BlockingPlace { longest: longest.max(place.longest), ..place })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
