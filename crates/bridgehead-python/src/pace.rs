//! What the loop's thread and the one that looks after it know of each other.
//!
//! Not what a look comes to (`lookout.rs`), nor the thread that looks (`health.rs`). What the loop's thread does for it is a store
//! for each drain and each event of one, and a few for whom an event is.
//!
//! Invariant: each step that is measured as slow is counted once: while it still runs, or at its end if that came before a look.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bridgehead_metrics::{Cause, Counter, Gauge, Sheet};

use crate::counted::Counted;
use crate::heading::Heading;
use crate::just_over::JustOver;
use crate::suspicion::Suspect;
use crate::told::Asked;

/// So many nanoseconds the census may wait for the GIL before that is what is said of a step.
const IN_VAIN: u64 = 100_000_000;
/// So many are enough to say that who has it does not let go of it when asked to: Python code does after 5 ms.
const LONG_ASKED: u64 = 50_000_000;
/// So many steps that were over before they were looked at are told of at a time; of more it is counted that there were.
const UNSEEN: usize = 16;
/// Steps that are shorter than this are nobody's concern.
pub(crate) const NOTABLE: Duration = Duration::from_millis(1);

/// Whose a step was, in words.
#[derive(Debug)]
pub(crate) struct Whose {
    /// The handler; empty if that is unknown.
    pub(crate) place: String,
    pub(crate) request: String,
}

/// Where the loop's thread says so at the end of a step that was noticed, for the census, which may come much later.
pub(crate) type Said = Arc<OnceLock<Whose>>;

/// What the loop's thread and the one that looks know of each other.
#[derive(Debug)]
pub(crate) struct Pace {
    base: Instant,
    pub(crate) sheet: Sheet,
    // Written by the loop's thread alone, and read by the other, these three: since when an event of a drain is being
    // handled, in nanoseconds from the base, zero when none is; how many were handled; how many requests run.
    since: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) running: AtomicUsize,
    // The request that the event is for, if it is for one.
    heading: Heading,
    // The longest that was handled of late, in nanoseconds: the loop's thread raises it, the one that looks takes it.
    longest: AtomicU64,
    // Steps that are longer are slow. Those that were counted, by whichever of the two came first; how long those
    // were that the loop's thread has counted, since nobody looked in time: put here by it, taken by the one that looks.
    pub(crate) slow: Duration,
    counted: Counted,
    unseen: Mutex<Vec<Duration>>,
    // Written by the thread that looks: whether it dozes, and whether a slow step runs.
    asleep: AtomicBool,
    held: AtomicBool,
    // The event that was noticed last, and where it is to be said whose it was: put here by the thread that looks, taken by
    // the loop's.
    asked: Mutex<Option<(u64, Said)>>,
    pub(crate) just_over: JustOver,
    // What holds the loop as long as the GIL cannot be had; written by the thread that looks.
    meanwhile: AtomicU64,
    // Since when the census waits for the GIL, as above, which it writes; and how long the loop's thread had run when it had
    // waited in vain, in nanoseconds, which the thread that looks writes.
    asks_since: AtomicU64,
    had_run: AtomicU64,
    // Between the two, when one wakes the other or it ends.
    stop: Mutex<bool>,
    woken: Condvar,
}

impl Pace {
    pub(crate) fn new(sheet: Sheet, slow: Duration) -> Self {
        Self {
            base: Instant::now(),
            sheet,
            slow,
            counted: Counted::default(),
            unseen: Mutex::default(),
            since: AtomicU64::new(0),
            events: AtomicU64::new(0),
            running: AtomicUsize::new(0),
            heading: Heading::default(),
            longest: AtomicU64::new(0),
            asleep: AtomicBool::new(false),
            held: AtomicBool::new(false),
            asks_since: AtomicU64::new(0),
            had_run: AtomicU64::new(0),
            asked: Mutex::default(),
            just_over: JustOver::default(),
            meanwhile: AtomicU64::new(0),
            stop: Mutex::new(false),
            woken: Condvar::new(),
        }
    }

    /// The loop's thread begins to drain.
    pub(crate) fn begin(&self, now: Instant) {
        self.since.store(self.nanos(now), Ordering::Release);
        self.rouse();
    }

