//! How an answer's body is framed, and how one that breaks off cannot be taken for a whole.

use bridgehead_asgi::More;
use bridgehead_net::{Arrival, Room};
use bytes::Bytes;
use http::Version;

use crate::harness::{GET, LONG, Site, head, plain};

const OLD: &[u8] = b"GET / HTTP/1.0\r\n\r\n";
const LENGTH: &[(&str, &str)] = &[("content-length", "10")];

fn start(asked: &Arrival, headers: &[(&str, &str)]) {
    assert_eq!(asked.half.start(head(200, headers)), Room::Free);
}

fn write(asked: &Arrival, chunk: &'static str, more: More) {
    assert_eq!(asked.half.write(Bytes::from(chunk), more), Room::Free);
}

#[tokio::test]
async fn a_whole_answer_has_its_length() {
    let site = Site::open(plain(LONG));
    for body in ["", "whole"] {
        let (mut client, asked) = site.ask(GET).await;
        assert_eq!(asked.half.finish(head(200, &[]), Bytes::from(body)), Room::Free);
        let answer = client.answer().await;
        assert_eq!(answer.header("content-length"), Some(body.len().to_string().as_str()));
        assert_eq!(answer.body, body.as_bytes());
    }
}

#[tokio::test]
async fn a_stream_without_a_length_is_chunked() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    start(&asked, &[]);
    write(&asked, "in ", More::Follows);
    write(&asked, "pieces", More::Ends);
    let answer = client.answer().await;
    assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
    assert_eq!((answer.header("content-length"), answer.body.as_slice()), (None, b"in pieces".as_slice()));
}

#[tokio::test]
async fn a_stream_with_a_length_keeps_it() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    start(&asked, LENGTH);
    write(&asked, "01234", More::Follows);
    write(&asked, "56789", More::Ends);
    let answer = client.answer().await;
    assert_eq!(answer.header("content-length"), Some("10"));
    assert_eq!(
        (answer.header("transfer-encoding"), answer.body.as_slice()),
        (None, b"0123456789".as_slice())
    );
}

#[tokio::test]
async fn large_and_small_pieces_arrive_in_their_order() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    start(&asked, &[]);
    let mut expected = Vec::new();
    for (letter, size) in [(b'a', 1), (b'b', 20_000), (b'c', 2), (b'd', 3), (b'e', 16_384), (b'f', 16_383)] {
        let piece = vec![letter; size];
        expected.extend_from_slice(&piece);
        assert_ne!(asked.half.write(Bytes::from(piece), More::Follows), Room::Gone);
    }
    write(&asked, "", More::Ends);
    assert_eq!(client.answer().await.body, expected);
}

#[tokio::test]
async fn an_exact_answer_whose_end_comes_later_is_complete_and_its_connection_waits_for_it() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(&[GET, GET].concat()).await;
    start(&asked, LENGTH);
    write(&asked, "0123456789", More::Follows);
    asked.half.push_out();
    assert_eq!(client.answer().await.body, b"0123456789");
    assert!(site.is_quiet().await, "two requests of one connection ran at once");
    write(&asked, "", More::Ends);
    let second = site.next().await;
    assert_eq!(second.half.finish(head(200, &[]), Bytes::from("second")), Room::Free);
    assert_eq!(client.answer().await.body, b"second");
}

#[tokio::test]
async fn an_answer_of_declared_nothing_is_complete_at_once() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    start(&asked, &[("content-length", "0")]);
    asked.half.push_out();
    assert_eq!(client.answer().await.header("content-length"), Some("0"));
    write(&asked, "", More::Ends);
    client.send(GET).await;
    site.next().await;
}

#[tokio::test]
async fn an_exact_answer_without_an_end_closes_its_connection() {
    let site = Site::open(plain(LONG));
    for pipelined in [b"".as_slice(), GET] {
        let (mut client, asked) = site.ask(&[GET, pipelined].concat()).await;
        start(&asked, LENGTH);
        write(&asked, "0123456789", More::Follows);
        asked.half.push_out();
        assert_eq!(client.answer().await.body, b"0123456789");
        drop(asked);
        let (rest, _) = client.rest().await;
        assert_eq!(rest, b"");
        assert!(site.is_quiet().await);
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_at_its_length_closes_its_connection() {
    let site = Site::open(plain(LONG));
    for pipelined in [b"".as_slice(), GET] {
        let (mut client, asked) = site.ask(&[GET, pipelined].concat()).await;
        start(&asked, LENGTH);
        asked.half.close_after();
        write(&asked, "0123456789", More::Ends);
        assert_eq!(client.answer().await.body, b"0123456789");
        let (rest, _) = client.rest().await;
        assert_eq!(rest, b"");
        assert!(site.is_quiet().await);
    }
}

#[tokio::test]
async fn an_answer_short_of_its_length_ends_before_it() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    start(&asked, LENGTH);
    write(&asked, "01234", More::Follows);
    asked.half.push_out();
    assert_eq!(client.head().await.header("content-length"), Some("10"));
    drop(asked);
    assert_eq!(client.rest().await.0, b"01234");
}

#[tokio::test]
async fn a_chunked_answer_that_breaks_off_has_no_last_chunk() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(&[GET, GET].concat()).await;
    start(&asked, &[]);
    write(&asked, "half", More::Follows);
    asked.half.push_out();
    client.head().await;
    assert_eq!(client.chunk().await, b"half");
    drop(asked);
    assert_eq!(client.rest().await.0, b"");
    assert!(site.is_quiet().await);
}

#[tokio::test]
async fn an_old_client_sees_the_end_by_the_connections() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(OLD).await;
    assert_eq!(asked.head.version, Version::HTTP_10);
    start(&asked, &[]);
    write(&asked, "whole", More::Ends);
    let head = client.head().await;
    assert_eq!((head.header("transfer-encoding"), head.header("content-length")), (None, None));
    let (rest, end) = client.rest().await;
    assert_eq!((rest.as_slice(), end.is_ok()), (b"whole".as_slice(), true));
}

#[tokio::test]
async fn an_old_clients_answer_that_breaks_off_is_reset() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(OLD).await;
    start(&asked, &[]);
    write(&asked, "half", More::Follows);
    asked.half.push_out();
    client.head().await;
    assert_eq!(client.exactly(4).await, b"half");
    drop(asked);
    let (_, end) = client.rest().await;
    let kind = end.expect_err("the end must not look clean").kind();
    assert_eq!(kind, std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn an_answer_that_asks_for_it_is_the_connections_last() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.finish(head(200, &[("connection", "close")]), Bytes::from("last")), Room::Free);
    let answer = client.answer().await;
    assert!(answer.closes());
    assert_eq!(answer.body, b"last");
    client.assert_closed().await;
}

#[tokio::test]
async fn default_headers_are_added_where_the_application_says_nothing() {
    let mut config = plain(LONG);
    let value = |text| http::HeaderValue::from_static(text);
    config.date_header = true;
    config.default_headers = vec![
        (http::header::SERVER, vec![value("bridgehead")]),
        (http::HeaderName::from_static("x-two"), vec![value("one"), value("two")]),
    ];
    let site = Site::open(config);
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.finish(head(299, &[("server", "its own")]), Bytes::new()), Room::Free);
    let answer = client.answer().await;
    assert_eq!(answer.header("server"), Some("its own"));
    let two: Vec<_> = answer.headers.get_all("x-two").iter().collect();
    assert_eq!(two, ["one", "two"]);
    assert!(answer.headers.contains_key("date"));
    assert_eq!(answer.status, 299);
}
