//! Each request is counted once, and the figures belong together.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

use bridgehead_load::{Address, Limits, Plan, PlanError, Run, Scenario, Think};

use crate::server::{HELLO, answering, connections, plan, run, scenario};

#[test]
fn a_number_of_requests_is_sent_exactly() {
    let (port, log) = answering(|_| HELLO.to_vec());
    for (connections, threads) in [(1, 1), (7, 3)] {
        let before = log.all().len();
        let report = run(&Plan { connections, threads, ..plan(port, 100) });
        assert_eq!(log.all().len() - before, 100);
        assert_eq!((report.whole.requests, report.whole.errors, report.bytes), (100, 0, 500));
        assert_eq!((report.unfinished, report.unsent), (0, 0));
        assert_eq!(report.connect.count, connections as u64);
        assert_eq!(report.timeline.iter().map(|row| row.answers).sum::<u64>(), 100);
    }
}

#[test]
fn without_keep_alive_each_request_has_its_connection_and_says_so() {
    let (port, log) = answering(|_| HELLO.to_vec());
    let report = run(&Plan { keep_alive: false, ..plan(port, 10) });
    assert_eq!((report.whole.requests, report.whole.errors), (10, 0));
    assert_eq!(report.connect.count, 10);
    assert!(log.all().iter().all(|seen| seen.head.contains("connection: close")));
}

#[test]
fn a_connection_that_the_server_closes_between_requests_is_made_anew() {
    let (port, _) =
        answering(|_| b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec());
    let report = run(&plan(port, 5));
    assert_eq!((report.whole.requests, report.whole.errors), (5, 0));
    assert_eq!(report.connect.count, 5);
}

#[test]
fn the_warm_up_is_not_counted() {
    let (port, log) = answering(|_| HELLO.to_vec());
    let report = run(&Plan { warm_up: Duration::from_millis(100), ..plan(port, 20) });
    assert_eq!(report.whole.requests, 20);
    assert!(log.all().len() > 20);
}

#[test]
fn a_stopped_run_tells_what_it_gave_up() {
    let (asked, waiting) = mpsc::channel();
    let asked = Mutex::new(asked);
    let port = connections(move |mut stream| {
        let mut head = [0; 1024];
        // The first is answered, the second never.
        assert!(stream.read(&mut head).expect("a request") > 0);
        stream.write_all(HELLO).expect("the client reads");
        assert!(stream.read(&mut head).expect("a request") > 0);
        asked.lock().expect("one at a time").send(()).expect("the test waits");
        drop(stream.read(&mut head));
    });
    let mut plan = plan(port, 100);
    plan.connections = 3;
    let run = Run::start(&plan).expect("it is right");
    (0..3).for_each(|_| waiting.recv().expect("the servers live"));
    assert_eq!(run.progress().in_flight, 3);
    run.handle().stop();
    assert!(run.handle().wait(Duration::from_secs(20)));
    let report = run.report();
    assert!(report.interrupted);
    assert_eq!((report.whole.requests, report.unfinished), (3, 3));
}

#[test]
fn a_unix_socket_is_asked_as_any_other() {
    let path = std::env::temp_dir().join(format!("bridgehead-load-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&path).expect("the path is free");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the run connects");
        let mut head = [0; 1024];
        while stream.read(&mut head).is_ok_and(|length| length > 0) {
            stream.write_all(HELLO).expect("the client reads");
        }
    });
    let report = run(&Plan { address: Address::Unix(path.clone()), ..plan(0, 10) });
    assert_eq!((report.whole.requests, report.whole.errors), (10, 0));
    server.join().expect("the server does not panic");
    std::fs::remove_file(path).expect("it is there");
}

#[test]
fn numbers_that_contradict_each_other_are_refused() {
    let refuse = |plan: &Plan, part: &str| {
        let refused = Run::start(plan).expect_err(part);
        assert!(matches!(refused, PlanError::Numbers(_)), "{refused}");
        assert!(refused.to_string().contains(part), "{refused}");
    };
    let limits = Limits { duration: None, requests: None };
    refuse(&Plan { limits, ..plan(1, 1) }, "neither a duration nor");
    refuse(&Plan { threads: 2, ..plan(1, 1) }, "too few connections");
    refuse(&Plan { rate: Some(0.0), ..plan(1, 1) }, "above 0");
    refuse(
        &Plan { scenarios: vec![Scenario { weight: 0, ..scenario("/") }], ..plan(1, 1) },
        "weight above 0",
    );
    let think = Some(Think { least: Duration::ZERO, most: Duration::ZERO });
    let scenarios = vec![Scenario { think, ..scenario("/") }];
    refuse(&Plan { scenarios, rate: Some(1.0), ..plan(1, 1) }, "think time");
}
