//! How the loop fares: how late it comes, how long its steps hold it, and who is told when one does so for too long.
//!
//! A thread looks, which never takes the GIL and touches no Python: it goes on while the loop is blocked. What the loop's
//! thread does for it is a store for each drain and each event of one. For callbacks that are not ours, such as a handler
//! that asyncio resumes, the loop is asked: what it does when the question comes is what holds it.
//!
//! | the loop | this thread |
//! |---|---|
//! | has had nothing for a second, and no request runs | sleeps, until the next drain |
//! | drains, or runs a request | looks every [`TICK`], and asks every [`CALM`] |
//! | has done nothing since the last look, while a request runs | asks sooner: something may hold it |
//! | is held for longer than `--slow-step` | counts it, and tells the census (`census.rs`), which may have to wait |
//!
//! Invariant: a step is counted as slow once, while it still runs.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bridgehead_metrics::{Cause, Counter, Gauge, Sheet, Timing};

use crate::census::{Census, Errand, Inquiry};
use crate::ffi;
use crate::inbox::{Inbox, Probe};
use crate::suspicion::{Evidence, Suspect};

/// Between two looks.
const TICK: Duration = Duration::from_millis(50);
/// A loop that has something to do and answers at once is asked so often.
const CALM: Duration = Duration::from_millis(250);
/// Between two looks of the census: it counts tasks, for which it takes the GIL.
const CENSUS: Duration = Duration::from_secs(1);
/// Looks without anything to do before this thread sleeps.
const IDLE: u32 = 20;
/// So many nanoseconds the census may wait for the GIL before that is what is said of a step.
const IN_VAIN: u64 = 100_000_000;
/// Steps that are shorter than this are nobody's concern.
const NOTABLE: Duration = Duration::from_millis(1);

/// What the loop's thread and the one that looks know of each other.
#[derive(Debug)]
pub(crate) struct Pace {
    base: Instant,
    sheet: Sheet,
    // Written by the loop's thread alone, and read by the other, these three: since when an event of a drain is being
    // handled, in nanoseconds from the base, zero when none is; how many were handled; how many requests run.
    since: AtomicU64,
    events: AtomicU64,
    running: AtomicUsize,
    // Written by the thread that looks: whether it sleeps, and whether a slow step runs.
    asleep: AtomicBool,
    held: AtomicBool,
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
    pub(crate) fn new(sheet: Sheet) -> Self {
        Self {
            base: Instant::now(),
            sheet,
            since: AtomicU64::new(0),
            events: AtomicU64::new(0),
            running: AtomicUsize::new(0),
            asleep: AtomicBool::new(false),
            held: AtomicBool::new(false),
            asks_since: AtomicU64::new(0),
            meanwhile: AtomicU64::new(0),
            had_run: AtomicU64::new(0),
            stop: Mutex::new(false),
            woken: Condvar::new(),
        }
    }

    /// The loop's thread begins to drain.
    pub(crate) fn begin(&self, now: Instant) {
        // In one order with the sleeper's two words: it sees this, or is seen to sleep.
        self.since.store(self.nanos(now), Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) {
            self.rouse();
        }
    }

    /// An event was handled, for so long, and is over now.
    pub(crate) fn step(&self, step: Duration, now: Instant) {
        self.events.store(self.events.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.since.store(self.nanos(now), Ordering::Relaxed);
        if step >= NOTABLE {
            self.sheet.raise(Gauge::LongestStep, micros(step));
        }
    }

    /// The drain is over; so many requests run.
    pub(crate) fn end(&self, running: usize) {
        self.since.store(0, Ordering::Relaxed);
        self.running.store(running, Ordering::Relaxed);
    }

    /// Whether a slow step still runs, as far as is known.
    fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// The census asks for the GIL.
    pub(crate) fn asks_for_the_gil(&self) {
        self.had_run.store(0, Ordering::Relaxed);
        self.asks_since.store(self.nanos(Instant::now()), Ordering::Release);
    }

    /// It has the GIL.
    pub(crate) fn has_the_gil(&self) {
        self.asks_since.store(0, Ordering::Relaxed);
    }

    /// This is what holds the loop.
    pub(crate) fn found(&self, cause: Cause) {
        self.sheet.set(Gauge::BlockedBy, cause.code());
    }

    /// How long the loop's thread has run since the GIL was asked for in vain; zero if it was had at once.
    pub(crate) fn ran_on(&self, suspect: Suspect) -> Duration {
        match self.had_run.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            before => Duration::from_nanos(suspect.ran().saturating_sub(before)),
        }
    }

