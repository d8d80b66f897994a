//! Proves admission, the wakes of tasks and loans of memory in every order that their threads may take: a permit that comes
//! back is somebody's or is there again, whoever waits is woken, and sees what it was woken for, and no more is lent than
//! there is.
//!
//! `admission.rs`, `summons.rs` and `memory.rs` themselves are compiled here, with loom's atomics and mutex. A wake that never comes is a
//! deadlock, and loom says so.

#![cfg(all(loom, test))]
#![allow(dead_code, reason = "these files have more callers elsewhere")]

#[path = "../../../src/admission.rs"]
mod admission;
#[path = "../../../src/climb.rs"]
mod climb;
#[path = "../../../src/gradient.rs"]
mod gradient;
#[path = "../../../src/look.rs"]
mod look;
#[path = "../../../../bridgehead-websocket/src/memory.rs"]
mod memory;
#[path = "../../../../bridgehead-executor/src/summons.rs"]
mod summons;

mod tests {
    use std::future::{Pending, Ready, pending, ready};
    use std::pin::pin;
    use std::task::{Context, Poll, Wake, Waker};
    use std::time::Duration;

    use loom::sync::atomic::{AtomicUsize, Ordering};
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    use crate::admission::{Admission, AdmissionLimits, Permit, TurnedAway};

    /// Whoever waits in `block_on`.
    struct Sleeper {
        woken: Mutex<bool>,
        came: Condvar,
    }

    impl Wake for Sleeper {
        fn wake(self: std::sync::Arc<Self>) {
            *self.woken.lock().expect("no thread panics") = true;
            self.came.notify_one();
        }
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let sleeper = std::sync::Arc::new(Sleeper { woken: Mutex::new(false), came: Condvar::new() });
        let waker = Waker::from(std::sync::Arc::clone(&sleeper));
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return done;
            }
            let mut woken = sleeper.woken.lock().expect("no thread panics");
            while !std::mem::take(&mut *woken) {
                woken = sleeper.came.wait(woken).expect("no thread panics");
            }
        }
    }

    fn admission(permits: usize) -> Admission {
        let patience = Some(Duration::from_secs(1));
        Admission::new(AdmissionLimits { permits: Some(permits), queue: 2, patience })
    }

    fn enter(admission: &Admission) -> Permit {
        block_on(admission.enter(|_| pending())).expect("the queue is long enough")
    }

    fn in_a_thread(admission: &Admission, inside: &Arc<AtomicUsize>) -> thread::JoinHandle<()> {
        let (admission, inside) = (admission.clone(), Arc::clone(inside));
        thread::spawn(move || {
            let permit = enter(&admission);
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two run with one permit");
            inside.fetch_sub(1, Ordering::SeqCst);
            drop(permit);
        })
    }

    fn nobody_is_left(admission: &Admission) {
        assert_eq!((admission.running(), admission.waiting()), (0, 0));
        assert!(admission.try_enter().is_some());
    }

    #[test]
    fn who_waits_is_woken_and_runs_alone() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let (admission, inside) = (admission(1), Arc::new(AtomicUsize::new(0)));
            let threads = [in_a_thread(&admission, &inside), in_a_thread(&admission, &inside)];
            threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
            nobody_is_left(&admission);
        });
    }

    #[test]
    fn a_permit_that_comes_back_while_another_lines_up_is_not_lost() {
        loom::model(|| {
            let admission = admission(1);
            let running = enter(&admission);
            let other = thread::spawn(move || drop(running));
            drop(enter(&admission));
            other.join().expect("it ends");
            nobody_is_left(&admission);
        });
    }

    #[test]
    fn who_leaves_the_queue_takes_no_permit_along() {
        loom::model(|| {
            let admission = admission(1);
            let running = enter(&admission);
            let other = thread::spawn(move || drop(running));
            {
                let mut leaves = pin!(admission.enter(|_| pending()));
                let polled = leaves.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                drop(match polled {
                    Poll::Ready(permit) => permit.ok(),
                    Poll::Pending => None,
                });
            }
            other.join().expect("it ends");
            nobody_is_left(&admission);
        });
    }

    #[test]
    fn who_is_late_takes_no_permit_along() {
        loom::model(|| {
            let admission = admission(1);
            let running = enter(&admission);
            let other = thread::spawn(move || drop(running));
            let late = block_on(admission.enter(|_| -> Ready<()> { ready(()) }));
            assert!(matches!(late, Ok(_) | Err(TurnedAway::Late)));
            drop(late);
            other.join().expect("it ends");
            nobody_is_left(&admission);
        });
    }

    #[test]
    fn who_is_dismissed_takes_no_permit_along_and_waits_no_longer() {
        loom::model(|| {
            let admission = admission(1);
            let running = enter(&admission);
            let all = admission.clone();
            let other = thread::spawn(move || {
                all.dismiss();
                drop(running);
            });
            let dismissed = block_on(admission.enter(|_| -> Pending<()> { pending() }));
            assert!(matches!(dismissed, Ok(_) | Err(TurnedAway::Late)));
            drop(dismissed);
            other.join().expect("it ends");
            nobody_is_left(&admission);
        });
    }
}

