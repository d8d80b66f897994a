//! How many requests may run at once, found by how long they take: as many as keep the loop busy, and as do not make each
//! other slow.
//!
//! Pure: no clock and no lock; `admission` brings times and keeps the limit. As Netflix's and Envoy's limits do, it compares how
//! long requests take now with how long they take when nothing waits (`look`), and takes their ratio, the gradient.
//!
//! | the limit is | then |
//! |---|---|
//! | new | it is doubled for as long as requests take no longer for it (`climb`) |
//! | not reached | it stays; with a quarter of it running, what requests take is what they take without a queue |
//! | reached | it is multiplied by the gradient, and grows by half its root; a third of that at a time |
//! | reached for [`SELDOM`], or another one than it was | it is a quarter for a moment, to see what requests take without a queue; then it grows back by one for each that ends, since those that begin together wait for each other ever after |
//!
//! Time that requests spend in the loop is time that they need not spend in front of it. So they may take a part of a
//! queue's deadline besides, which keeps the loop busy where all wait for something else at the same time. And only so many
//! may wait as come to their turn well within that deadline: whoever would wait in vain is told so at once.
//!
//! Invariant: the limit is between [`LEAST`] and [`MOST`].

use std::time::Duration;

use crate::climb::{Climb, Step};
use crate::look::{End, Look, Sample, Seen};

/// Of which there is one to begin with.
const FIRST: f64 = 20.0;
const LEAST: f64 = 2.0;
const MOST: f64 = 1000.0;
/// A window ends after so many requests, and not before so long.
const SAMPLES: u32 = 50;
const WINDOW: Duration = Duration::from_millis(100);
/// Or after so long, with these.
const LONG_WINDOW: Duration = Duration::from_secs(1);
const FEW: u32 = 10;
/// Requests may take so much longer than without a queue, and such a part of a queue's deadline besides.
const TOLERANCE: f64 = 1.25;
const BESIDES: f64 = 0.03;
/// For a queue without one.
const USUAL_DEADLINE: f64 = 1.0;
/// What a step may be, and how much of it is taken at once.
const STEP: std::ops::RangeInclusive<f64> = 0.5..=1.25;
const HEADROOM: f64 = 0.5;
const SMOOTHING: f64 = 0.3;
/// How much the rate of answers changes by one window, and what requests take without a queue by one look.
const RATE_SMOOTHING: f64 = 0.2;
const LOOK_SMOOTHING: f64 = 0.5;
/// Of a queue's deadline, how much is waited: the rate was another one before.
const WAITED: f64 = 0.75;
/// Of the limit, how much is few.
const QUARTER: f64 = 4.0;
const FEWEST: f64 = 4.0;
/// Between two looks; or as long as so many requests take.
const SELDOM: f64 = 30.0;
const SELDOM_TIMES: f64 = 100.0;
/// The same where the limit is [`ANOTHER`] times what it was, or such a part of it.
const OFTEN: f64 = 5.0;
const OFTEN_TIMES: f64 = 50.0;
const ANOTHER: f64 = 2.0;

/// One worker's. Times are since any moment, the same for all; others are in seconds.
#[derive(Debug)]
pub(crate) struct Gradient {
    limit: f64,
    /// How far it has grown back after a look.
    regrown: Option<f64>,
    /// How long a queue may be waited in.
    deadline: Option<f64>,
    /// What a request takes without a queue.
    unloaded: Option<f64>,
    /// How many are answered in a second, while the limit is reached.
    rate: Option<f64>,
    window: Window,
    climb: Option<Climb>,
    look: Option<Look>,
    /// When that was last, and under which limit.
    looked: Option<(Duration, f64)>,
    /// When a request ended last.
    heard: Duration,
}

/// Those that ended lately.
#[derive(Debug, Default)]
struct Window {
    began: Duration,
    sample: Sample,
    /// As many as ran at a time.
    crowd: usize,
    reached: bool,
}