    /// What is known of a step that is looked at in vain.
    fn says_meanwhile(&self, now: Instant, suspect: Suspect) {
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
        u64::try_from(now.saturating_duration_since(self.base).as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    /// Since when the loop handles an event of ours.
    fn handles_since(&self) -> Option<Instant> {
        let since = self.since.load(Ordering::SeqCst);
        (since != 0).then(|| self.base + Duration::from_nanos(since))
    }

    #[cold]
    fn rouse(&self) {
        let _stop = self.lock();
        self.asleep.store(false, Ordering::SeqCst);
        self.woken.notify_all();
    }

    /// Waits for the next look; one who is idle, until the loop drains again. False at the end.
    fn wait(&self, idle: bool) -> bool {
        let mut stop = self.lock();
        if idle {
            self.asleep.store(true, Ordering::SeqCst);
            while self.asleep.load(Ordering::SeqCst) && self.handles_since().is_none() && !*stop {
                stop = self.woken.wait(stop).unwrap_or_else(PoisonError::into_inner);
            }
            self.asleep.store(false, Ordering::SeqCst);
        }
        if !*stop {
            stop = self.woken.wait_timeout(stop, TICK).unwrap_or_else(PoisonError::into_inner).0;
        }
        !*stop
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The threads that look.
pub(crate) struct Health {
    pace: Arc<Pace>,
    thread: JoinHandle<()>,
    census: Census,
}

impl Health {
    /// Looks after the loop that empties this inbox.
    pub(crate) fn start(
        pace: Arc<Pace>,
        inbox: Arc<Inbox>,
        slow: Duration,
        inquiry: Inquiry,
    ) -> io::Result<Self> {
        let suspect = inquiry.suspect;
        let (census, errands) = Census::start(Arc::clone(&pace), pace.sheet.clone(), inquiry)?;
        let watched = Arc::clone(&pace);
        let thread = thread::Builder::new().name("bridgehead-health".to_owned()).spawn(move || {
            ffi::block_signals();
            let mut lookout = Lookout::new(slow, suspect, Instant::now());
            while watched.wait(lookout.is_idle()) {
                for want in lookout.look(Instant::now(), &watched) {
                    match want {
                        Want::Answer(probe) => inbox.probe(probe),
                        // One that is busy has not been given the GIL since the last: it is told of nothing more.
                        Want::Errand(errand) => drop(errands.try_send(errand)),
                    }
                }
            }
        })?;
        Ok(Self { pace, thread, census })
    }

    /// Ends; to be called without the GIL.
    pub(crate) fn stop(self) -> thread::Result<()> {
        *self.pace.lock() = true;
        self.pace.woken.notify_all();
        self.thread.join()?;
        self.census.join()
    }
}

/// What holds the loop.
#[derive(Debug)]
pub(crate) enum Step {
    /// An event of a drain that is being handled since then.
    Event(u64),
    /// Something else: a question has no answer yet.
    Silence(Arc<OnceLock<Instant>>),
}

impl Step {
    /// Whether it holds the loop no more.
    pub(crate) fn is_over(&self, pace: &Pace) -> bool {
        match self {
            Self::Event(since) => pace.since.load(Ordering::SeqCst) != *since,
            Self::Silence(answer) => answer.get().is_some(),
        }
    }
}

/// What a look comes to.
#[derive(Debug)]
enum Want {
    /// The loop is to answer.
    Answer(Probe),
    /// The census is to do something.
    Errand(Errand),
}

/// What the thread remembers from look to look.
#[derive(Debug)]
struct Lookout {
    slow: Duration,
    suspect: Suspect,
    /// A question without an answer yet.
    asked: Option<(Instant, Arc<OnceLock<Instant>>)>,
    last_asked: Instant,
    last_census: Instant,
    events: u64,
    /// Looks since an event was seen.
    quiet: u32,
    /// Looks since there was anything at all.
    idle: u32,
}

impl Lookout {
    fn new(slow: Duration, suspect: Suspect, now: Instant) -> Self {
        Self { slow, suspect, asked: None, last_asked: now, last_census: now, events: 0, quiet: 0, idle: 0 }
    }

    fn is_idle(&self) -> bool {
        self.idle >= IDLE
    }

    fn look(&mut self, now: Instant, pace: &Pace) -> Vec<Want> {
        let events = pace.events.load(Ordering::Relaxed);
        let came = std::mem::replace(&mut self.events, events) != events;
        self.quiet = if came { 0 } else { self.quiet.saturating_add(1) };
        self.hear(&pace.sheet);
        let handles = pace.handles_since();
        let mut wants = Vec::new();
        wants.extend(self.judge(now, pace));
        pace.says_meanwhile(now, self.suspect);
        let active = came || handles.is_some() || pace.running.load(Ordering::Relaxed) > 0;
        self.idle = if active || self.asked.is_some() { 0 } else { self.idle.saturating_add(1) };
        let pause = if self.quiet == 0 { CALM } else { CALM.min(TICK * self.quiet) };
        if active && self.asked.is_none() && now >= self.last_asked + pause {
            let answer = Arc::<OnceLock<Instant>>::default();
            self.asked = Some((now, Arc::clone(&answer)));
            self.last_asked = now;
            wants.push(Want::Answer(Probe(answer)));
        }
        if active && now >= self.last_census + CENSUS {
            self.last_census = now;
            wants.push(Want::Errand(Errand::Look));
        }
        wants
    }

    /// Takes in the loop's answer, if it has come.
    fn hear(&mut self, sheet: &Sheet) {
        let Some((asked, answer)) = &self.asked else { return };
        let Some(answered) = answer.get() else { return };
        let lag = answered.saturating_duration_since(*asked);
        sheet.add(Counter::Steps, 1);
        sheet.record(Timing::LoopLag, lag);
        sheet.set(Gauge::LoopLag, micros(lag));
        if lag >= NOTABLE {
            sheet.raise(Gauge::LongestStep, micros(lag));
        }
        self.asked = None;
    }

    /// Whether the loop is held for too long.
    fn judge(&self, now: Instant, pace: &Pace) -> Option<Want> {
        let handles = pace.handles_since().map(|since| (since, Step::Event(pace.nanos(since))));
        let asked = self.asked.as_ref().map(|(at, answer)| (*at, Step::Silence(Arc::clone(answer))));
        let step = handles.into_iter().chain(asked).min_by_key(|(since, _)| *since);
        let held = step.as_ref().map_or(Duration::ZERO, |(since, _)| now.saturating_duration_since(*since));
        let slow = held >= self.slow;
        if slow || pace.is_held() {
            pace.sheet.set(Gauge::BlockedFor, if slow { micros(held) } else { 0 });
        }
        let known = pace.held.swap(slow, Ordering::Relaxed);
        if known && !slow {
            pace.sheet.set(Gauge::BlockedBy, 0);
        }
        let (since, step) = step.filter(|_| slow && !known)?;
        pace.sheet.add(Counter::SlowSteps, 1);
        let evidence = Evidence::gather(self.suspect);
        let evidence = Some(evidence).filter(|_| !step.is_over(pace));
        if let Some(evidence) = &evidence {
            pace.meanwhile.store(evidence.while_the_gil_is_gone().code(), Ordering::Relaxed);
        }
        Some(Want::Errand(Errand::Slow { since, step, evidence }))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Duration = Duration::from_millis(250);

    /// A loop, and who looks after it.
    struct Scene {
        pace: Pace,
        lookout: Lookout,
        now: Instant,
    }

    impl Scene {
        fn new() -> Self {
            let pace = Pace::new(Sheet::own());
            let now = pace.base + TICK;
            Self { pace, lookout: Lookout::new(SLOW, Suspect::this_thread(), now), now }
        }

        /// Time goes by, and it is looked.
        fn look(&mut self, after: Duration) -> Vec<Want> {
            self.now += after;
            self.lookout.look(self.now, &self.pace)
        }

        fn asks(&mut self, after: Duration) -> Option<Probe> {
            self.look(after).into_iter().find_map(|want| match want {
                Want::Answer(probe) => Some(probe),
                Want::Errand(_) => None,
            })
        }

        fn event(&mut self, took: Duration) {
            self.pace.begin(self.now);
            self.pace.step(took, self.now);
            self.pace.end(0);
        }

        fn says(&self, gauge: Gauge) -> u64 {
            self.pace.sheet.gauge(gauge)
        }
    }

    #[test]
    fn a_step_of_a_drain_is_slow_once_while_it_runs_and_its_length_is_known() {
        let mut scene = Scene::new();
        scene.pace.begin(scene.now);
        scene.look(Duration::from_millis(200));
        assert_eq!((scene.pace.sheet.count(Counter::SlowSteps), scene.says(Gauge::BlockedFor)), (0, 0));
        let wants = scene.look(Duration::from_millis(60));
        assert!(wants.iter().any(
            |want| matches!(want, Want::Errand(Errand::Slow { since, .. }) if scene.now - *since >= SLOW)
        ));
        assert!(scene.pace.is_held());
        scene.look(Duration::from_millis(60));
        assert_eq!((scene.pace.sheet.count(Counter::SlowSteps), scene.says(Gauge::BlockedFor)), (1, 320_000));
        scene.pace.step(Duration::from_millis(340), scene.now);
        scene.pace.end(0);
        scene.lookout.asked = None;
        scene.look(Duration::from_millis(50));
        assert_eq!((scene.says(Gauge::LongestStep), scene.says(Gauge::BlockedFor)), (340_000, 0));
        assert!(!scene.pace.is_held());
    }

    #[test]
    fn a_loop_that_does_not_answer_is_held_though_no_drain_runs() {
        let mut scene = Scene::new();
        scene.pace.end(1);
        let Probe(answer) = scene.asks(TICK).expect("a request runs, and nothing came");
        assert!(scene.asks(SLOW).is_none());
        assert_eq!((scene.pace.sheet.count(Counter::SlowSteps), scene.says(Gauge::BlockedFor)), (1, 250_000));
        answer.set(scene.now).expect("it was not answered");
        scene.look(Duration::from_millis(1));
        assert_eq!((scene.says(Gauge::LoopLag), scene.says(Gauge::LongestStep)), (250_000, 250_000));
        assert_eq!((scene.says(Gauge::BlockedFor), scene.pace.is_held()), (0, false));
    }

    #[test]
    fn a_busy_loop_is_asked_now_and_then_and_an_idle_one_left_alone() {
        let mut scene = Scene::new();
        let mut asked = 0;
        for _ in 0..20 {
            scene.event(Duration::ZERO);
            if let Some(probe) = scene.asks(TICK) {
                asked += 1;
                probe.answer();
            }
        }
        assert_eq!(asked, 4, "a question each {CALM:?}, for a second");
        let questions = (0..IDLE).filter(|_| scene.asks(TICK).is_some()).count();
        assert_eq!((questions, scene.lookout.is_idle()), (0, true));
        assert_eq!(scene.says(Gauge::LongestStep), 0);
    }

    #[test]
    fn the_census_is_taken_once_a_second_while_there_is_something_to_count() {
        let mut scene = Scene::new();
        let mut taken = 0;
        for _ in 0..40 {
            scene.event(Duration::ZERO);
            taken +=
                usize::from(scene.look(TICK).iter().any(|want| matches!(want, Want::Errand(Errand::Look))));
        }
        assert_eq!(taken, 2);
    }

    #[test]
    fn who_sleeps_is_roused_by_a_drain_and_ended_by_a_stop() {
        let pace = Arc::new(Pace::new(Sheet::own()));
        let sleeper = Arc::clone(&pace);
        let thread = thread::spawn(move || (sleeper.wait(true), sleeper.wait(true)));
        while !pace.asleep.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        pace.begin(Instant::now());
        pace.end(0);
        while !pace.asleep.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        *pace.lock() = true;
        pace.woken.notify_all();
        assert_eq!(thread.join().expect("no panic"), (true, false));
    }
}
