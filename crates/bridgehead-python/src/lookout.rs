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

use bridgehead_metrics::{Cause, Counter, Gauge, Sheet, Timing};

use crate::census::{Errand, SlowStep};
use crate::health::TICK;
use crate::idleness::Loop;
use crate::inbox::Probe;
use crate::pace::{NOTABLE, Pace, micros};
use crate::stack::Stack;
use crate::suspicion::{Evidence, Suspect};
use crate::whereabouts::Whereabouts;

/// A loop that has something to do and answers at once is asked so often.
const CALM: Duration = Duration::from_millis(250);
/// One of which nothing is known.
const BLIND: Duration = Duration::from_secs(1);
/// So long before a step is slow it is seen whether it lets others have the GIL, or for a fifth of that time.
const LEAD: Duration = Duration::from_millis(50);
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

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Event(one), Self::Event(other)) => one == other,
            (Self::Silence(since, one), Self::Silence(at, other)) => since == at && Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Step {
    /// Whether it holds the loop no more.
    pub(crate) fn is_over(&self, pace: &Pace) -> bool {
        match self {
            Self::Event(since) => pace.handles().is_none_or(|(_, handled)| handled != *since),
            Self::Silence(_, answer) => answer.get().is_some(),
        }
    }

    /// Which event it is.
    fn event(&self) -> Option<u64> {
        match self {
            Self::Event(since) => Some(*since),
            Self::Silence(..) => None,
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

impl Want {
    pub(crate) fn errand(self) -> Option<Errand> {
        match self {
            Self::Errand(errand) => Some(errand),
            Self::Answer(_) => None,
        }
    }
}

/// A step that is slow, and runs.
#[derive(Debug)]
struct Noticed {
    since: Instant,
    /// How long it had run by then.
    held: Duration,
    step: Step,
    /// Where it is is said here as long as it keeps the GIL, if it seems to.
    whereabouts: Option<Arc<Whereabouts>>,
}

/// What is remembered from look to look.
pub(crate) struct Lookout {
    slow: Duration,
    suspect: Suspect,
    stack: Option<Stack>,
    /// A question without an answer yet.
    asked: Option<(Instant, Arc<OnceLock<Instant>>)>,
    last_asked: Instant,
    next_census: Instant,
    /// Between the last two.
    pause: Duration,
    events: u64,
    /// The one of which was asked last whether it lets others have the GIL.
    ahead: Option<Step>,
    noticed: Option<Noticed>,
    /// How many were.
    steps: u64,
    /// How long those were of which an answer told that were not.
    unseen: Vec<Duration>,
}

impl Lookout {
    pub(crate) fn new(slow: Duration, (suspect, stack): (Suspect, Option<Stack>), now: Instant) -> Self {
        Self {
            slow,
            suspect,
            stack,
            asked: None,
            last_asked: now,
            // What was begun at the start is there to be counted.
            next_census: now,
            pause: CENSUS,
            events: 0,
            ahead: None,
            noticed: None,
            steps: 0,
            unseen: Vec::new(),
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
        // If one was noticed meanwhile, that is what made it late, and is counted.
        if lag >= self.slow && self.noticed.is_none() {
            sheet.add(Counter::SlowSteps, 1);
            self.unseen.push(lag);
        }
        self.asked = None;
        true
    }

    /// When it is to be looked again: as soon as what runs for long already is slow, or else at the next tick.
    pub(crate) fn due(&self, now: Instant, pace: &Pace) -> Duration {
        let Some((since, step)) = self.runs(pace) else { return TICK };
        let held = now.saturating_duration_since(since);
        if self.noticed.is_some() || held < NOTABLE {
            return TICK;
        }
        let next = if self.ahead.as_ref() == Some(&step) { self.slow } else { self.lead() };
        next.saturating_sub(held).clamp(NOTABLE, TICK)
    }

    /// What may hold the loop, and since when.
    fn runs(&self, pace: &Pace) -> Option<(Instant, Step)> {
        let handles = pace.handles().map(|(since, event)| (since, Step::Event(event)));
        // A drain answers before its first event: a question without an answer was asked during this one.
        handles
            .or_else(|| self.asked.as_ref().map(|(at, answer)| (*at, Step::Silence(*at, Arc::clone(answer)))))
    }

    fn lead(&self) -> Duration {
        self.slow.saturating_sub(LEAD.min(self.slow / 5))
    }

    pub(crate) fn look(&mut self, now: Instant, pace: &Pace, seen: Loop) -> Vec<Want> {
        let events = pace.events.load(Ordering::Relaxed);
        let came = std::mem::replace(&mut self.events, events) != events;
        let mut wants: Vec<Want> = self.close(now, pace).into_iter().collect();
        wants.extend(self.notice(now, pace));
        wants.extend(self.see_ahead(now, pace));
        let mut unseen = std::mem::take(&mut self.unseen);
        unseen.extend(pace.take_unseen());
        wants.extend(Some(unseen).filter(|all| !all.is_empty()).map(|all| Want::Errand(Errand::Unseen(all))));
        pace.says_meanwhile(now, self.suspect);
        self.say_where(pace);
        let active = came || pace.handles().is_some() || pace.running.load(Ordering::Relaxed) > 0;
        // An event is measured by itself, and nobody would answer before its end.
        if pace.handles().is_none() {
            wants.extend(self.ask(now, active, seen));
        }
        wants.extend(self.count(now, active || seen == Loop::Stirs));
        wants
    }

    /// Nobody looks any more: what is to be told of steps that are over.
    pub(crate) fn finish(&mut self, now: Instant, pace: &Pace) -> Vec<Errand> {
        self.hear(&pace.sheet);
        let over = self.close(now, pace).and_then(Want::errand);
        let mut unseen = std::mem::take(&mut self.unseen);
        unseen.extend(pace.take_unseen());
        let unseen = Some(unseen).filter(|all| !all.is_empty()).map(Errand::Unseen);
        over.into_iter().chain(unseen).collect()
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
        pace.lets_go();
        for gauge in [Gauge::BlockedStep, Gauge::BlockedFor, Gauge::BlockedBy] {
            pace.sheet.set(gauge, 0);
        }
        Some(Want::Errand(Errand::Over(step.length(pace).max(held))))
    }

    /// Has it seen whether what may soon be slow lets others have the GIL.
    fn see_ahead(&mut self, now: Instant, pace: &Pace) -> Option<Want> {
        let (since, step) = self.runs(pace).filter(|_| self.noticed.is_none())?;
        if now.saturating_duration_since(since) < self.lead() || self.ahead.as_ref() == Some(&step) {
            return None;
        }
        self.ahead = Some(step.clone());
        Some(Want::Errand(Errand::Ahead(step)))
    }

    /// Says where a step keeps the GIL, and for which request: that is read without it, and if this process ends in it.
    fn say_where(&self, pace: &Pace) {
        let Some(Noticed { since, step, whereabouts: Some(whereabouts), .. }) = &self.noticed else { return };
        if !pace.waits_for_the_gil(Instant::now()) || !whereabouts.is_sought() {
            return;
        }
        let place = self.stack.as_ref().and_then(Stack::place);
        // What was read behind it is another's.
        let place = place.filter(|_| !step.is_over(pace) && pace.waits_for_the_gil(Instant::now()));
        let request = step.event().and_then(|event| pace.asked_in(event));
        if place.is_some() || request.is_some() {
            let found = (place, request.unwrap_or_default());
            whereabouts.say(&pace.sheet, self.steps, found, since.elapsed());
        }
    }

    /// Whether the loop is held for too long.
    fn notice(&mut self, now: Instant, pace: &Pace) -> Option<Want> {
        if let Some(Noticed { since, .. }) = &self.noticed {
            pace.sheet.set(Gauge::BlockedFor, micros(now.saturating_duration_since(*since)));
            return None;
        }
        let (since, step) = self.runs(pace)?;
        let held = now.saturating_duration_since(since);
        if held < self.slow {
            return None;
        }
        if let Some(event) = step.event() {
            if !pace.counts(event) {
                // It is over, and was counted at its end.
                return None;
            }
        } else {
            pace.sheet.add(Counter::SlowSteps, 1);
        }
        // Of what was before nobody wants to know any more.
        pace.take_longest();
        let said = pace.holds(step.event());
        self.steps += 1;
        pace.sheet.set(Gauge::BlockedStep, self.steps);
        pace.sheet.set(Gauge::BlockedFor, micros(held));
        let evidence = Evidence::gather(self.suspect);
        let evidence = Some(evidence).filter(|_| !step.is_over(pace));
        if let Some(evidence) = &evidence {
            pace.is_held_meanwhile_by(evidence.while_the_gil_is_gone());
        }
        let (whereabouts, number) = (Arc::<Whereabouts>::default(), self.steps);
        let hidden = evidence.as_ref().filter(|seen| seen.while_the_gil_is_gone() == Cause::CallWithGil);
        let hidden = hidden.map(|_| Arc::clone(&whereabouts));
        self.noticed = Some(Noticed { since, held, step: step.clone(), whereabouts: hidden });
        Some(Want::Errand(Errand::Slow(SlowStep { number, since, held, step, said, evidence, whereabouts })))
    }
}

#[cfg(test)]
mod tests {
    use bridgehead_metrics::BlockingPlace;

    use super::*;
    use crate::pace::Whose;

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
            let pace = Pace::new(Sheet::own(), SLOW);
            let now = Instant::now() + TICK;
            Self {
                pace,
                lookout: Lookout::new(SLOW, (Suspect::this_thread(), None), now),
                now,
                seen: Loop::Rests,
            }
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

    fn slow(wants: Vec<Want>) -> SlowStep {
        let slow = wants.into_iter().find_map(|want| match want {
            Want::Errand(Errand::Slow(step)) => Some(step),
            _ => None,
        });
        slow.expect("it is told of")
    }

    fn somewhere() -> BlockingPlace {
        let (place, request) = ("load()".to_owned(), "GET /".to_owned());
        BlockingPlace { place, request, cause: Cause::Python, count: 0, longest: SLOW, last: 0 }
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
        assert!(
            wants.iter().any(
                |want| matches!(want, Want::Errand(Errand::Slow(step)) if scene.now - step.since >= SLOW)
            )
        );
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
    fn whose_a_step_is_is_asked_once_of_who_takes_it_and_of_no_other() {
        let mut scene = Scene::new();
        let is_asked = |scene: &Scene| scene.pace.asks_whose().is_some();
        scene.pace.begin(scene.now);
        assert!(!is_asked(&scene), "it was not noticed");
        scene.look(SLOW);
        assert!(is_asked(&scene));
        assert!(!is_asked(&scene), "it was said");
        scene.pace.step(SLOW, scene.now);
        scene.look(TICK);
        scene.look(SLOW);
        scene.pace.step(SLOW, scene.now);
        assert!(!is_asked(&scene), "another is taken");
        scene.pace.end(0);
        assert!(!is_asked(&scene), "none is");
    }

    #[test]
    fn how_long_a_step_was_that_was_told_of_is_known_as_soon_as_it_is_over() {
        let mut scene = Scene::new();
        let length = |scene: &Scene| scene.pace.just_over.seen().map(|place| place.longest);
        scene.pace.begin(scene.now);
        let told = scene.look(SLOW);
        scene.pace.just_over.told(slow(told).step, somewhere());
        assert_eq!(length(&scene), None, "it still runs");
        scene.now += TICK;
        scene.pace.step(SLOW + TICK, scene.now);
        assert_eq!(length(&scene), Some(SLOW + TICK));
        let next = scene.look(SLOW);
        assert_eq!(
            (over(&next), length(&scene)),
            (Some(SLOW + TICK), Some(SLOW + TICK)),
            "it is not told yet"
        );
        scene.pace.just_over.told(slow(next).step, somewhere());
        assert_eq!(length(&scene), None, "another runs");
        scene.pace.just_over.told_all();
        scene.pace.step(SLOW, scene.now);
        assert_eq!(length(&scene), None, "all was told");
    }

    #[test]
    fn what_was_said_is_there_for_who_comes_when_the_next_is_slow_as_well() {
        let mut scene = Scene::new();
        scene.pace.begin(scene.now);
        let told = scene.look(SLOW);
        let whose = Whose { place: String::new(), request: "GET /".to_owned() };
        scene.pace.asks_whose().expect("it was noticed").set(whose).expect("nobody has said so");
        scene.pace.step(SLOW, scene.now);
        scene.look(TICK);
        scene.look(SLOW);
        assert_eq!(slow(told).said.get().map(|whose| whose.request.as_str()), Some("GET /"));
    }

    #[test]
    fn how_long_a_step_was_is_told_also_when_nobody_looks_after_it_any_more() {
        let mut scene = Scene::new();
        scene.seen = Loop::Stirs;
        let Probe(answer) = scene.asks(TICK).expect("it stirs");
        scene.look(SLOW);
        answer.set(scene.now + SLOW).expect("it was not answered");
        let told = scene.lookout.finish(scene.now + SLOW, &scene.pace);
        assert!(matches!(told[..], [Errand::Over(time)] if time == 2 * SLOW));
        assert_eq!((scene.says(Gauge::BlockedFor), scene.says(Gauge::BlockedStep)), (0, 0));
        assert!(scene.lookout.finish(scene.now + SLOW, &scene.pace).is_empty());
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

    fn unseen(wants: &[Want]) -> Vec<Duration> {
        let steps = |want: &Want| match want {
            Want::Errand(Errand::Unseen(steps)) => steps.clone(),
            _ => Vec::new(),
        };
        wants.iter().flat_map(steps).collect()
    }

    #[test]
    fn each_step_that_was_measured_as_slow_is_counted_though_nobody_looked_while_it_ran() {
        let mut scene = Scene::new();
        let (short, long) = (Duration::from_millis(249), Duration::from_millis(251));
        for took in [long, short, long] {
            scene.event(took);
            // The next does not begin at the same nanosecond.
            scene.now += TICK;
        }
        assert_eq!(scene.slow_steps(), 2);
        assert_eq!(unseen(&scene.look(TICK)), [long, long]);
        assert_eq!((unseen(&scene.look(TICK)), scene.slow_steps()), (Vec::new(), 2));
    }

    #[test]
    fn an_answer_that_was_late_by_a_slow_step_counts_it_though_nobody_looked_meanwhile() {
        let mut scene = Scene::new();
        scene.pace.end(1);
        let Probe(answer) = scene.asks(CALM).expect("a request runs");
        answer.set(scene.now + SLOW).expect("it was not answered");
        assert_eq!(unseen(&scene.look(SLOW + TICK)), [SLOW]);
        assert_eq!((scene.slow_steps(), unseen(&scene.look(TICK))), (1, Vec::new()));
    }

    #[test]
    fn it_is_looked_again_as_soon_as_what_runs_is_slow() {
        let mut scene = Scene::new();
        assert_eq!(scene.lookout.due(scene.now, &scene.pace), TICK);
        scene.pace.begin(scene.now);
        let due = |after: u64, scene: &Scene| {
            scene.lookout.due(scene.now + Duration::from_millis(after), &scene.pace).as_millis()
        };
        // The clock of a drain has nanoseconds, and what is left of them is no millisecond.
        assert_eq!((due(0, &scene), due(100, &scene), due(249, &scene)), (50, 50, 1));
        assert!((19..=20).contains(&due(180, &scene)), "it is looked ahead");
        scene.look(SLOW - LEAD);
        assert_eq!(due(49, &scene), 1);
        assert!((29..=30).contains(&due(20, &scene)));
        scene.look(LEAD);
        assert_eq!(due(0, &scene), 50);
    }

    #[test]
    fn whether_a_step_lets_others_have_the_gil_is_seen_once_before_it_is_slow() {
        let ahead = |wants: Vec<Want>| {
            wants.iter().filter(|want| matches!(want, Want::Errand(Errand::Ahead(_)))).count()
        };
        let mut scene = Scene::new();
        scene.pace.begin(scene.now);
        assert_eq!(ahead(scene.look(SLOW - LEAD - NOTABLE)), 0);
        assert_eq!((ahead(scene.look(NOTABLE)), ahead(scene.look(NOTABLE))), (1, 0));
        assert_eq!((ahead(scene.look(SLOW)), scene.slow_steps()), (0, 1));
        scene.pace.step(2 * SLOW, scene.now);
        assert_eq!((ahead(scene.look(SLOW - NOTABLE)), scene.slow_steps()), (1, 1), "it is another");
        scene.pace.step(SLOW - NOTABLE, scene.now);
        scene.pace.end(0);
        assert_eq!(ahead(scene.look(SLOW)), 0, "there is none");
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
