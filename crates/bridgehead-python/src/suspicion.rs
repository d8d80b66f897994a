//! What keeps the loop's thread: Python code, a call of C's that holds the GIL or does not, a system call, another thread.
//!
//! Judged by what the system shows of that thread (`/proc/self/task`), before and after the GIL was asked for: who has the
//! GIL and sees the thread in the same system call still knows that it waits there without it. Short calls that let go of the
//! GIL, one behind the other, are told from Python code by how often the GIL is free. Not when (`health.rs`).
//!
//! Invariant: looking takes nothing from the thread that is looked at, and no more of the GIL than a tenth of a second. Waiting
//! for a processor, which a busy machine has everybody do, is not taken for anything else.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use bridgehead_metrics::{Cause, SystemCall};
use pyo3::prelude::*;

use crate::ffi::ThreadClock;

/// Between the first look without the GIL and the last: four times what a thread waits for it before it asks again.
const MOMENT: Duration = Duration::from_millis(20);
/// The same for a thread that waits for a lock, which may be the GIL, on a machine that has everybody come late.
const LOCK_MOMENT: Duration = Duration::from_millis(80);
/// A thread that has waited for a lock so often in that time waits for the GIL.
const AGAIN: u64 = 2;
/// A wait for the GIL that is longer was for somebody who does not let go of it: Python code does after 5 ms.
const LONG: Duration = Duration::from_millis(50);
/// What runs for so long while somebody asks for the GIL does not let go of it. Python code does 5 ms after that, and for as long
/// as who asks has no processor to ask with.
const UNMOVED: Duration = Duration::from_millis(30);
/// What runs for no longer has let go as soon as it was asked to, or was just over.
const OBEYS: Duration = Duration::from_millis(15);
/// So often it does so that is called Python code, having run for so long in between, and is asked for so long at most: a call
/// that was just over does once, and what gives back the memory of its result hardly ever.
const PROOFS: usize = 4;
const BETWEEN: Duration = Duration::from_millis(2);
const LONGEST_PROOF: Duration = Duration::from_secs(1);
/// What computes while somebody else has the GIL does without.
const COMPUTES: Duration = Duration::from_millis(2);
/// The GIL is held no longer for a look: on a machine that has no time for the thread it takes that long to see whether it runs.
const LONGEST_HOLD: Duration = Duration::from_millis(100);
/// Python code lets go of the GIL 5 ms after it was asked for: who has it sooner had it from somebody who lets go by itself.
const SOON: Duration = Duration::from_millis(1);
/// Who has it in that time did not have to be woken: it was free.
const AT_ONCE: Duration = Duration::from_micros(50);
/// How often it is asked for again, after such pauses, and how often it has to be free: calls that let go of it, one behind
/// the other, leave it to others for most of the time, and code that looks for a file now and then does not.
const ASKS: usize = 8;
const MOSTLY: usize = 6;
const PAUSE: Duration = Duration::from_millis(2);
/// A thread that runs for a smaller part of the time waits.
const RESTS: f64 = 0.25;

/// The loop's thread, by its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspect(pub(crate) i32);

/// What it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Runs,
    Waits(SystemCall),
    /// The system does not tell.
    Unknown,
}

/// One look at it.
#[derive(Clone, Copy, Debug)]
struct Sighting {
    doing: Doing,
    /// How long it has run, if the system tells.
    ran: Option<Duration>,
    /// How often it has gone to sleep.
    rests: u64,
}

/// How the GIL was waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GilWait {
    pub(crate) time: Duration,
    /// How long the loop's thread has run meanwhile, as far as is known; and the same but for as long as who waited had no
    /// processor.
    pub(crate) ran: Duration,
    pub(crate) ran_on: Duration,
}

/// How it stood when the GIL was asked for.
#[derive(Debug)]
pub(crate) struct Asking {
    since: Instant,
    /// How long this thread has waited for a processor, and the loop's has run, if the system tells.
    delayed: Option<Duration>,
    ran: Option<Duration>,
}

/// What is known before the GIL is asked for.
#[derive(Debug)]
pub(crate) struct Evidence {
    before: Sighting,
    after: Sighting,
    between: Duration,
}

impl Asking {
    /// This thread is about to ask, and the clock is that of the loop's.
    pub(crate) fn begin(clock: Option<&ThreadClock>) -> Self {
        // In this order: a delay between the two is taken for a part of the wait, in which the loop's thread may run.
        let delayed = delayed();
        Self { since: Instant::now(), delayed, ran: clock.and_then(ThreadClock::read) }
    }

