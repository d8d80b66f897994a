//! A rate does not wait for answers.

use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

use bridgehead_load::{Limits, Plan, Run};

use crate::server::{HELLO, Log, answering, plan, run};

#[test]
fn a_rate_begins_its_requests_in_time_and_all_of_them() {
    let (port, _) = answering(|_| HELLO.to_vec());
    let report = run(&Plan { rate: Some(200.0), connections: 4, threads: 2, ..plan(port, 50) });
    assert_eq!((report.whole.requests, report.whole.errors, report.unsent), (50, 0, 0));
    // 49 intervals of 5 ms; how much longer it takes is the machine's affair.
    assert!(report.seconds >= 0.245, "{}", report.seconds);
    assert!(report.lag.count > 0);
}

#[test]
fn what_waited_for_a_connection_has_that_in_its_latency() {
    // All others are due long before the first is answered.
    let (bell, port, log) = stalling();
    let mut plan = Plan { rate: Some(1000.0), ..plan(port, 100) };
    plan.scenarios[0].path = "/{n}".to_owned();
    let run = Run::start(&plan).expect("it is right");
    assert!(!run.handle().wait(Duration::from_millis(300)));
    bell.send(()).expect("the server waits");
    assert!(run.handle().wait(Duration::from_secs(20)));
    let report = run.report();
    assert_eq!((report.whole.requests, log.all().len()), (100, 100));
    // The last was due after 99 ms, and could not begin before 300 ms.
    assert!(report.whole.latency.min >= 0.19, "{:?}", report.whole.latency);
}

#[test]
fn what_was_due_and_never_sent_is_told() {
    let (port, _) = answering(|_| {
        std::thread::sleep(Duration::from_millis(100));
        HELLO.to_vec()
    });
    let limits = Limits { duration: Some(Duration::from_millis(500)), requests: None };
    let report = run(&Plan { rate: Some(100.0), limits, ..plan(port, 0) });
    assert_eq!(report.whole.requests + report.unsent, 50, "{report:?}");
    assert!(report.unsent >= 40, "{report:?}");
}

/// A server that does not answer the first request before the bell is rung.
fn stalling() -> (mpsc::Sender<()>, u16, Log) {
    let (bell, rung) = mpsc::channel();
    let rung = Mutex::new(rung);
    let (port, log) = answering(move |seen| {
        if seen.line.contains("/0 ") {
            let () = rung.lock().expect("one at a time").recv().expect("the test rings");
        }
        HELLO.to_vec()
    });
    (bell, port, log)
}

#[test]
fn what_the_warm_up_has_left_behind_is_dropped_and_told() {
    let (bell, port, log) = stalling();
    let mut plan = Plan { rate: Some(1000.0), warm_up: Duration::from_millis(50), ..plan(port, 20) };
    plan.scenarios[0].path = "/{n}".to_owned();
    let run = Run::start(&plan).expect("it is right");
    assert!(!run.handle().wait(Duration::from_millis(300)));
    bell.send(()).expect("the server waits");
    assert!(run.handle().wait(Duration::from_secs(20)));
    let report = run.report();
    assert_eq!((report.whole.requests, report.dropped, report.unsent), (20, 49, 0));
    assert_eq!(log.all().len(), 21, "one of the warm-up, and those that count");
}

#[test]
fn a_measured_time_without_an_answer_is_as_long_as_it_was_meant() {
    let (bell, port, _) = stalling();
    let limits = Limits { duration: Some(Duration::from_millis(100)), requests: None };
    let warm_up = Duration::from_millis(50);
    let mut plan = Plan { rate: Some(1000.0), warm_up, limits, ..plan(port, 0) };
    plan.scenarios[0].path = "/{n}".to_owned();
    let run = Run::start(&plan).expect("it is right");
    assert!(!run.handle().wait(Duration::from_millis(300)));
    bell.send(()).expect("the server waits");
    assert!(run.handle().wait(Duration::from_secs(20)));
    let report = run.report();
    assert_eq!((report.whole.requests, report.dropped, report.unsent), (0, 49, 100));
    assert!((report.seconds - 0.1).abs() < 1e-9, "{}", report.seconds);
    assert_eq!(report.timeline.iter().map(|row| row.answers).collect::<Vec<_>>(), [0]);
}
