//! Counts what a client of HTTP/2 sends beside its requests: pings, settings, priorities, resets, windows and frames
//! that nobody knows.
//!
//! Each costs little and none is a request, so that no other limit sees them. `h2` bounds what is kept of them, the
//! frames of a head and small frames of data; this bounds their number. Pure: time comes in as an argument.
//!
//! Invariant: whoever sends requests and reads answers earns more than that costs.

use std::time::{Duration, Instant};

/// `PRI * HTTP/2.0` and what belongs to it comes before the first frame.
const PREFACE: usize = 24;

/// Length, type, flags and stream.
const FRAME_HEAD: usize = 9;

/// Frames that a connection begins with.
const AT_FIRST: u64 = 1000;

/// What can be saved up: a large download is acknowledged in one go.
const AT_MOST: u64 = 16_000;

/// Frames a second, as Jetty has it.
const RATE: u64 = 128;

/// A stream's window and the connection's, twice, for each frame of an answer; a priority and a reset for a request.
const EARNED: u64 = 4;

/// A frame costs one more for each of so many bytes that it carries.
const WEIGHT: usize = 256;

/// Follows what one client sends.
#[derive(Debug)]
pub(crate) struct Meter {
    head: [u8; FRAME_HEAD],
    /// How much of a frame's head has come.
    came: usize,
    /// What is due of its payload.
    left: usize,
    /// Whether a request's head ends with that payload, and whether one has begun.
    ends_head: bool,
    in_head: bool,
    credit: u64,
    refilled: Instant,
}

/// More came than is put up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMuch;

impl Meter {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            head: [0; FRAME_HEAD],
            came: 0,
            left: PREFACE,
            ends_head: false,
            in_head: false,
            credit: AT_FIRST,
            refilled: now,
        }
    }

    /// Whether a request's head has begun and not ended.
    pub(crate) fn is_in_head(&self) -> bool {
        self.in_head
    }

    /// Frames of an answer have left, which the client may acknowledge.
    pub(crate) fn earn(&mut self, frames: usize) {
        self.credit = AT_MOST.min(self.credit + EARNED * frames as u64);
    }

    /// Looks at what came next.
    pub(crate) fn admit(&mut self, mut bytes: &[u8], now: Instant) -> Result<(), TooMuch> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let taken = self.left.min(bytes.len());
                bytes = &bytes[taken..];
                self.left -= taken;
            } else {
                let taken = (FRAME_HEAD - self.came).min(bytes.len());
                self.head[self.came..self.came + taken].copy_from_slice(&bytes[..taken]);
                bytes = &bytes[taken..];
                self.came += taken;
                if self.came == FRAME_HEAD {
                    self.came = 0;
                    self.frame(now)?;
                }
            }
            if self.left == 0 && self.ends_head {
                (self.ends_head, self.in_head) = (false, false);
            }
        }
        Ok(())
    }

    fn frame(&mut self, now: Instant) -> Result<(), TooMuch> {
        const DATA: u8 = 0;
        const HEADERS: u8 = 1;
        const CONTINUATION: u8 = 9;
        const END_STREAM: u8 = 1;
        const END_HEADERS: u8 = 4;
        let [high, middle, low, kind, flags, ..] = self.head;
        self.left = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        match kind {
            HEADERS | CONTINUATION => {
                if kind == HEADERS {
                    self.earn(1);
                }
                (self.in_head, self.ends_head) = (true, flags & END_HEADERS != 0);
                Ok(())
            }
            DATA if self.left > 0 || flags & END_STREAM != 0 => Ok(()),
            _ => self.spend(1 + (self.left / WEIGHT) as u64, now),
        }
    }

    fn spend(&mut self, cost: u64, now: Instant) -> Result<(), TooMuch> {
        if self.credit < cost {
            let passed = now.saturating_duration_since(self.refilled);
            let earned = RATE * u64::try_from(passed.as_millis()).unwrap_or(u64::MAX / RATE) / 1000;
            self.credit = AT_MOST.min(self.credit + earned);
            self.refilled = now;
        }
        self.credit = self.credit.checked_sub(cost).ok_or(TooMuch)?;
        Ok(())
    }
}

