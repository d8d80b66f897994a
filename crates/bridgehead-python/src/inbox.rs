//! What the network has for the loop's thread: one queue, one wake a burst.
//!
//! No Python in this file. The network's thread pushes; the loop's thread takes batches and arms the queue again when
//! it found it empty.
//!
//! A wake is cleared when a drain has looked, not when it begins to: a handler that turns the loop within the drain's step finds
//! it, and that turn drains what came since.
//!
//! Invariant: an event that is pushed is followed by a wake, or by a drain that has not yet looked.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
#[cfg(not(loom))]
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use bridgehead_net::{Arrival, Beat, Report, Token};
#[cfg(loom)]
use loom::sync::{Mutex, MutexGuard};

use crate::wake::Wake;

/// New requests that may wait for the loop; above this the network answers 503 itself.
pub(crate) const ARRIVALS: usize = 4096;

/// Lines that may wait for the loop; above this they are lost, and counted.
const REPORTS: usize = 4096;

/// Something that happened on the network's side.
#[derive(Debug)]
pub(crate) enum Event {
    /// A request to be started.
    Arrived(Box<Arrival>),
    /// What this exchange parked for may have come.
    Progress(Token),
    /// There is room again for what this exchange sends, or nobody reads it any more.
    Room(Token),
    /// The handler of this exchange is to end.
    Cancel(Token),
    /// Something that Python's loggers are to have.
    Report(Report),
    /// A body that was lent to the network has come back.
    Returned,
    /// So many reports found no room.
    Lost(u64),
    /// Every connection is gone, and no new one is let in.
    Finished,
}

/// A question when the loop comes.
#[derive(Debug)]
pub(crate) struct Probe(pub(crate) Arc<OnceLock<Instant>>);

impl Probe {
    /// Now.
    pub(crate) fn answer(self) {
        // Nobody else has it.
        let _ = self.0.set(Instant::now());
    }
}

/// The queue. Its length is bounded by [`ARRIVALS`], [`REPORTS`] and one `Lost`, one `Progress` and one `Room` for each exchange that
/// waits, one `Cancel` for each, one `Returned` and one `Finished`.
#[derive(Debug)]
pub(crate) struct Inbox {
    // Pushed to by Tokio's thread, emptied by the loop's; held for a push or a batch.
    queue: Mutex<Queue>,
    wake: Wake,
    // The loop's thread only: whether the wake may be there to be cleared.
    woken: AtomicBool,
}

#[derive(Debug)]
struct Queue {
    events: VecDeque<Event>,
    arrivals: usize,
    reports: usize,
    lost: u64,
    /// Somebody asks whether the loop lives.
    beat: Option<Beat>,
    /// Somebody asks when it comes.
    probe: Option<Probe>,
    watch: LoopState,
}

impl Queue {
    fn is_filled(&self) -> bool {
        !self.events.is_empty() || self.beat.is_some() || self.probe.is_some()
    }
}

/// What the loop's thread does about the queue.
#[derive(Debug, PartialEq, Eq)]
enum LoopState {
    /// It has seen an empty queue and waits for the wake.
    Armed,
    /// The wake was sent and is not yet cleared.
    Woken,
    /// It will look again by itself.
    Draining,
}

impl Inbox {
    pub(crate) fn new(wake: Wake) -> Self {
        let queue = Queue {
            events: VecDeque::new(),
            arrivals: 0,
            reports: 0,
            lost: 0,
            beat: None,
            probe: None,
            watch: LoopState::Armed,
        };
        Self { queue: Mutex::new(queue), wake, woken: AtomicBool::new(false) }
    }

    pub(crate) fn wake(&self) -> &Wake {
        &self.wake
    }

    /// Whether something waits.
    pub(crate) fn is_filled(&self) -> bool {
        self.lock().is_filled()
    }

    /// How many requests wait to be started.
    pub(crate) fn arrivals(&self) -> usize {
        self.lock().arrivals
    }

    /// Queues a new request, unless too many wait.
    pub(crate) fn arrive(&self, arrival: Box<Arrival>) -> Result<(), Box<Arrival>> {
        let mut queue = self.lock();
        if queue.arrivals >= ARRIVALS {
            return Err(arrival);
        }
        queue.arrivals += 1;
        self.push_into(queue, Event::Arrived(arrival));
        Ok(())
    }

    /// Queues a line, unless too many wait.
    pub(crate) fn report(&self, report: Report) {
        let mut queue = self.lock();
        if queue.reports >= REPORTS {
            queue.lost += 1;
            return;
        }
        queue.reports += 1;
        self.push_into(queue, Event::Report(report));
    }

    pub(crate) fn push(&self, event: Event) {
        self.push_into(self.lock(), event);
    }

    /// Has the loop's thread answer, the next time it looks.
    pub(crate) fn ask(&self, beat: Beat) {
        let mut queue = self.lock();
        queue.beat = Some(beat);
        self.wake_for(queue);
    }

    /// The same, and it says when.
    pub(crate) fn probe(&self, probe: Probe) {
        let mut queue = self.lock();
        queue.probe = Some(probe);
        self.wake_for(queue);
    }

    fn push_into(&self, mut queue: MutexGuard<'_, Queue>, event: Event) {
        queue.events.push_back(event);
        self.wake_for(queue);
    }