    /// It has the GIL.
    pub(crate) fn had(&self, clock: Option<&ThreadClock>) -> GilWait {
        let time = self.since.elapsed();
        let ran = || Some(clock?.read()?.saturating_sub(self.ran?));
        let delayed = || Some(delayed()?.saturating_sub(self.delayed?));
        let ran = ran().unwrap_or_default();
        GilWait { time, ran, ran_on: delayed().map_or(Duration::ZERO, |delayed| ran.saturating_sub(delayed)) }
    }
}

impl GilWait {
    /// The same, if it is known otherwise that the loop's thread has run on for at least so long: on a machine that is busy, who
    /// waits for long has no processor for most of that.
    pub(crate) fn or_ran_on(self, at_least: Duration) -> Self {
        Self { ran_on: self.ran_on.max(at_least), ..self }
    }

    /// Whether the loop's thread ran on, and did not let go of the GIL.
    pub(crate) fn was_in_vain(&self) -> bool {
        self.ran_on >= UNMOVED
    }

    /// Whether the GIL is free for most of the time, as far as somebody sees who lets go of it and asks again.
    pub(crate) fn is_mostly_none(&self, py: Python<'_>) -> bool {
        let is_free = || {
            let asked = py.detach(|| {
                thread::sleep(PAUSE);
                Instant::now()
            });
            asked.elapsed() < AT_ONCE
        };
        self.time < SOON && (0..ASKS).filter(|_| is_free()).count() >= MOSTLY
    }
}

impl Suspect {
    /// The one that asks.
    #[cfg(target_os = "linux")]
    pub(crate) fn this_thread() -> Self {
        Self(rustix::thread::gettid().as_raw_nonzero().get())
    }

    /// Elsewhere there is nothing that shows a thread by its number.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn this_thread() -> Self {
        Self(0)
    }

    /// What it does now.
    pub(crate) fn does(self) -> Doing {
        self.reads("syscall").map_or(Doing::Unknown, |text| doing(&text))
    }

    fn look(self) -> Sighting {
        let read = |name| self.reads(name);
        Sighting {
            doing: self.does(),
            ran: read("schedstat")
                .and_then(|text| Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))),
            rests: read("status").as_deref().and_then(rests).unwrap_or_default(),
        }
    }

    /// Whether it waits for events, as a loop does that has nothing to do.
    pub(crate) fn polls(self) -> bool {
        let polls = ["epoll_wait", "epoll_pwait"].map(SystemCall::named);
        matches!(self.does(), Doing::Waits(call) if polls.contains(&Some(call)))
    }

    /// How long it has run, in nanoseconds; zero if the system does not tell.
    pub(crate) fn ran(self) -> u64 {
        let ran = self.look().ran.unwrap_or_default();
        u64::try_from(ran.as_nanos()).unwrap_or(u64::MAX)
    }

    /// For who has the GIL, and has had it since it did that: what it does, and whether it computes without.
    fn look_again(self, did: Doing) -> (Doing, bool) {
        if did != Doing::Runs {
            return (did, false);
        }
        let (began, first) = (Instant::now(), self.look());
        let mut now = first;
        while now.doing == Doing::Runs && began.elapsed() < LONGEST_HOLD {
            if now.since(&first).is_some_and(|ran| ran >= COMPUTES) {
                return (now.doing, true);
            }
            thread::sleep(COMPUTES);
            now = self.look();
        }
        (now.doing, false)
    }

    fn reads(self, name: &str) -> Option<String> {
        fs::read_to_string(format!("/proc/self/task/{}/{name}", self.0)).ok()
    }
}

impl Doing {
    /// Whether it has gone on, if the GIL was what it waited for: who runs for a moment may have just seen that it has not got it.
    pub(crate) fn has_gone_on(self) -> bool {
        matches!(self, Self::Waits(call) if !is_lock(call))
    }

    fn waits_for_a_lock(self) -> bool {
        matches!(self, Self::Waits(call) if is_lock(call))
    }
}

impl Sighting {
    fn since(&self, before: &Self) -> Option<Duration> {
        Some(self.ran?.saturating_sub(before.ran?))
    }
}

impl Evidence {
    /// Looks twice. Without the GIL.
    pub(crate) fn gather(suspect: Suspect) -> Self {
        let (began, before) = (Instant::now(), suspect.look());
        loop {
            thread::sleep(MOMENT);
            let seen = Self { before, after: suspect.look(), between: began.elapsed() };
            let unclear = seen.waits_for_a_lock() && !seen.asks_for_the_gil();
            if !unclear || seen.between >= LOCK_MOMENT {
                return seen;
            }
        }
    }

    /// What it is if the GIL cannot be had.
    pub(crate) fn while_the_gil_is_gone(&self) -> Cause {
        if self.asks_for_the_gil() { Cause::OtherThread } else { Cause::CallWithGil }
    }

