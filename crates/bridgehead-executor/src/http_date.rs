//! The time as a header says it, made once a second, and whether hyper's own is right.
//!
//! hyper keeps the date of each thread until the clock has passed the second it was made in. Where the clock is set back,
//! that is as late as it was set back by; until then the date is written here.
//!
//! Invariant: no date stands still for more than a second of [`look`]s.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http::header::DATE;
use http::{HeaderMap, HeaderValue};

/// Between two looks at the clock.
const BETWEEN: Duration = Duration::from_secs(1);

/// So much later than our last look hyper may have looked: until the next one, and to the end of its second.
const SINCE: Duration = Duration::from_secs(3);

thread_local! {
    /// The second that was written last.
    static LAST: RefCell<(u64, HeaderValue)> = const { RefCell::new((0, HeaderValue::from_static(""))) };

    // hyper's date is the thread's too.
    static NEXT_LOOK: Cell<Option<Instant>> = const { Cell::new(None) };
    static LATEST: Cell<Latest> = const { Cell::new(Latest { seen: UNIX_EPOCH, is_past: false }) };
}

/// The latest time that a clock has shown.
#[derive(Clone, Copy, Debug)]
struct Latest {
    seen: SystemTime,
    /// Whether the clock shows an earlier one since.
    is_past: bool,
}

impl Latest {
    fn look(self, clock: SystemTime) -> Self {
        let due = if self.is_past { self.seen + SINCE } else { self.seen };
        if clock < due { Self { is_past: true, ..self } } else { Self { seen: clock, is_past: false } }
    }
}

/// Looks whether the clock was set back, once a second; to be called before this thread has hyper write.
#[inline]
pub fn look(now: Instant) {
    // Nothing is later than `None`.
    if Some(now) >= NEXT_LOOK.get() {
        NEXT_LOOK.set(now.checked_add(BETWEEN));
        LATEST.set(LATEST.get().look(SystemTime::now()));
    }
}

/// Whether hyper's date may be one that has yet to come.
#[must_use]
#[inline]
pub fn is_set_back() -> bool {
    LATEST.get().is_past
}

/// The time, if none is said.
pub fn add(headers: &mut HeaderMap) {
    if !headers.contains_key(DATE) {
        // An answer that is full of headers goes without it.
        let _ = headers.try_append(DATE, now());
    }
}

/// Now.
#[must_use]
pub fn now() -> HeaderValue {
    let now = SystemTime::now();
    // A clock before 1970 is written as it is, though never kept.
    let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    LAST.with_borrow_mut(|(last, written)| {
        if *last != second || second == 0 {
            let date = HeaderValue::from_str(&httpdate::fmt_http_date(now));
            *written = date.expect("a date is ASCII");
            *last = second;
        }
        written.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_is_known_until_it_has_passed_what_it_showed() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let mut latest = Latest { seen: UNIX_EPOCH, is_past: false };
        let mut look = |seconds| {
            latest = latest.look(at(seconds));
            latest.is_past
        };
        assert!(![10_000, 10_001, 20_000].map(&mut look).contains(&true));
        assert!(![16_400, 16_401, 19_999, 20_000, 20_002].map(&mut look).contains(&false));
        assert!(![20_003, 20_004].map(&mut look).contains(&true));
        assert!(look(20_000));
    }
}