mod tasks {
    use loom::sync::atomic::{AtomicUsize, Ordering};
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    use crate::summons::Summons;

    /// One task, and the queue that it stands in.
    struct Task {
        summons: Summons,
        /// What it is woken for. Nothing but the summons says in which order others see it.
        came: AtomicUsize,
        queued: Mutex<usize>,
        pushed: Condvar,
    }

    impl Task {
        fn wake(&self) {
            self.came.fetch_add(1, Ordering::Relaxed);
            if self.summons.call() {
                *self.queued.lock().expect("no thread panics") += 1;
                self.pushed.notify_one();
            }
        }

        /// Polls the task as often as it is queued, until it has seen all.
        fn run(&self, expected: usize) {
            loop {
                let mut queued = self.queued.lock().expect("no thread panics");
                while *queued == 0 {
                    queued = self.pushed.wait(queued).expect("no thread panics");
                }
                *queued -= 1;
                assert_eq!(*queued, 0, "a task stands in the queue twice");
                drop(queued);
                self.summons.answer();
                if self.came.load(Ordering::Relaxed) == expected {
                    return;
                }
            }
        }
    }

    #[test]
    fn a_task_sees_what_it_was_woken_for_and_stands_in_the_queue_once() {
        for wakers in 1..=2 {
            let mut model = loom::model::Builder::new();
            model.preemption_bound = Some(3);
            model.check(move || {
                let task = Arc::new(Task {
                    summons: Summons::called(),
                    came: AtomicUsize::new(0),
                    queued: Mutex::new(1),
                    pushed: Condvar::new(),
                });
                let threads: Vec<_> = (0..wakers)
                    .map(|_| {
                        let task = Arc::clone(&task);
                        thread::spawn(move || task.wake())
                    })
                    .collect();
                task.run(wakers);
                threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
            });
        }
    }
}

mod loans {
    use std::sync::Arc;

    use loom::sync::atomic::{AtomicUsize, Ordering};
    use loom::thread;

    use crate::memory::Memory;

    #[test]
    fn no_more_is_lent_than_there_is_and_all_of_it_comes_back() {
        loom::model(|| {
            let (memory, held) = (Memory::new(100), Arc::new(AtomicUsize::new(0)));
            let borrow = |first: usize, all: usize| {
                let (memory, held) = (memory.clone(), Arc::clone(&held));
                thread::spawn(move || {
                    let Some(mut loan) = memory.lend(first) else { return };
                    let size = if loan.grow_to(all) { all } else { first };
                    assert!(
                        held.fetch_add(size, Ordering::Relaxed) + size <= 100,
                        "more is lent than there is"
                    );
                    held.fetch_sub(size, Ordering::Relaxed);
                })
            };
            let threads = [borrow(40, 70), borrow(60, 60)];
            threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
            assert!(memory.lend(100).is_some());
        });
    }
}
