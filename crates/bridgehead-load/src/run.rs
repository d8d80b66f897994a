//! A run: its threads, its progress, its end.
//!
//! Not a signal handler: whoever started it stops it.
//!
//! Invariant: a run that is dropped has no threads left.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::desk::{Desk, Share};
use crate::fault::Kind;
use crate::pace::{Pace, Picoseconds};
use crate::plan::{Plan, PlanError, Protocol};
use crate::recipe::Recipe;
use crate::record::{Record, Window};
use crate::report::{Circumstances, Report};
use crate::secure::Secrecy;
use crate::stream::find;
use crate::timeline::{Row, Timeline};
use crate::worker::Worker;

/// How far a run has come.
#[derive(Debug, Clone)]
pub struct Progress {
    /// Since the end of the warm-up; nothing while it lasts.
    pub elapsed: Option<f64>,
    /// Answers and errors so far.
    pub requests: u64,
    /// Errors so far.
    pub errors: u64,
    /// Asked, and not answered yet.
    pub in_flight: u64,
    /// The last whole second.
    pub latest: Option<Row>,
}

/// A run that has begun.
#[derive(Debug)]
pub struct Run {
    desks: Vec<Arc<Desk>>,
    threads: Vec<JoinHandle<Duration>>,
    handle: Handle,
    window: Window,
}

/// Waits for a run and stops it, from any thread, whoever has the run.
#[derive(Debug, Clone)]
pub struct Handle {
    // `Sender` is shared by counting: a watch channel has no other way to look from outside.
    stop: Arc<watch::Sender<Option<Instant>>>,
    // Threads count themselves out; whoever waits is woken by the last.
    running: Arc<(Mutex<usize>, Condvar)>,
}

impl Handle {
    /// Waits for the end, so long at most; says whether it has come.
    #[must_use]
    pub fn wait(&self, time: Duration) -> bool {
        let (count, changed) = &*self.running;
        let count = count.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, _) = changed
            .wait_timeout_while(count, time, |count| *count > 0)
            .unwrap_or_else(PoisonError::into_inner);
        *count == 0
    }

    /// Ends it now: what was asked and is not answered is given up.
    pub fn stop(&self) {
        self.stop.send_if_modified(|stopped| {
            let is_first = stopped.is_none();
            stopped.get_or_insert_with(Instant::now);
            is_first
        });
    }
}

impl Run {
    /// Begins: connects once, so that a wrong address is told at once, and starts the threads.
    ///
    /// # Errors
    ///
    /// When the plan contradicts itself, or nobody answers.
    pub fn start(plan: &Plan) -> Result<Self, PlanError> {
        plan.check()?;
        let recipes = |plan: &Plan| plan.scenarios.iter().map(|each| Recipe::new(each, plan)).collect();
        let made = (0..plan.threads).map(|_| recipes(plan)).collect::<Result<Vec<Vec<Recipe>>, _>>()?;
        let secrecy = plan.tls.as_deref().map(|name| Secrecy::of(name, plan.protocol)).transpose()?;
        let (place, first) = find(&plan.address)?;
        let begin = Instant::now();
        let measured = begin + plan.warm_up;
        let window = Window { begin: measured, end: plan.limits.duration.map(|time| measured + time) };
        let mut first = Some(first);
        let desks = made.into_iter().enumerate().map(|(index, recipes)| {
            let share = Share { index, of: plan.threads };
            let connections = usize::try_from(share.part(plan.connections as u64)).unwrap_or(usize::MAX);
            let shared = if matches!(plan.protocol, Protocol::Http2 { .. }) { connections } else { 0 };
            Arc::new(Desk {
                pace: pace(plan, share, window, begin),
                place: place.clone(),
                secrecy: secrecy.clone(),
                timeout: plan.timeout,
                keep_alive: plan.keep_alive,
                protocol: plan.protocol,
                connections,
                streams: plan.streams(),
                shared: (0..shared).map(|_| tokio::sync::Mutex::default()).collect(),
                seed: plan.seed,
                share,
                record: Mutex::new(Record::new(recipes.len(), window)),
                recipes,
                first: Mutex::new(first.take()),
            })
        });
        Self::of(desks.collect(), window)
    }

