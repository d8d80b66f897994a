//! HTTP/2: requests that share a connection, and what each of them is to the others.

use std::time::Duration;

use bridgehead_asgi::More;
use bridgehead_net::{Arrival, Config, Http2, Lifetimes, Pings, Reception, Room, Stage};
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::harness::{Client, LONG, SHORT, Site, head, plain, within};

/// A client of HTTP/2, and its connection's end.
struct Visitor {
    requests: SendRequest<Bytes>,
    connection: JoinHandle<Result<(), h2::Error>>,
}

/// A request on its way.
struct Asked {
    answer: ResponseFuture,
    body: SendStream<Bytes>,
}

impl Visitor {
    async fn of(site: &Site) -> Self {
        Self::with(site, &mut h2::client::Builder::new()).await
    }

    async fn with(site: &Site, builder: &mut h2::client::Builder) -> Self {
        let socket = site.connect().await.stream;
        let (requests, connection) = within(builder.handshake(socket)).await.expect("a handshake");
        Self { requests, connection: tokio::spawn(connection) }
    }

    async fn send(&mut self, request: Request<()>, ends: More) -> Asked {
        let mut requests = within(self.requests.clone().ready()).await.expect("room for a stream");
        let (answer, body) = requests.send_request(request, ends == More::Ends).expect("a request");
        self.requests = requests;
        Asked { answer, body }
    }

    async fn get(&mut self) -> Asked {
        self.send(request(Method::GET), More::Ends).await
    }

    async fn post(&mut self) -> Asked {
        self.send(request(Method::POST), More::Follows).await
    }

    /// Why the connection is over.
    async fn end(self) -> Option<Reason> {
        drop(self.requests);
        let ended = within(self.connection).await.expect("no panic");
        ended.err().map(|error| error.reason().expect("a GOAWAY, and no broken socket"))
    }
}

impl Asked {
    async fn answered(self) -> Response<RecvStream> {
        within(self.answer).await.expect("an answer")
    }

    async fn failed(self) -> Reason {
        within(self.answer).await.expect_err("no answer").reason().expect("a reset")
    }
}

fn request(method: Method) -> Request<()> {
    Request::builder()
        .method(method)
        .uri("http://test/")
        .version(Version::HTTP_2)
        .body(())
        .expect("a request")
}

/// All of a body, its windows opened as it comes.
async fn read(body: &mut RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut all = Vec::new();
    while let Some(piece) = within(body.data()).await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len()).expect("a window");
        all.extend(piece);
    }
    Ok(all)
}

fn chunk(bytes: &'static str, more: More) -> Reception {
    Reception::Chunk(Bytes::from(bytes).into(), more)
}

fn answer(asked: &Arrival, body: &'static str) {
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::from(body)), Room::Free);
}

#[tokio::test]
async fn a_client_that_begins_in_http2_is_answered_in_it() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    for _ in 0..2 {
        let asked = visitor.get().await;
        let arrival = site.next().await;
        assert_eq!(arrival.head.version, Version::HTTP_2);
        assert_eq!(arrival.head.target.authority().map(http::uri::Authority::as_str), Some("test"));
        assert_eq!(arrival.half.receive(site.token()), chunk("", More::Ends));
        answer(&arrival, "hello");
        let (parts, mut body) = asked.answered().await.into_parts();
        assert_eq!(parts.headers["content-length"], "5");
        assert_eq!(read(&mut body).await.expect("a body"), b"hello");
    }
}

#[tokio::test]
async fn a_preface_is_known_however_it_is_cut() {
    let site = Site::open(plain(LONG));
    for cut in 1..BEGIN.len() {
        let mut client = site.connect().await;
        client.stream.set_nodelay(true).expect("a socket option");
        client.send(&BEGIN[..cut]).await;
        client.send(&BEGIN[cut..]).await;
        // Its own settings, and that it has ours.
        assert_eq!(client.exactly(5).await[3], 4);
        client.until(b"\0\0\0\x04\x01\0\0\0\0").await;
    }
}

#[tokio::test]
async fn where_http2_is_off_its_preface_is_refused() {
    let site = Site::open(Config { http2: Http2::Off, ..plain(LONG) });
    let mut client = site.connect().await;
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 505);
    client.assert_closed().await;
}

