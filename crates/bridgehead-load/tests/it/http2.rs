//! Requests by HTTP/2, of a server that is h2's.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bridgehead_load::{Limits, Plan, PlanError, Protocol, Run, Scenario, Upload};
use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use http::{Request, Response};
use tokio::net::{TcpListener, TcpStream};

use crate::server::{HELLO, answering, plan, run, scenario};

/// A request as it came.
#[derive(Debug, Clone)]
struct Came {
    uri: String,
    host: Option<String>,
    length: Option<String>,
    body: usize,
}

/// What a server has seen, and what it is to do.
#[derive(Debug, Default)]
struct Server {
    came: Mutex<Vec<Came>>,
    connections: AtomicUsize,
    /// Streams under way, and the most of them.
    now: AtomicUsize,
    most: AtomicUsize,
    /// After so many requests of a connection it says GOAWAY; 0: never.
    leaves_after: usize,
    /// As many streams as it allows at once; 0: as many as come.
    allows: u32,
    /// Resets every stream.
    resets: bool,
}

impl Server {
    /// Serves for as long as the test process lives.
    fn start(self) -> (u16, Arc<Self>) {
        let server = Arc::new(self);
        let theirs = Arc::clone(&server);
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        listener.set_nonblocking(true).expect("it is a socket");
        let port = listener.local_addr().expect("it is bound").port();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("there are descriptors").block_on(async {
                let listener = TcpListener::from_std(listener).expect("it is a socket");
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(Arc::clone(&theirs).serve(stream));
                }
            });
        });
        (port, server)
    }

    async fn serve(self: Arc<Self>, stream: TcpStream) {
        self.connections.fetch_add(1, Ordering::Relaxed);
        let mut builder = Builder::new();
        builder.initial_window_size(1000);
        if self.allows > 0 {
            builder.max_concurrent_streams(self.allows);
        }
        let mut connection = builder.handshake::<_, Bytes>(stream).await.expect("a client of HTTP/2");
        let mut asked = 0;
        while let Some(Ok((request, answer))) = connection.accept().await {
            asked += 1;
            tokio::spawn(Arc::clone(&self).answer(request, answer));
            if asked == self.leaves_after {
                connection.graceful_shutdown();
            }
        }
    }

    async fn answer(self: Arc<Self>, request: Request<RecvStream>, mut answer: SendResponse<Bytes>) {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        let (head, mut sent) = request.into_parts();
        let mut body = 0;
        while let Some(Ok(piece)) = sent.data().await {
            body += piece.len();
            sent.flow_control().release_capacity(piece.len()).expect("it has come");
        }
        // Others of the connection come in between.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let header = |name| head.headers.get(name).map(|value| value.to_str().expect("letters").to_owned());
        let (host, length) = (header("host"), header("content-length"));
        let came = Came { uri: head.uri.to_string(), host, length, body };
        self.came.lock().expect("no test thread panicked").push(came);
        self.now.fetch_sub(1, Ordering::Relaxed);
        if self.resets {
            answer.send_reset(Reason::ENHANCE_YOUR_CALM);
            return;
        }
        // A client that has left needs no answer.
        if let Ok(mut stream) = answer.send_response(Response::new(()), false) {
            drop(stream.send_data(Bytes::from_static(b"hello"), true));
        }
    }

    fn came(&self) -> Vec<Came> {
        self.came.lock().expect("no test thread panicked").clone()
    }
}

fn by_http2(port: u16, requests: u64, streams: usize) -> Plan {
    Plan { protocol: Protocol::Http2 { streams }, ..plan(port, requests) }
}

#[test]
fn streams_share_the_connections_and_each_has_one_request_at_a_time() {
    let (port, server) = Server::default().start();
    let report = run(&Plan { connections: 2, ..by_http2(port, 200, 8) });
    assert_eq!((report.whole.requests, report.whole.errors, report.bytes), (200, 0, 1000));
    assert_eq!(report.whole.statuses.get(&200), Some(&200));
    assert_eq!((report.connect.count, server.connections.load(Ordering::Relaxed)), (2, 2));
    let most = server.most.load(Ordering::Relaxed);
    assert!((2..=16).contains(&most), "{most} at once");
}

#[test]
fn a_request_names_its_scheme_authority_and_path_and_no_host() {
    let (port, server) = Server::default().start();
    let mut plan = by_http2(port, 2, 1);
    plan.scenarios = vec![Scenario {
        headers: vec![("Host".to_owned(), "shop.test:81".to_owned())],
        ..scenario("/items/{n}?a=b")
    }];
    assert_eq!(run(&plan).whole.errors, 0);
    let uris: Vec<String> = server.came().into_iter().map(|came| came.uri).collect();
    assert_eq!(uris, ["http://shop.test:81/items/0?a=b", "http://shop.test:81/items/1?a=b"]);
    assert!(server.came().iter().all(|came| came.host.is_none()));
}

