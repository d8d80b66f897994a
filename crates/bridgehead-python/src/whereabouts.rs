//! Where a step is that keeps the GIL: nobody can look, and until somebody has, this is said of it, with its request.
//!
//! Not who looks, once the GIL is had (`census.rs`).
//!
//! Invariant: what is said here is never said of a step of which the place was told.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bridgehead_metrics::{BlockingPlace, Cause, Sheet};

use crate::sheets::milliseconds;

/// Frames change while they are read by who has not got the GIL.
const HIDDEN: &str = "a call that keeps Python's lock, so that nobody can look where it is";

/// Of one step.
#[derive(Debug, Default)]
pub(crate) struct Whereabouts {
    // Put forward by the thread that looks without the GIL, and by the census, which has it. A lock, since what each says
    // is written to the sheet under it.
    told: Mutex<Told>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Told {
    #[default]
    Nothing,
    Hidden,
    Closed,
}

impl Whereabouts {
    /// It has kept the GIL for so long, for this request.
    pub(crate) fn hide(&self, sheet: &Sheet, number: u64, request: &str, longest: Duration) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != Told::Nothing {
            return;
        }
        *told = Told::Hidden;
        let (place, request) = (HIDDEN.to_owned(), request.to_owned());
        // It is counted with its place, or by whoever finds that this process ended in it.
        let (cause, count) = (Cause::CallWithGil, 0);
        sheet.note_place_of(
            number,
            &BlockingPlace { place, request, cause, count, longest, last: milliseconds() },
        );
    }

    /// Its place is about to be told.
    pub(crate) fn close(&self) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Told::Closed;
    }
}