#[tokio::test]
async fn requests_run_side_by_side_and_are_answered_in_any_order() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let (first, second) = (visitor.get().await, visitor.get().await);
    let (one, two) = (site.next().await, site.next().await);
    answer(&two, "second");
    assert_eq!(read(second.answered().await.body_mut()).await.expect("a body"), b"second");
    answer(&one, "first");
    assert_eq!(read(first.answered().await.body_mut()).await.expect("a body"), b"first");
}

#[tokio::test]
async fn bodies_are_streamed_both_ways() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let mut asked = visitor.post().await;
    let arrival = site.next().await;
    let token = site.token();
    assert_eq!(arrival.half.receive(token), Reception::Nothing);
    asked.body.send_data(Bytes::from("half"), false).expect("a stream");
    site.told(token).await;
    assert_eq!(arrival.half.receive(token), chunk("half", More::Follows));
    assert_eq!(arrival.half.receive(token), Reception::Nothing);
    assert_eq!(arrival.half.start(head(200, &[])), Room::Free);
    assert_eq!(arrival.half.write(Bytes::from("one"), More::Follows), Room::Free);
    arrival.half.push_out();
    let Asked { answer, mut body } = asked;
    let (parts, mut answered) = within(answer).await.expect("an answer").into_parts();
    assert!(!parts.headers.contains_key("transfer-encoding"));
    assert_eq!(within(answered.data()).await.expect("more").expect("data"), "one");
    body.send_data(Bytes::from("rest"), true).expect("a stream");
    site.told(token).await;
    assert_eq!(arrival.half.receive(token), chunk("rest", More::Ends));
    assert_eq!(arrival.half.write(Bytes::from("two"), More::Ends), Room::Free);
    assert_eq!(read(&mut answered).await.expect("a body"), b"two");
    assert!(answered.is_end_stream());
}

#[tokio::test]
async fn a_body_that_is_not_read_holds_back_its_own_stream_alone() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let mut unread = Vec::new();
    for _ in 0..99 {
        let mut asked = visitor.post().await;
        asked.body.send_data(Bytes::from(vec![b'u'; 300_000]), true).expect("a stream");
        unread.push((asked, site.next().await));
    }
    let mut asked = visitor.post().await;
    asked.body.send_data(Bytes::from(vec![b'r'; 300_000]), true).expect("a stream");
    let arrival = site.next().await;
    let (token, mut came) = (site.token(), 0);
    loop {
        match arrival.half.receive(token) {
            Reception::Chunk(piece, more) => {
                came += piece.len();
                if more == More::Ends {
                    break;
                }
            }
            Reception::Nothing => site.told(token).await,
            Reception::Gone => panic!("the client is there"),
        }
    }
    assert_eq!(came, 300_000);
}

#[tokio::test]
async fn an_answer_that_is_not_read_holds_back_its_own_stream_alone() {
    let site = Site::open(plain(LONG));
    let mut visitor =
        Visitor::with(&site, h2::client::Builder::new().initial_connection_window_size(1 << 20)).await;
    let (stalled, quick) = (visitor.get().await, visitor.get().await);
    let (one, two) = (site.next().await, site.next().await);
    let large = Bytes::from(vec![b'x'; 200_000]);
    assert_eq!(one.half.finish(head(200, &[]), large.clone()), Room::Free);
    let mut unread = stalled.answered().await.into_body();
    assert_eq!(two.half.finish(head(200, &[]), large.clone()), Room::Free);
    assert_eq!(read(quick.answered().await.body_mut()).await.expect("a body").len(), 200_000);
    assert_eq!(read(&mut unread).await.expect("a body").len(), 200_000);
}

#[tokio::test]
async fn a_stream_that_is_reset_is_a_client_that_has_gone() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let (mut reset, kept) = (visitor.get().await, visitor.get().await);
    let (one, two) = (site.next().await, site.next().await);
    let token = site.token();
    assert_eq!(one.half.receive(token), chunk("", More::Ends));
    assert_eq!(one.half.watch(token), Reception::Nothing);
    reset.body.send_reset(Reason::CANCEL);
    site.told(token).await;
    assert_eq!(one.half.watch(token), Reception::Gone);
    assert!(one.half.is_gone());
    answer(&two, "kept");
    assert_eq!(read(kept.answered().await.body_mut()).await.expect("a body"), b"kept");
}

