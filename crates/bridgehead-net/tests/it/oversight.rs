//! Requests that take too long, and those whose clients have gone: who is told what.

use std::time::Duration;

use bridgehead_admission::AdmissionLimits;
use bridgehead_asgi::More;
use bridgehead_net::{Config, Departures, Reception, Room};
use bytes::Bytes;

use crate::harness::{GET, LONG, SHORT, Site, TOKEN, head, plain};

fn timed(time: Duration) -> Config {
    let mut config = plain(LONG);
    config.bounds.request_time = Some(time);
    config
}

fn ending() -> Config {
    let mut config = plain(LONG);
    config.bounds.departures = Departures::Cancelled;
    config
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_answered_cancelled_and_its_connection_kept() {
    let site = Site::open(timed(SHORT));
    let (mut client, arrival) = site.ask(GET).await;
    assert!(arrival.half.known_as(TOKEN));
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.closes()), (504, false));
    assert_eq!(answer.body, b"Gateway Timeout: the application took too long");
    site.cancelled(TOKEN).await;
    assert!(arrival.half.is_cancelled());
    assert_eq!(arrival.half.receive(TOKEN), Reception::Gone);
    assert_eq!(arrival.half.start(head(200, &[])), Room::Gone);
    client.send(GET).await;
    let next = site.next().await;
    assert_eq!(next.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert_eq!(client.answer().await.status, 200);
}

#[tokio::test]
async fn a_head_that_waits_for_its_body_gives_way_to_504() {
    let site = Site::open(timed(SHORT));
    let (mut client, arrival) = site.ask(GET).await;
    assert_eq!(arrival.half.start(head(200, &[])), Room::Free);
    assert_eq!(arrival.half.write(Bytes::from_static(b"kept back"), More::Follows), Room::Free);
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.body.len()), (504, 46));
}

#[tokio::test]
async fn an_answer_that_takes_too_long_is_broken_off() {
    let site = Site::open(timed(SHORT));
    let (mut client, arrival) = site.ask(GET).await;
    assert!(arrival.half.known_as(TOKEN));
    assert_eq!(arrival.half.start(head(200, &[])), Room::Free);
    arrival.half.push_out();
    assert_eq!(client.head().await.status, 200);
    site.cancelled(TOKEN).await;
    let (rest, _) = client.rest().await;
    assert!(!rest.ends_with(b"0\r\n\r\n"), "{rest:?}");
}

#[tokio::test]
async fn a_request_whose_time_is_over_before_it_begins_does_not_begin() {
    let site = Site::open(timed(SHORT));
    let (mut client, arrival) = site.ask(GET).await;
    assert_eq!(client.answer().await.status, 504);
    assert!(!arrival.half.known_as(TOKEN));
}

#[tokio::test]
async fn what_follows_a_complete_answer_has_no_time() {
    let site = Site::open(timed(SHORT));
    let (mut client, arrival) = site.ask(GET).await;
    assert!(arrival.half.known_as(TOKEN));
    assert_eq!(arrival.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert_eq!(client.answer().await.status, 200);
    // The next one's time is over later than this one's would be.
    client.send(GET).await;
    let next = site.next().await;
    let other = site.token();
    assert!(next.half.known_as(other));
    site.cancelled(other).await;
    assert!(!arrival.half.is_cancelled());
}

#[tokio::test]
async fn a_request_ends_with_its_client_where_that_is_asked_for() {
    let site = Site::open(ending());
    let (client, arrival) = site.ask(GET).await;
    assert!(arrival.half.known_as(TOKEN));
    client.reset();
    site.cancelled(TOKEN).await;
    let (mut client, arrival) = site.ask(GET).await;
    let other = site.token();
    assert!(arrival.half.known_as(other));
    client.half_close().await;
    site.cancelled(other).await;
}

#[tokio::test]
async fn a_request_that_is_answered_does_not_end_with_its_client() {
    let site = Site::open(ending());
    let (mut client, arrival) = site.ask(GET).await;
    assert!(arrival.half.known_as(TOKEN));
    assert_eq!(arrival.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert_eq!(client.answer().await.status, 200);
    client.reset();
    // Somebody else's end comes after it.
    let (client, other) = site.ask(GET).await;
    let token = site.token();
    assert!(other.half.known_as(token));
    client.reset();
    site.cancelled(token).await;
    assert!(!arrival.half.is_cancelled());
}

#[tokio::test]
async fn a_request_that_ends_with_its_client_leaves_the_queue_as_well() {
    let mut config = ending();
    config.bounds.admission = AdmissionLimits { permits: Some(1), queue: 1, patience: None };
    let site = Site::open(config);
    let (_running, arrival) = site.ask(GET).await;
    let mut gone = site.connect().await;
    gone.send(GET).await;
    gone.half_close().await;
    let (said, _) = gone.rest().await;
    assert!(said.is_empty(), "{said:?}");
    let mut waits = site.connect().await;
    waits.send(GET).await;
    assert!(site.is_quiet().await);
    drop(arrival);
    let next = site.next().await;
    assert_eq!(next.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert_eq!(waits.answer().await.status, 200);
}

#[tokio::test]
async fn what_a_client_cannot_be_told_any_more_is_counted_and_ends_its_connection() {
    let mut config = plain(LONG);
    config.bounds.body = Some(100);
    let tally = config.tally.clone();
    let site = Site::open(config);
    let (mut client, arrival) =
        site.ask(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    assert_eq!(arrival.half.receive(TOKEN), Reception::Nothing);
    assert_eq!(arrival.half.start(head(200, &[])), Room::Free);
    assert_eq!(arrival.half.write(Bytes::from_static(b"part"), More::Follows), Room::Free);
    arrival.half.push_out();
    assert_eq!(client.head().await.status, 200);
    client.send(&[b"65\r\n", &[b'x'; 101][..], b"\r\n0\r\n\r\n", GET].concat()).await;
    site.told(TOKEN).await;
    assert_eq!(arrival.half.receive(TOKEN), Reception::Gone);
    assert_eq!(arrival.half.write(Bytes::from_static(b"end"), More::Ends), Room::Free);
    let (rest, _) = client.rest().await;
    assert!(rest.ends_with(b"0\r\n\r\n"), "{rest:?}");
    assert!(site.is_quiet().await);
    assert_eq!(tally.counts()["large_body"], 1);
}