    /// The loop has something to do.
    pub(crate) fn rouse(&self) {
        // One that is about to doze and is missed comes back by itself.
        if self.asleep.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    /// The event that is handled now is for this request.
    pub(crate) fn is_for(&self, asked: &Asked) {
        let event = self.since.load(Ordering::Relaxed);
        self.heading.say(event, asked.method.as_str(), &asked.path);
    }

    /// For which request an event is, in its own words, as far as there is room for them.
    pub(crate) fn asked_in(&self, event: u64) -> Option<String> {
        self.heading.of(event)
    }

    /// An event was handled, for so long, and is over now.
    pub(crate) fn step(&self, step: Duration, now: Instant) {
        self.events.store(self.events.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if step >= NOTABLE {
            self.note(step);
        }
        self.since.store(self.nanos(now), Ordering::Release);
    }

    #[cold]
    fn note(&self, step: Duration) {
        self.sheet.raise(Gauge::LongestStep, micros(step));
        self.longest.fetch_max(nanos(step), Ordering::Relaxed);
        if step < self.slow {
            return;
        }
        let event = self.since.load(Ordering::Relaxed);
        if !self.counts(event) {
            self.just_over.ended(event, step);
            return;
        }
        let mut unseen = lock(&self.unseen);
        if unseen.len() < UNSEEN {
            unseen.push(step);
        } else {
            self.sheet.blame(Cause::Unknown);
        }
    }

    /// The event that began then is slow. False if it was counted already.
    pub(crate) fn counts(&self, event: u64) -> bool {
        let counts = self.counted.takes(event);
        if counts {
            self.sheet.add(Counter::SlowSteps, 1);
        }
        counts
    }

    /// How long those were that were over before anybody looked.
    pub(crate) fn take_unseen(&self) -> Vec<Duration> {
        std::mem::take(&mut *lock(&self.unseen))
    }

    /// The drain is over; so many requests run.
    pub(crate) fn end(&self, running: usize) {
        self.since.store(0, Ordering::Relaxed);
        self.running.store(running, Ordering::Relaxed);
    }

    /// Whether a slow step still runs, as far as is known.
    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// One does from now on. Gives where it will be said whose it was, of an event.
    pub(crate) fn holds(&self, event: Option<u64>) -> Said {
        let said = Said::default();
        *lock(&self.asked) = event.map(|event| (event, Arc::clone(&said)));
        self.held.store(true, Ordering::Relaxed);
        said
    }

    /// It does no more.
    pub(crate) fn lets_go(&self) {
        self.held.store(false, Ordering::Relaxed);
    }

    /// Where it is to be said whose the event is that is handled now, if it was noticed and nobody has. For the loop's thread.
    pub(crate) fn asks_whose(&self) -> Option<Said> {
        if !self.is_held() {
            return None;
        }
        let now = self.since.load(Ordering::Relaxed);
        lock(&self.asked).take_if(|(event, _)| *event == now).map(|(_, said)| said)
    }

    /// The longest event since this was called last.
    pub(crate) fn take_longest(&self) -> Duration {
        Duration::from_nanos(self.longest.swap(0, Ordering::Relaxed))
    }

    /// What holds the loop as long as the GIL cannot be had.
    pub(crate) fn is_held_meanwhile_by(&self, cause: Cause) {
        self.meanwhile.store(cause.code(), Ordering::Relaxed);
    }

    /// The census asks for the GIL.
    pub(crate) fn asks_for_the_gil(&self) {
        self.had_run.store(0, Ordering::Relaxed);
        self.asks_since.store(self.nanos(Instant::now()), Ordering::Release);
    }

    /// Whether it has done so for long.
    pub(crate) fn waits_for_the_gil(&self, now: Instant) -> bool {
        let since = self.asks_since.load(Ordering::Acquire);
        since != 0 && self.nanos(now).saturating_sub(since) >= LONG_ASKED
    }

    /// It has the GIL.
    pub(crate) fn has_the_gil(&self) {
        self.asks_since.store(0, Ordering::Relaxed);
    }

    /// This is what holds the loop.
    pub(crate) fn found(&self, cause: Cause) {
        self.sheet.set(Gauge::BlockedBy, cause.code());
    }

    /// How long the loop's thread has run since the GIL had been asked for in vain for a while; zero if it was had before.
    pub(crate) fn ran_on(&self, suspect: Suspect) -> Duration {
        match self.had_run.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            before => Duration::from_nanos(suspect.ran().saturating_sub(before)),
        }
    }

    /// What is known of a step that is looked at in vain.
    pub(crate) fn says_meanwhile(&self, now: Instant, suspect: Suspect) {
        let since = self.asks_since.load(Ordering::Acquire);
        if since == 0 || self.nanos(now).saturating_sub(since) < IN_VAIN {
            return;
        }
        if self.is_held() {
            self.sheet.set(Gauge::BlockedBy, self.meanwhile.load(Ordering::Relaxed));
        }
        if self.had_run.load(Ordering::Relaxed) == 0 {
            self.had_run.store(suspect.ran(), Ordering::Relaxed);
        }
    }

    /// Never zero, which is no time.
    fn nanos(&self, now: Instant) -> u64 {
        nanos(now.saturating_duration_since(self.base)).max(1)
    }

    /// The event of ours that the loop handles, and since when.
    pub(crate) fn handles(&self) -> Option<(Instant, u64)> {
        let since = self.since.load(Ordering::Acquire);
        (since != 0).then(|| (self.base + Duration::from_nanos(since), since))
    }

    #[cold]
    fn wake(&self) {
        let _stop = self.lock();
        self.asleep.store(false, Ordering::Relaxed);
        self.woken.notify_all();
    }

    /// Waits for the next look, which is due then, or after a doze unless it is roused before. False at the end.
    pub(crate) fn wait(&self, doze: Option<Duration>, due: Duration) -> bool {
        let mut stop = self.lock();
        if let Some(doze) = doze.filter(|_| !*stop) {
            self.asleep.store(true, Ordering::Relaxed);
            let dozes = |stop: &mut bool| !*stop && self.asleep.load(Ordering::Relaxed);
            stop = self.woken.wait_timeout_while(stop, doze, dozes).unwrap_or_else(PoisonError::into_inner).0;
            self.asleep.store(false, Ordering::Relaxed);
        } else if !*stop {
            stop = self.woken.wait_timeout(stop, due).unwrap_or_else(PoisonError::into_inner).0;
        }
        !*stop
    }

    /// Nobody looks any more.
    pub(crate) fn stop(&self) {
        *self.lock() = true;
        self.woken.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        lock(&self.stop)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