#[tokio::test]
async fn an_upload_that_is_reset_is_broken_off() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let mut asked = visitor.post().await;
    let arrival = site.next().await;
    let token = site.token();
    assert_eq!(arrival.half.receive(token), Reception::Nothing);
    asked.body.send_reset(Reason::CANCEL);
    site.told(token).await;
    assert_eq!(arrival.half.receive(token), Reception::Gone);
}

#[tokio::test]
async fn an_answer_that_breaks_off_resets_its_stream() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let (asked, other) = (visitor.get().await, visitor.get().await);
    let (arrival, kept) = (site.next().await, site.next().await);
    assert_eq!(arrival.half.start(head(200, &[])), Room::Free);
    assert_eq!(arrival.half.write(Bytes::from("some"), More::Follows), Room::Free);
    drop(arrival);
    let broken = read(asked.answered().await.body_mut()).await.expect_err("no end");
    assert_eq!(broken.reason(), Some(Reason::INTERNAL_ERROR));
    answer(&kept, "kept");
    assert_eq!(read(other.answered().await.body_mut()).await.expect("a body"), b"kept");
}

#[tokio::test]
async fn an_application_without_an_answer_is_an_error_of_the_server() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let asked = visitor.get().await;
    drop(site.next().await);
    let answer = asked.answered().await;
    assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test]
async fn an_answer_ends_with_the_last_byte_that_it_declares() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let asked = visitor.get().await;
    let arrival = site.next().await;
    assert_eq!(arrival.half.start(head(200, &[("content-length", "4")])), Room::Free);
    assert_eq!(arrival.half.write(Bytes::from("body"), More::Follows), Room::Free);
    arrival.half.push_out();
    assert_eq!(read(asked.answered().await.body_mut()).await.expect("a body"), b"body");
    // Its application is not told that anybody left.
    assert_eq!(arrival.half.write(Bytes::new(), More::Ends), Room::Free);
}

#[tokio::test]
async fn an_answer_without_a_body_ends_with_its_head() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let asked = visitor.send(request(Method::HEAD), More::Ends).await;
    let arrival = site.next().await;
    assert_eq!(arrival.half.start_bodiless(head(200, &[("content-length", "4")])), Room::Free);
    arrival.half.push_out();
    let (parts, body) = asked.answered().await.into_parts();
    assert_eq!(parts.headers["content-length"], "4");
    assert!(body.is_end_stream());
}

#[tokio::test]
async fn trailers_follow_a_body() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let asked = visitor.get().await;
    let arrival = site.next().await;
    assert_eq!(arrival.half.start(head(200, &[])), Room::Free);
    assert_eq!(arrival.half.write(Bytes::from("body"), More::Follows), Room::Free);
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "1".parse().expect("a value"));
    assert_eq!(arrival.half.end_with(trailers.clone()), Room::Free);
    let mut body = asked.answered().await.into_body();
    assert_eq!(read(&mut body).await.expect("a body"), b"body");
    assert_eq!(within(body.trailers()).await.expect("a stream"), Some(trailers));
}

#[tokio::test]
async fn a_client_that_waits_to_be_asked_for_its_body_is_asked_when_it_is_wanted() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let mut expecting = request(Method::POST);
    expecting.headers_mut().insert("expect", "100-continue".parse().expect("a value"));
    let mut asked = visitor.send(expecting, More::Follows).await;
    let arrival = site.next().await;
    let token = site.token();
    assert_eq!(arrival.half.receive(token), Reception::Nothing);
    let interim = std::future::poll_fn(|cx| asked.answer.poll_informational(cx));
    assert_eq!(within(interim).await.expect("one").expect("no reset").status(), StatusCode::CONTINUE);
    asked.body.send_data(Bytes::from("body"), true).expect("a stream");
    site.told(token).await;
    assert_eq!(arrival.half.receive(token), chunk("body", More::Ends));
}

#[tokio::test]
async fn hints_go_ahead_of_an_answer_in_their_order() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let mut asked = visitor.get().await;
    let arrival = site.next().await;
    for link in ["</a.css>; rel=preload", "</b.js>; rel=preload"] {
        let mut links = HeaderMap::new();
        links.insert("link", link.parse().expect("a value"));
        assert_eq!(arrival.half.hint(links), Some(Room::Free));
    }
    for link in ["</a.css>; rel=preload", "</b.js>; rel=preload"] {
        let interim = std::future::poll_fn(|cx| asked.answer.poll_informational(cx));
        let interim = within(interim).await.expect("one").expect("no reset");
        assert_eq!(interim.status(), StatusCode::EARLY_HINTS);
        assert_eq!(interim.headers()["link"], link);
    }
    answer(&arrival, "body");
    assert_eq!(asked.answered().await.status(), StatusCode::OK);
}

