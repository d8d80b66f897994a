//! Runs the network's tasks wherever it is polled, and knows when none of them is ready, and when the next one will be.
//!
//! Tokio's own scheduler does not say when it is idle, and pays a system call for each wake from a thread that is not
//! its own. Here a wake is a push; whoever polls, or has gone to wait for Tokio's driver, is told once.
//!
//! Not a driver: sockets are Tokio's, so it has to be polled inside its runtime.
//!
//! What an application has just answered goes first, while its connection is still in the processor's caches: with a
//! thousand clients, whoever takes them in turn finds nothing there.
//!
//! Invariant: a task is in one of the queues, and there once, or in none; of each queue as many are polled in a round as of
//! the other, if they are there; and a panic ends the task it came from and nothing else.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use crate::http_date;
use crate::summons::Summons;
use crate::timers::{Sleep, Timers};

/// Polls of tasks before somebody else has its turn, for each of the two queues.
const POLLS: u32 = 32;

/// How long tasks are polled before somebody else has its turn.
const TIME: Duration = Duration::from_millis(1);

/// So many tasks are taken out of the queues at once. After them the clock is looked at, which takes as long as the
/// cheapest of them.
const LOOKED_AT: usize = 4;

/// The tasks of one worker's network. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Executor(Arc<Shared>);

impl PartialEq for Executor {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Executor {}

#[derive(Debug, Default)]
struct Shared {
    // Pushed to by whoever wakes a task, which may be any thread; emptied by whoever polls.
    queue: Mutex<Queue>,
    timers: Timers,
}

#[derive(Debug, Default)]
struct Queue {
    /// Woken by sockets, timers and each other.
    ready: VecDeque<Arc<Task>>,
    /// Woken by the application.
    answered: VecDeque<Arc<Task>>,
    who: Who,
    /// Who waits for work.
    waiting: Option<Waker>,
}

/// Who has the thread that turns the network, and so wakes tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Who {
    #[default]
    Network,
    Application,
}

/// What is left for tasks until somebody else has its turn: so many of each queue, and the time for them.
#[derive(Debug)]
pub struct Share {
    ready: u32,
    answered: u32,
    // The clock is not looked at before there is a task.
    until: Option<Instant>,
}

impl Default for Share {
    fn default() -> Self {
        Self::of(POLLS)
    }
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Task {
    // Polled by one thread at a time, though which one may change.
    work: Mutex<Option<Work>>,
    summons: Summons,
    executor: Weak<Shared>,
}

/// What a round of polls came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// No task is ready.
    Idle,
    /// As many were polled as were allowed, and more are ready.
    Cut,
}

impl Share {
    fn of(polls: u32) -> Self {
        Self { ready: polls, answered: polls, until: None }
    }
}

