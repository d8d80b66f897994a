//! Who may run now, who waits for it and how long: permits, a queue, a deadline.
//!
//! Not what runs: a permit is taken before it begins, and whoever sees its end drops it, on whatever thread. Nor how the
//! others are told.
//!
//! Invariant: whoever waits comes in turn. A permit that comes back while somebody waits is the first one's, and nobody
//! who comes later overtakes.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

#[cfg(loom)]
use loom::sync::atomic::{AtomicUsize, Ordering};
#[cfg(loom)]
use loom::sync::{Arc, Mutex, MutexGuard};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicUsize, Ordering};
#[cfg(not(loom))]
use std::sync::{Arc, Mutex, MutexGuard};

use crate::gradient::Gradient;
use crate::look::End;

/// Set beside the number of permits that are out while somebody waits: then they change under the lock alone.
const WAITED_FOR: usize = 1 << (usize::BITS - 1);

/// How many, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionLimits {
    /// Permits; `None` is any number.
    pub permits: Option<usize>,
    /// How many may wait for one.
    pub queue: usize,
    /// How long each of them may; `None` is without end.
    pub patience: Option<Duration>,
}

/// How many may run at a time, and how many may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// That have permits.
    pub permits: usize,
    /// That wait for one.
    pub queue: usize,
}

/// Gives permits. Clones are the same.
#[derive(Clone, Debug)]
pub struct Admission(Option<Arc<Shared>>);

/// The right to run, by one admission or by two; dropping it gives it back.
#[derive(Debug)]
#[must_use = "what is admitted runs for as long as its permit is kept"]
pub struct Permit {
    of: [Option<Arc<Shared>>; 2],
    /// When it was given, where that is wanted.
    since: Option<Instant>,
}

/// Why somebody was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnedAway {
    /// As many wait as may.
    Full,
    /// It has waited for as long as it may.
    Late,
}

#[derive(Debug)]
struct Shared {
    limits: AdmissionLimits,
    // Changed where permits come back, on the loop's thread, and read on the network's.
    permits: AtomicUsize,
    // The same; who is in the queue already stays there when it gets shorter.
    places: AtomicUsize,
    adapts: Option<Adapts>,
    // Taken on the network's thread and given back on the loop's: an atomic, since both are free of waiters as a rule.
    out: AtomicUsize,
    // Those who wait come and go on the network's thread, and the loop's gives them their permits.
    queue: Mutex<Queue>,
}

/// What finds out how many permits there are to be.
struct Adapts {
    // Permits come back on the loop's thread, and those who find none come on the network's.
    gradient: Mutex<Gradient>,
    base: Instant,
    told: Box<dyn Fn(Capacity) + Send + Sync>,
}

#[derive(Debug, Default)]
struct Queue {
    /// By their numbers, which only grow.
    waiting: VecDeque<(u64, Waker)>,
    last: u64,
    /// Nobody waits any more.
    dismissed: bool,
}

impl Admission {
    /// All permits are there.
    #[must_use]
    pub fn new(limits: AdmissionLimits) -> Self {
        Self(limits.permits.map(|permits| Arc::new(Shared::new(limits, permits, None))))
    }

    /// As many as do not make each other slow, found by how long they are kept. `told` hears how many, and how many may wait,
    /// on any thread.
    #[must_use]
    pub fn adapting(limits: AdmissionLimits, told: Box<dyn Fn(Capacity) + Send + Sync>) -> Self {
        let gradient = Gradient::new(Duration::ZERO, limits.patience);
        let permits = gradient.limit();
        told(Capacity { permits, queue: limits.queue });
        let adapts = Adapts { gradient: Mutex::new(gradient), base: Instant::now(), told };
        Self(Some(Arc::new(Shared::new(limits, permits, Some(adapts)))))
    }

    /// What runs for as long as its client likes does so beside those that are counted, where they are measured.
    pub fn exempt(&self, mut permit: Permit) -> Permit {
        let Some(shared) = self.0.as_ref().filter(|shared| shared.adapts.is_some()) else { return permit };
        for each in &mut permit.of {
            if let Some(own) = each.take_if(|each| Arc::ptr_eq(each, shared)) {
                own.give_back(None);
            }
        }
        permit
    }

    /// A permit, if one is there that nobody waits for.
    #[inline]
    pub fn try_enter(&self) -> Option<Permit> {
        match &self.0 {
            None => Some(Permit::none()),
            Some(shared) => shared.try_take().then(|| Permit::of(shared)),
        }
    }