#[tokio::test]
async fn crumbs_of_a_cookie_are_one_header() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    for (crumbs, whole) in [
        (&["a=1", "b=2", "c=3"][..], "a=1; b=2; c=3"),
        (&["a=1", ""], "a=1"),
        (&["", "a=1", "", "b=2", ""], "a=1; b=2"),
        (&["", ""], ""),
    ] {
        let _asked = visitor.send(crumbly(crumbs), More::Ends).await;
        let headers = site.next().await.head.headers;
        assert_eq!(headers.get_all("cookie").iter().collect::<Vec<_>>(), [whole]);
    }
}

#[tokio::test]
async fn a_crumb_with_blanks_around_it_is_refused_wherever_it_stands() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    for crumbs in [&["a=1; "][..], &["a=1; ", "b=2"], &["a=1", "\tb=2"], &["a=1", " ", "b=2"]] {
        let asked = visitor.send(crumbly(crumbs), More::Ends).await;
        assert_eq!(asked.answered().await.status(), StatusCode::BAD_REQUEST, "{crumbs:?}");
    }
}

fn crumbly(crumbs: &[&'static str]) -> Request<()> {
    let mut crumbly = request(Method::GET);
    for crumb in crumbs {
        crumbly.headers_mut().append("cookie", http::HeaderValue::from_static(crumb));
    }
    crumbly
}

#[tokio::test]
async fn an_idle_connection_is_told_that_it_ends() {
    let site = Site::open(Config { keep_alive: SHORT, ..plain(LONG) });
    let mut client = site.connect().await;
    client.send(&[BEGIN, &get(1)].concat()).await;
    answer(&site.next().await, "");
    assert_eq!(goodbye(&mut client).await, u32::from(Reason::NO_ERROR));
}

#[tokio::test]
async fn a_connection_without_a_request_is_told_so_when_its_first_was_due() {
    let mut config = plain(LONG);
    // The preface has to come within it as well.
    config.bounds.first_byte = Some(Duration::from_secs(1));
    let site = Site::open(config);
    let mut client = site.connect().await;
    client.send(BEGIN).await;
    assert_eq!(goodbye(&mut client).await, u32::from(Reason::NO_ERROR));
}

#[tokio::test]
async fn what_runs_for_streams_that_were_broken_off_is_counted_until_it_ends() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let mut running = Vec::new();
    for _ in 0..100 {
        // It is broken off with what is dropped here.
        let _asked = visitor.get().await;
        running.push(site.next().await);
    }
    let (refused, _) = visitor.get().await.answered().await.into_parts();
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers["retry-after"], "1");
    assert!(site.is_quiet().await);
    drop(running.pop());
    let asked = visitor.get().await;
    answer(&site.next().await, "");
    assert_eq!(asked.answered().await.status(), StatusCode::OK);
}

#[tokio::test]
async fn an_answer_of_our_own_to_head_has_no_body() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    for (method, length) in [(Method::GET, None), (Method::HEAD, Some(0))] {
        let mut asked = request(method);
        asked.headers_mut().append("expect", "nothing".parse().expect("a value"));
        let (head, mut body) = visitor.send(asked, More::Ends).await.answered().await.into_parts();
        assert_eq!(head.status, StatusCode::EXPECTATION_FAILED);
        let declared: usize =
            head.headers["content-length"].to_str().expect("text").parse().expect("a number");
        assert_ne!(declared, 0);
        assert_eq!(read(&mut body).await.expect("a body").len(), length.unwrap_or(declared));
    }
}

#[tokio::test]
async fn a_connection_that_has_had_its_time_or_its_requests_finishes_what_runs() {
    for (time, requests) in [(Some(SHORT), None), (None, Some(1))] {
        let mut config = plain(LONG);
        config.bounds.lifetimes = Lifetimes { time, requests };
        let site = Site::open(config);
        let mut visitor = Visitor::of(&site).await;
        let asked = visitor.get().await;
        let arrival = site.next().await;
        let goodbye = tokio::spawn(visitor.end());
        assert_eq!(arrival.half.start(head(200, &[])), Room::Free);
        arrival.half.push_out();
        let mut body = asked.answered().await.into_body();
        assert_eq!(arrival.half.write(Bytes::from("late"), More::Ends), Room::Free);
        assert_eq!(read(&mut body).await.expect("a body"), b"late");
        assert_eq!(within(goodbye).await.expect("no panic"), None);
    }
}

