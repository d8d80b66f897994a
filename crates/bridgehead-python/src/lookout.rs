//! What a look at the loop comes to: when it is asked, whether it is held for too long, when its tasks are counted.
//!
//! Pure but for the clock that is handed in, and what the system shows of a thread that holds its loop.
//!
//! | the loop | is asked |
//! |---|---|
//! | drains, or runs a request | every [`CALM`] |
//! | does anything else than to wait for events, and does not drain | every [`TICK`]: something may hold it |
//! | waits for events | not at all |
//! | is not shown by the system | every [`BLIND`] |
//!
//! Invariant: of each step that is told of as slow the length is told as well, once it is over.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bridgehead_metrics::{Counter, Gauge, Sheet, Timing};

use crate::census::Errand;
use crate::health::{NOTABLE, Pace, TICK, micros};
use crate::idleness::Loop;
use crate::inbox::Probe;
use crate::suspicion::{Evidence, Suspect};

/// A loop that has something to do and answers at once is asked so often.
const CALM: Duration = Duration::from_millis(250);
/// One of which nothing is known.
const BLIND: Duration = Duration::from_secs(1);
/// Between two looks of the census, which counts tasks and takes the GIL for it, while there is something to do.
const CENSUS: Duration = Duration::from_secs(1);
/// The same when there has been nothing for a while: tasks end, and begin others, without us.
const RARE: Duration = Duration::from_secs(5);

/// What holds the loop.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// An event of a drain that is being handled since then.
    Event(u64),
    /// Something else: a question has no answer yet.
    Silence(Instant, Arc<OnceLock<Instant>>),
}

impl Step {
    /// Whether it holds the loop no more.
    pub(crate) fn is_over(&self, pace: &Pace) -> bool {
        match self {
            Self::Event(since) => pace.handles().is_none_or(|(_, handled)| handled != *since),
            Self::Silence(_, answer) => answer.get().is_some(),
        }
    }

    /// How long it was, of one that is over.
    fn length(&self, pace: &Pace) -> Duration {
        match self {
            Self::Event(_) => pace.take_longest(),
            Self::Silence(asked, answer) => {
                answer.get().map_or(Duration::ZERO, |answered| answered.saturating_duration_since(*asked))
            }
        }
    }
}

/// What a look comes to.
#[derive(Debug)]
pub(crate) enum Want {
    /// The loop is to answer.
    Answer(Probe),
    /// The census is to do something.
    Errand(Errand),
}

/// A step that is slow, and runs.
#[derive(Debug)]
struct Noticed {
    since: Instant,
    /// How long it had run by then.
    held: Duration,
    step: Step,
}

/// What is remembered from look to look.
#[derive(Debug)]
pub(crate) struct Lookout {
    slow: Duration,
    suspect: Suspect,
    /// A question without an answer yet.
    asked: Option<(Instant, Arc<OnceLock<Instant>>)>,
    last_asked: Instant,
    next_census: Instant,
    /// Between the last two.
    pause: Duration,
    events: u64,
    noticed: Option<Noticed>,
}

impl Lookout {
    pub(crate) fn new(slow: Duration, suspect: Suspect, now: Instant) -> Self {
        Self {
            slow,
            suspect,
            asked: None,
            last_asked: now,
            // What was begun at the start is there to be counted.
            next_census: now,
            pause: CENSUS,
            events: 0,
            noticed: None,
        }
    }

    /// Takes in the loop's answer. Whether one has come.
    pub(crate) fn hear(&mut self, sheet: &Sheet) -> bool {
        let Some((asked, answer)) = &self.asked else { return false };
        let Some(answered) = answer.get() else { return false };
        let lag = answered.saturating_duration_since(*asked);
        sheet.add(Counter::Steps, 1);
        sheet.record(Timing::LoopLag, lag);
        sheet.set(Gauge::LoopLag, micros(lag));
        if lag >= NOTABLE {
            sheet.raise(Gauge::LongestStep, micros(lag));
        }
        self.asked = None;
        true
    }

    pub(crate) fn look(&mut self, now: Instant, pace: &Pace, seen: Loop) -> Vec<Want> {
        let events = pace.events.load(Ordering::Relaxed);
        let came = std::mem::replace(&mut self.events, events) != events;
        let mut wants: Vec<Want> = self.close(now, pace).into_iter().collect();
        wants.extend(self.notice(now, pace));
        pace.says_meanwhile(now, self.suspect);
        let active = came || pace.handles().is_some() || pace.running.load(Ordering::Relaxed) > 0;
        // An event is measured by itself, and nobody would answer before its end.
        if pace.handles().is_none() {
            wants.extend(self.ask(now, active, seen));
        }
        wants.extend(self.count(now, active || seen == Loop::Stirs));
        wants
    }

