//! A server of one core, whose handlers wait and compute, under a limit of how many may run.
//!
//! Not the limit (`gradient`). What a request costs besides its handler is computed by the same core, as with the fused runtime.
//!
//! Invariant: the same scenario under the same limit comes to the same figures.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use crate::gradient::Gradient;
use crate::look::End;
use crate::machine::{Chance, Core, Noise};

/// As `--limit-queue` and `--timeout-queue` have them.
const QUEUE: usize = 1000;
pub(crate) const PATIENCE: f64 = 1e9;
/// To read a head and to write an answer; a refusal is the half of it.
const OVERHEAD: f64 = 20e3;
/// Whoever is waited for is not always as quick.
const JITTER: f64 = 0.2;

pub(crate) const MILLISECOND: f64 = 1e6;
pub(crate) const SECOND: f64 = 1e9;

/// One kind of request: it waits for something else, and then computes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) waits: f64,
    pub(crate) computes: f64,
    /// What part of all it is.
    pub(crate) part: f64,
}

/// What is asked, and of what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub(crate) kinds: &'static [Kind],
    pub(crate) noise: Noise,
    /// Of what one core can answer that has nothing else to do.
    pub(crate) load: f64,
    /// Whether they come in bursts: three times as many for a fifth of a second.
    pub(crate) bursts: bool,
    pub(crate) seed: u64,
}

/// What came of it, after the warmup; shown where a promise is broken.
#[derive(Debug)]
#[allow(dead_code)]
pub(crate) struct Figures {
    /// Answered in a second.
    pub(crate) goodput: f64,
    /// From a request's coming to its answer, in milliseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// Of the part that a handler runs.
    pub(crate) run_p99: f64,
    pub(crate) limit: usize,
}

pub(crate) enum Limit {
    Fixed(usize),
    Follows(Box<Gradient>),
}

/// One that is found.
pub(crate) fn follows() -> Limit {
    Limit::Follows(Box::new(Gradient::new(Duration::ZERO, Some(duration(PATIENCE)))))
}

