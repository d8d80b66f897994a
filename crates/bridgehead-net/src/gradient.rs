//! How many requests may run at once, found by how long they take: as many as do not make each other slow.
//!
//! Pure: no clock and no lock; `admission` brings times and keeps the limit. As Netflix's and Envoy's limits do, it compares how
//! long requests take now with how long they take when nothing waits, and takes their ratio, the gradient.
//!
//! | the limit is | then |
//! |---|---|
//! | not reached | what requests take is what they take without a queue |
//! | reached | it is multiplied by the gradient, and grows by its root; a fifth of that at a time |
//! | reached for [`PROBE`] | it is a quarter for a moment, to see what requests take without a queue |
//!
//! Invariant: the limit is between [`LEAST`] and [`MOST`].

use std::time::Duration;

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
/// Requests may take so much longer than without a queue, and so much besides: a loop takes what came in one go.
const TOLERANCE: f64 = 1.25;
const SLACK: f64 = 0.001;
/// How much of a step is taken at once.
const SMOOTHING: f64 = 0.2;
/// Between two looks at what requests take without a queue, and so many times that.
const PROBE: Duration = Duration::from_secs(5);
const PROBE_TIMES: f64 = 50.0;
/// No longer than this is waited for those that run, and for those that are looked at.
const PROBE_LONGEST: Duration = Duration::from_secs(1);
/// Requests that are enough for a look.
const PROBED: u32 = 8;

/// One worker's. Times are since any moment, the same for all.
#[derive(Debug)]
pub(crate) struct Gradient {
    limit: f64,
    /// What a request takes without a queue, in seconds.
    unloaded: Option<f64>,
    window: Window,
    probe: Probe,
    probed: Duration,
}

/// Those that ended lately.
#[derive(Debug, Default)]
struct Window {
    began: Duration,
    count: u32,
    /// Of logarithms: one request that takes a minute is no sign of anything.
    sum: f64,
    reached: bool,
}

#[derive(Debug, PartialEq)]
enum Probe {
    Rests,
    /// Until few enough run.
    Empties {
        since: Duration,
        before: f64,
    },
    /// Those that began after this.
    Looks {
        since: Duration,
        before: f64,
    },
}

impl Window {
    fn take(&mut self, took: Duration) {
        self.count += 1;
        self.sum += took.as_secs_f64().max(1e-6).ln();
    }

    fn mean(&self) -> f64 {
        (self.sum / f64::from(self.count.max(1))).exp()
    }
}

impl Gradient {
    pub(crate) fn new(now: Duration) -> Self {
        let window = Window { began: now, ..Window::default() };
        Self { limit: FIRST, unloaded: None, window, probe: Probe::Rests, probed: now }
    }

    /// How many may run.
    pub(crate) fn limit(&self) -> usize {
        self.limit as usize
    }

    /// A request that began then has ended now; so many still run.
    pub(crate) fn ended(&mut self, began: Duration, now: Duration, running: usize) {
        let took = now.saturating_sub(began);
        // The one that has ended ran beside them.
        self.window.reached |= running + 1 >= self.limit();
        match self.probe {
            Probe::Rests => {
                self.window.take(took);
                let long = now.saturating_sub(self.window.began);
                if self.window.count >= SAMPLES && long >= WINDOW
                    || self.window.count >= FEW && long >= LONG_WINDOW
                {
                    self.judge(now);
                }
            }
            Probe::Empties { since, before } => {
                if running <= self.limit() {
                    self.probe = Probe::Looks { since: now, before };
                    self.window = Window { began: now, ..Window::default() };
                } else if now.saturating_sub(since) >= PROBE_LONGEST {
                    self.go_on(before, now);
                }
            }
            Probe::Looks { since, before } => {
                if began >= since {
                    self.window.take(took);
                }
                let late = now.saturating_sub(since) >= PROBE_LONGEST;
                if self.window.count >= PROBED || late {
                    if self.window.count > 0 {
                        self.unloaded = Some(self.window.mean());
                    }
                    self.go_on(before, now);
                }
            }
        }
    }

    /// One more would run, and may not. Where nothing has ended for long, since all wait for something else, more may.
    pub(crate) fn waits(&mut self, now: Duration) {
        self.window.reached = true;
        if now.saturating_sub(self.window.began) < LONG_WINDOW {
            return;
        }
        match self.probe {
            Probe::Empties { before, .. } | Probe::Looks { before, .. } => self.go_on(before, now),
            Probe::Rests if self.window.count < FEW => {
                self.set(self.limit + self.limit.sqrt());
                self.begin_window(now);
            }
            Probe::Rests => {}
        }
    }

