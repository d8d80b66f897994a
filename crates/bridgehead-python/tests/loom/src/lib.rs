//! Proves the inbox's protocol in every order that its threads may take: what is pushed is seen, by one wake a burst. And those
//! of the bell and of the standby (`attendance.rs`). And that a slow step is counted once, and its request read whole.
//!
//! `inbox.rs`, `bell.rs`, `presence.rs`, `counted.rs` and `heading.rs` themselves are compiled here, with loom's locks and atomics; what they need of other
//! files is modelled below. A thread that waits for a wake which never comes is a deadlock, and loom says so.

#![cfg(all(loom, test))]
#![allow(dead_code, reason = "these files have more callers elsewhere")]
// `inbox.rs` says `bridgehead_net`, which is this crate here.
extern crate self as bridgehead_net;

#[path = "../../../src/bell.rs"]
mod bell;
#[path = "../../../src/counted.rs"]
mod counted;
#[path = "../../../src/heading.rs"]
mod heading;
#[path = "../../../src/inbox.rs"]
mod inbox;
#[path = "../../../src/presence.rs"]
mod presence;

mod attendance;

/// A request, as far as the inbox looks at it.
#[derive(Debug)]
pub struct Arrival(pub usize);

/// Names one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub usize);

/// A question whether the loop lives.
#[derive(Debug)]
pub struct Beat;

impl Beat {
    pub fn answer(self) {}
}

/// Something for Python's loggers.
#[derive(Debug)]
pub struct Report(pub usize);

/// A piece of an answer that waits for more.
#[derive(Debug)]
pub struct Kept;

mod pace {
    /// Who looks after the loop: nobody here.
    #[derive(Debug)]
    pub(crate) struct Pace;

    impl Pace {
        pub(crate) fn rouse(&self) {}
    }
}

mod fused {
    //! A network whose readiness only says itself by its queue, as that of a task which another thread wakes.

    use loom::sync::Mutex;

    use crate::wake::Descriptor;

    #[derive(Debug)]
    pub(crate) struct Fused(pub(crate) Mutex<bool>);

    impl Fused {
        pub(crate) fn push(&self) {
            *self.0.lock().expect("no thread panics") = true;
        }

        pub(crate) fn is_overdue(&self) -> bool {
            *self.0.lock().expect("no thread panics")
        }

        pub(crate) fn wait_beside(&self, rouser: &Descriptor) {
            rouser.wait();
        }
    }
}

mod wake {
    //! The eventfd: readable from the first signal until it is cleared.

    use std::io;

    use loom::sync::{Condvar, Mutex};

    /// One for whoever is not the inbox.
    #[derive(Debug)]
    pub(crate) struct Descriptor(Wake);

    impl Descriptor {
        // As the true one, which the system may refuse.
        #[allow(clippy::unnecessary_wraps)]
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self(Wake::new()))
        }

        pub(crate) fn signal(&self) {
            self.0.signal();
        }

        pub(crate) fn clear(&self) {
            self.0.clear();
        }

        pub(crate) fn wait(&self) {
            self.0.wait();
        }

        pub(crate) fn is_quiet(&self) -> bool {
            self.0.is_quiet()
        }
    }

    #[derive(Debug)]
    pub(crate) struct Wake {
        signals: Mutex<Signals>,
        came: Condvar,
    }

    #[derive(Debug, Default)]
    struct Signals {
        uncleared: usize,
        ever: usize,
    }

    impl Wake {
        pub(crate) fn new() -> Self {
            Self { signals: Mutex::new(Signals::default()), came: Condvar::new() }
        }

        pub(crate) fn signal(&self) {
            let mut signals = self.signals.lock().expect("no thread panics");
            signals.uncleared += 1;
            signals.ever += 1;
            drop(signals);
            self.came.notify_one();
        }

        pub(crate) fn clear(&self) {
            self.signals.lock().expect("no thread panics").uncleared = 0;
        }

        /// The loop's poll.
        pub(crate) fn wait(&self) {
            let mut signals = self.signals.lock().expect("no thread panics");
            while signals.uncleared == 0 {
                signals = self.came.wait(signals).expect("no thread panics");
            }
        }

        pub(crate) fn ever(&self) -> usize {
            self.signals.lock().expect("no thread panics").ever
        }

        pub(crate) fn is_quiet(&self) -> bool {
            self.signals.lock().expect("no thread panics").uncleared == 0
        }
    }
}

mod tests {
    use super::inbox::{Event, Inbox};
    use super::wake::Wake;
    use super::{Arrival, Token};
    use loom::sync::Arc;
    use loom::thread;

