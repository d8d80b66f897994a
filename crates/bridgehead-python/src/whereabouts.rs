//! Where a step is that keeps the GIL: what is said of it, with its request, until somebody has the GIL again.
//!
//! Not who reads it (`stack.rs`), nor who looks once the GIL is had (`census.rs`).
//!
//! Invariant: what is said here is never said of a step of which the place was told.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bridgehead_metrics::{BlockingPlace, Cause, Sheet};

use crate::sheets::milliseconds;

/// Of one whose frames cannot be read, or do not stand still.
const HIDDEN: &str = "a call that keeps Python's lock, so that nobody can look where it is";

/// Of one step.
#[derive(Debug, Default)]
pub(crate) struct Whereabouts {
    // Put forward by the thread that looks without the GIL, and by the census, which has it. A lock, since what each says
    // is written to the sheet under it.
    told: Mutex<Told>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Told {
    #[default]
    Nothing,
    Hidden,
    Found(String),
    Closed,
}

impl Whereabouts {
    /// Whether there is more to be said.
    pub(crate) fn is_sought(&self) -> bool {
        matches!(*self.lock(), Told::Nothing | Told::Hidden)
    }

    /// It has kept the GIL for so long, here, if that is known, and for this request.
    pub(crate) fn say(&self, sheet: &Sheet, number: u64, found: (Option<String>, String), longest: Duration) {
        let mut told = self.lock();
        let (place, request) = found;
        *told = match (&*told, &place) {
            (Told::Nothing | Told::Hidden, Some(place)) => Told::Found(place.clone()),
            (Told::Nothing, None) => Told::Hidden,
            (Told::Hidden | Told::Found(_) | Told::Closed, _) => return,
        };
        let place = place.unwrap_or_else(|| HIDDEN.to_owned());
        // It is counted with its place, or by whoever finds that this process ended in it.
        let (cause, count) = (Cause::CallWithGil, 0);
        sheet.note_place_of(
            number,
            &BlockingPlace { place, request, cause, count, longest, last: milliseconds() },
        );
    }

    /// Its place is about to be told. Gives the one that was found.
    pub(crate) fn close(&self) -> Option<String> {
        match std::mem::replace(&mut *self.lock(), Told::Closed) {
            Told::Found(place) => Some(place),
            Told::Nothing | Told::Hidden | Told::Closed => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
