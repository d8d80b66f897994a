//! The time of a line, as RFC 3339 writes it.
//!
//! Not the `Date` header, which is hyper's.
//!
//! Invariant: always UTC, always microseconds, so that lines sort as text.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 24 * 60 * 60;

/// `2026-11-18T14:12:13.012345Z`; a clock before 1970 counts as 1970.
pub(crate) fn utc(time: SystemTime) -> String {
    let since: Duration = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / DAY, since.as_secs() % DAY);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let micros = since.subsec_micros();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Days since 1970 as year, month and day. Years are counted from March, so that a leap day is a year's last, in
/// cycles of 400 years, which all have the same length.
fn date(days: u64) -> (u64, u64, u64) {
    const CYCLE: u64 = 146_097;
    const MARCH_0000: u64 = 719_468;
    let days = days + MARCH_0000;
    let (cycle, of_cycle) = (days / CYCLE, days % CYCLE);
    let year = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    // March to July and August to December are 153 days each.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (cycle * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, micros: u32) -> String {
        utc(UNIX_EPOCH + Duration::new(seconds, micros * 1000))
    }

    #[test]
    fn times_are_written_as_calendars_have_them() {
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(951_782_399, 1), "2000-02-28T23:59:59.000001Z");
        assert_eq!(at(951_782_400, 0), "2000-02-29T00:00:00.000000Z");
        assert_eq!(at(1_709_251_199, 999_999), "2024-02-29T23:59:59.999999Z");
        assert_eq!(at(1_735_689_599, 0), "2024-12-31T23:59:59.000000Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000000Z");
    }
}
