//! What keeps the loop's thread: Python code, a call of C's that holds the GIL or does not, a system call, another thread.
//!
//! Judged by what the system shows of that thread (`/proc/self/task`), before and after the GIL was asked for: who has the
//! GIL and sees the thread in the same system call still knows that it waits there without it. Not when (`health.rs`).
//!
//! Invariant: looking takes nothing from the thread that is looked at, and no more of the GIL than a tenth of a second. Waiting
//! for a processor, which a busy machine has everybody do, is not taken for anything else.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use bridgehead_metrics::{Cause, SystemCall};

/// Between the first look without the GIL and the last: four times what a thread waits for it before it asks again.
const MOMENT: Duration = Duration::from_millis(20);
/// The same for a thread that waits for a lock, which may be the GIL, on a machine that has everybody come late.
const LOCK_MOMENT: Duration = Duration::from_millis(80);
/// A thread that has waited for a lock so often in that time waits for the GIL.
const AGAIN: u64 = 2;
/// A wait for the GIL that is longer was for somebody who does not let go of it: Python code does after 5 ms.
const LONG: Duration = Duration::from_millis(50);
/// What runs for so long after it was asked for the GIL does not let go of it. Python code would in microseconds; systems count
/// by ticks of up to 10 ms.
const UNMOVED: Duration = Duration::from_millis(25);
/// What computes while somebody else has the GIL does without.
const COMPUTES: Duration = Duration::from_millis(2);
/// The GIL is held no longer for a look: on a machine that has no time for the thread it takes that long to see whether it runs.
const LONGEST_HOLD: Duration = Duration::from_millis(100);
/// A thread that runs for a smaller part of the time waits.
const RESTS: f64 = 0.25;

/// The loop's thread, by its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspect(pub(crate) i32);

/// What it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
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
    /// How long the thread has run since it was asked for it, as far as is known.
    pub(crate) ran_on: Duration,
}

/// What is known before the GIL is asked for.
#[derive(Debug)]
pub(crate) struct Evidence {
    before: Sighting,
    after: Sighting,
    between: Duration,
}

impl Suspect {
    /// The one that asks.
    pub(crate) fn this_thread() -> Self {
        Self(rustix::thread::gettid().as_raw_nonzero().get())
    }

