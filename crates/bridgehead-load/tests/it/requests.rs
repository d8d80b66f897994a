//! What leaves is what the scenarios say.

use std::collections::BTreeSet;
use std::time::Duration;

use bridgehead_load::{Plan, PlanError, Run, Scenario, Upload};
use bytes::Bytes;

use crate::server::{HELLO, answering, plan, run, scenario};

#[test]
fn a_request_has_its_method_path_headers_and_body() {
    let (port, log) = answering(|_| HELLO.to_vec());
    let mut plan = plan(port, 1);
    plan.scenarios = vec![Scenario {
        method: "PUT".to_owned(),
        headers: vec![("X-One".to_owned(), "1".to_owned()), ("Accept".to_owned(), "text/html".to_owned())],
        upload: Upload::Bytes(Bytes::from_static(b"\x00{n}")),
        ..scenario("/a/b?c=%20d")
    }];
    assert_eq!(run(&plan).whole.errors, 0);
    let seen = log.all().remove(0);
    assert_eq!(seen.line, "put /a/b?c=%20d http/1.1");
    assert_eq!(seen.body, b"\x00{n}");
    for line in ["x-one: 1\r\n", "accept: text/html\r\n", &format!("host: 127.0.0.1:{port}\r\n")] {
        assert!(seen.head.contains(line), "{}", seen.head);
    }
}

#[test]
fn templates_are_filled_anew_and_numbers_come_once_over_all_threads() {
    let (port, log) = answering(|_| HELLO.to_vec());
    let mut plan = Plan { connections: 4, threads: 2, ..plan(port, 40) };
    plan.scenarios = vec![Scenario {
        method: "POST".to_owned(),
        headers: vec![("x-id".to_owned(), "{uuid}".to_owned())],
        upload: Upload::Template("{\"n\": {n}, \"r\": {random:1-3}}".to_owned()),
        ..scenario("/items/{n}")
    }];
    assert_eq!(run(&plan).whole.errors, 0);
    let seen = log.all();
    let paths: BTreeSet<&str> =
        seen.iter().map(|seen| seen.line.split(' ').nth(1).expect("a path")).collect();
    assert_eq!(paths.len(), 40, "each number once");
    let ids: BTreeSet<&str> =
        seen.iter().map(|seen| seen.head.split("x-id: ").nth(1).expect("an id")).collect();
    assert_eq!(ids.len(), 40);
    for seen in &seen {
        let number = seen.line.split(['/', ' ']).nth(3).expect("a number");
        let body = String::from_utf8(seen.body.clone()).expect("a text");
        assert!(body.starts_with(&format!("{{\"n\": {number}, \"r\": ")), "{body}");
    }
}

#[test]
fn weights_share_out_the_requests() {
    let (port, log) = answering(|_| HELLO.to_vec());
    let mut plan = plan(port, 1000);
    plan.scenarios = vec![
        Scenario { weight: 9, ..scenario("/often") },
        Scenario { weight: 1, ..scenario("/seldom") },
        Scenario { weight: 0, ..scenario("/never") },
    ];
    let report = run(&plan);
    let counts: Vec<u64> = report.scenarios.iter().map(|portion| portion.requests).collect();
    assert_eq!(counts.iter().sum::<u64>(), 1000);
    assert!((850..950).contains(&counts[0]) && counts[2] == 0, "{counts:?}");
    let often = log.all().iter().filter(|seen| seen.line.contains("/often")).count() as u64;
    assert_eq!(often, counts[0]);
}

#[test]
fn an_upload_streams_with_and_without_a_length() {
    let (port, log) = answering(|_| HELLO.to_vec());
    for declared in [true, false] {
        let mut plan = plan(port, 2);
        plan.scenarios = vec![Scenario {
            method: "POST".to_owned(),
            upload: Upload::Stream {
                size: 250_000,
                chunk: 64 * 1024,
                every: Duration::from_millis(1),
                declared,
            },
            ..scenario("/")
        }];
        assert_eq!(run(&plan).whole.errors, 0);
    }
    let seen = log.all();
    assert!(seen.iter().all(|seen| seen.body.len() == 250_000));
    assert!(seen[0].head.contains("content-length: 250000"), "{}", seen[0].head);
    assert!(seen[2].head.contains("transfer-encoding: chunked"), "{}", seen[2].head);
}

#[test]
fn what_cannot_be_sent_is_refused_with_the_scenarios_name() {
    let refuse = |scenario: Scenario, part: &str| {
        let mut plan = plan(1, 1);
        plan.scenarios = vec![scenario];
        let refused = Run::start(&plan).expect_err(part);
        assert!(matches!(&refused, PlanError::Scenario { .. }), "{refused}");
        assert!(refused.to_string().contains(part), "{refused}");
    };
    let header = |name: &str, value: &str| Scenario {
        headers: vec![(name.to_owned(), value.to_owned())],
        ..scenario("/")
    };
    refuse(scenario("no-slash"), "has to begin with /");
    refuse(scenario("/a b"), "%XX");
    refuse(scenario("/{nn}"), "is no template");
    refuse(Scenario { method: "G T".to_owned(), ..scenario("/") }, "is not a method");
    refuse(Scenario { method: "CONNECT".to_owned(), ..scenario("/") }, "tunnel");
    refuse(header("bad name", "1"), "is not the name of a header");
    refuse(header("x", "a\nb"), "holds a character");
    refuse(header("Content-Length", "1"), "cannot be set");
}