impl Gradient {
    /// In front of which nobody waits for longer than that.
    pub(crate) fn new(now: Duration, deadline: Option<Duration>) -> Self {
        Self {
            limit: FIRST,
            regrown: None,
            deadline: deadline.map(|deadline| deadline.as_secs_f64()),
            unloaded: None,
            rate: None,
            window: Window { began: now, ..Window::default() },
            climb: Some(Climb::new(now)),
            look: None,
            looked: None,
            heard: now,
        }
    }

    /// How many may run.
    pub(crate) fn limit(&self) -> usize {
        let few = (self.limit / QUARTER).max(FEWEST);
        let now = match &self.look {
            Some(look) if look.needs_few() => few,
            _ => self.regrown.unwrap_or(self.limit),
        };
        now.min(self.limit) as usize
    }

    /// How many may wait, if it is known: those who come to their turn in time.
    pub(crate) fn queue(&self) -> Option<usize> {
        let (rate, deadline) = (self.rate?, self.deadline?);
        Some((rate * deadline * WAITED).max(1.0) as usize)
    }

    /// A request has ended.
    pub(crate) fn ended(&mut self, end: &End) {
        self.heard = end.now;
        let limit = self.limit();
        // The one that has ended ran beside them.
        self.window.reached |= end.running + 1 >= limit;
        self.regrown = self.regrown.map(|limit| limit + 1.0).filter(|limit| *limit < self.limit);
        self.climb(end);
        if let Some(look) = self.look.take() {
            let needed_few = look.needs_few();
            match look.ended(end, limit) {
                Seen::NotYet(look) => self.look = Some(look),
                Seen::Over(seen) => seen.into_iter().for_each(|took| self.learn(took)),
            }
            if self.look.as_ref().is_some_and(Look::needs_few) {
                return;
            }
            if needed_few {
                return self.go_on(end);
            }
        }
        self.window.sample.take(end);
        self.window.crowd = self.window.crowd.max(end.running + 1);
        let (count, long) = (self.window.sample.count, end.now.saturating_sub(self.window.began));
        if count >= SAMPLES && long >= WINDOW || count >= FEW && long >= LONG_WINDOW {
            self.judge(end.now);
        }
    }

    /// One more would run, and may not. Where nothing has ended for long, since all wait for something else, more may.
    pub(crate) fn waits(&mut self, now: Duration) {
        self.window.reached = true;
        self.climb.iter_mut().for_each(Climb::is_reached);
        if now.saturating_sub(self.heard) < LONG_WINDOW {
            return;
        }
        self.heard = now;
        (self.look, self.regrown) = (None, None);
        self.set(self.limit + self.limit.sqrt());
        self.begin_window(now);
    }

    /// Twice as many may run, or the climb is over.
    fn climb(&mut self, end: &End) {
        let Some(climb) = self.climb.take() else { return };
        match climb.ended(end, self.limit, self.unloaded) {
            Step::NotYet(climb) => self.climb = Some(climb),
            Step::Higher(climb) if self.limit < MOST => {
                self.climb = Some(climb);
                self.set(2.0 * self.limit);
                // Whoever waits has as many more before it that are answered in time.
                self.rate = None;
                self.begin_window(end.now);
            }
            Step::Higher(_) => {}
            Step::Over(limit) => {
                self.set(limit);
                self.begin_window(end.now);
            }
        }
    }