    /// A window is over.
    fn judge(&mut self, now: Duration) {
        let mean = self.window.mean();
        if !self.window.reached {
            // A look at the limit itself says what they take without a queue; slowly, for it may have been a short one.
            self.unloaded = Some(self.unloaded.map_or(mean, |before| before + 0.3 * (mean - before)));
            self.begin_window(now);
            return;
        }
        // Slowly: a window that was short by chance says nothing of the next.
        let unloaded = self.unloaded.map_or(mean, |before| before + 0.1 * (mean - before).min(0.0));
        self.unloaded = Some(unloaded);
        let gradient = ((unloaded * TOLERANCE + SLACK) / mean).clamp(0.5, 1.0);
        let wanted = self.limit * gradient + self.limit.sqrt();
        self.set(self.limit + SMOOTHING * (wanted - self.limit));
        self.begin_window(now);
        let apart = PROBE.max(Duration::from_secs_f64((PROBE_TIMES * unloaded).min(3600.0)));
        if now.saturating_sub(self.probed) >= apart {
            self.probe = Probe::Empties { since: now, before: self.limit };
            self.set(self.limit / 4.0);
        }
    }

    fn go_on(&mut self, limit: f64, now: Duration) {
        self.set(limit);
        self.probe = Probe::Rests;
        self.probed = now;
        self.begin_window(now);
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
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use super::*;

    /// A server of one core: each request waits for something else, and computes in turn with the others. As many clients
    /// as `wants` says want to be answered at any time.
    struct Server {
        gradient: Gradient,
        now: u64,
        /// When the core is free.
        free: u64,
        running: BinaryHeap<Reverse<(u64, u64)>>,
        computes: u64,
        waits: u64,
        took: Vec<u64>,
    }

    impl Server {
        fn new(computes: u64, waits: u64) -> Self {
            let gradient = Gradient::new(Duration::ZERO);
            Self { gradient, now: 0, free: 0, running: BinaryHeap::new(), computes, waits, took: Vec::new() }
        }

        /// In microseconds, with so many clients at a time. Gives how many were answered, and the 99th percentile.
        fn serve(&mut self, time: u64, wants: usize) -> (usize, u64) {
            let until = self.now + time;
            self.took.clear();
            while self.now < until {
                while self.running.len() < wants.min(self.gradient.limit()) {
                    self.free = self.free.max(self.now + self.waits) + self.computes;
                    self.running.push(Reverse((self.free, self.now)));
                }
                if self.running.len() < wants {
                    self.gradient.waits(Duration::from_micros(self.now));
                }
                let Reverse((ends, began)) = self.running.pop().expect("somebody wants something");
                self.now = ends;
                self.took.push(ends - began);
                let (began, now) = (Duration::from_micros(began), Duration::from_micros(ends));
                self.gradient.ended(began, now, self.running.len());
            }
            self.took.sort_unstable();
            (self.took.len(), self.took[self.took.len() * 99 / 100])
        }
    }

    #[test]
    fn a_server_that_waits_gets_as_many_as_its_core_can_answer_and_no_more() {
        // 50 ms of waiting and 1 ms of computing: 51 at a time keep the core busy.
        let mut server = Server::new(1_000, 50_000);
        server.serve(60_000_000, 400);
        let (ended, late) = server.serve(20_000_000, 400);
        assert!(ended >= 18_000, "of 20,000: {ended}");
        assert!(late <= 102_000, "twice what they take alone: {late}");
    }

    #[test]
    fn one_that_only_computes_gets_few_at_a_time() {
        let mut server = Server::new(20_000, 0);
        server.serve(120_000_000, 400);
        let (ended, _) = server.serve(20_000_000, 400);
        assert!(ended >= 990, "{ended}");
        assert!(server.gradient.limit() <= 8, "{}", server.gradient.limit());
    }

    #[test]
    fn it_grows_again_when_they_take_less_and_shrinks_when_they_take_more() {
        let mut server = Server::new(1_000, 20_000);
        server.serve(60_000_000, 400);
        let before = server.gradient.limit();
        server.waits = 200_000;
        server.serve(120_000_000, 400);
        let more = server.gradient.limit();
        assert!(more > 2 * before, "{before} and {more}: longer waits need more at a time");
        server.waits = 20_000;
        server.serve(120_000_000, 400);
        assert!(server.gradient.limit() < more / 2);
    }

    #[test]
    fn a_limit_that_is_not_reached_stays_and_says_what_they_take() {
        let mut server = Server::new(100, 20_000);
        server.serve(20_000_000, 5);
        assert_eq!(server.gradient.limit(), FIRST as usize);
        let unloaded = server.gradient.unloaded.expect("they were looked at");
        assert!((0.020..0.022).contains(&unloaded), "{unloaded}");
    }

    #[test]
    fn more_may_run_when_all_wait_for_something_that_does_not_come() {
        let mut gradient = Gradient::new(Duration::ZERO);
        for second in 1..=10 {
            gradient.waits(Duration::from_secs(second));
        }
        assert!(gradient.limit() > 2 * FIRST as usize);
        (11..10_000).for_each(|second| gradient.waits(Duration::from_secs(second)));
        assert_eq!(gradient.limit(), MOST as usize);
    }
}
