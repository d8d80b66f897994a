//! The time as a header says it, made once a second.

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderValue;

thread_local! {
    /// The second that was written last.
    static LAST: RefCell<(u64, HeaderValue)> = const { RefCell::new((0, HeaderValue::from_static(""))) };
}

/// Now.
pub(crate) fn now() -> HeaderValue {
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