    fn wake_for(&self, mut queue: MutexGuard<'_, Queue>) {
        if queue.watch == LoopState::Armed {
            queue.watch = LoopState::Woken;
            drop(queue);
            self.wake.signal();
        }
    }

    /// The loop's thread begins to look.
    pub(crate) fn open(&self) {
        let mut queue = self.lock();
        let came_back = std::mem::replace(&mut queue.watch, LoopState::Draining) == LoopState::Draining;
        let (beat, probe) = (queue.beat.take(), queue.probe.take());
        drop(queue);
        if let Some(probe) = probe {
            probe.answer();
        }
        if let Some(beat) = beat {
            beat.answer();
        }
        // Also when it was not woken: a drain that nobody asked for may have overtaken the wake, which would never end.
        if !came_back {
            self.woken.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn take(&self) -> Option<Event> {
        let mut queue = self.lock();
        let event = queue.events.pop_front();
        match event {
            Some(Event::Arrived(_)) => queue.arrivals -= 1,
            Some(Event::Report(_)) => {
                queue.reports -= 1;
                if queue.reports == 0 && queue.lost > 0 {
                    let lost = std::mem::take(&mut queue.lost);
                    queue.events.push_back(Event::Lost(lost));
                }
            }
            _ => {}
        }
        event
    }

    /// The loop's thread stops looking: true when it has to come back by itself, since something is left.
    pub(crate) fn close(&self) -> bool {
        if self.woken.swap(false, Ordering::Relaxed) {
            self.wake.clear();
        }
        let mut queue = self.lock();
        if queue.is_filled() {
            return true;
        }
        queue.watch = LoopState::Armed;
        false
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::wake::Descriptor;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::sync::Arc;

    fn inbox() -> Inbox {
        Inbox::new(Wake::Descriptor(Descriptor::new().expect("a descriptor")))
    }

    fn token(event: Option<Event>) -> Option<usize> {
        match event {
            Some(Event::Progress(Token(number))) => Some(number),
            _ => None,
        }
    }

    #[test]
    fn a_burst_is_one_wake() {
        let inbox = inbox();
        inbox.push(Event::Progress(Token(1)));
        assert_eq!(inbox.lock().watch, LoopState::Woken);
        inbox.push(Event::Progress(Token(2)));
        inbox.open();
        assert_eq!((token(inbox.take()), token(inbox.take()), token(inbox.take())), (Some(1), Some(2), None));
        assert!(!inbox.close());
    }

    #[test]
    fn what_comes_while_the_loop_drains_is_not_lost() {
        let inbox = inbox();
        inbox.push(Event::Progress(Token(1)));
        inbox.open();
        assert_eq!(token(inbox.take()), Some(1));
        inbox.push(Event::Progress(Token(2)));
        assert!(inbox.close(), "something is left, so the loop comes back");
    }

    #[test]
    fn who_looks_within_a_step_of_the_drain_is_woken_for_what_came_since() {
        let inbox = inbox();
        let is_woken = |inbox: &Inbox| {
            let Wake::Descriptor(descriptor) = &inbox.wake else { panic!("a descriptor") };
            let mut asked = [PollFd::new(descriptor, PollFlags::IN)];
            poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("a poll") == 1
        };
        inbox.push(Event::Progress(Token(1)));
        inbox.open();
        assert_eq!(token(inbox.take()), Some(1));
        inbox.push(Event::Progress(Token(2)));
        for number in 2..5 {
            assert!(is_woken(&inbox));
            inbox.open();
            assert_eq!(token(inbox.take()), Some(number));
            assert!(!inbox.close());
            assert!(!is_woken(&inbox));
            inbox.push(Event::Progress(Token(number + 1)));
        }
        assert_eq!(token(inbox.take()), Some(5));
        assert!(!inbox.close());
        assert!(is_woken(&inbox), "once more, for nothing");
        inbox.open();
        assert!(!inbox.close());
        assert!(!is_woken(&inbox));
    }

    #[test]
    fn lines_that_find_no_room_are_counted_and_told_once_there_is() {
        let inbox = inbox();
        let report = |number: usize| Report::Refused {
            client: number.to_string(),
            reason: String::new(),
            trace: None,
        };
        inbox.push(Event::Progress(Token(1)));
        (0..REPORTS + 3).for_each(|number| inbox.report(report(number)));
        assert_eq!(token(inbox.take()), Some(1));
        for number in 0..REPORTS {
            let Some(Event::Report(Report::Refused { client, .. })) = inbox.take() else {
                panic!("a report")
            };
            assert_eq!(client, number.to_string());
        }
        assert!(matches!(inbox.take(), Some(Event::Lost(3))));
        inbox.report(report(0));
        assert!(matches!(inbox.take(), Some(Event::Report(_))));
        assert!(inbox.take().is_none());
    }

    #[test]
    fn every_event_of_many_threads_is_taken() {
        let inbox = Arc::new(inbox());
        let pushers: Vec<_> = (0..4)
            .map(|_| {
                let inbox = Arc::clone(&inbox);
                std::thread::spawn(move || (0..1000).for_each(|n| inbox.push(Event::Progress(Token(n)))))
            })
            .collect();
        let mut taken = 0;
        while taken < 4000 {
            inbox.open();
            while inbox.take().is_some() {
                taken += 1;
            }
            inbox.close();
        }
        pushers.into_iter().for_each(|pusher| pusher.join().expect("a pusher"));
        assert!(inbox.take().is_none());
    }
}