    /// Waits for a permit. `sleep` makes what ends the waiting.
    ///
    /// Dropped before its end it leaves the queue, and a permit that it was given goes to the next.
    ///
    /// # Errors
    /// When too many wait, or this one has waited for too long.
    pub async fn enter<S: Future<Output = ()>>(
        &self,
        sleep: impl FnOnce(Duration) -> S,
    ) -> Result<Permit, TurnedAway> {
        if let Some(permit) = self.try_enter() {
            return Ok(permit);
        }
        let Some(shared) = &self.0 else { return Ok(Permit::none()) };
        let mut place = match shared.line_up()? {
            Lined::Admitted => return Ok(Permit::of(shared)),
            Lined::Waits(number) => Place { shared: Arc::clone(shared), number: Some(number) },
        };
        let mut deadline = pin!(shared.limits.patience.map(sleep));
        poll_fn(|cx| {
            if let Poll::Ready(admitted) = place.poll(cx) {
                return Poll::Ready(admitted.map(|()| Permit::of(shared)));
            }
            match deadline.as_mut().as_pin_mut() {
                Some(deadline) => deadline.poll(cx).map(|()| Err(TurnedAway::Late)),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Turns away all who wait, and from here on whoever would: there is nothing left to wait for.
    pub fn dismiss(&self) {
        let Some(shared) = &self.0 else { return };
        let mut queue = shared.lock();
        queue.dismissed = true;
        let woken: Vec<_> = queue.waiting.iter().map(|(_, waker)| waker.clone()).collect();
        drop(queue);
        woken.into_iter().for_each(Waker::wake);
    }

    /// How many permits are out.
    #[must_use]
    pub fn running(&self) -> usize {
        self.0.as_ref().map_or(0, |shared| shared.out.load(Ordering::Relaxed) & !WAITED_FOR)
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.as_ref().map_or(0, |shared| shared.lock().waiting.len())
    }
}

impl Permit {
    fn none() -> Self {
        Self { of: [None, None], since: None }
    }

    fn of(shared: &Arc<Shared>) -> Self {
        Self { of: [Some(Arc::clone(shared)), None], since: shared.adapts.as_ref().map(|_| Instant::now()) }
    }

    /// Both, kept and given back together. Each is of one admission.
    pub fn and(mut self, mut other: Self) -> Self {
        Self { of: [self.of[0].take(), other.of[0].take()], since: self.since.or(other.since) }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.of.iter().flatten().for_each(|shared| shared.give_back(self.since));
    }
}

/// Where somebody stands in the queue, until it has its permit or leaves.
struct Place {
    shared: Arc<Shared>,
    number: Option<u64>,
}

enum Lined {
    /// There was a permit after all.
    Admitted,
    Waits(u64),
}

impl Place {
    /// Ready once: whoever is no more in the queue has a permit.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TurnedAway>> {
        let Some(number) = self.number else { return Poll::Ready(Ok(())) };
        let mut queue = self.shared.lock();
        if let Ok(index) = queue.find(number) {
            if queue.dismissed {
                return Poll::Ready(Err(TurnedAway::Late));
            }
            let waker = &mut queue.waiting[index].1;
            if !waker.will_wake(cx.waker()) {
                *waker = cx.waker().clone();
            }
            return Poll::Pending;
        }
        drop(queue);
        self.number = None;
        Poll::Ready(Ok(()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut queue = self.shared.lock();
        let left = queue.find(number).ok().and_then(|index| queue.waiting.remove(index));
        self.shared.settle(&queue);
        drop(queue);
        if left.is_none() {
            // Its permit came, and it does not want it any more.
            self.shared.give_back(None);
        }
    }
}

impl Queue {
    fn find(&self, number: u64) -> Result<usize, usize> {
        self.waiting.binary_search_by_key(&number, |(number, _)| *number)
    }
}

impl Shared {
    fn new(limits: AdmissionLimits, permits: usize, adapts: Option<Adapts>) -> Self {
        let permits = AtomicUsize::new(permits.min(WAITED_FOR - 1));
        let places = AtomicUsize::new(limits.queue);
        Self { limits, permits, places, adapts, out: AtomicUsize::new(0), queue: Mutex::default() }
    }

    fn permits(&self) -> usize {
        self.permits.load(Ordering::Relaxed)
    }

    /// A thread that panicked while it held the queue has left it whole.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Above all permits when somebody waits, so that nobody overtakes.
    fn try_take(&self) -> bool {
        let permits = self.permits();
        let one_more = |out: usize| (out < permits).then_some(out + 1);
        self.out.fetch_update(Ordering::Acquire, Ordering::Relaxed, one_more).is_ok()
    }

    fn line_up(&self) -> Result<Lined, TurnedAway> {
        self.adapt(Gradient::waits);
        let most = self.places.load(Ordering::Relaxed);
        let mut queue = self.lock();
        // From here on a permit comes back under this lock.
        let out = self.out.fetch_or(WAITED_FOR, Ordering::Acquire);
        if out < self.permits() {
            self.out.store(out + 1, Ordering::Release);
            return Ok(Lined::Admitted);
        }
        if queue.dismissed || queue.waiting.len() >= most {
            self.settle(&queue);
            return Err(if queue.dismissed { TurnedAway::Late } else { TurnedAway::Full });
        }
        queue.last += 1;
        let number = queue.last;
        // Its first poll, which comes next, says whom to wake.
        queue.waiting.push_back((number, Waker::noop().clone()));
        Ok(Lined::Waits(number))
    }

    /// Of who was given it then, if it is measured.
    fn give_back(&self, since: Option<Instant>) {
        self.return_one();
        if let (Some(since), Some(adapts)) = (since, &self.adapts) {
            let began = since.saturating_duration_since(adapts.base);
            let running = self.out.load(Ordering::Relaxed) & !WAITED_FOR;
            self.adapt(|gradient, now| gradient.ended(&End { began, now, running }));
        }
    }

    /// Has the limit follow, if it does.
    fn adapt(&self, news: impl FnOnce(&mut Gradient, Duration)) {
        let Some(adapts) = &self.adapts else { return };
        let mut gradient = adapts.gradient.lock().unwrap_or_else(PoisonError::into_inner);
        news(&mut gradient, adapts.base.elapsed());
        let room = Capacity {
            permits: gradient.limit(),
            queue: gradient.queue().map_or(self.limits.queue, |most| most.min(self.limits.queue)),
        };
        let before = Capacity {
            permits: self.permits.swap(room.permits, Ordering::Relaxed),
            queue: self.places.swap(room.queue, Ordering::Relaxed),
        };
        if room != before {
            // Under the lock, so that what is told last is how it is.
            (adapts.told)(room);
        }
        drop(gradient);
        if room.permits > before.permits {
            self.hand_out();
        }
    }

    /// There are more permits than before: those who wait have them first.
    fn hand_out(&self) {
        let mut queue = self.lock();
        let mut woken = Vec::new();
        while !queue.waiting.is_empty() && self.out.load(Ordering::Relaxed) & !WAITED_FOR < self.permits() {
            // Somebody waits, so it changes under this lock alone.
            self.out.fetch_add(1, Ordering::Acquire);
            woken.extend(queue.waiting.pop_front());
        }
        self.settle(&queue);
        drop(queue);
        woken.into_iter().for_each(|(_, waker)| waker.wake());
    }

    fn return_one(&self) {
        let one_less = |out: usize| (out & WAITED_FOR == 0).then(|| out - 1);
        if self.out.fetch_update(Ordering::Release, Ordering::Relaxed, one_less).is_ok() {
            return;
        }
        let mut queue = self.lock();
        // Where there are fewer than before, it is nobody's.
        let too_many = self.out.load(Ordering::Relaxed) & !WAITED_FOR > self.permits();
        let next = if too_many { None } else { queue.waiting.pop_front() };
        if next.is_none() {
            // Whoever waited has left meanwhile, and the mark with it; or there are too many.
            self.out.fetch_sub(1, Ordering::Release);
        }
        self.settle(&queue);
        drop(queue);
        if let Some((_, waker)) = next {
            waker.wake();
        }
    }

    /// Takes the mark away once nobody waits. Called under the lock.
    fn settle(&self, queue: &Queue) {
        if queue.waiting.is_empty() {
            self.out.fetch_and(!WAITED_FOR, Ordering::Release);
        }
    }
}

// A gradient is not for the loom, and what is told is anything.
impl std::fmt::Debug for Adapts {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Adapts").field("gradient", &self.gradient).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::future::{Pending, pending};
    use std::pin::Pin;
    use std::task::Wake;
    use std::thread::{self, Thread};

    /// Whoever waits in `block_on`.
    struct Sleeper(Thread);

    impl Wake for Sleeper {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let waker = Waker::from(Arc::new(Sleeper(thread::current())));
        let mut future = pin!(future);
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(done) => return done,
                Poll::Pending => thread::park(),
            }
        }
    }

    fn admission(permits: usize, queue: usize) -> Admission {
        Admission::new(AdmissionLimits {
            permits: Some(permits),
            queue,
            patience: Some(Duration::from_secs(1)),
        })
    }

    type Entry = Pin<Box<dyn Future<Output = Result<Permit, TurnedAway>>>>;

    fn entry(admission: &Admission) -> Entry {
        let admission = admission.clone();
        Box::pin(async move { admission.enter(|_| -> Pending<()> { pending() }).await })
    }

    fn poll(entry: &mut Entry) -> Poll<Result<Permit, TurnedAway>> {
        entry.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    fn admitted(entry: &mut Entry) -> Permit {
        match poll(entry) {
            Poll::Ready(Ok(permit)) => permit,
            other => panic!("a permit was due, not {other:?}"),
        }
    }

    #[test]
    fn permits_are_given_until_they_are_out_and_again_when_they_are_back() {
        let admission = admission(2, 0);
        let first = admission.try_enter().expect("a permit");
        let _second = admission.try_enter().expect("a permit");
        assert!(admission.try_enter().is_none());
        assert_eq!(admission.running(), 2);
        drop(first);
        assert!(admission.try_enter().is_some());
    }

    #[test]
    fn who_waits_comes_in_turn_and_nobody_overtakes() {
        let admission = admission(1, 2);
        let running = admission.try_enter().expect("a permit");
        let (mut first, mut second) = (entry(&admission), entry(&admission));
        assert!(poll(&mut first).is_pending() && poll(&mut second).is_pending());
        assert_eq!(admission.waiting(), 2);
        drop(running);
        assert!(admission.try_enter().is_none(), "it is the first one's");
        assert!(poll(&mut second).is_pending());
        let running = admitted(&mut first);
        drop(running);
        let _running = admitted(&mut second);
        assert_eq!((admission.running(), admission.waiting()), (1, 0));
    }

    #[test]
    fn a_full_queue_turns_away_and_leaves_no_mark() {
        let admission = admission(1, 1);
        let running = admission.try_enter().expect("a permit");
        let mut first = entry(&admission);
        assert!(poll(&mut first).is_pending());
        assert!(matches!(poll(&mut entry(&admission)), Poll::Ready(Err(TurnedAway::Full))));
        drop((first, running));
        assert_eq!((admission.running(), admission.waiting()), (0, 0));
        assert!(admission.try_enter().is_some());
    }

    #[test]
    fn a_queue_of_none_turns_away_at_once() {
        let admission = admission(1, 0);
        let running = admission.try_enter().expect("a permit");
        assert!(matches!(poll(&mut entry(&admission)), Poll::Ready(Err(TurnedAway::Full))));
        drop(running);
        assert!(admission.try_enter().is_some());
    }

    #[test]
    fn who_has_waited_too_long_is_turned_away_and_leaves_the_queue() {
        let admission = admission(1, 1);
        let _running = admission.try_enter().expect("a permit");
        let late = admission.clone();
        let mut entry: Entry = Box::pin(async move { late.enter(|_| std::future::ready(())).await });
        assert!(matches!(poll(&mut entry), Poll::Ready(Err(TurnedAway::Late))));
        assert_eq!((admission.running(), admission.waiting()), (1, 0));
    }

    #[test]
    fn who_leaves_lets_the_next_have_its_permit() {
        let admission = admission(1, 3);
        let running = admission.try_enter().expect("a permit");
        let mut entries: Vec<_> = (0..3).map(|_| entry(&admission)).collect();
        assert!(entries.iter_mut().all(|entry| poll(entry).is_pending()));
        // One leaves while it waits, one with a permit that it has not taken.
        drop(entries.remove(1));
        drop(running);
        drop(entries.remove(0));
        drop(admitted(&mut entries[0]));
        assert_eq!((admission.running(), admission.waiting()), (0, 0));
    }

    #[test]
    fn who_waits_is_turned_away_when_there_is_nothing_left_to_wait_for() {
        let admission = admission(1, 2);
        let running = admission.try_enter().expect("a permit");
        let (mut first, mut second) = (entry(&admission), entry(&admission));
        assert!(poll(&mut first).is_pending() && poll(&mut second).is_pending());
        admission.dismiss();
        for waiting in [&mut first, &mut second, &mut entry(&admission)] {
            assert!(matches!(poll(waiting), Poll::Ready(Err(TurnedAway::Late))));
        }
        drop((first, second, running));
        assert_eq!((admission.running(), admission.waiting()), (0, 0));
        assert!(admission.try_enter().is_some(), "what needs no waiting may run");
    }

    #[test]
    fn without_a_limit_everybody_is_admitted() {
        let admission = Admission::new(AdmissionLimits { permits: None, queue: 0, patience: None });
        let permits: Vec<_> = (0..10_000).filter_map(|_| admission.try_enter()).collect();
        assert_eq!(permits.len(), 10_000);
    }

    #[test]
    fn permits_that_many_threads_take_and_give_back_are_never_more_than_there_are() {
        let admission = admission(3, 1000);
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let entered = admission.enter(|_| pending());
                        let permit = block_on(entered).expect("the queue is long");
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(permit);
                    }
                });
            }
        });
        assert!(most.load(Ordering::SeqCst) <= 3);
        assert_eq!((admission.running(), admission.waiting()), (0, 0));
    }
}
