//! Every way in which an answer fails has its name.

use std::io::{BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bridgehead_load::{Plan, PlanError, Report, Run};
use bytes::Bytes;
use http::StatusCode;

use crate::server::{HELLO, answering, connections, plan, read, run};

/// What one request to a server that sends these bytes and closes comes to.
fn one(bytes: &'static [u8]) -> Report {
    let port = connections(move |mut stream| {
        let mut reader = BufReader::new(stream.try_clone().expect("it is open"));
        if read(&mut reader).is_some() {
            stream.write_all(bytes).expect("the client reads");
            stream.shutdown(Shutdown::Both).expect("it is open");
        }
    });
    run(&plan(port, 1))
}

#[track_caller]
fn is(report: &Report, kind: &str) {
    let found: Vec<_> = report.whole.errors_by_kind.iter().map(|(&kind, &count)| (kind, count)).collect();
    assert_eq!(found, [(kind, 1)], "{:?}", report.first_errors);
    assert_eq!((report.whole.requests, report.whole.errors, report.whole.latency.count), (1, 1, 0));
    assert!(!report.first_errors[kind].is_empty());
}

#[test]
fn an_answer_that_ends_early_is_a_short_body() {
    is(&one(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello"), "short_body");
    is(&one(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"), "short_body");
}

#[test]
fn what_is_no_http_is_malformed() {
    is(&one(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "malformed");
    is(&one(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello"), "malformed");
}

#[test]
fn another_protocol_that_nobody_asked_for_is_malformed() {
    is(&one(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"), "malformed");
}

#[test]
fn a_connection_that_closes_without_an_answer_is_closed() {
    is(&one(b""), "closed");
    is(&one(b"HTTP/1.1 200 OK\r\ncontent-"), "closed");
}

#[test]
fn a_body_until_the_close_is_whole() {
    let report = one(b"HTTP/1.1 200 OK\r\n\r\nhello");
    assert_eq!((report.whole.errors, report.bytes), (0, 5));
}

#[test]
fn a_connection_that_is_reset_is_a_reset() {
    let port = connections(|stream| {
        // What is unread when a socket is closed makes the kernel reset.
        let mut waiting = [0; 1];
        drop(stream.peek(&mut waiting));
        drop(stream);
    });
    is(&run(&plan(port, 1)), "reset");
}

#[test]
fn an_answer_that_does_not_come_is_a_timeout() {
    let port = connections(|stream| {
        let mut reader = BufReader::new(stream);
        while read(&mut reader).is_some() {}
    });
    is(&run(&Plan { timeout: Duration::from_millis(50), ..plan(port, 1) }), "timeout");
}

#[test]
fn a_server_that_has_gone_is_a_failure_to_connect() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let server = std::thread::spawn(move || {
        let (mut stream, _): (TcpStream, _) = listener.accept().expect("the run connects");
        drop(listener);
        let mut reader = BufReader::new(stream.try_clone().expect("it is open"));
        read(&mut reader);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .expect("it reads");
    });
    let report = run(&plan(port, 3));
    server.join().expect("the server does not panic");
    assert_eq!(report.whole.errors_by_kind["connect"], 2);
    assert_eq!(report.whole.latency.count, 1);
}

#[test]
fn nobody_at_the_start_is_told_at_once() {
    let port =
        TcpListener::bind(("127.0.0.1", 0)).expect("a port is free").local_addr().expect("bound").port();
    let refused = Run::start(&plan(port, 1)).expect_err("nobody listens");
    assert!(matches!(refused, PlanError::Unreachable { .. }));
    assert!(refused.to_string().contains(&format!("nobody answers at 127.0.0.1:{port}")), "{refused}");
}

#[test]
fn a_status_of_5xx_is_counted_apart_and_one_of_4xx_is_an_answer() {
    let count = AtomicUsize::new(0);
    let (port, _) = answering(move |_| {
        let status = [503, 404, 200][count.fetch_add(1, Ordering::Relaxed) % 3];
        format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n").into_bytes()
    });
    let report = run(&plan(port, 6));
    assert_eq!(report.whole.errors_by_kind.iter().collect::<Vec<_>>(), [(&"status_5xx", &2)]);
    assert_eq!(report.whole.statuses.iter().collect::<Vec<_>>(), [(&200, &2), (&404, &2), (&503, &2)]);
    assert_eq!((report.whole.requests, report.whole.latency.count), (6, 4));
}

#[test]
fn an_answer_that_is_not_as_expected_is_an_assertion() {
    let (port, _) = answering(|_| HELLO.to_vec());
    let mut plan = plan(port, 2);
    plan.scenarios[0].expect.statuses = vec![StatusCode::CREATED];
    assert_eq!(run(&plan).whole.errors_by_kind["assertion"], 2);
    plan.scenarios[0].expect.statuses.clear();
    plan.scenarios[0].expect.body = Some(Bytes::from_static(b"ell"));
    assert_eq!(run(&plan).whole.errors, 0);
    plan.scenarios[0].expect.body = Some(Bytes::from_static(b"bye"));
    let report = run(&plan);
    assert_eq!(report.first_errors["assertion"], "body without \"bye\"");
}