    /// The loop's thread, as `drain.rs` is: polls, opens, takes at most `batch`, closes, and comes back by itself while
    /// something is left. Ends once it has seen so many events; gives their tokens and how often it polled.
    fn drain(inbox: &Inbox, batch: usize, expected: usize) -> (Vec<usize>, usize) {
        drain_from(inbox, Begins::ByAWake, batch, expected)
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Begins {
        ByAWake,
        ByItself,
    }

    fn drain_from(inbox: &Inbox, begins: Begins, batch: usize, expected: usize) -> (Vec<usize>, usize) {
        let (mut seen, mut polls, mut comes_back) = (Vec::new(), 0, begins == Begins::ByItself);
        loop {
            if !comes_back {
                if seen.len() == expected {
                    return (seen, polls);
                }
                inbox.wake().wait();
                polls += 1;
            }
            inbox.open();
            for _ in 0..batch {
                match inbox.take() {
                    Some(Event::Progress(token) | Event::Room(token) | Event::Cancel(token)) => {
                        seen.push(token.0)
                    }
                    Some(Event::Report(report)) => seen.push(report.0),
                    Some(Event::Returned | Event::Lost(_)) => {}
                    Some(Event::Arrived(arrival)) => seen.push(arrival.0),
                    Some(Event::Finished) => seen.push(usize::MAX),
                    None => break,
                }
            }
            comes_back = inbox.close();
        }
    }

    fn push(inbox: &Arc<Inbox>, tokens: std::ops::Range<usize>) -> thread::JoinHandle<()> {
        let inbox = Arc::clone(inbox);
        thread::spawn(move || tokens.for_each(|number| inbox.push(Event::Progress(Token(number)))))
    }

    #[test]
    fn every_event_of_one_thread_is_seen_in_its_order() {
        loom::model(|| {
            let inbox = Arc::new(Inbox::new(Wake::new()));
            let pusher = push(&inbox, 0..3);
            let (seen, polls) = drain(&inbox, 32, 3);
            pusher.join().expect("it ends");
            assert_eq!(seen, [0, 1, 2]);
            // A wake for each time that the loop slept, and none that it did not wait for.
            assert_eq!(inbox.wake().ever(), polls);
            assert!(inbox.wake().is_quiet());
        });
    }

    #[test]
    fn every_event_of_two_threads_is_seen() {
        // Three threads have too many orders; bugs show with few changes of thread.
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let inbox = Arc::new(Inbox::new(Wake::new()));
            let pushers = [push(&inbox, 0..2), push(&inbox, 2..3)];
            let (mut seen, polls) = drain(&inbox, 32, 3);
            pushers.into_iter().for_each(|pusher| pusher.join().expect("it ends"));
            seen.sort_unstable();
            assert_eq!(seen, [0, 1, 2]);
            assert_eq!(inbox.wake().ever(), polls);
        });
    }

    #[test]
    fn what_a_batch_leaves_is_seen_without_a_wake() {
        loom::model(|| {
            let inbox = Arc::new(Inbox::new(Wake::new()));
            let pusher = push(&inbox, 0..3);
            let (seen, polls) = drain(&inbox, 1, 3);
            pusher.join().expect("it ends");
            assert_eq!(seen, [0, 1, 2]);
            assert_eq!(inbox.wake().ever(), polls);
            assert!(inbox.wake().is_quiet());
        });
    }

    #[test]
    fn a_drain_that_nobody_asked_for_does_no_harm() {
        loom::model(|| {
            let inbox = Arc::new(Inbox::new(Wake::new()));
            let pusher = push(&inbox, 0..2);
            let (seen, _) = drain_from(&inbox, Begins::ByItself, 32, 2);
            pusher.join().expect("it ends");
            assert_eq!(seen, [0, 1]);
        });
    }

    #[test]
    fn arrivals_and_the_end_are_seen_too() {
        loom::model(|| {
            let inbox = Arc::new(Inbox::new(Wake::new()));
            let network = Arc::clone(&inbox);
            let pusher = thread::spawn(move || {
                assert!(network.arrive(Box::new(Arrival(7))).is_ok());
                network.push(Event::Room(Token(8)));
                network.push(Event::Finished);
            });
            let (seen, _) = drain(&inbox, 32, 3);
            pusher.join().expect("it ends");
            assert_eq!(seen, [7, 8, usize::MAX]);
        });
    }
}

mod steps {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicUsize, Ordering};
    use loom::thread;

    use super::counted::Counted;

    #[test]
    fn each_slow_step_is_counted_once_by_the_loop_or_by_who_looks() {
        loom::model(|| {
            let (counted, total) = (Arc::new(Counted::default()), Arc::new(AtomicUsize::new(0)));
            let count = |steps: &'static [u64]| {
                let (counted, total) = (Arc::clone(&counted), Arc::clone(&total));
                move || {
                    let new = steps.iter().filter(|step| counted.takes(**step)).count();
                    total.fetch_add(new, Ordering::Relaxed);
                }
            };
            // The one has looked at the first step while that ran; the loop ends it, and the next.
            let looks = thread::spawn(count(&[1]));
            count(&[1, 2])();
            looks.join().expect("it ends");
            assert_eq!(total.load(Ordering::Relaxed), 2);
        });
    }
}

mod headings {
    use loom::sync::Arc;
    use loom::thread;

    use super::heading::Heading;

    #[test]
    fn what_is_read_of_an_event_is_what_was_said_for_it() {
        loom::model(|| {
            let heading = Arc::new(Heading::default());
            heading.say(1, "GET", "/a");
            let said = Arc::clone(&heading);
            let the_loop = thread::spawn(move || said.say(2, "PUT", "/b/that-is-cut"));
            assert!([None, Some("GET /a".to_owned())].contains(&heading.of(1)));
            assert!([None, Some("PUT /b/that-".to_owned())].contains(&heading.of(2)));
            the_loop.join().expect("it ends");
            assert_eq!(heading.of(2).as_deref(), Some("PUT /b/that-"));
        });
    }
}