#[tokio::test]
async fn a_client_that_is_silent_while_it_waits_is_asked_whether_it_is_there_and_given_up() {
    let pings = Pings { interval: Some(SHORT), timeout: Some(SHORT) };
    let site = Site::open(Config { http2: Http2::Spoken(pings), ..plain(LONG) });
    let mut client = site.connect().await;
    client.send(&[BEGIN, &get(1)].concat()).await;
    let silent = site.next().await;
    let token = site.token();
    while silent.half.receive(token) != Reception::Gone {
        if silent.half.watch(token) == Reception::Nothing {
            site.told(token).await;
        }
    }
    let (said, _) = client.rest().await;
    assert!(said.windows(4).any(|bytes| bytes == [8, PING, 0, 0]), "nobody was asked");
}

#[tokio::test]
async fn streams_that_run_are_finished_when_the_worker_drains() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let asked = visitor.get().await;
    let arrival = site.next().await;
    site.advance(Stage::Draining);
    assert_eq!(arrival.half.start(head(200, &[])), Room::Free);
    assert_eq!(arrival.half.write(Bytes::from("late"), More::Ends), Room::Free);
    assert_eq!(read(asked.answered().await.body_mut()).await.expect("a body"), b"late");
    assert_eq!(visitor.end().await, None);
    within(site.served).await.expect("no panic");
}

#[tokio::test]
async fn a_stream_is_taken_at_the_last_call_and_the_end_is_told_behind_its_answer() {
    let site = Site::open(plain(LONG));
    let before = Visitor::of(&site).await;
    site.advance(Stage::LastCall);
    for mut visitor in [before, Visitor::of(&site).await] {
        let asked = visitor.get().await;
        answer(&site.next().await, "");
        asked.answered().await;
        assert_eq!(visitor.end().await, None);
    }
    site.advance(Stage::Draining);
    within(site.served).await.expect("no panic");
}

#[tokio::test]
async fn streams_that_run_are_broken_off_when_the_worker_aborts() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let asked = visitor.get().await;
    let arrival = site.next().await;
    let token = site.token();
    assert_eq!(arrival.half.receive(token), chunk("", More::Ends));
    assert_eq!(arrival.half.watch(token), Reception::Nothing);
    site.advance(Stage::Aborting);
    site.told(token).await;
    assert!(within(asked.answer).await.is_err());
    drop(arrival);
    within(site.served).await.expect("no panic");
}

/// A preface, and settings that say nothing.
const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A GOAWAY that asks for calm begins so, but for its last stream and the reason.
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;

const PING: u8 = 6;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a length").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// `GET http://test/`, complete.
fn get(stream: u32) -> Vec<u8> {
    frame(1, 5, stream, b"\x82\x86\x84\x41\x04test")
}

fn reset(stream: u32) -> Vec<u8> {
    frame(3, 0, stream, &8_u32.to_be_bytes())
}

/// Why the connection ends, among all that comes until then.
async fn goodbye(client: &mut Client<TcpStream>) -> u32 {
    goodbye_behind_resets(client).await.0
}

/// The same, and how many streams were broken off before.
async fn goodbye_behind_resets(client: &mut Client<TcpStream>) -> (u32, usize) {
    let mut resets = 0;
    loop {
        let head = client.exactly(9).await;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let payload = client.exactly(length).await;
        match head[3] {
            RST_STREAM => resets += 1,
            GOAWAY => return (u32::from_be_bytes(payload[4..8].try_into().expect("a reason")), resets),
            _ => {}
        }
    }
}

const CALM: u32 = 0xb;

#[tokio::test]
async fn a_page_that_is_left_cancels_all_that_it_has() {
    let site = Site::open(plain(LONG));
    let mut client = site.connect().await;
    let ids = || (0..100).map(|number| 2 * number + 1);
    client.send(&[BEGIN.to_vec(), ids().flat_map(get).collect()].concat()).await;
    let arrivals = {
        let mut arrivals = Vec::new();
        for _ in ids() {
            arrivals.push(site.next().await);
        }
        arrivals
    };
    client.send(&ids().flat_map(reset).collect::<Vec<_>>()).await;
    for arrival in arrivals {
        let token = site.token();
        while arrival.half.receive(token) != Reception::Gone {
            if arrival.half.watch(token) == Reception::Nothing {
                site.told(token).await;
            }
        }
    }
    client.send(&get(201)).await;
    site.next().await;
}