impl Limit {
    fn now(&self) -> usize {
        match self {
            Self::Fixed(limit) => *limit,
            Self::Follows(gradient) => gradient.limit(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Request {
    came: f64,
    began: f64,
    kind: Kind,
}

/// What the core does in turn.
#[derive(Debug)]
enum Job {
    Head(Request),
    Refusal,
    Begins(Request),
    Computes(Request),
}

#[derive(Debug)]
enum Event {
    Comes,
    Waited(Request),
    CoreIsFree,
}

struct Due(f64, u64, Event);

pub(crate) struct Server {
    now: f64,
    chance: Chance,
    core: Core,
    limit: Limit,
    load: Scenario,
    events: BinaryHeap<Due>,
    number: u64,
    jobs: VecDeque<Job>,
    does: Option<Job>,
    running: usize,
    queue: VecDeque<Request>,
    answered: Vec<(f64, f64)>,
}

fn duration(nanoseconds: f64) -> Duration {
    Duration::from_nanos(nanoseconds as u64)
}

impl Scenario {
    /// How many a core answers in a second that has nothing else to do.
    pub(crate) fn capacity(&self) -> f64 {
        let work: f64 = self.kinds.iter().map(|kind| kind.part * (kind.computes + OVERHEAD)).sum();
        SECOND / work
    }

    /// How many are asked for in a second.
    fn rate(&self) -> f64 {
        self.load * self.capacity()
    }

    /// Under this limit, for so many seconds after so many that are not looked at.
    pub(crate) fn run(self, limit: Limit, warmup: f64, seconds: f64) -> Figures {
        let mut server = Server::new(self, limit);
        server.serve(warmup * SECOND);
        server.answered.clear();
        server.serve(seconds * SECOND);
        server.figures(seconds)
    }
}

impl Server {
    pub(crate) fn new(load: Scenario, limit: Limit) -> Self {
        let mut server = Self {
            now: 0.0,
            chance: Chance::new(load.seed),
            core: Core::new(load.noise, load.seed + 1),
            limit,
            load,
            events: BinaryHeap::new(),
            number: 0,
            jobs: VecDeque::new(),
            does: None,
            running: 0,
            queue: VecDeque::new(),
            answered: Vec::new(),
        };
        server.due(0.0, Event::Comes);
        server
    }

    /// Something else from now on.
    pub(crate) fn asks_for(&mut self, kinds: &'static [Kind]) {
        self.load.kinds = kinds;
    }

    /// How many may run now.
    pub(crate) fn limit(&self) -> usize {
        self.limit.now()
    }

    fn due(&mut self, at: f64, event: Event) {
        self.number += 1;
        self.events.push(Due(at, self.number, event));
    }

    pub(crate) fn serve(&mut self, time: f64) {
        let until = self.now + time;
        while let Some(Due(at, _, event)) = self.events.pop() {
            self.now = at;
            match event {
                Event::Comes => self.comes(),
                Event::Waited(request) => self.does_next(Job::Computes(request)),
                Event::CoreIsFree => {
                    if let Some(done) = self.does.take() {
                        self.done(done);
                    }
                }
            }
            self.turn_late_away();
            self.compute();
            if at >= until {
                return;
            }
        }
    }

    fn comes(&mut self) {
        let mut chosen = self.chance.part();
        let mut kinds = self.load.kinds.iter();
        let kind = kinds.find(|kind| {
            chosen -= kind.part;
            chosen <= 0.0
        });
        let kind = *kind.unwrap_or(&self.load.kinds[0]);
        self.does_next(Job::Head(Request { came: self.now, began: 0.0, kind }));
        let bursts = self.now % SECOND < 0.2 * SECOND;
        let times = match (self.load.bursts, bursts) {
            (false, _) => 1.0,
            (true, true) => 3.0,
            (true, false) => 0.5,
        };
        let next = self.now + self.chance.until(SECOND / (self.load.rate() * times));
        self.due(next, Event::Comes);
    }

    fn does_next(&mut self, job: Job) {
        self.jobs.push_back(job);
    }

    fn compute(&mut self) {
        if self.does.is_some() {
            return;
        }
        let Some(job) = self.jobs.pop_front() else { return };
        let work = match &job {
            Job::Head(_) | Job::Refusal => OVERHEAD / 4.0,
            Job::Begins(_) => OVERHEAD / 4.0,
            Job::Computes(request) => request.kind.computes + OVERHEAD / 2.0,
        };
        let ends = self.core.ends(self.now, work);
        self.does = Some(job);
        self.due(ends, Event::CoreIsFree);
    }

    fn done(&mut self, job: Job) {
        match job {
            Job::Refusal => {}
            Job::Head(request) => self.wants_in(request),
            Job::Begins(request) if request.kind.waits > 0.0 => {
                let waits = request.kind.waits * (1.0 + JITTER * self.chance.part());
                self.due(self.now + waits, Event::Waited(request));
            }
            Job::Begins(request) => self.does_next(Job::Computes(request)),
            Job::Computes(request) => self.ended(request),
        }
    }

    fn wants_in(&mut self, request: Request) {
        if self.running < self.limit.now() && self.queue.is_empty() {
            return self.begin(request);
        }
        if let Limit::Follows(gradient) = &mut self.limit {
            gradient.waits(duration(self.now));
        }
        let in_time = match &self.limit {
            Limit::Follows(gradient) => gradient.queue(),
            Limit::Fixed(_) => None,
        };
        if self.queue.len() >= in_time.map_or(QUEUE, |most| most.min(QUEUE)) {
            return self.does_next(Job::Refusal);
        }
        self.queue.push_back(request);
        self.hand_out();
    }

    fn begin(&mut self, mut request: Request) {
        request.began = self.now;
        self.running += 1;
        self.does_next(Job::Begins(request));
    }

    fn ended(&mut self, request: Request) {
        self.answered.push((self.now - request.came, self.now - request.began));
        self.running -= 1;
        self.hand_out();
        let running = self.running;
        if let Limit::Follows(gradient) = &mut self.limit {
            let (began, now) = (duration(request.began), duration(self.now));
            gradient.ended(&End { began, now, running });
        }
        self.hand_out();
    }

    fn hand_out(&mut self) {
        while self.running < self.limit.now() {
            let Some(request) = self.queue.pop_front() else { return };
            self.begin(request);
        }
    }

    fn turn_late_away(&mut self) {
        while self.queue.front().is_some_and(|request| self.now - request.came > PATIENCE) {
            self.queue.pop_front();
            self.does_next(Job::Refusal);
        }
    }

    fn figures(&self, seconds: f64) -> Figures {
        let part = |mut times: Vec<f64>, part: f64| {
            times.sort_unstable_by(f64::total_cmp);
            let last = times.len().saturating_sub(1);
            times.get(((times.len() as f64 * part) as usize).min(last)).copied().unwrap_or(0.0) / MILLISECOND
        };
        let whole: Vec<f64> = self.answered.iter().map(|(whole, _)| *whole).collect();
        let runs: Vec<f64> = self.answered.iter().map(|(_, run)| *run).collect();
        Figures {
            goodput: self.answered.len() as f64 / seconds,
            p50: part(whole.clone(), 0.5),
            p99: part(whole, 0.99),
            run_p99: part(runs, 0.99),
            limit: self.limit.now(),
        }
    }
}

// The earliest first: a heap gives its greatest.
impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.total_cmp(&self.0).then(other.1.cmp(&self.1))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}