/// Streams that were broken off: each has started an application in vain.
#[derive(Debug)]
pub(crate) struct Resets {
    left: u32,
    refilled: Instant,
}

/// A page that is left may cancel all its requests.
const RESETS: u32 = 100;

/// And again soon.
const RESETS_A_SECOND: u32 = 50;

impl Resets {
    pub(crate) fn new(now: Instant) -> Self {
        Self { left: RESETS, refilled: now }
    }

    /// One more.
    pub(crate) fn count(&mut self, now: Instant) -> Result<(), TooMuch> {
        let since = now.saturating_duration_since(self.refilled).min(Duration::from_secs(10));
        let earned = (since.as_secs_f64() * f64::from(RESETS_A_SECOND)) as u32;
        if earned > 0 {
            self.left = RESETS.min(self.left + earned);
            self.refilled = now;
        }
        self.left = self.left.checked_sub(1).ok_or(TooMuch)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADERS: u8 = 1;
    const PING: u8 = 6;
    const END_HEADERS: u8 = 4;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).expect("a length").to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
    }

    fn begun(now: Instant) -> Meter {
        let mut meter = Meter::new(now);
        meter.admit(&[b' '; PREFACE], now).expect("a preface");
        meter
    }

    #[test]
    fn frames_are_counted_however_they_are_cut() {
        let now = Instant::now();
        for size in [1, 5, 9, 17, 1000] {
            let (mut meter, bytes) = (begun(now), frame(PING, 0, &[0; 8]).repeat(1000));
            assert_eq!(bytes.chunks(size).try_for_each(|bytes| meter.admit(bytes, now)), Ok(()));
            assert_eq!(meter.admit(&frame(PING, 0, &[0; 8]), now), Err(TooMuch));
        }
    }

    #[test]
    fn time_and_answers_earn_more_of_them() {
        let now = Instant::now();
        let (mut meter, ping) = (begun(now), frame(PING, 0, &[0; 8]));
        meter.admit(&ping.repeat(1000), now).expect("as many as at first");
        meter.earn(10);
        meter.admit(&ping.repeat(40), now).expect("four for each");
        let later = now + Duration::from_secs(1);
        meter.admit(&ping.repeat(128), later).expect("as many as in a second");
        assert_eq!(meter.admit(&ping, later), Err(TooMuch));
    }

    #[test]
    fn large_frames_of_no_kind_cost_more_and_data_nothing() {
        let now = Instant::now();
        let mut meter = begun(now);
        meter.admit(&frame(0, 0, &[0; 16_384]).repeat(100), now).expect("data");
        assert_eq!(meter.admit(&frame(0xfa, 0, &[0; 16_384]).repeat(15), now), Ok(()));
        assert_eq!(meter.admit(&frame(0xfa, 0, &[0; 16_384]), now), Err(TooMuch));
        let mut meter = begun(now);
        assert_eq!(meter.admit(&frame(0, 0, b"").repeat(1001), now), Err(TooMuch));
    }

    #[test]
    fn a_head_ends_with_the_last_byte_of_its_last_frame() {
        let now = Instant::now();
        let mut meter = begun(now);
        meter.admit(&frame(HEADERS, 0, b"a"), now).expect("a head");
        assert!(meter.is_in_head());
        let last = frame(9, END_HEADERS, b"b");
        meter.admit(&last[..last.len() - 1], now).expect("a head");
        assert!(meter.is_in_head());
        meter.admit(b"b", now).expect("a head");
        assert!(!meter.is_in_head());
        meter.admit(&frame(HEADERS, END_HEADERS, b""), now).expect("a head");
        assert!(!meter.is_in_head());
    }

    #[test]
    fn a_page_may_be_left_and_left_again() {
        let now = Instant::now();
        let mut resets = Resets::new(now);
        assert_eq!((0..100).try_for_each(|_| resets.count(now)), Ok(()));
        assert_eq!(resets.count(now), Err(TooMuch));
        let later = now + Duration::from_secs(2);
        assert_eq!((0..100).try_for_each(|_| resets.count(later)), Ok(()));
        assert_eq!(resets.count(later), Err(TooMuch));
    }
}