    /// Asks the loop, if it is time to.
    fn ask(&mut self, now: Instant, active: bool, seen: Loop) -> Option<Want> {
        let pause = match seen {
            Loop::Rests if !active => return None,
            Loop::Rests => CALM,
            Loop::Stirs => TICK,
            Loop::Unknown if active => CALM,
            Loop::Unknown => BLIND,
        };
        if self.asked.is_some() || now < self.last_asked + pause {
            return None;
        }
        let answer = Arc::<OnceLock<Instant>>::default();
        self.asked = Some((now, Arc::clone(&answer)));
        self.last_asked = now;
        Some(Want::Answer(Probe(answer)))
    }

    /// Has tasks counted, if it is time to.
    fn count(&mut self, now: Instant, active: bool) -> Option<Want> {
        if active && self.pause > CENSUS {
            self.next_census -= self.pause - CENSUS;
            self.pause = CENSUS;
        }
        if now < self.next_census {
            return None;
        }
        self.pause = if active { CENSUS } else { RARE.min(self.pause * 2) };
        self.next_census = now + self.pause;
        Some(Want::Errand(Errand::Look))
    }

    /// Says how long a slow step was that is over.
    fn close(&mut self, now: Instant, pace: &Pace) -> Option<Want> {
        let Noticed { held, step, .. } = self.noticed.take_if(|noticed| noticed.step.is_over(pace))?;
        // What holds the loop from here on is another.
        if let Some((asked, _)) = &mut self.asked {
            *asked = now;
        }
        pace.holds(false);
        pace.sheet.set(Gauge::BlockedFor, 0);
        pace.sheet.set(Gauge::BlockedBy, 0);
        Some(Want::Errand(Errand::Over(step.length(pace).max(held))))
    }

