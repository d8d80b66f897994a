//! Counts what a client of HTTP/2 sends beside its requests: pings, settings, priorities, resets, windows and frames
//! that nobody knows. What the head of a frame shows to be wrong with it is told, too: `h2` has one word for all of that.
//!
//! Each costs little and none is a request, so that no other limit sees them. `h2` bounds what is kept of them, the
//! frames of a head and small frames of data; this bounds their number. Pure: time comes in as an argument.
//!
//! Invariant: whoever sends requests and reads answers earns more than that costs, and nothing else earns. Heads and ends
//! beyond those of requests cost as well: `h2` passes over them, where a stream is over.

use std::time::{Duration, Instant};

use h2::Reason;

use crate::first_window::FirstWindow;

/// `PRI * HTTP/2.0` and what belongs to it comes before the first frame.
const PREFACE: usize = 24;

/// Length, type, flags and stream.
const FRAME_HEAD: usize = 9;

/// The bit before it is of no meaning.
const LARGEST_STREAM: u32 = u32::MAX >> 1;

/// Frames that a connection begins with.
const AT_FIRST: u64 = 1000;

/// What can be saved up: a large download is acknowledged in one go.
const AT_MOST: u64 = 16_000;

/// Frames a second, as Jetty has it.
const RATE: u64 = 128;

/// A stream's window and the connection's, twice, for each frame of an answer; a priority and a reset for a request.
const EARNED: u64 = 4;

/// Bytes that earn one frame, of a part that a window cut off: a client whose windows are small pays two for each of them.
const CUT: usize = 128;

/// Bytes of framing that bodies may come in, beside seven for each of their own.
const FRAMING: usize = 256 * 1024;
const FRAMING_RATIO: usize = 7;

/// A frame costs one more for each of so many bytes that it carries.
const WEIGHT: usize = 256;

/// What a priority costs: RFC 9113 has no use for it, and one that depends on itself has us answer with a reset.
const PRIORITY_COST: u64 = 5;

/// Frames that are looked at before what they lead to has its turn to leave.
const TURN: u32 = 100;

/// Streams that a client may break off at once, and in each second from then on.
const RESETS: u32 = 100;
const RESETS_A_SECOND: u32 = 50;

/// Streams that are looked at together, and how many of them a client may break off before they have an answer: half.
const TOGETHER: u32 = 500;
const IN_VAIN: u32 = 250;

/// Follows what one client sends.
#[derive(Debug)]
pub(crate) struct Meter {
    head: [u8; FRAME_HEAD],
    /// How much of a frame's head has come.
    came: usize,
    /// What is due of its payload.
    left: usize,
    /// Whether a request's head, or the client's first settings, end with that payload, and whether they have begun.
    ends_head: bool,
    in_head: bool,
    /// Whether that head is of no use: it neither begins a request nor ends one.
    in_vain: bool,
    /// The last stream that was begun, and the last that may be: the client was told so, and `h2` passes over others.
    last: u32,
    most: u32,
    /// Requests that have begun, and whose end has not come: each has one, be that data or trailers.
    unended: u64,
    /// Bytes of framing of bodies, less what they were worth.
    framing: usize,
    /// Whether a frame has begun.
    begun: bool,
    /// Of the settings that are coming.
    window: Option<FirstWindow>,
    /// What is wrong with a frame that was not let through.
    wrong: Option<Reason>,
    credit: u64,
    refilled: Instant,
    /// Frames in this turn.
    turn: u32,
}

/// More came than is put up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMuch;

/// So many of the new bytes came before the frame that was too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Before(pub(crate) usize);