#[test]
fn bodies_go_through_a_window_that_is_smaller_than_they_are() {
    let (port, server) = Server::default().start();
    for (upload, length, body) in [
        (Upload::Bytes(vec![b'x'; 5000].into()), Some("5000"), 5000),
        (streamed(250_000, true), Some("250000"), 250_000),
        (streamed(250_000, false), None, 250_000),
        (Upload::Nothing, None, 0),
    ] {
        let mut plan = by_http2(port, 2, 1);
        plan.scenarios = vec![Scenario { method: "POST".to_owned(), upload, ..scenario("/") }];
        assert_eq!(run(&plan).whole.errors, 0);
        let came = server.came().pop().expect("a request");
        assert_eq!((came.length.as_deref(), came.body), (length, body));
    }
}

fn streamed(size: u64, declared: bool) -> Upload {
    Upload::Stream { size, chunk: 64 * 1024, every: Duration::from_millis(1), declared }
}

#[test]
fn a_connection_that_the_server_takes_leave_of_is_made_anew_and_no_request_fails() {
    let (port, server) = Server { leaves_after: 7, ..Server::default() }.start();
    let report = run(&by_http2(port, 100, 4));
    assert_eq!((report.whole.requests, report.whole.errors), (100, 0), "{:?}", report.first_errors);
    assert!(server.connections.load(Ordering::Relaxed) >= 100 / 11);
}

#[test]
fn streams_that_a_server_does_not_allow_wait_for_others_to_end() {
    let (port, server) = Server { allows: 3, ..Server::default() }.start();
    let report = run(&by_http2(port, 100, 16));
    assert_eq!((report.whole.requests, report.whole.errors), (100, 0), "{:?}", report.first_errors);
    assert!(server.most.load(Ordering::Relaxed) <= 3);
}

#[test]
fn a_stream_that_is_reset_is_an_error_and_the_connection_goes_on() {
    let (port, server) = Server { resets: true, ..Server::default() }.start();
    let report = run(&by_http2(port, 10, 2));
    assert_eq!(report.whole.errors_by_kind.get("reset"), Some(&10), "{:?}", report.first_errors);
    assert_eq!(server.connections.load(Ordering::Relaxed), 1);
}

#[test]
fn each_request_has_a_connection_of_its_own_without_keep_alive() {
    let (port, server) = Server::default().start();
    let report = run(&Plan { keep_alive: false, ..by_http2(port, 10, 1) });
    assert_eq!((report.whole.errors, report.connect.count), (0, 10));
    assert_eq!(server.connections.load(Ordering::Relaxed), 10);
}

#[test]
fn a_rate_is_kept_by_all_streams_together() {
    let (port, server) = Server::default().start();
    let plan = Plan {
        rate: Some(1000.0),
        limits: Limits { duration: None, requests: Some(100) },
        ..by_http2(port, 0, 4)
    };
    let report = run(&plan);
    assert_eq!((report.whole.requests, report.whole.errors, report.unsent), (100, 0, 0));
    assert_eq!(server.came().len(), 100);
}

#[test]
fn a_server_of_http_1_is_an_error_of_each_request() {
    let (port, _) = answering(|_| HELLO.to_vec());
    let report = run(&by_http2(port, 3, 2));
    assert_eq!((report.whole.requests, report.whole.errors), (3, 3), "{:?}", report.first_errors);
}

#[test]
fn what_http2_cannot_say_is_refused() {
    let refuse = |plan: &Plan, part: &str| {
        let refused = Run::start(plan).expect_err(part).to_string();
        assert!(refused.contains(part), "{refused}");
    };
    let with = |name: &str, value: &str| {
        let headers = vec![(name.to_owned(), value.to_owned())];
        Plan { scenarios: vec![Scenario { headers, ..scenario("/") }], ..by_http2(1, 1, 1) }
    };
    refuse(&with("Host", "a{n}"), "a Host with templates");
    refuse(&with("Host", "a b"), "is no host");
    refuse(&with("Keep-Alive", "5"), "about the connection");
    refuse(&with("TE", "gzip"), "`trailers` or nothing");
    refuse(&by_http2(1, 1, 0), "at least one stream");
    refuse(&Plan { keep_alive: false, ..by_http2(1, 1, 2) }, "streams share a connection");
    assert!(matches!(Run::start(&with("TE", "gzip")), Err(PlanError::Scenario { .. })));
}
