//! When requests are due.
//!
//! Closed: as soon as a connection is free. Open: at their times, whether connections are free or not; the latency of
//! one that had to wait for a connection includes the wait.
//!
//! Not a queue of requests: what is due and not yet begun is a number.
//!
//! Invariant: every ticket is given out once, and its time does not depend on any answer.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::record::Window;

/// Tickets that are due within so short a time are given out together: a wait costs some microseconds itself.
const SHORTEST: Duration = Duration::from_micros(50);

/// A thousandth of a nanosecond, so that a rate stays what it is for days.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Picoseconds(u128);

impl Picoseconds {
    /// Between two of so many a second; rounded up, so that one more than is meant never fits before the end.
    pub(crate) fn between(rate: f64) -> Self {
        Self(((1e12 / rate).ceil() as u128).max(1))
    }
}

/// Leave to begin one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket {
    pub(crate) number: u64,
    pub(crate) due: Instant,
}

/// One thread's times.
#[derive(Debug)]
pub(crate) enum Pace {
    Closed(Closed),
    Open(Open),
}

/// As fast as answers come.
#[derive(Debug)]
pub(crate) struct Closed {
    window: Window,
    // Atomic since tasks have to be `Send`; all of them are on one thread.
    next: AtomicU64,
    measured: AtomicU64,
    limit: u64,
}

/// At a rate.
#[derive(Debug)]
pub(crate) struct Open {
    window: Window,
    begin: Instant,
    interval: Picoseconds,
    limit: u64,
    taken: AtomicU64,
    /// Tickets of the warm-up that nobody had begun by its end.
    dropped: AtomicU64,
    due: Semaphore,
}

impl Pace {
    pub(crate) fn closed(window: Window, requests: Option<u64>) -> Self {
        let limit = requests.unwrap_or(u64::MAX);
        Self::Closed(Closed { window, next: AtomicU64::new(0), measured: AtomicU64::new(0), limit })
    }

    /// From `begin` on, one each `interval`; as many as `requests` after the warm-up.
    pub(crate) fn open(window: Window, begin: Instant, interval: Picoseconds, requests: Option<u64>) -> Self {
        let (taken, dropped, due) = (AtomicU64::new(0), AtomicU64::new(0), Semaphore::new(0));
        let mut open = Open { window, begin, interval, limit: u64::MAX, taken, dropped, due };
        if let Some(requests) = requests {
            open.limit = open.due_before(window.begin).saturating_add(requests);
        }
        Self::Open(open)
    }

    /// The next ticket, once it is due; `None` when no request is to begin any more.
    pub(crate) async fn next(&self) -> Option<Ticket> {
        match self {
            Self::Closed(closed) => closed.next(Instant::now()),
            Self::Open(open) => open.next().await,
        }
    }

    /// How many were due in the measured time and were never begun.
    pub(crate) fn unsent(&self, now: Instant) -> u64 {
        match self {
            Self::Closed(_) => 0,
            Self::Open(open) => open.unsent(now),
        }
    }

    /// How many were due in the warm-up and had not been begun when it was over.
    pub(crate) fn dropped(&self, now: Instant) -> u64 {
        match self {
            Self::Closed(_) => 0,
            Self::Open(open) => open.dropped(now),
        }
    }

    /// Whether as many have been begun as may be.
    pub(crate) fn is_spent(&self) -> bool {
        match self {
            Self::Closed(closed) => closed.measured.load(Ordering::Relaxed) >= closed.limit,
            Self::Open(open) => open.taken.load(Ordering::Relaxed) >= open.limit,
        }
    }
}

impl Closed {
    fn next(&self, now: Instant) -> Option<Ticket> {
        if self.window.is_over(now) {
            return None;
        }
        if now >= self.window.begin && self.measured.fetch_add(1, Ordering::Relaxed) >= self.limit {
            return None;
        }
        Some(Ticket { number: self.next.fetch_add(1, Ordering::Relaxed), due: now })
    }
}

