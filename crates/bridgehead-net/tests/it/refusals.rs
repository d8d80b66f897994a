//! Requests that the application never sees, and those it gives no answer to.

use bridgehead_net::Room;
use bytes::Bytes;

use crate::harness::{GET, LONG, Site, head, plain};

#[tokio::test]
async fn a_request_that_is_not_in_order_is_refused_and_its_connection_closed() {
    let long = format!("{} / HTTP/1.1\r\nHost: a\r\n\r\n", "M".repeat(33));
    let table: [(&str, u16); 22] = [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a:port\r\n\r\n", 400),
        ("GET / HTTP/1.0\r\nHost: a@b\r\n\r\n", 400),
        ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        ("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        ("get / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        (&long, 501),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: tea\r\n\r\nx", 417),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        // What hyper would refuse without a word.
        ("GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
        ("\0", 400),
    ];
    let site = Site::open(plain(LONG));
    for (request, status) in table {
        let mut client = site.connect().await;
        client.send(request.as_bytes()).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.closes()), (status, true), "{request:?}");
        let (rest, _) = client.rest().await;
        assert_eq!(rest, b"", "{request:?}");
        assert!(site.is_quiet().await, "{request:?}");
    }
}

#[tokio::test]
async fn a_refusal_says_what_was_due() {
    let site = Site::open(plain(LONG));
    let mut client = site.connect().await;
    client.send(b"GET / HTTP/1.1\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(answer.body, b"Bad Request: an HTTP/1.1 request needs a Host header");
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let site = Site::open(plain(LONG));
    let mut client = site.connect().await;
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Long: {}", "x".repeat(70_000));
    client.send(head.as_bytes()).await;
    let answer = client.head().await;
    assert_eq!((answer.status, answer.closes()), (431, true));
}

#[tokio::test]
async fn what_is_in_order_is_not_refused() {
    let site = Site::open(plain(LONG));
    for request in [
        "GET / HTTP/1.0\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
        "PURGE / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.0\r\nExpect: tea\r\n\r\n",
    ] {
        let (mut client, asked) = site.ask(request.as_bytes()).await;
        assert_eq!(asked.half.finish(head(200, &[]), Bytes::new()), Room::Free);
        assert_eq!(client.answer().await.status, 200, "{request:?}");
    }
}

#[tokio::test]
async fn a_request_for_which_there_is_no_room_is_told_to_come_again() {
    let site = Site::open(plain(LONG));
    site.refuse(true);
    let mut client = site.connect().await;
    client.send(GET).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.closes(), answer.header("retry-after")), (503, false, Some("1")));
    site.refuse(false);
    client.send(GET).await;
    assert_eq!(site.next().await.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert_eq!(client.answer().await.status, 200);
}

#[tokio::test]
async fn a_refused_upload_does_not_hold_its_client() {
    let site = Site::open(plain(LONG));
    site.refuse(true);
    let mut client = site.connect().await;
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\npart").await;
    assert_eq!(client.answer().await.status, 503);
}