    fn of(desks: Vec<Arc<Desk>>, window: Window) -> Result<Self, PlanError> {
        let (stop, _) = watch::channel(None);
        let running = Arc::new((Mutex::new(desks.len()), Condvar::new()));
        let handle = Handle { stop: Arc::new(stop), running };
        let mut run = Self { desks: Vec::new(), threads: Vec::new(), handle, window };
        for desk in desks {
            let (stopped, running) = (run.handle.stop.subscribe(), Arc::clone(&run.handle.running));
            let theirs = Arc::clone(&desk);
            let thread = std::thread::Builder::new()
                .name("bridgehead-load".to_owned())
                .spawn(move || {
                    let _out = Out(running);
                    turn(&theirs, stopped);
                    cpu_time()
                })
                .map_err(|error| PlanError::Numbers(format!("no thread can be started: {error}")))?;
            run.desks.push(desk);
            run.threads.push(thread);
        }
        Ok(run)
    }

    /// For whoever waits or stops.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let records: Vec<_> = self.desks.iter().map(|desk| desk.record()).collect();
        let elapsed = Instant::now().checked_duration_since(self.window.begin);
        let tallies = || records.iter().flat_map(|record| &record.tallies);
        let errors: u64 = tallies().flat_map(|tally| &tally.faults).sum();
        let timelines: Vec<&Timeline> = records.iter().map(|record| &record.timeline).collect();
        Progress {
            elapsed: elapsed.map(|elapsed| elapsed.as_secs_f64()),
            requests: errors + tallies().map(|tally| tally.latency.len()).sum::<u64>(),
            errors,
            in_flight: records.iter().map(|record| record.in_flight).sum(),
            latest: elapsed.and_then(|elapsed| Timeline::latest(&timelines, elapsed)),
        }
    }

    /// What it came to, once it is over.
    #[must_use]
    pub fn report(mut self) -> Report {
        let joined = self.threads.drain(..).map(JoinHandle::join);
        // Whoever panicked has said so; what it recorded before stays right.
        let cpu = joined.filter_map(Result::ok).sum();
        let desks = std::mem::take(&mut self.desks);
        let now = Instant::now();
        let stopped = *self.handle.stop.borrow();
        let circumstances = Circumstances {
            names: desks[0].recipes.iter().map(|recipe| recipe.name.clone()).collect(),
            unsent: desks.iter().map(|desk| desk.pace.unsent(stopped.unwrap_or(now))).sum(),
            dropped: desks.iter().map(|desk| desk.pace.dropped(stopped.unwrap_or(now))).sum(),
            is_spent: desks.iter().all(|desk| desk.pace.is_spent()),
            cpu,
            stopped,
        };
        let records = desks.into_iter().map(|desk| {
            let desk = Arc::into_inner(desk).expect("the threads that shared it have ended");
            desk.record.into_inner().unwrap_or_else(PoisonError::into_inner)
        });
        Report::new(records.collect(), circumstances)
    }

    /// Names of the kinds of errors, in the order they are shown.
    #[must_use]
    pub fn kinds() -> [&'static str; Kind::ALL.len()] {
        Kind::ALL.map(Kind::name)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.handle.stop();
        for thread in self.threads.drain(..) {
            // Its panic has been said by the hook.
            drop(thread.join());
        }
    }
}

fn pace(plan: &Plan, share: Share, window: Window, begin: Instant) -> Pace {
    let requests = plan.limits.requests.map(|requests| share.part(requests));
    let Some(rate) = plan.rate else { return Pace::closed(window, requests) };
    // Threads take turns.
    let begin = begin + Duration::from_secs_f64(share.index as f64 / rate);
    Pace::open(window, begin, Picoseconds::between(rate / share.of as f64), requests)
}

/// Counts a thread out, even one that panics.
struct Out(Arc<(Mutex<usize>, Condvar)>);

impl Drop for Out {
    fn drop(&mut self) {
        let (count, changed) = &*self.0;
        *count.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        changed.notify_all();
    }
}

/// One thread: its connections, until they are done or the run is stopped.
fn turn(desk: &Arc<Desk>, mut stopped: watch::Receiver<Option<Instant>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("the system has descriptors for one more runtime");
    runtime.block_on(async {
        let mut workers = JoinSet::new();
        for index in 0..desk.workers() {
            workers.spawn(Worker::new(Arc::clone(desk), index).work());
        }
        let all = async { while workers.join_next().await.is_some() {} };
        let paced = async {
            if let Pace::Open(open) = &desk.pace {
                let run = open.run(desk.workers(), |late| desk.record().paced(late)).await;
                run.expect("the system has descriptors for one more timer");
            }
        };
        tokio::select! {
            _ = async { tokio::join!(all, paced) } => {}
            // An error means that the run has been dropped.
            _ = stopped.wait_for(Option::is_some) => {}
        }
    });
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
