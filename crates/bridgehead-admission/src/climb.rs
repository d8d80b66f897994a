//! The beginning of a limit that nobody knows yet: it is doubled for as long as requests take no longer for it.
//!
//! Pure, as `gradient`, which goes on where this ends. Only those count that began under the limit as it is.
//!
//! | requests under it | then |
//! |---|---|
//! | have not reached it | it stays, and is looked at again |
//! | take what they took under half of it | it is doubled |
//! | take longer: they wait for each other | it is what it was before, and the climb is over |
//!
//! Invariant: there is one step too many at most.

use std::time::Duration;

use crate::look::{End, Sample};

/// How many are enough to know, unless fewer may run; and for how long at least they are looked at.
const SAMPLES: u32 = 50;
const WINDOW: Duration = Duration::from_millis(100);
/// Who waits for others that share one core takes twice as long beside twice as many.
const SAME: f64 = 1.4;

/// One step of it.
#[derive(Debug)]
pub(crate) struct Climb {
    since: Duration,
    sample: Sample,
    reached: bool,
    /// What requests took before the last step, and the limit there.
    before: Option<(f64, f64)>,
}

/// What a request's end has come to.
#[derive(Debug)]
pub(crate) enum Step {
    NotYet(Climb),
    Higher(Climb),
    /// With this limit.
    Over(f64),
}

impl Climb {
    pub(crate) fn new(now: Duration) -> Self {
        Self { since: now, sample: Sample::default(), reached: false, before: None }
    }

    /// Somebody waits.
    pub(crate) fn is_reached(&mut self) {
        self.reached = true;
    }

    /// A request has ended under this limit. `unloaded` is what one takes without a queue, if that is known.
    pub(crate) fn ended(mut self, end: &End, limit: f64, unloaded: Option<f64>) -> Step {
        if end.began < self.since {
            return Step::NotYet(self);
        }
        self.reached |= end.running + 1 >= limit as usize;
        self.sample.take(end);
        let is_short = end.now.saturating_sub(self.since) < WINDOW;
        if is_short || self.sample.count < SAMPLES.min(limit as u32) {
            return Step::NotYet(self);
        }
        let next = Self { before: self.before, ..Self::new(end.now) };
        if !self.reached {
            return Step::NotYet(next);
        }
        let took = self.sample.mean();
        match self.before.or(unloaded.map(|took| (took, limit))) {
            Some((before, lower)) if took > before * SAME => Step::Over(lower),
            _ => Step::Higher(Self { before: Some((took, limit)), ..next }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many as the limit at once, again and again, each of which takes so long beside so many; the limit at the end.
    fn climbed(took: impl Fn(f64) -> f64) -> f64 {
        let (mut limit, mut now, mut climb) = (20.0, Duration::ZERO, Climb::new(Duration::ZERO));
        while limit < 1000.0 {
            let began = now;
            now += Duration::from_secs_f64(took(limit));
            for running in (0..limit as usize).rev() {
                match climb.ended(&End { began, now, running }, limit, None) {
                    Step::NotYet(same) => climb = same,
                    Step::Higher(higher) => (climb, limit) = (higher, 2.0 * limit),
                    Step::Over(limit) => return limit,
                }
            }
        }
        limit
    }

    #[test]
    fn those_that_wait_for_nothing_of_ours_are_let_in_within_a_few_steps() {
        assert!(climbed(|_| 0.5) >= 1000.0);
    }

    #[test]
    fn one_step_is_taken_back_when_they_wait_for_each_other() {
        assert_eq!(climbed(|limit| limit * 0.01), 20.0);
        assert_eq!(climbed(|limit| (limit * 0.001).max(0.1)), 80.0);
    }

    #[test]
    fn what_nobody_needs_is_not_given() {
        let mut climb = Climb::new(Duration::ZERO);
        for number in 0..1000 {
            let now = Duration::from_millis(20 * (number + 1));
            let end = End { began: now.saturating_sub(Duration::from_millis(20)), now, running: 3 };
            climb = match climb.ended(&end, 20.0, None) {
                Step::NotYet(same) => same,
                step => panic!("{step:?}"),
            };
        }
    }

    #[test]
    fn who_is_known_to_be_quick_alone_is_not_let_in_by_twice_as_many() {
        let climb = Climb::new(Duration::ZERO);
        let now = Duration::from_millis(200);
        let end = End { began: Duration::ZERO, now, running: 19 };
        let mut step = climb.ended(&end, 20.0, Some(0.01));
        for _ in 1..20 {
            step = match step {
                Step::NotYet(climb) => climb.ended(&end, 20.0, Some(0.01)),
                step => panic!("too soon: {step:?}"),
            };
        }
        assert!(matches!(step, Step::Over(limit) if limit == 20.0));
    }
}