    /// Whether the loop is held for too long.
    fn notice(&mut self, now: Instant, pace: &Pace) -> Option<Want> {
        if let Some(Noticed { since, .. }) = &self.noticed {
            pace.sheet.set(Gauge::BlockedFor, micros(now.saturating_duration_since(*since)));
            return None;
        }
        let handles = pace.handles().map(|(since, event)| (since, Step::Event(event)));
        let asked = self.asked.as_ref().map(|(at, answer)| (*at, Step::Silence(*at, Arc::clone(answer))));
        // A drain answers before its first event: a question without an answer was asked during this one.
        let (since, step) = handles.or(asked)?;
        let held = now.saturating_duration_since(since);
        if held < self.slow {
            return None;
        }
        // Of what was before nobody wants to know any more.
        pace.take_longest();
        pace.holds(true);
        pace.sheet.set(Gauge::BlockedFor, micros(held));
        pace.sheet.add(Counter::SlowSteps, 1);
        let evidence = Evidence::gather(self.suspect);
        let evidence = Some(evidence).filter(|_| !step.is_over(pace));
        if let Some(evidence) = &evidence {
            pace.is_held_meanwhile_by(evidence.while_the_gil_is_gone());
        }
        self.noticed = Some(Noticed { since, held, step: step.clone() });
        Some(Want::Errand(Errand::Slow { since, step, evidence }))
    }
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
        seen: Loop,
    }

    impl Scene {
        fn new() -> Self {
            let pace = Pace::new(Sheet::own());
            let now = Instant::now() + TICK;
            Self { pace, lookout: Lookout::new(SLOW, Suspect::this_thread(), now), now, seen: Loop::Rests }
        }

        /// Time goes by, and it is looked.
        fn look(&mut self, after: Duration) -> Vec<Want> {
            self.now += after;
            self.lookout.hear(&self.pace.sheet);
            self.lookout.look(self.now, &self.pace, self.seen)
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

        fn slow_steps(&self) -> u64 {
            self.pace.sheet.count(Counter::SlowSteps)
        }
    }

    fn over(wants: &[Want]) -> Option<Duration> {
        wants.iter().find_map(|want| match want {
            Want::Errand(Errand::Over(time)) => Some(*time),
            _ => None,
        })
    }

    fn counts(wants: &[Want]) -> usize {
        wants.iter().filter(|want| matches!(want, Want::Errand(Errand::Look))).count()
    }

    #[test]
    fn a_step_of_a_drain_is_slow_once_while_it_runs_and_its_length_is_told() {
        let mut scene = Scene::new();
        scene.pace.begin(scene.now);
        scene.look(Duration::from_millis(200));
        assert_eq!((scene.slow_steps(), scene.says(Gauge::BlockedFor)), (0, 0));
        let wants = scene.look(Duration::from_millis(60));
        assert!(wants.iter().any(
            |want| matches!(want, Want::Errand(Errand::Slow { since, .. }) if scene.now - *since >= SLOW)
        ));
        assert!(scene.pace.is_held());
        assert_eq!(over(&scene.look(Duration::from_millis(60))), None);
        assert_eq!((scene.slow_steps(), scene.says(Gauge::BlockedFor)), (1, 320_000));
        scene.pace.step(Duration::from_millis(340), scene.now);
        scene.pace.step(Duration::from_millis(2), scene.now);
        scene.pace.end(0);
        assert_eq!(over(&scene.look(Duration::from_millis(50))), Some(Duration::from_millis(340)));
        assert_eq!((scene.says(Gauge::LongestStep), scene.says(Gauge::BlockedFor)), (340_000, 0));
        assert!(!scene.pace.is_held());
    }

    #[test]
    fn two_slow_steps_in_a_row_are_two() {
        let mut scene = Scene::new();
        for took in [300, 400] {
            scene.pace.begin(scene.now);
            scene.look(SLOW);
            scene.pace.step(Duration::from_millis(took), scene.now);
            scene.pace.end(0);
            assert_eq!(over(&scene.look(TICK)), Some(Duration::from_millis(took)));
        }
        assert_eq!(scene.slow_steps(), 2);
    }

    #[test]
    fn a_question_that_was_asked_before_a_slow_step_is_no_second_one() {
        let mut scene = Scene::new();
        scene.seen = Loop::Stirs;
        assert!(scene.asks(TICK).is_some());
        scene.pace.begin(scene.now);
        scene.look(2 * SLOW);
        scene.pace.step(2 * SLOW, scene.now);
        scene.pace.end(0);
        scene.look(TICK);
        scene.look(TICK);
        assert_eq!((scene.slow_steps(), scene.pace.is_held()), (1, false));
    }

    #[test]
    fn a_loop_that_does_not_answer_is_held_though_no_drain_runs() {
        let mut scene = Scene::new();
        scene.pace.end(1);
        let Probe(answer) = scene.asks(CALM).expect("a request runs");
        assert!(scene.asks(SLOW).is_none());
        assert_eq!((scene.slow_steps(), scene.says(Gauge::BlockedFor)), (1, 250_000));
        answer.set(scene.now + SLOW).expect("it was not answered");
        assert_eq!(over(&scene.look(2 * SLOW)), Some(2 * SLOW));
        assert_eq!((scene.says(Gauge::LoopLag), scene.says(Gauge::LongestStep)), (500_000, 500_000));
        assert_eq!((scene.says(Gauge::BlockedFor), scene.pace.is_held()), (0, false));
    }

    #[test]
    fn a_loop_that_does_something_without_a_request_is_asked_at_once_and_found_to_be_held() {
        let mut scene = Scene::new();
        scene.look(TICK);
        scene.seen = Loop::Stirs;
        assert!(scene.asks(TICK).is_some());
        assert!(scene.asks(SLOW).is_none());
        assert_eq!((scene.slow_steps(), scene.says(Gauge::BlockedFor)), (1, 250_000));
    }

    #[test]
    fn a_busy_loop_is_asked_now_and_then_and_one_that_rests_left_alone() {
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
        assert_eq!((0..100).filter(|_| scene.asks(TICK).is_some()).count(), 0);
        scene.seen = Loop::Unknown;
        assert_eq!((0..40).filter_map(|_| scene.asks(TICK).map(Probe::answer)).count(), 2);
    }

    #[test]
    fn tasks_are_counted_at_the_start_once_a_second_while_there_is_something_to_do_and_rarely_then() {
        let mut scene = Scene::new();
        assert_eq!(counts(&scene.look(TICK)), 1);
        let busy: usize = (0..60)
            .map(|_| {
                scene.event(Duration::ZERO);
                counts(&scene.look(TICK))
            })
            .sum();
        assert_eq!(busy, 3);
        let calm: Vec<_> = (0..400).filter(|_| counts(&scene.look(TICK)) > 0).collect();
        let pauses: Vec<_> =
            calm.windows(2).map(|two| (two[1] - two[0]) * TICK.as_millis() as usize).collect();
        assert_eq!(pauses, [2000, 4000, 5000, 5000]);
        scene.event(Duration::ZERO);
        let again = (0..10).map(|_| counts(&scene.look(TICK))).sum::<usize>();
        assert_eq!(again, 1, "soon after it has something to do again");
    }
}