#[tokio::test]
async fn streams_that_are_broken_off_without_end_end_their_connection() {
    let site = Site::open(plain(LONG));
    let mut client = site.connect().await;
    let ids = (0..1000).map(|number| 2 * number + 1);
    client.send(&[BEGIN.to_vec(), ids.flat_map(|id| [get(id), reset(id)].concat()).collect()].concat()).await;
    assert_eq!(goodbye(&mut client).await, CALM);
}

#[tokio::test]
async fn floods_of_frames_end_their_connection() {
    let site = Site::open(plain(LONG));
    let floods = [
        ("ping", frame(6, 0, 0, &[0; 8]).repeat(2000)),
        ("settings", frame(4, 0, 0, b"").repeat(2000)),
        ("priority", frame(2, 0, 1, &[0, 0, 0, 3, 1]).repeat(2000)),
        ("unknown", frame(0xfa, 0, 0, &[0; 4096]).repeat(200)),
        ("window", frame(8, 0, 0, &1_u32.to_be_bytes()).repeat(2000)),
        ("continuation", [frame(1, 1, 1, b"\x82"), frame(9, 0, 1, b"").repeat(100)].concat()),
        ("data", [frame(1, 4, 1, b"\x83\x86\x84\x41\x04test"), frame(0, 0, 1, b"").repeat(2000)].concat()),
    ];
    for (name, flood) in floods {
        let mut client = site.connect().await;
        client.send(&[BEGIN, &flood].concat()).await;
        assert_eq!(goodbye(&mut client).await, CALM, "{name}");
    }
}

#[tokio::test]
async fn requests_behind_the_last_word_earn_nothing() {
    let mut config = plain(LONG);
    config.bounds.lifetimes = Lifetimes { time: None, requests: Some(1) };
    let site = Site::open(config);
    let pings = frame(PING, 0, 0, &[0; 8]).repeat(4);
    let flood = |piece: &dyn Fn(u32) -> Vec<u8>| {
        (0..5000).flat_map(|number| piece(2 * number + 3)).collect::<Vec<_>>()
    };
    for flood in [
        flood(&|id| [get(id), pings.clone()].concat()),
        flood(&|id| [frame(1, 4, id, b"\x83\x86\x84\x41\x04test"), frame(0, 0, id, b"x").repeat(4)].concat()),
    ] {
        let mut client = site.connect().await;
        client.send(&[BEGIN, &get(1)].concat()).await;
        let _running = site.next().await;
        // It hears that it ends, and answers the ping behind that.
        assert_eq!(goodbye(&mut client).await, 0);
        let payload = loop {
            let head = client.exactly(9).await;
            let payload = client.exactly(usize::from(head[2])).await;
            if head[3] == PING {
                break payload;
            }
        };
        client.send(&frame(PING, 1, 0, &payload)).await;
        assert_eq!(goodbye(&mut client).await, 0);
        client.send(&flood).await;
        assert_eq!(goodbye(&mut client).await, CALM);
    }
}

#[tokio::test]
async fn priorities_that_depend_on_themselves_are_few_before_their_connection_ends() {
    let site = Site::open(plain(LONG));
    let itself = |id: u32| frame(2, 0, id, &[&id.to_be_bytes()[..], &[16]].concat());
    let behind_a_request = |id: u32| [get(id), itself(id)].concat();
    for each in [&itself as &dyn Fn(u32) -> Vec<u8>, &behind_a_request] {
        let mut client = site.connect().await;
        let flood: Vec<u8> = (0..2000).flat_map(|number| each(2 * number + 1)).collect();
        client.send(&[BEGIN, &flood].concat()).await;
        let (reason, resets) = goodbye_behind_resets(&mut client).await;
        assert_eq!(reason, CALM);
        assert!(resets <= 200, "{resets}");
    }
}

#[tokio::test]
async fn a_head_that_does_not_come_to_its_end_ends_its_connection() {
    let mut config = plain(LONG);
    config.bounds.head_time = Some(SHORT);
    let site = Site::open(config);
    let mut client = site.connect().await;
    client.send(&[BEGIN, &frame(1, 1, 1, b"\x82")].concat()).await;
    assert_eq!(goodbye(&mut client).await, CALM);
}