    fn look(self) -> Sighting {
        let read = |name| fs::read_to_string(format!("/proc/self/task/{}/{name}", self.0)).ok();
        Sighting {
            doing: read("syscall").map_or(Doing::Unknown, |text| doing(&text)),
            ran: read("schedstat")
                .and_then(|text| Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))),
            rests: read("status").as_deref().and_then(rests).unwrap_or_default(),
        }
    }

    /// Whether it waits for events, as a loop does that has nothing to do.
    pub(crate) fn polls(self) -> bool {
        let text = fs::read_to_string(format!("/proc/self/task/{}/syscall", self.0)).unwrap_or_default();
        let polls = ["epoll_wait", "epoll_pwait"].map(SystemCall::named);
        matches!(doing(&text), Doing::Waits(call) if polls.contains(&Some(call)))
    }

    /// How long it has run, in nanoseconds; zero if the system does not tell.
    pub(crate) fn ran(self) -> u64 {
        let ran = self.look().ran.unwrap_or_default();
        u64::try_from(ran.as_nanos()).unwrap_or(u64::MAX)
    }

    /// For who has the GIL: what it does, and whether it computes without.
    fn look_again(self) -> (Sighting, bool) {
        let (began, first) = (Instant::now(), self.look());
        let mut now = first;
        while now.doing == Doing::Runs && began.elapsed() < LONGEST_HOLD {
            if now.since(&first).is_some_and(|ran| ran >= COMPUTES) {
                return (now, true);
            }
            thread::sleep(COMPUTES);
            now = self.look();
        }
        (now, false)
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
            Doing::Waits(_) if self.waits() && wait.time >= LONG => self.while_the_gil_is_gone(),
            Doing::Waits(call) if self.waits() => Cause::SystemCall(call),
            _ if wait.ran_on >= UNMOVED => Cause::CallWithGil,
            _ => Cause::Unknown,
        }
    }

    /// For who has the GIL: what it is.
    pub(crate) fn judge(&self, suspect: Suspect, wait: &GilWait) -> Cause {
        let (held, computes) = suspect.look_again();
        if computes { Cause::CallWithoutGil } else { self.verdict(&held, wait) }
    }

    fn verdict(&self, held: &Sighting, wait: &GilWait) -> Cause {
        match (held.doing, self.after.doing) {
            (Doing::Waits(call), _) if !is_lock(call) => Cause::SystemCall(call),
            _ if self.asks_for_the_gil() => Cause::OtherThread,
            (_, Doing::Waits(_)) if self.waits() && wait.time >= LONG => Cause::CallWithGil,
            (_, Doing::Waits(call)) if self.waits() => Cause::SystemCall(call),
            _ if wait.ran_on >= UNMOVED => Cause::CallWithGil,
            (Doing::Unknown, _) if wait.time >= LONG => Cause::CallWithGil,
            (Doing::Runs, _) => Cause::Unknown,
            _ => Cause::Python,
        }
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
        let waits = |seen: &Sighting| matches!(seen.doing, Doing::Waits(call) if is_lock(call));
        waits(&self.before) || waits(&self.after)
    }
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

    const PROMPT: GilWait = GilWait { time: Duration::from_millis(6), ran_on: Duration::ZERO };
    const LATE: GilWait = GilWait { time: Duration::from_millis(400), ran_on: Duration::ZERO };
    const RAN_ON: GilWait = GilWait { ran_on: Duration::from_millis(300), ..LATE };

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
        assert_eq!(sleeps.verdict(&at(waits("clock_nanosleep"), 5, 1), &PROMPT), in_a("clock_nanosleep"));
        let over = at(waits("futex"), 5, 2);
        assert_eq!(sleeps.verdict(&over, &LATE), Cause::CallWithGil, "it ended when the GIL was given");
        assert_eq!(sleeps.verdict(&over, &PROMPT), in_a("clock_nanosleep"), "it ended meanwhile");
    }

    #[test]
    fn what_computes_is_python_if_it_gives_the_gil_and_else_a_call() {
        let runs = seen(at(Doing::Runs, 100, 1), at(Doing::Runs, 118, 1));
        assert_eq!(runs.verdict(&at(waits("futex"), 124, 2), &PROMPT), Cause::Python);
        assert_eq!(runs.verdict(&at(waits("futex"), 124, 2), &LATE), Cause::Python, "the machine was busy");
        assert_eq!(runs.verdict(&at(waits("futex"), 518, 2), &RAN_ON), Cause::CallWithGil);
        assert_eq!(runs.of_what_is_over(&PROMPT), Cause::Unknown);
        assert_eq!(runs.of_what_is_over(&RAN_ON), Cause::CallWithGil);
        assert_eq!(runs.verdict(&at(Doing::Runs, 118, 1), &LATE), Cause::Unknown, "it had no processor");
    }

    #[test]
    fn a_wait_for_a_lock_is_told_from_one_for_the_gil_by_who_asks_again() {
        let lock = seen(at(waits("futex"), 5, 7), at(waits("futex"), 5, 7));
        assert_eq!(lock.verdict(&at(waits("futex"), 5, 7), &PROMPT), in_a("futex"));
        let gil = seen(at(waits("futex"), 5, 7), at(waits("futex"), 5, 11));
        assert_eq!(gil.verdict(&at(waits("futex"), 5, 90), &LATE), Cause::OtherThread);
        assert_eq!(
            (lock.while_the_gil_is_gone(), gil.while_the_gil_is_gone()),
            (Cause::CallWithGil, Cause::OtherThread)
        );
    }

    #[test]
    fn a_system_that_tells_nothing_leaves_the_wait_for_the_gil() {
        let blind = Sighting { doing: Doing::Unknown, ran: None, rests: 0 };
        let evidence = seen(blind, blind);
        assert_eq!(evidence.verdict(&blind, &LATE), Cause::CallWithGil);
        assert_eq!(evidence.verdict(&blind, &PROMPT), Cause::Python);
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
