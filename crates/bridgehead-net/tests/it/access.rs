//! A line for each request, whatever became of it.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use bridgehead_asgi::More;
use bridgehead_net::{AccessLog, Colours, Config, Layout, LogPipe, Outlet, Reception, Room, Sink, Stage};
use bytes::Bytes;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use crate::harness::{GET, LONG, PATIENCE, Site, TOKEN, head, plain, within};

struct Log {
    pipe: Arc<LogPipe>,
    outlet: Arc<Outlet>,
    reader: BufReader<tokio::net::UnixStream>,
}

/// A site that logs, and its log.
fn logging() -> (Site, Log) {
    logging_as(Layout::usual(Colours::Off), |_| {})
}

/// The same, with lines that look so, and what else is wanted.
fn logging_as(layout: Layout, also: impl FnOnce(&mut Config)) -> (Site, Log) {
    let (ours, theirs) = UnixStream::pair().expect("a socket pair");
    theirs.set_nonblocking(true).expect("a socket option");
    let theirs = tokio::net::UnixStream::from_std(theirs).expect("a runtime");
    let pipe = LogPipe::start(OwnedFd::from(ours), layout.clone()).expect("a thread");
    let mut config = plain(LONG);
    let outlet = Outlet::to(Sink::Pipe(Arc::clone(&pipe)));
    config.access_log = Some(AccessLog { outlet: Arc::clone(&outlet), layout, root_path: String::new() });
    also(&mut config);
    (Site::open(config), Log { pipe, outlet, reader: BufReader::new(theirs) })
}

impl Log {
    /// Request and status of the next line.
    async fn next(&mut self) -> String {
        let mut line = String::new();
        within(self.reader.read_line(&mut line)).await.expect("a line");
        assert!(line.starts_with("INFO:     127.0.0.1:"), "{line}");
        line.split_once(" - ").expect("the usual shape").1.trim_end().to_owned()
    }

    async fn assert_is_all(mut self, mut site: Site) {
        site.advance(Stage::Aborting);
        within(&mut site.served).await.expect("it ends");
        self.pipe.close(PATIENCE);
        drop((site, self.pipe, self.outlet));
        let mut left = String::new();
        within(self.reader.read_to_string(&mut left)).await.expect("its end");
        assert_eq!(left, "");
    }
}

#[tokio::test]
async fn each_request_of_a_connection_has_a_line() {
    let (site, mut log) = logging();
    let mut client = site.connect().await;
    for status in [200, 404, 500] {
        client.send(GET).await;
        assert_eq!(site.next().await.half.finish(head(status, &[]), Bytes::new()), Room::Free);
        assert_eq!(i64::from(client.answer().await.status), status);
    }
    assert_eq!(log.next().await, "\"GET / HTTP/1.1\" 200 OK");
    assert_eq!(log.next().await, "\"GET / HTTP/1.1\" 404 Not Found");
    assert_eq!(log.next().await, "\"GET / HTTP/1.1\" 500 Internal Server Error");
    log.assert_is_all(site).await;
}

#[tokio::test]
async fn who_takes_lines_may_change_between_two_requests_of_a_connection() {
    let (site, mut log) = logging();
    let mut client = site.connect().await;
    let takers = [Sink::Nobody, Sink::App, Sink::Pipe(Arc::clone(&log.pipe))];
    for (status, taker) in [200, 404, 500].into_iter().zip(takers) {
        log.outlet.turn(taker);
        client.send(GET).await;
        assert_eq!(site.next().await.half.finish(head(status, &[]), Bytes::new()), Room::Free);
        assert_eq!(i64::from(client.answer().await.status), status);
    }
    assert_eq!(log.next().await, "\"GET / HTTP/1.1\" 500 Internal Server Error");
    log.assert_is_all(site).await;
}

