//! Counts the streams that a client of HTTP/2 has us break off, by the frames that go out to it.
//!
//! `h2` breaks off by itself what is wrong, or one too many, and can only bound how many in a connection's whole life. A
//! few are an accident, which others on the connection are not to suffer from; many at once are an attack. A GOAWAY among
//! those frames says which streams are not even looked at. Pure: time comes in as an argument.
//!
//! Invariant: what goes out because of an application, or of a deadline, is not laid to the client.

use std::time::Instant;

use h2::Reason;

use crate::flood::{Allowance, TooMuch};

/// Length, type, flags and stream.
const FRAME_HEAD: usize = 9;

/// A reset has its reason behind that, and a GOAWAY the last stream that is served.
const RESET: usize = FRAME_HEAD + 4;

/// Streams whose framing is wrong, at once and in each second from then on.
const WRONG: u32 = 100;
const WRONG_A_SECOND: u32 = 1;

/// Streams beyond those that may be open: whoever has not read our settings yet may open many, and each costs little.
const SURPLUS: u32 = 2000;
const SURPLUS_A_SECOND: u32 = 200;

/// Follows what goes out to one client.
#[derive(Debug)]
pub(crate) struct BrokenOff {
    head: [u8; RESET],
    /// How much of a frame's head has gone.
    gone: usize,
    /// What is due of its payload.
    left: usize,
    wrong: Allowance,
    surplus: Allowance,
    /// Why those were broken off that nobody has asked for yet.
    fresh: Vec<Reason>,
    /// The last stream that is served, once the client was told.
    last: Option<u32>,
}

impl BrokenOff {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            head: [0; RESET],
            gone: 0,
            left: 0,
            wrong: Allowance::new(WRONG, WRONG_A_SECOND, now),
            surplus: Allowance::new(SURPLUS, SURPLUS_A_SECOND, now),
            fresh: Vec::new(),
            last: None,
        }
    }

    /// Why streams were broken off since this was asked last.
    pub(crate) fn taken(&mut self) -> Vec<Reason> {
        std::mem::take(&mut self.fresh)
    }

    /// The last stream that is served, if the client was told so since this was asked last.
    pub(crate) fn last_stream(&mut self) -> Option<u32> {
        self.last.take()
    }

    /// Looks at what went out next.
    pub(crate) fn see(&mut self, mut bytes: &[u8], now: Instant) -> Result<(), TooMuch> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let passed = self.left.min(bytes.len());
                bytes = &bytes[passed..];
                self.left -= passed;
                continue;
            }
            let whole = if self.gone >= FRAME_HEAD { RESET } else { FRAME_HEAD };
            let taken = (whole - self.gone).min(bytes.len());
            self.head[self.gone..self.gone + taken].copy_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            self.gone += taken;
            if self.gone == whole {
                self.frame(now)?;
            }
        }
        Ok(())
    }

    fn frame(&mut self, now: Instant) -> Result<(), TooMuch> {
        const RST_STREAM: u8 = 3;
        const GOAWAY: u8 = 7;
        let [high, middle, low, kind, _, _, _, _, _, payload @ ..] = self.head;
        let has_more = matches!(kind, RST_STREAM | GOAWAY);
        if self.gone == FRAME_HEAD && has_more {
            return Ok(());
        }
        let seen = std::mem::take(&mut self.gone) - FRAME_HEAD;
        self.left =
            (usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low)).saturating_sub(seen);
        match kind {
            RST_STREAM => self.count(payload[3], now),
            GOAWAY => {
                self.last = Some(u32::from_be_bytes(payload));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn count(&mut self, reason: u8, now: Instant) -> Result<(), TooMuch> {
        const PROTOCOL_ERROR: u8 = 1;
        const FLOW_CONTROL_ERROR: u8 = 3;
        const STREAM_CLOSED: u8 = 5;
        const FRAME_SIZE_ERROR: u8 = 6;
        const REFUSED_STREAM: u8 = 7;
        if matches!(reason, PROTOCOL_ERROR | FLOW_CONTROL_ERROR | REFUSED_STREAM) {
            self.fresh.push(u32::from(reason).into());
        }
        match reason {
            PROTOCOL_ERROR | FLOW_CONTROL_ERROR | STREAM_CLOSED | FRAME_SIZE_ERROR => self.wrong.count(now),
            REFUSED_STREAM => self.surplus.count(now),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn reset(reason: u8) -> Vec<u8> {
        [&[0, 0, 4, 3, 0, 0, 0, 0, 1][..], &[0, 0, 0, reason]].concat()
    }

    fn data(size: u16) -> Vec<u8> {
        let [high, low] = size.to_be_bytes();
        let head = [0, high, low, 0, 0, 0, 0, 0, 1];
        // A payload that looks like resets counts for none.
        head.into_iter().chain(reset(1).into_iter().cycle().take(usize::from(size))).collect()
    }

    #[test]
    fn resets_are_counted_however_the_bytes_are_cut_and_whatever_stands_between() {
        let now = Instant::now();
        let bytes = [data(0), reset(1), data(1000), data(13)].concat().repeat(100);
        for size in [1, 3, 9, 13, 4096] {
            let mut seen = BrokenOff::new(now);
            assert_eq!(bytes.chunks(size).try_for_each(|piece| seen.see(piece, now)), Ok(()));
            assert_eq!(seen.see(&reset(1), now), Err(TooMuch));
            assert_eq!((seen.taken().len(), seen.taken().len()), (101, 0));
        }
    }

    #[test]
    fn the_last_stream_that_is_served_is_told_once() {
        let now = Instant::now();
        let goodbye = [&[0, 0, 12, 7, 0, 0, 0, 0, 0][..], &[0, 0, 1, 5], &[0, 0, 0, 0], b"calm"].concat();
        let bytes = [data(3), goodbye, data(3), reset(1)].concat();
        for size in [1, 3, 9, 13, 4096] {
            let mut seen = BrokenOff::new(now);
            assert_eq!(bytes.chunks(size).try_for_each(|piece| seen.see(piece, now)), Ok(()));
            assert_eq!((seen.last_stream(), seen.last_stream()), (Some(0x105), None));
            assert_eq!(seen.taken().len(), 1);
        }
    }

    #[test]
    fn streams_beyond_the_limit_may_be_many_and_wrong_ones_few() {
        let now = Instant::now();
        let mut seen = BrokenOff::new(now);
        assert_eq!(seen.see(&reset(7).repeat(2000), now), Ok(()));
        assert_eq!(seen.see(&reset(7), now), Err(TooMuch));
        for reason in [1, 3, 5, 6] {
            let mut seen = BrokenOff::new(now);
            assert_eq!(seen.see(&reset(reason).repeat(100), now), Ok(()));
            assert_eq!(seen.see(&reset(reason), now), Err(TooMuch));
        }
    }

    #[test]
    fn what_an_application_or_a_deadline_breaks_off_is_not_laid_to_the_client() {
        let now = Instant::now();
        let mut seen = BrokenOff::new(now);
        for reason in [0, 2, 8, 11, 13] {
            assert_eq!(seen.see(&reset(reason).repeat(5000), now), Ok(()));
        }
    }

    #[test]
    fn time_makes_good_for_accidents() {
        let now = Instant::now();
        let mut seen = BrokenOff::new(now);
        seen.see(&reset(1).repeat(100), now).expect("as many as at first");
        let later = now + Duration::from_secs(5);
        assert_eq!(seen.see(&reset(1).repeat(5), later), Ok(()));
        assert_eq!(seen.see(&reset(1), later), Err(TooMuch));
    }
}