    /// What it was, of a step that was over when the GIL was had.
    pub(crate) fn of_what_is_over(&self, wait: &GilWait) -> Cause {
        match self.after.doing {
            _ if self.asks_for_the_gil() => Cause::OtherThread,
            Doing::Waits(_) if self.waits() && wait.time >= LONG => self.while_the_gil_is_gone(),
            Doing::Waits(call) if self.waits() => Cause::SystemCall(call),
            _ if wait.was_in_vain() => Cause::CallWithGil,
            _ => Cause::Unknown,
        }
    }

    /// For who has the GIL: what it is, and what the thread does now. It did that when the GIL was had.
    pub(crate) fn judge(&self, suspect: Suspect, did: Doing, wait: &GilWait) -> (Cause, Doing) {
        let (held, computes) = suspect.look_again(did);
        (if computes { Cause::CallWithoutGil } else { self.verdict(held, wait) }, held)
    }

    fn verdict(&self, held: Doing, wait: &GilWait) -> Cause {
        match (held, self.after.doing) {
            // One look of three does not outweigh two.
            (Doing::Waits(call), _) if !is_lock(call) && (self.saw(call) || !self.asks_for_the_gil()) => {
                Cause::SystemCall(call)
            }
            _ if self.asks_for_the_gil() => Cause::OtherThread,
            (_, Doing::Waits(_)) if self.waits() && wait.time >= LONG => Cause::CallWithGil,
            (_, Doing::Waits(call)) if self.waits() => Cause::SystemCall(call),
            _ if wait.was_in_vain() => Cause::CallWithGil,
            (Doing::Unknown, _) if wait.time >= LONG => Cause::CallWithGil,
            (Doing::Runs, _) => Cause::Unknown,
            _ => Cause::Python,
        }
    }

    /// Whether it went on at each look.
    pub(crate) fn runs(&self) -> bool {
        [self.before, self.after].iter().all(|seen| seen.doing == Doing::Runs)
    }

    /// Whether it was in that call at one of the looks.
    fn saw(&self, call: SystemCall) -> bool {
        [self.before, self.after].iter().any(|seen| seen.doing == Doing::Waits(call))
    }

    /// Whether it waits more than it runs.
    fn waits(&self) -> bool {
        let ran = self.after.since(&self.before);
        ran.is_none_or(|ran| ran.as_secs_f64() < RESTS * self.between.as_secs_f64())
    }

    /// Whether it waits for the GIL: that is a lock, which it asks for again every 5 ms.
    fn asks_for_the_gil(&self) -> bool {
        let again = self.after.rests.saturating_sub(self.before.rests) >= AGAIN;
        self.waits_for_a_lock() && again && self.waits()
    }

    /// Whether it did at one of the looks: at the other it may just have asked.
    fn waits_for_a_lock(&self) -> bool {
        [self.before, self.after].iter().any(|seen| seen.doing.waits_for_a_lock())
    }
}

/// For who has the GIL: whether the loop's thread, whose clock this is, goes on, and lets go of it again and again.
pub(crate) fn obeys(py: Python<'_>, clock: &ThreadClock, is_over: impl Fn() -> bool + Sync) -> bool {
    let (began, mut proofs, mut before) = (Instant::now(), 0, clock.read());
    while proofs < PROOFS && began.elapsed() < LONGEST_PROOF {
        let asking = py.detach(|| {
            thread::sleep(PAUSE);
            Asking::begin(Some(clock))
        });
        let (wait, now) = (asking.had(Some(clock)), clock.read());
        if is_over() || wait.was_in_vain() {
            return false;
        }
        let went_on = now.zip(before).is_some_and(|(now, before)| now.saturating_sub(before) >= BETWEEN);
        // One that had no processor, or was asked late, has shown nothing.
        if went_on && wait.ran < OBEYS {
            proofs += 1;
        }
        if went_on {
            before = now;
        }
    }
    proofs >= PROOFS
}

/// How long this thread has waited for a processor.
fn delayed() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split_whitespace().nth(1)?.parse().ok()?))
}

fn is_lock(call: SystemCall) -> bool {
    SystemCall::named("futex") == Some(call)
}

/// `running`, or the number of the call with its arguments.
fn doing(text: &str) -> Doing {
    match text.split_whitespace().next() {
        Some("running") => Doing::Runs,
        Some(number) => number.parse().map_or(Doing::Unknown, |number| Doing::Waits(SystemCall::of(number))),
        None => Doing::Unknown,
    }
}