#[tokio::test]
async fn refusals_have_a_line() {
    let (site, mut log) = logging();
    let mut client = site.connect().await;
    client.send(b"GET /no-host HTTP/1.1\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 400);
    site.refuse(true);
    let mut client = site.connect().await;
    client.send(GET).await;
    assert_eq!(client.answer().await.status, 503);
    site.refuse(false);
    client.send(GET).await;
    drop(site.next().await);
    assert_eq!(client.answer().await.status, 500);
    assert_eq!(log.next().await, "\"GET /no-host HTTP/1.1\" 400 Bad Request");
    assert_eq!(log.next().await, "\"GET / HTTP/1.1\" 503 Service Unavailable");
    assert_eq!(log.next().await, "\"GET / HTTP/1.1\" 500 Internal Server Error");
    log.assert_is_all(site).await;
}

#[tokio::test]
async fn a_head_that_could_not_be_read_has_a_line_without_a_request() {
    let (site, mut log) = logging();
    let first = String::from_utf8(GET.to_vec()).expect("ASCII");
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(66_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(101));
    for (request, line) in [
        ("no http\r\n\r\n", "400 Bad Request"),
        ("GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", "400 Bad Request"),
        ("GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", "400 Bad Request"),
        ("GET /?\" HTTP/1.1\r\nHost: a\r\n\r\n", "400 Bad Request"),
        ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", "505 HTTP Version Not Supported"),
        ("\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505 HTTP Version Not Supported"),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", "400 Bad Request"),
        (&long, "414 URI Too Long"),
        (&many, "431 Request Header Fields Too Large"),
    ] {
        let mut client = site.connect().await;
        client.send(request.as_bytes()).await;
        assert_eq!(format!("{} ", client.answer().await.status), line[..4], "{line}");
        assert_eq!(log.next().await, format!("\"-\" {line}"));
    }
    // Behind a request that was in order, on the same connection.
    let mut client = site.connect().await;
    client.send([first.as_str(), "no http\r\n\r\n"].concat().as_bytes()).await;
    assert_eq!(site.next().await.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert_eq!(client.answer().await.status, 200);
    assert_eq!(client.answer().await.status, 400);
    assert_eq!(log.next().await, "\"GET / HTTP/1.1\" 200 OK");
    assert_eq!(log.next().await, "\"-\" 400 Bad Request");
    log.assert_is_all(site).await;
}

#[tokio::test]
async fn a_head_that_got_no_answer_has_no_line() {
    let (site, log) = logging();
    for request in ["", "\r\n", "GET / HTTP/1.1\r\nHost: "] {
        let mut client = site.connect().await;
        client.send(request.as_bytes()).await;
        client.half_close().await;
        client.assert_closed().await;
    }
    log.assert_is_all(site).await;
}

#[tokio::test]
async fn a_client_that_left_before_its_answer_is_a_499() {
    let (site, mut log) = logging();
    let (client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.watch(TOKEN), Reception::Nothing);
    client.reset();
    site.told(TOKEN).await;
    assert_eq!(log.next().await, "\"GET / HTTP/1.1\" 499");
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.watch(TOKEN), Reception::Nothing);
    client.half_close().await;
    site.told(TOKEN).await;
    assert_eq!(asked.half.watch(TOKEN), Reception::Gone);
    drop(asked);
    assert_eq!(log.next().await, "\"GET / HTTP/1.1\" 499");
    log.assert_is_all(site).await;
}

#[tokio::test]
async fn an_upload_that_is_cut_off_is_a_499_unless_the_application_answers() {
    let (site, mut log) = logging();
    let upload = b"PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: 8\r\n\r\nhalf";
    for answered in [false, true] {
        let (mut client, asked) = site.ask(upload).await;
        let token = site.token();
        assert_eq!(asked.half.receive(token), Reception::Chunk(Bytes::from("half").into(), More::Follows));
        assert_eq!(asked.half.receive(token), Reception::Nothing);
        client.half_close().await;
        site.told(token).await;
        assert_eq!(asked.half.receive(token), Reception::Gone);
        if answered {
            assert_eq!(asked.half.finish(head(408, &[]), Bytes::new()), Room::Free);
            assert_eq!(client.answer().await.status, 408);
            assert_eq!(log.next().await, "\"PUT / HTTP/1.1\" 408 Request Timeout");
        } else {
            drop(asked);
            client.assert_closed().await;
            assert_eq!(log.next().await, "\"PUT / HTTP/1.1\" 499");
        }
    }
    log.assert_is_all(site).await;
}

#[tokio::test]
async fn an_upload_whose_framing_is_wrong_is_a_400() {
    let (site, mut log) = logging();
    let mut client = site.connect().await;
    client.send(b"PUT /at-once HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").await;
    assert_eq!(client.answer().await.status, 400);
    assert_eq!(log.next().await, "\"PUT /at-once HTTP/1.1\" 400 Bad Request");
    let upload = b"PUT /later HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n";
    let (mut client, asked) = site.ask(upload).await;
    client.send(b"zz\r\n").await;
    while asked.half.receive(site.token()) != Reception::Gone {
        tokio::task::yield_now().await;
    }
    drop(asked);
    assert_eq!(client.answer().await.status, 400);
    assert_eq!(log.next().await, "\"PUT /later HTTP/1.1\" 400 Bad Request");
    log.assert_is_all(site).await;
}

#[tokio::test]
async fn a_stream_has_its_line_when_it_ends() {
    let (site, mut log) = logging();
    let (mut client, asked) = site.ask(b"GET /a%20b?c=%22 HTTP/1.1\r\nHost: test\r\n\r\n").await;
    assert_eq!(asked.half.start(head(206, &[])), Room::Free);
    assert_eq!(asked.half.write(Bytes::from("x"), More::Follows), Room::Free);
    asked.half.push_out();
    client.head().await;
    assert_eq!(asked.half.write(Bytes::new(), More::Ends), Room::Free);
    assert_eq!(log.next().await, "\"GET /a%20b?c=%22 HTTP/1.1\" 206 Partial Content");
    log.assert_is_all(site).await;
}