    /// A window is over.
    fn judge(&mut self, now: Duration) {
        let Window { began, sample, crowd, reached } = std::mem::take(&mut self.window);
        self.begin_window(now);
        let took = sample.mean();
        if !reached {
            if crowd as f64 * QUARTER <= self.limit {
                self.learn(took);
            }
            return;
        }
        let rate = f64::from(sample.count) / now.saturating_sub(began).as_secs_f64();
        self.rate = Some(self.rate.map_or(rate, |before| before + RATE_SMOOTHING * (rate - before)));
        if self.climb.is_some() {
            return;
        }
        if let (Some(unloaded), None) = (self.unloaded, self.regrown) {
            let besides = BESIDES * self.deadline.unwrap_or(USUAL_DEADLINE);
            let gradient = ((unloaded * TOLERANCE + besides) / took).clamp(*STEP.start(), *STEP.end());
            let wanted = self.limit * gradient + HEADROOM * self.limit.sqrt();
            self.set(self.limit + SMOOTHING * (wanted - self.limit));
        }
        if self.look.is_none() && self.is_due(now) {
            self.look = Some(Look::new(now));
        }
    }

    /// Whether it is time for a look.
    fn is_due(&self, now: Duration) -> bool {
        let Some((then, limit)) = self.looked else { return true };
        let (ago, took) = (now.saturating_sub(then).as_secs_f64(), self.unloaded.unwrap_or_default());
        let is_another = (self.limit / limit).max(limit / self.limit) >= ANOTHER;
        ago >= SELDOM.max(SELDOM_TIMES * took) || is_another && ago >= OFTEN.max(OFTEN_TIMES * took)
    }

    /// What a request takes without a queue.
    fn learn(&mut self, took: f64) {
        let learned = |before: f64| took.min(before + LOOK_SMOOTHING * (took - before));
        self.unloaded = Some(self.unloaded.map_or(took, learned));
    }

    /// As many as before may run again.
    fn go_on(&mut self, end: &End) {
        self.regrown = Some(end.running as f64 + 1.0);
        self.looked = Some((end.now, self.limit));
        self.begin_window(end.now);
    }

    fn begin_window(&mut self, now: Duration) {
        self.window = Window { began: now, ..Window::default() };
    }

    fn set(&mut self, limit: f64) {
        self.limit = limit.clamp(LEAST, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gradient() -> Gradient {
        Gradient::new(Duration::ZERO, Some(Duration::from_secs(1)))
    }

    /// So many a second for so many seconds, each taking so many milliseconds, beside so many others.
    fn answer(gradient: &mut Gradient, from: u64, seconds: u64, (rate, took, running): (u64, u64, usize)) {
        for number in 0..rate * seconds {
            let now = Duration::from_secs(from) + Duration::from_secs(1) * number as u32 / rate as u32;
            let began = now.saturating_sub(Duration::from_millis(took));
            gradient.ended(&End { began, now, running });
        }
    }

    #[test]
    fn a_limit_that_is_not_reached_stays_and_says_what_they_take() {
        let mut gradient = gradient();
        answer(&mut gradient, 0, 10, (100, 20, 4));
        assert_eq!(gradient.limit(), FIRST as usize);
        let unloaded = gradient.unloaded.expect("they were looked at");
        assert!((0.019..0.021).contains(&unloaded), "{unloaded}");
    }

    #[test]
    fn with_more_than_a_quarter_of_it_running_nobody_knows_what_they_take_alone() {
        let mut gradient = gradient();
        answer(&mut gradient, 0, 10, (100, 20, 10));
        assert_eq!(gradient.unloaded, None);
    }

    #[test]
    fn as_many_may_wait_as_are_answered_well_within_the_deadline() {
        let mut gradient = gradient();
        assert_eq!(gradient.queue(), None, "nobody knows yet");
        answer(&mut gradient, 0, 30, (200, 20, 1000));
        let queue = gradient.queue().expect("the rate is known");
        assert!((140..=170).contains(&queue), "{queue} of 200 a second");
    }

    #[test]
    fn more_may_run_when_all_wait_for_something_that_does_not_come() {
        let mut gradient = gradient();
        for second in 1..=10 {
            gradient.waits(Duration::from_secs(second));
        }
        assert!(gradient.limit() > 2 * FIRST as usize);
        (11..10_000).for_each(|second| gradient.waits(Duration::from_secs(second)));
        assert_eq!(gradient.limit(), MOST as usize);
    }
}