fn rests(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: GilWait =
        GilWait { time: Duration::from_millis(6), ran: Duration::ZERO, ran_on: Duration::ZERO };
    const LATE: GilWait =
        GilWait { time: Duration::from_millis(400), ran: Duration::ZERO, ran_on: Duration::ZERO };
    const RAN_ON: GilWait = GilWait { ran: UNMOVED, ran_on: UNMOVED, ..LATE };

    fn at(doing: Doing, ran: u64, rests: u64) -> Sighting {
        Sighting { doing, ran: Some(Duration::from_millis(ran)), rests }
    }

    fn waits(name: &str) -> Doing {
        Doing::Waits(SystemCall::named(name).expect("it is one that blocks"))
    }

    fn in_a(name: &str) -> Cause {
        Cause::SystemCall(SystemCall::named(name).expect("it is one that blocks"))
    }

    fn seen(before: Sighting, after: Sighting) -> Evidence {
        Evidence { before, after, between: MOMENT }
    }

    #[test]
    fn who_has_the_gil_and_sees_a_system_call_knows_that_it_waits_without() {
        let sleeps = seen(at(waits("clock_nanosleep"), 5, 1), at(waits("clock_nanosleep"), 5, 1));
        assert_eq!(sleeps.verdict(waits("clock_nanosleep"), &PROMPT), in_a("clock_nanosleep"));
        let over = waits("futex");
        assert_eq!(sleeps.verdict(over, &LATE), Cause::CallWithGil, "it ended when the GIL was given");
        assert_eq!(sleeps.verdict(over, &PROMPT), in_a("clock_nanosleep"), "it ended meanwhile");
    }

    #[test]
    fn what_computes_is_python_if_it_gives_the_gil_and_else_a_call() {
        let runs = seen(at(Doing::Runs, 100, 1), at(Doing::Runs, 118, 1));
        assert_eq!(runs.verdict(waits("futex"), &PROMPT), Cause::Python);
        assert_eq!(runs.verdict(waits("futex"), &LATE), Cause::Python, "the machine was busy");
        assert_eq!(runs.verdict(waits("futex"), &RAN_ON), Cause::CallWithGil);
        assert_eq!(runs.of_what_is_over(&PROMPT), Cause::Unknown);
        assert_eq!(runs.of_what_is_over(&RAN_ON), Cause::CallWithGil);
        assert_eq!(runs.verdict(Doing::Runs, &LATE), Cause::Unknown, "it had no processor");
    }

    #[test]
    fn a_wait_for_a_lock_is_told_from_one_for_the_gil_by_who_asks_again() {
        let lock = seen(at(waits("futex"), 5, 7), at(waits("futex"), 5, 7));
        assert_eq!(lock.verdict(waits("futex"), &PROMPT), in_a("futex"));
        let gil = seen(at(waits("futex"), 5, 7), at(waits("futex"), 5, 11));
        assert_eq!(gil.verdict(waits("futex"), &LATE), Cause::OtherThread);
        assert_eq!(
            (lock.while_the_gil_is_gone(), gil.while_the_gil_is_gone()),
            (Cause::CallWithGil, Cause::OtherThread)
        );
    }

    #[test]
    fn one_look_behind_a_wait_for_the_gil_does_not_make_a_system_call_of_it() {
        let gil = seen(at(waits("futex"), 5, 7), at(waits("futex"), 5, 11));
        assert_eq!(gil.verdict(waits("clock_nanosleep"), &LATE), Cause::OtherThread, "it has gone on");
        assert_eq!(gil.of_what_is_over(&PROMPT), Cause::OtherThread, "it had the GIL soon");
        let both = seen(at(waits("futex"), 5, 7), at(waits("clock_nanosleep"), 5, 11));
        assert_eq!(both.verdict(waits("clock_nanosleep"), &PROMPT), in_a("clock_nanosleep"), "two of three");
        let gone_on = [waits("clock_nanosleep"), waits("futex"), Doing::Runs].map(Doing::has_gone_on);
        assert_eq!(gone_on, [true, false, false]);
    }

    #[test]
    fn a_system_that_tells_nothing_leaves_the_wait_for_the_gil() {
        let blind = Sighting { doing: Doing::Unknown, ran: None, rests: 0 };
        let evidence = seen(blind, blind);
        assert_eq!(evidence.verdict(Doing::Unknown, &LATE), Cause::CallWithGil);
        assert_eq!(evidence.verdict(Doing::Unknown, &PROMPT), Cause::Python);
    }

    #[test]
    fn what_the_system_writes_is_read() {
        assert_eq!(doing("running\n"), Doing::Runs);
        assert_eq!(doing("0 0x3 0x7f 0x10\n"), Doing::Waits(SystemCall::of(0)));
        assert_eq!(doing("-1 0x7f 0x80\n"), Doing::Unknown);
        assert_eq!(
            rests("Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n"),
            Some(12)
        );
    }
}