impl Executor {
    /// Adds a task; it is ready.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let task = Task {
            work: Mutex::new(Some(Box::pin(work))),
            summons: Summons::called(),
            executor: Arc::downgrade(&self.0),
        };
        self.0.push(Arc::new(task));
    }

    /// Polls tasks as far as their share allows, and no more than `LOOKED_AT` once its time is over.
    #[must_use]
    pub fn run(&self, share: &mut Share) -> Round {
        let mut tasks = self.0.next(share);
        if tasks[0].is_none() {
            // What is left of the share may be for the other queue.
            return if share.until.is_none() { Round::Idle } else { self.round() };
        }
        let now = Instant::now();
        http_date::look(now);
        let until = *share.until.get_or_insert(now + TIME);
        loop {
            let mut polled = 0;
            for task in tasks.into_iter().flatten() {
                task.poll();
                polled += 1;
            }
            if polled == LOOKED_AT && Instant::now() >= until {
                (share.ready, share.answered) = (0, 0);
                break;
            }
            tasks = self.0.next(share);
            if tasks[0].is_none() {
                break;
            }
        }
        self.round()
    }

    fn round(&self) -> Round {
        if self.is_ready() { Round::Cut } else { Round::Idle }
    }

    /// Whether a task is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.lock().is_filled()
    }

    /// The network has its turn, and nobody has to be woken for it.
    pub fn begin_turn(&self) {
        self.0.give_to(Who::Network);
    }

    /// It has had it: what comes now is the application's, and is kept for whoever runs next.
    pub fn end_turn(&self) {
        self.0.give_to(Who::Application);
    }

    /// The first deadline of a task.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.0.timers.next()
    }

    /// Wakes the tasks whose deadline has passed. To be called once Tokio's driver has been asked.
    pub fn fire(&self) {
        self.0.timers.fire();
    }

    /// Waits for an instant, in a task of this executor.
    #[must_use]
    #[inline]
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        self.0.timers.sleep_until(deadline)
    }

    /// Waits, in a task of this executor.
    #[must_use]
    #[inline]
    pub fn sleep(&self, time: Duration) -> Sleep {
        self.sleep_until(Instant::now() + time)
    }

    /// Has every task look again that waits for an instant.
    pub fn wake_sleepers(&self) {
        self.0.timers.wake_all();
    }

    /// Lets go of the tasks that are left: nobody runs them any more.
    pub fn abandon(&self) {
        let mut queue = self.0.lock();
        let left = (std::mem::take(&mut queue.ready), std::mem::take(&mut queue.answered));
        drop(queue);
        drop(left);
        self.0.timers.clear();
    }

    /// Runs tasks, and waits for more, until `end` does.
    pub async fn drive(&self, end: impl Future<Output = ()>) {
        let mut end = pin!(end);
        let mut alarm = Alarm::default();
        poll_fn(|cx| {
            // Tokio has asked its driver since the last time, but for the first, when nobody sleeps yet.
            self.fire();
            let round = self.run(&mut Share::default());
            if end.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            let late = alarm.poll(self.next_deadline(), cx).is_ready();
            if round == Round::Cut || self.poll_work(cx).is_ready() || late {
                // The driver has its turn in between.
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await;
    }

    /// Has the task that `cx` belongs to woken when there is work. Pending when there is none.
    pub fn poll_work(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut queue = self.0.lock();
        if queue.is_filled() {
            return Poll::Ready(());
        }
        match &mut queue.waiting {
            Some(waiting) => waiting.clone_from(cx.waker()),
            None => queue.waiting = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// This one does not wait any more; somebody else who does is told as before.
    pub fn retire(&self, waker: &Waker) {
        let mut queue = self.0.lock();
        if queue.waiting.as_ref().is_some_and(|waiting| waiting.will_wake(waker)) {
            let waiting = queue.waiting.take();
            drop(queue);
            drop(waiting);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those whose turn it is, in their order.
    fn next(&self, share: &mut Share) -> [Option<Arc<Task>>; LOOKED_AT] {
        let mut queue = self.lock();
        std::array::from_fn(|_| queue.next(share))
    }

    fn give_to(&self, who: Who) {
        let mut queue = self.lock();
        queue.who = who;
        let waiting = queue.waiting.take();
        drop(queue);
        drop(waiting);
    }

    fn push(&self, task: Arc<Task>) {
        let mut queue = self.lock();
        match queue.who {
            Who::Network => queue.ready.push_back(task),
            Who::Application => queue.answered.push_back(task),
        }
        let waiting = queue.waiting.take();
        drop(queue);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
}

impl Queue {
    fn next(&mut self, share: &mut Share) -> Option<Arc<Task>> {
        if share.answered > 0
            && let Some(task) = self.answered.pop_front()
        {
            share.answered -= 1;
            return Some(task);
        }
        share.ready = share.ready.checked_sub(1)?;
        self.ready.pop_front()
    }

    fn is_filled(&self) -> bool {
        !self.ready.is_empty() || !self.answered.is_empty()
    }
}

/// Tokio's timer for the first of our deadlines: whoever waits for its driver is woken for it.
#[derive(Debug, Default)]
pub struct Alarm(Option<Pin<Box<tokio::time::Sleep>>>);

impl Alarm {
    /// Ready when `deadline` has passed; else the task of `cx` is woken then. Woken early once in a while, and never
    /// late: an alarm for an earlier instant is left as it is.
    pub fn poll(&mut self, deadline: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = deadline else { return Poll::Pending };
        if deadline <= Instant::now() {
            return Poll::Ready(());
        }
        let deadline = tokio::time::Instant::from_std(deadline);
        let alarm = self.0.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if alarm.deadline() > deadline || alarm.is_elapsed() {
            alarm.as_mut().reset(deadline);
        }
        if alarm.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        alarm.as_mut().reset(deadline);
        alarm.as_mut().poll(cx)
    }
}

impl Task {
    fn poll(self: Arc<Self>) {
        self.summons.answer();
        let waker = Waker::from(Arc::clone(&self));
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(running) = work.as_mut() else { return };
        let polled =
            catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(&mut Context::from_waker(&waker))));
        // The panic's hook has said what it was.
        if !matches!(polled, Ok(Poll::Pending)) {
            let over = work.take();
            drop(work);
            drop(over);
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if self.summons.call()
            && let Some(executor) = self.executor.upgrade()
        {
            executor.push(self);
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.summons.call()
            && let Some(executor) = self.executor.upgrade()
        {
            executor.push(Arc::clone(self));
        }
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Task").field("summons", &self.summons).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Counts its polls, and says how to wake it.
    fn counted(executor: &Executor, last: u32) -> (Arc<AtomicU32>, Arc<Mutex<Option<Waker>>>) {
        let (polls, waker) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(None)));
        let (counted, told) = (Arc::clone(&polls), Arc::clone(&waker));
        executor.spawn(poll_fn(move |cx| {
            *told.lock().expect("one thread") = Some(cx.waker().clone());
            if counted.fetch_add(1, Ordering::Relaxed) + 1 == last { Poll::Ready(()) } else { Poll::Pending }
        }));
        (polls, waker)
    }

    #[test]
    fn a_task_is_polled_once_however_often_it_is_woken() {
        let executor = Executor::default();
        let (polls, waker) = counted(&executor, 10);
        assert_eq!(executor.run(&mut Share::of(64)), Round::Idle);
        let waker = waker.lock().expect("one thread").clone().expect("it was polled");
        waker.wake_by_ref();
        waker.wake_by_ref();
        assert_eq!(executor.run(&mut Share::of(64)), Round::Idle);
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_task_that_is_over_is_not_polled_again() {
        let executor = Executor::default();
        let (polls, waker) = counted(&executor, 1);
        assert_eq!(executor.run(&mut Share::of(64)), Round::Idle);
        waker.lock().expect("one thread").clone().expect("it was polled").wake();
        assert_eq!(executor.run(&mut Share::of(64)), Round::Idle);
        assert_eq!(polls.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_round_is_cut_while_tasks_are_ready() {
        let executor = Executor::default();
        (0..3).for_each(|_| executor.spawn(async {}));
        assert_eq!(executor.run(&mut Share::of(2)), Round::Cut);
        assert_eq!(executor.run(&mut Share::of(2)), Round::Idle);
    }

    #[test]
    fn a_share_is_for_all_rounds_of_a_turn() {
        let executor = Executor::default();
        (0..3).for_each(|_| executor.spawn(async {}));
        let mut share = Share::of(2);
        assert_eq!(executor.run(&mut share), Round::Cut);
        assert_eq!(executor.run(&mut share), Round::Cut, "nothing is left of it");
        assert_eq!(executor.run(&mut Share::of(1)), Round::Idle);
    }

    #[test]
    fn what_the_application_wakes_goes_first_and_leaves_half_of_a_round_to_others() {
        let executor = Executor::default();
        let order = Arc::new(Mutex::new(Vec::new()));
        let spawn = |name: &'static str| {
            let order = Arc::clone(&order);
            executor.spawn(async move { order.lock().expect("one thread").push(name) });
        };
        (0..2).for_each(|_| spawn("socket"));
        executor.end_turn();
        (0..3).for_each(|_| spawn("answer"));
        executor.begin_turn();
        assert_eq!(executor.run(&mut Share::of(2)), Round::Cut);
        assert_eq!(*order.lock().expect("one thread"), ["answer", "answer", "socket", "socket"]);
        assert_eq!(executor.run(&mut Share::of(2)), Round::Idle);
    }

    #[test]
    fn a_panic_ends_its_task_alone() {
        let executor = Executor::default();
        executor.spawn(async { panic!("on purpose") });
        let (polls, _) = counted(&executor, 1);
        // Telling of a panic may take its millisecond.
        while executor.run(&mut Share::of(64)) == Round::Cut {}
        assert_eq!(polls.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn who_waits_is_woken_by_the_first_push_and_who_left_is_not() {
        struct Count(AtomicU32);
        impl Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let (executor, count) = (Executor::default(), Arc::new(Count(AtomicU32::new(0))));
        let waker = Waker::from(Arc::clone(&count));
        let other = Waker::from(Arc::new(Count(AtomicU32::new(0))));
        assert!(executor.poll_work(&mut Context::from_waker(&waker)).is_pending());
        executor.retire(&other);
        executor.spawn(async {});
        executor.spawn(async {});
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert_eq!(executor.run(&mut Share::of(64)), Round::Idle);
        assert!(executor.poll_work(&mut Context::from_waker(&waker)).is_pending());
        executor.begin_turn();
        executor.spawn(async {});
        assert_eq!(executor.run(&mut Share::of(64)), Round::Idle);
        assert!(executor.poll_work(&mut Context::from_waker(&waker)).is_pending());
        executor.retire(&waker);
        executor.spawn(async {});
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }
}