#[tokio::test]
async fn settings_that_do_not_come_are_waited_for_no_longer_than_a_head() {
    for settings in [&b""[..], b"\0\0\x06\x04", b"\0\0\x06\x04\0\0\0\0\0\0\x04"] {
        let mut config = plain(LONG);
        config.bounds.head_time = Some(SHORT);
        let site = Site::open(config);
        let mut client = site.connect().await;
        client.send(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", settings].concat()).await;
        assert_eq!(goodbye(&mut client).await, CALM);
    }
}

#[tokio::test]
async fn heads_are_bounded_as_in_http1() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let long = |count: usize, length: usize| {
        let mut request = request(Method::GET);
        for number in 0..count {
            let name = http::HeaderName::try_from(format!("x-{number}")).expect("a name");
            request.headers_mut().append(name, "v".repeat(length).parse().expect("a value"));
        }
        request
    };
    for request in [long(101, 1), long(1, 32 * 1024), long(20, 2000)] {
        let asked = visitor.send(request, More::Ends).await;
        assert_eq!(asked.answered().await.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    let mut target = request(Method::GET);
    *target.uri_mut() = format!("http://test/{}", "a".repeat(8 * 1024)).parse().expect("a target");
    let asked = visitor.send(target, More::Ends).await;
    assert_eq!(asked.answered().await.status(), StatusCode::URI_TOO_LONG);
    let _asked = visitor.send(long(100, 1), More::Ends).await;
    site.next().await;
}

/// So many of so many bytes each, with the blank, the colon and the end of a line.
fn trailers(count: usize, length: usize) -> HeaderMap {
    let each = |number| {
        let name = http::HeaderName::try_from(format!("x-{number:02}")).expect("a name");
        (name, "v".repeat(length - "x-00: \r\n".len()).parse().expect("a value"))
    };
    (0..count).map(each).collect()
}

#[tokio::test]
async fn trailers_are_bounded_as_in_http1() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let with_lengths = |count| {
        let mut trailers = trailers(1, 100);
        for _ in 0..count {
            trailers.append("content-length", "4".parse().expect("a value"));
        }
        trailers
    };
    for taken in [HeaderMap::new(), trailers(32, 256), trailers(1, 8 * 1024), with_lengths(1)] {
        let mut asked = visitor.post().await;
        asked.body.send_trailers(taken).expect("trailers");
        let (arrival, token) = (site.next().await, site.token());
        while arrival.half.receive(token) != chunk("", More::Ends) {
            site.told(token).await;
        }
        assert!(arrival.head.headers.is_empty());
        answer(&arrival, "");
        assert_eq!(asked.answered().await.status(), StatusCode::OK);
    }
    for refused in [trailers(33, 10), trailers(1, 8 * 1024 + 1), trailers(32, 257), with_lengths(2)] {
        let mut asked = visitor.post().await;
        asked.body.send_data(Bytes::from_static(b"body"), false).expect("room");
        asked.body.send_trailers(refused).expect("trailers");
        assert_eq!(asked.answered().await.status(), StatusCode::BAD_REQUEST);
    }
}

#[tokio::test]
async fn requests_that_no_application_should_see_are_refused() {
    let site = Site::open(plain(LONG));
    let mut visitor = Visitor::of(&site).await;
    let asked = visitor.send(request(Method::TRACE), More::Ends).await;
    assert_eq!(asked.answered().await.status(), StatusCode::NOT_IMPLEMENTED);
    let mut two_hosts = request(Method::GET);
    two_hosts.headers_mut().append("host", "a".parse().expect("a value"));
    two_hosts.headers_mut().append("host", "b".parse().expect("a value"));
    let asked = visitor.send(two_hosts, More::Ends).await;
    assert_eq!(asked.answered().await.status(), StatusCode::BAD_REQUEST);
    let mut two_lengths = request(Method::POST);
    two_lengths.headers_mut().append("content-length", "1".parse().expect("a value"));
    two_lengths.headers_mut().append("content-length", "2".parse().expect("a value"));
    let asked = visitor.send(two_lengths, More::Follows).await;
    assert_eq!(asked.failed().await, Reason::PROTOCOL_ERROR);
    assert!(site.is_quiet().await);
}