impl Meter {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            head: [0; FRAME_HEAD],
            came: 0,
            left: PREFACE,
            ends_head: false,
            in_head: true,
            in_vain: false,
            last: 0,
            most: LARGEST_STREAM,
            unended: 0,
            framing: 0,
            begun: false,
            window: None,
            wrong: None,
            credit: AT_FIRST,
            refilled: now,
            turn: 0,
        }
    }

    /// Whether what came has to lead to something before more is looked at.
    pub(crate) fn has_had_its_turn(&self) -> bool {
        self.turn >= TURN && self.left == 0
    }

    pub(crate) fn begin_turn(&mut self) {
        self.turn = 0;
    }

    /// Whether a request's head has begun and not ended, or the settings that a client begins with have not.
    pub(crate) fn is_in_head(&self) -> bool {
        self.in_head
    }

    /// The client was told that this is the last stream that is served.
    pub(crate) fn ends_with(&mut self, stream: u32) {
        self.most = self.most.min(stream);
    }

    /// Frames of an answer have left, which the client may acknowledge.
    pub(crate) fn earn(&mut self, frames: usize) {
        self.credit = AT_MOST.min(self.credit + EARNED * frames as u64);
    }

    /// So many bytes have left, since there was room for no more. A few cost as much as the frame that made it.
    pub(crate) fn earn_by_cut(&mut self, bytes: usize) {
        self.credit = match (bytes / CUT) as u64 {
            0 => self.credit.saturating_sub(1),
            earned => AT_MOST.min(self.credit + earned.min(EARNED)),
        };
    }

    /// What is wrong with the frame that was not let through; `None` if it was one too many.
    pub(crate) fn wrong(&self) -> Option<Reason> {
        self.wrong
    }

    /// Looks at what came next, until it has had its turn. Gives how many bytes that was.
    pub(crate) fn admit(&mut self, came: &[u8], now: Instant) -> Result<usize, Before> {
        let mut bytes = came;
        while !bytes.is_empty() && !self.has_had_its_turn() {
            if self.left > 0 {
                let taken = self.left.min(bytes.len());
                if self.window.as_mut().is_some_and(|window| window.see(&bytes[..taken]).is_err()) {
                    self.wrong = Some(Reason::FLOW_CONTROL_ERROR);
                    return Err(Before(came.len() - bytes.len()));
                }
                bytes = &bytes[taken..];
                self.left -= taken;
            } else {
                let taken = (FRAME_HEAD - self.came).min(bytes.len());
                self.head[self.came..self.came + taken].copy_from_slice(&bytes[..taken]);
                bytes = &bytes[taken..];
                self.came += taken;
                if self.came == FRAME_HEAD {
                    self.came = 0;
                    let end = came.len() - bytes.len();
                    self.frame(now).map_err(|_| Before(end.saturating_sub(FRAME_HEAD)))?;
                }
            }
            if self.left == 0 && self.ends_head {
                (self.ends_head, self.in_head) = (false, false);
            }
        }
        Ok(came.len() - bytes.len())
    }

    fn frame(&mut self, now: Instant) -> Result<(), TooMuch> {
        const DATA: u8 = 0;
        const HEADERS: u8 = 1;
        const PRIORITY: u8 = 2;
        const SETTINGS: u8 = 4;
        const CONTINUATION: u8 = 9;
        const END_STREAM: u8 = 1;
        const END_HEADERS: u8 = 4;
        let [high, middle, low, kind, flags, stream @ ..] = self.head;
        self.left = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        self.turn += 1;
        self.wrong = fault_of(kind, flags, self.left, !std::mem::replace(&mut self.begun, true));
        if self.wrong.is_some() {
            return Err(TooMuch);
        }
        self.window = (kind == SETTINGS).then(FirstWindow::default);
        // Within a head `h2` takes nothing else, so that this is the first frame.
        self.ends_head = self.in_head;
        let stream = u32::from_be_bytes(stream) & LARGEST_STREAM;
        let (cost, ends) = (1 + (self.left / WEIGHT) as u64, flags & END_STREAM != 0);
        match kind {
            HEADERS | CONTINUATION => {
                (self.in_head, self.ends_head) = (true, flags & END_HEADERS != 0);
                if kind == HEADERS {
                    let is_of_use = self.begins(stream, ends) || (ends && self.ends());
                    self.in_vain = !is_of_use;
                }
                if self.in_vain { self.spend(cost, now) } else { Ok(()) }
            }
            DATA if ends && self.ends() => Ok(()),
            DATA if !ends && self.left > 0 && stream <= self.most => self.frames_a_body(),
            PRIORITY => self.spend(PRIORITY_COST, now),
            _ => self.spend(cost, now),
        }
    }

    /// Whether a head begins a request, which earns: no other stream can be begun than one above all before.
    fn begins(&mut self, stream: u32, ends: bool) -> bool {
        let begins = stream > self.last && stream <= self.most;
        if begins {
            self.last = stream;
            self.unended += u64::from(!ends);
            self.earn(1);
        }
        begins
    }

    fn frames_a_body(&mut self) -> Result<(), TooMuch> {
        self.framing = (self.framing + FRAME_HEAD).saturating_sub(FRAMING_RATIO * self.left);
        if self.framing > FRAMING { Err(TooMuch) } else { Ok(()) }
    }

    /// Whether there is a request that can end. Which one is `h2`'s to know: they are as many.
    fn ends(&mut self) -> bool {
        let left = self.unended.checked_sub(1);
        self.unended = left.unwrap_or(0);
        left.is_some()
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

/// What the head of a frame shows to be wrong with it (RFC 9113, sections 3.4 and 6). The first one is of settings.
fn fault_of(kind: u8, flags: u8, length: usize, is_first: bool) -> Option<Reason> {
    const PRIORITY: u8 = 2;
    const RESET: u8 = 3;
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    const WINDOW: u8 = 8;
    const ACK: u8 = 1;
    let is_answer = flags & ACK != 0;
    if is_first && (kind != SETTINGS || is_answer) {
        return Some(Reason::PROTOCOL_ERROR);
    }
    let is_sound = match kind {
        PRIORITY => length == 5,
        RESET | WINDOW => length == 4,
        PING => length == 8,
        SETTINGS => length.is_multiple_of(6) && (length == 0 || !is_answer),
        _ => true,
    };
    (!is_sound).then_some(Reason::FRAME_SIZE_ERROR)
}

/// How much of something there may be at once, and again after a while.
#[derive(Debug)]
pub(crate) struct Allowance {
    most: u32,
    a_second: u32,
    left: u32,
    refilled: Instant,
}

impl Allowance {
    pub(crate) fn new(most: u32, a_second: u32, now: Instant) -> Self {
        Self { most, a_second, left: most, refilled: now }
    }

    /// Streams that the client breaks off: each has started an application in vain. A page that is left may cancel all
    /// its requests, and again soon.
    pub(crate) fn of_resets(now: Instant) -> Self {
        Self::new(RESETS, RESETS_A_SECOND, now)
    }

    /// One more.
    pub(crate) fn count(&mut self, now: Instant) -> Result<(), TooMuch> {
        let since = now.saturating_duration_since(self.refilled).as_secs_f64();
        let earned = (since * f64::from(self.a_second)) as u32;
        if earned > 0 {
            self.left = self.most.min(self.left.saturating_add(earned));
            self.refilled = now;
        }
        self.left = self.left.checked_sub(1).ok_or(TooMuch)?;
        Ok(())
    }
}

/// Of so many streams that have ended, how many their clients had broken off before they had an answer: Envoy's measure
/// for who has work done in vain, slowly enough for all the others.
#[derive(Debug, Default)]
pub(crate) struct Haste {
    ended: u32,
    premature: u32,
}

impl Haste {
    /// How long a client waits that means what it asks for: a search that is typed on, a page that is left, give up
    /// sooner, but not most of the time.
    pub(crate) const FAIR: Duration = Duration::from_secs(1);

    /// One more has ended.
    pub(crate) fn count(&mut self, end: End) -> Result<(), TooMuch> {
        self.ended += 1;
        self.premature += u32::from(end == End::Premature);
        if self.premature > IN_VAIN {
            return Err(TooMuch);
        }
        if self.ended == TOGETHER {
            *self = Self::default();
        }
        Ok(())
    }
}

/// How a stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Its client broke it off at once, without a word of an answer.
    Premature,
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const PING: u8 = 6;
    const END_STREAM: u8 = 1;
    const END_HEADERS: u8 = 4;

    /// The head of a request.
    fn head(stream: u32, flags: u8) -> Vec<u8> {
        [&[0, 0, 0, HEADERS, END_HEADERS | flags], &stream.to_be_bytes()[..]].concat()
    }

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).expect("a length").to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
    }

    const SETTINGS: u8 = 4;

    /// Its settings are still due.
    fn unset(now: Instant) -> Meter {
        let mut meter = Meter::new(now);
        meter.admit(&[b' '; PREFACE], now).expect("a preface");
        meter
    }

    fn begun(now: Instant) -> Meter {
        let mut meter = unset(now);
        meter.admit(&frame(SETTINGS, 0, b""), now).expect("settings");
        Meter { credit: AT_FIRST, turn: 0, ..meter }
    }

    /// In as many turns as that takes.
    fn admit(meter: &mut Meter, came: &[u8], now: Instant) -> Result<(), Before> {
        let mut taken = 0;
        while taken < came.len() {
            meter.begin_turn();
            taken += meter.admit(&came[taken..], now).map_err(|Before(sound)| Before(taken + sound))?;
        }
        Ok(())
    }

    #[test]
    fn frames_are_counted_however_they_are_cut() {
        let now = Instant::now();
        for size in [1, 5, 9, 17, 1000] {
            let (mut meter, bytes) = (begun(now), frame(PING, 0, &[0; 8]).repeat(1000));
            assert_eq!(bytes.chunks(size).try_for_each(|bytes| admit(&mut meter, bytes, now)), Ok(()));
            assert_eq!(admit(&mut meter, &frame(PING, 0, &[0; 8]), now), Err(Before(0)));
        }
    }

    #[test]
    fn what_came_before_too_much_is_told() {
        let now = Instant::now();
        let ping = frame(PING, 0, &[0; 8]);
        assert_eq!(admit(&mut begun(now), &ping.repeat(1002), now), Err(Before(1000 * ping.len())));
        let mut meter = begun(now);
        admit(&mut meter, &[&ping.repeat(1000)[..], &ping[..4]].concat(), now).expect("a part of one more");
        assert_eq!(admit(&mut meter, &ping[4..], now), Err(Before(0)));
    }

    #[test]
    fn a_turn_ends_with_a_frame() {
        let (now, ping) = (Instant::now(), frame(PING, 0, &[0; 8]));
        let (mut meter, turn) = (begun(now), TURN as usize * ping.len());
        assert_eq!(meter.admit(&ping.repeat(300), now), Ok(turn));
        assert!(meter.has_had_its_turn());
        assert_eq!(meter.admit(&ping, now), Ok(0));
        meter.begin_turn();
        assert_eq!(meter.admit(&ping.repeat(100)[1..], now), Ok(turn - 1));
        assert!(!meter.has_had_its_turn());
    }

    #[test]
    fn time_and_answers_earn_more_of_them() {
        let now = Instant::now();
        let (mut meter, ping) = (begun(now), frame(PING, 0, &[0; 8]));
        admit(&mut meter, &ping.repeat(1000), now).expect("as many as at first");
        meter.earn(10);
        admit(&mut meter, &ping.repeat(40), now).expect("four for each");
        let later = now + Duration::from_secs(1);
        admit(&mut meter, &ping.repeat(128), later).expect("as many as in a second");
        assert_eq!(admit(&mut meter, &ping, later), Err(Before(0)));
    }

    #[test]
    fn windows_that_let_out_a_few_bytes_cost_twice() {
        const WINDOW: u8 = 8;
        let now = Instant::now();
        let (mut meter, window) = (begun(now), frame(WINDOW, 0, &[0, 0, 0, 1]));
        for _ in 0..500 {
            admit(&mut meter, &window, now).expect("half as many as of others");
            meter.earn_by_cut(127);
        }
        assert_eq!(admit(&mut meter, &window, now), Err(Before(0)));
    }

    #[test]
    fn small_windows_that_are_used_earn_what_they_cost() {
        const WINDOW: u8 = 8;
        let now = Instant::now();
        for size in [256, 512, 1000, 1023] {
            let (mut meter, window) = (begun(now), frame(WINDOW, 0, &[0, 0, 1, 0]));
            for _ in 0..10_000 {
                admit(&mut meter, &window.repeat(2), now).expect("a stream's window, and the connection's");
                meter.earn_by_cut(size);
            }
        }
    }

    #[test]
    fn bodies_of_a_byte_a_frame_come_to_an_end_and_others_do_not() {
        let now = Instant::now();
        let data = |size: usize| frame(DATA, 0, &[0; 16_384][..size]);
        let many = FRAMING / (FRAME_HEAD - FRAMING_RATIO);
        let mut meter = begun(now);
        admit(&mut meter, &data(1).repeat(many), now).expect("as many as may be");
        assert_eq!(admit(&mut meter, &data(1), now), Err(Before(0)));
        assert_eq!(meter.wrong(), None);
        let mut meter = begun(now);
        admit(&mut meter, &data(2).repeat(2 * many), now).expect("small ones");
        for _ in 0..3 {
            admit(&mut meter, &data(1).repeat(many - 1), now).expect("as many as may be");
            admit(&mut meter, &data(16_384).repeat(4), now).expect("what they are worth");
        }
    }

    #[test]
    fn what_the_head_of_a_frame_shows_to_be_wrong_is_told() {
        let (now, size) = (Instant::now(), Some(Reason::FRAME_SIZE_ERROR));
        for (kind, flags, length) in
            [(2, 0, 4), (3, 0, 3), (4, 0, 5), (4, 1, 6), (6, 0, 7), (6, 1, 9), (8, 0, 3), (8, 0, 5)]
        {
            let mut meter = begun(now);
            let wrong = frame(kind, flags, &[0; 9][..length]);
            assert_eq!(admit(&mut meter, &[frame(PING, 0, &[0; 8]), wrong].concat(), now), Err(Before(17)));
            assert_eq!(meter.wrong(), size, "{kind} {length}");
        }
        for first in [frame(PING, 0, &[0; 8]), frame(SETTINGS, 1, b""), head(1, END_STREAM)] {
            let mut meter = unset(now);
            assert_eq!(admit(&mut meter, &first, now), Err(Before(0)));
            assert_eq!(meter.wrong(), Some(Reason::PROTOCOL_ERROR));
        }
    }

    #[test]
    fn a_first_window_that_is_none_is_told() {
        let now = Instant::now();
        let settings = frame(SETTINGS, 0, &[0, 1, 0, 0, 0, 0, 0, 4, 0x80, 0, 0, 0]);
        for size in [1, 9, 13, 21] {
            let mut meter = begun(now);
            let told = settings.chunks(size).try_for_each(|part| meter.admit(part, now).map(|_| ()));
            assert!(told.is_err(), "{size}");
            assert_eq!(meter.wrong(), Some(Reason::FLOW_CONTROL_ERROR));
        }
        admit(&mut begun(now), &frame(0xfa, 0, &settings[9..]), now).expect("no settings");
    }

    #[test]
    fn large_frames_of_no_kind_cost_more_and_data_nothing() {
        let now = Instant::now();
        let mut meter = begun(now);
        admit(&mut meter, &frame(0, 0, &[0; 16_384]).repeat(100), now).expect("data");
        assert_eq!(admit(&mut meter, &frame(0xfa, 0, &[0; 16_384]).repeat(15), now), Ok(()));
        assert_eq!(admit(&mut meter, &frame(0xfa, 0, &[0; 16_384]), now), Err(Before(0)));
        let mut meter = begun(now);
        assert_eq!(admit(&mut meter, &frame(0, 0, b"").repeat(1001), now), Err(Before(9000)));
    }

    #[test]
    fn priorities_are_few_but_for_requests() {
        const PRIORITY: u8 = 2;
        let now = Instant::now();
        let (mut meter, priority) = (begun(now), frame(PRIORITY, 0, &[0; 5]));
        admit(&mut meter, &priority.repeat(200), now).expect("as many as at first");
        assert_eq!(admit(&mut meter, &priority, now), Err(Before(0)));
        let mut meter = begun(now);
        for number in 0..5000 {
            let with_request = [&head(2 * number + 1, END_STREAM), &priority[..]].concat();
            admit(&mut meter, &with_request, now).expect("one for each");
            meter.earn(1);
        }
    }

    #[test]
    fn requests_earn_and_heads_of_streams_that_were_begun_cost() {
        let now = Instant::now();
        let ping = frame(PING, 0, &[0; 8]);
        let mut meter = begun(now);
        for number in 0..2000 {
            let request = [&head(2 * number + 1, END_STREAM), &ping.repeat(4)[..]].concat();
            admit(&mut meter, &request, now).expect("four for each");
        }
        for known in [3999, 1, 0, 1 << 31 | 3999] {
            let (mut meter, mut again) = (begun(now), head(known, 0));
            admit(&mut meter, &head(3999, END_STREAM), now).expect("a request");
            again.extend(&ping.repeat(4));
            admit(&mut meter, &again.repeat(1004 / 5), now).expect("as many as at first, and four");
            assert_eq!(
                admit(&mut meter, &again, now),
                Err(Before(4 * ping.len() + 9 - ping.len())),
                "{known}"
            );
        }
    }

    #[test]
    fn nothing_is_served_above_the_last_stream() {
        let now = Instant::now();
        let data = |stream: u32| [&[0, 0, 1, DATA, 0], &stream.to_be_bytes()[..], b"x"].concat();
        for flood in [head(5, END_STREAM), head(5, 0), data(5)] {
            let mut meter = begun(now);
            admit(&mut meter, &[head(3, 0), data(3)].concat(), now).expect("a request");
            meter.ends_with(3);
            meter.ends_with(LARGEST_STREAM);
            admit(&mut meter, &[data(3).repeat(5000), head(3, END_STREAM)].concat(), now).expect("its rest");
            assert_eq!(admit(&mut meter, &flood.repeat(1005), now), Err(Before(1004 * flood.len())));
        }
    }

    #[test]
    fn each_request_ends_once() {
        let now = Instant::now();
        let data = frame(DATA, END_STREAM, b"");
        for end in [head(1, END_STREAM), data, frame(DATA, END_STREAM, &[0; 255])] {
            let mut meter = begun(now);
            for number in 0..5000 {
                let request = [head(2 * number + 1, 0), frame(DATA, 0, b"x"), end.clone()].concat();
                admit(&mut meter, &request, now).expect("requests with bodies");
            }
            meter.credit = 100;
            assert_eq!(admit(&mut meter, &end.repeat(101), now), Err(Before(100 * end.len())));
        }
    }

    #[test]
    fn what_a_head_in_vain_goes_on_with_costs_as_well() {
        const CONTINUATION: u8 = 9;
        let now = Instant::now();
        let piece = frame(CONTINUATION, 0, &[0; 16_384]);
        let mut meter = begun(now);
        admit(&mut meter, &frame(HEADERS, 0, b""), now).expect("a request");
        admit(&mut meter, &piece.repeat(100), now).expect("its head, which others bound");
        admit(&mut meter, &frame(CONTINUATION, END_HEADERS, b""), now).expect("its end");
        admit(&mut meter, &frame(HEADERS, 0, b""), now).expect("once more");
        assert_eq!(admit(&mut meter, &piece.repeat(100), now), Err(Before(15 * piece.len())));
    }

    #[test]
    fn a_connection_begins_with_settings_that_are_waited_for_like_a_head() {
        let now = Instant::now();
        let mut meter = unset(now);
        assert!(meter.is_in_head());
        let settings = frame(SETTINGS, 0, &[0; 6]);
        admit(&mut meter, &settings[..settings.len() - 1], now).expect("settings");
        assert!(meter.is_in_head());
        admit(&mut meter, &settings[settings.len() - 1..], now).expect("settings");
        assert!(!meter.is_in_head());
        assert!(!begun(now).is_in_head());
    }

    #[test]
    fn a_head_ends_with_the_last_byte_of_its_last_frame() {
        let now = Instant::now();
        let mut meter = begun(now);
        admit(&mut meter, &frame(HEADERS, 0, b"a"), now).expect("a head");
        assert!(meter.is_in_head());
        let last = frame(9, END_HEADERS, b"b");
        admit(&mut meter, &last[..last.len() - 1], now).expect("a head");
        assert!(meter.is_in_head());
        admit(&mut meter, b"b", now).expect("a head");
        assert!(!meter.is_in_head());
        admit(&mut meter, &frame(HEADERS, END_HEADERS, b""), now).expect("a head");
        assert!(!meter.is_in_head());
    }

    #[test]
    fn most_of_many_streams_are_not_to_be_in_vain() {
        let mut haste = Haste::default();
        assert_eq!((0..250).try_for_each(|_| haste.count(End::Premature)), Ok(()));
        assert_eq!(haste.count(End::Premature), Err(TooMuch));
        let mut haste = Haste::default();
        let mut half = [End::Premature, End::Other].into_iter().cycle().take(5000);
        assert_eq!(half.try_for_each(|end| haste.count(end)), Ok(()));
    }

    #[test]
    fn a_page_may_be_left_and_left_again() {
        let now = Instant::now();
        let mut resets = Allowance::of_resets(now);
        assert_eq!((0..100).try_for_each(|_| resets.count(now)), Ok(()));
        assert_eq!(resets.count(now), Err(TooMuch));
        let later = now + Duration::from_secs(2);
        assert_eq!((0..100).try_for_each(|_| resets.count(later)), Ok(()));
        assert_eq!(resets.count(later), Err(TooMuch));
    }
}