impl Open {
    async fn next(&self) -> Option<Ticket> {
        // Who comes from an answer after the end leaves what is due to `unsent`; who was idle is not to blame for
        // a ticket that was given out late.
        while let Ok(permit) = self.due.try_acquire() {
            let now = Instant::now();
            if self.window.is_over(now) {
                return None;
            }
            permit.forget();
            let number = self.taken.fetch_add(1, Ordering::Relaxed);
            // What the warm-up has left behind would be answered in the measured time, and count nowhere.
            if now < self.window.begin || self.time_of(number) >= self.window.begin {
                return self.ticket(number);
            }
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        self.due.acquire().await.ok()?.forget();
        self.ticket(self.taken.fetch_add(1, Ordering::Relaxed))
    }

    /// Of that number; `None` behind the last.
    fn ticket(&self, number: u64) -> Option<Ticket> {
        let due = self.time_of(number);
        (number < self.limit && !self.window.is_over(due)).then_some(Ticket { number, due })
    }

    fn time_of(&self, number: u64) -> Instant {
        let nanoseconds = u128::from(number) * self.interval.0 / 1000;
        self.begin + Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    /// How many are due by now.
    fn due_by(&self, now: Instant) -> u64 {
        self.due_before(now + Duration::from_nanos(1))
    }

    fn due_before(&self, time: Instant) -> u64 {
        let nanoseconds = time.saturating_duration_since(self.begin).as_nanos();
        u64::try_from((nanoseconds * 1000).div_ceil(self.interval.0)).unwrap_or(u64::MAX).min(self.limit)
    }

    fn unsent(&self, now: Instant) -> u64 {
        let end = self.window.end.map_or(now, |end| end.min(now));
        let begun = self.taken.load(Ordering::Relaxed).max(self.due_before(self.window.begin));
        self.due_before(end).saturating_sub(begun)
    }

    /// Those that were found when somebody was free, and those that nobody has come to.
    fn dropped(&self, now: Instant) -> u64 {
        if now < self.window.begin {
            return 0;
        }
        let left = self.due_before(self.window.begin).saturating_sub(self.taken.load(Ordering::Relaxed));
        self.dropped.load(Ordering::Relaxed) + left
    }

    /// Makes tickets due, until the last; `late` hears how late that was done.
    pub(crate) async fn run(&self, workers: usize, mut late: impl FnMut(Duration)) -> io::Result<()> {
        let timer = Timer::new()?;
        let mut given = 0;
        while given < self.limit {
            let next = self.time_of(given);
            if self.window.is_over(next) {
                break;
            }
            let now = Instant::now();
            if now < next {
                timer.wait((next - now).max(SHORTEST)).await?;
                continue;
            }
            late(now - next);
            let due = self.due_by(now).max(given + 1);
            self.due.add_permits(usize::try_from(due - given).unwrap_or(usize::MAX));
            given = due;
            // Connections are polled in between, however far behind this is.
            tokio::task::yield_now().await;
        }
        match self.window.end {
            Some(end) if given < self.limit => {
                tokio::time::sleep_until(end).await;
                self.due.close();
            }
            // One more for each worker, by which it learns that there are none.
            _ => self.due.add_permits(workers),
        }
        Ok(())
    }
}

/// Waits to the microsecond: Tokio's own timers are up to a millisecond late, which would show in every latency.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Timer {
    // Read as a pipe is: Tokio's type for any descriptor asks for `unsafe`.
    expirations: tokio::net::unix::pipe::Receiver,
}

#[cfg(target_os = "linux")]
impl Timer {
    fn new() -> io::Result<Self> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { expirations: tokio::net::unix::pipe::Receiver::from_owned_fd_unchecked(descriptor)? })
    }

    async fn wait(&self, time: Duration) -> io::Result<()> {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec {
                tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: time.subsec_nanos().into(),
            },
        };
        timerfd_settime(&self.expirations, TimerfdTimerFlags::empty(), &once)?;
        loop {
            self.expirations.readable().await?;
            match self.expirations.try_read(&mut [0; size_of::<u64>()]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read.map(drop),
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
struct Timer;

#[cfg(not(target_os = "linux"))]
impl Timer {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn wait(&self, time: Duration) -> io::Result<()> {
        tokio::time::sleep(time).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(begin: Instant, seconds: u64) -> Window {
        Window { begin, end: Some(begin + Duration::from_secs(seconds)) }
    }

    #[test]
    fn a_closed_pace_ends_at_its_time_or_with_its_last_request() {
        let begin = Instant::now();
        let Pace::Closed(closed) = Pace::closed(window(begin, 10), Some(2)) else { unreachable!() };
        assert!(closed.next(begin - Duration::from_millis(1)).is_some(), "warming up counts for nothing");
        assert_eq!(closed.next(begin).map(|ticket| ticket.number), Some(1));
        assert!(closed.next(begin).is_some());
        assert!(closed.next(begin).is_none());
        let Pace::Closed(closed) = Pace::closed(window(begin, 10), None) else { unreachable!() };
        assert!(closed.next(begin + Duration::from_secs(10)).is_none());
    }

    #[test]
    fn what_is_due_and_was_not_begun_is_counted() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let Pace::Open(open) = Pace::open(window(start + second, 2), start, Picoseconds::between(10.0), None)
        else {
            unreachable!()
        };
        assert_eq!(open.due_by(start), 1);
        // Ten are the warm-up's.
        assert_eq!(open.unsent(start + 10 * second), 20);
        open.taken.store(25, Ordering::Relaxed);
        assert_eq!(open.unsent(start + 10 * second), 5);
        open.taken.store(30, Ordering::Relaxed);
        assert_eq!(open.unsent(start + 10 * second), 0);
    }

    #[test]
    fn who_is_free_in_the_measured_time_leaves_what_the_warm_up_has_left_behind() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it has no driver");
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let open = |measured| {
            let pace = Pace::open(window(measured, 60), measured - second, Picoseconds::between(10.0), None);
            let Pace::Open(open) = pace else { unreachable!() };
            open.due.add_permits(12);
            open
        };
        let warming = open(now + 60 * second);
        assert_eq!(runtime.block_on(warming.next()).map(|ticket| ticket.number), Some(0));
        assert_eq!(warming.dropped(now), 0, "the warm-up is not over");
        let measured = open(now);
        assert_eq!(measured.dropped(now), 10, "nobody has come yet");
        let first = runtime.block_on(measured.next()).expect("two are due in the measured time");
        assert_eq!((first.number, first.due), (10, now));
        assert_eq!(runtime.block_on(measured.next()).map(|ticket| ticket.number), Some(11));
        assert_eq!((measured.dropped(now), measured.unsent(now + 60 * second)), (10, 598));
    }

    #[test]
    fn as_many_are_due_as_the_rate_says() {
        let start = Instant::now();
        for (rate, seconds, due) in [(300.0, 6, 1800), (7.0, 3, 21), (0.3, 10, 3), (1000.0, 3600, 3_600_000)]
        {
            let pace = Pace::open(window(start, seconds), start, Picoseconds::between(rate), None);
            assert_eq!(pace.unsent(start + Duration::from_secs(seconds)), due, "{rate} a second");
        }
    }

    #[test]
    fn times_do_not_depend_on_who_takes_them() {
        let start = Instant::now();
        let Pace::Open(open) = Pace::open(window(start, 2), start, Picoseconds::between(4.0), Some(3)) else {
            unreachable!()
        };
        assert_eq!(open.time_of(2) - start, Duration::from_millis(500));
        assert_eq!(open.due_by(start + Duration::from_secs(9)), 3);
    }
}
