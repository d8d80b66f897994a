//! More requests than may run at once: some wait, others are told to come again.

use std::time::Duration;

use bridgehead_admission::AdmissionLimits;
use bridgehead_net::{Arrival, Config, Room};
use bytes::Bytes;

use crate::harness::{GET, LONG, SHORT, Site, head, plain};

/// One may run.
fn one(queue: usize, patience: Option<Duration>) -> Config {
    let mut config = plain(LONG);
    config.bounds.admission = AdmissionLimits { permits: Some(1), queue, patience };
    config
}

fn answer(arrival: &Arrival) {
    assert_eq!(arrival.half.finish(head(200, &[]), Bytes::from_static(b"done")), Room::Free);
}

#[tokio::test]
async fn one_waits_for_a_permit_and_comes_in_when_it_is_back_the_next_is_told_to_come_again() {
    let site = Site::open(one(1, None));
    let (_running, arrival) = site.ask(GET).await;
    let (mut one, mut other) = (site.connect().await, site.connect().await);
    one.send(GET).await;
    other.send(GET).await;
    let (refused, mut waits) = tokio::select! {
        refused = one.answer() => (refused, other),
        refused = other.answer() => (refused, one),
    };
    assert_eq!((refused.status, refused.closes(), refused.header("retry-after")), (503, false, Some("1")));
    assert!(refused.body.ends_with(b"too many wait for them"));
    assert!(site.is_quiet().await);
    drop(arrival.permit);
    answer(&site.next().await);
    assert_eq!(waits.answer().await.status, 200);
}

#[tokio::test]
async fn a_permit_is_out_until_it_is_dropped_whatever_was_answered() {
    let site = Site::open(one(0, None));
    let (mut client, arrival) = site.ask(GET).await;
    answer(&arrival);
    assert_eq!(client.answer().await.status, 200);
    client.send(GET).await;
    assert_eq!(client.answer().await.status, 503);
    let Arrival { half, permit, .. } = arrival;
    drop(half);
    client.send(GET).await;
    assert_eq!(client.answer().await.status, 503);
    drop(permit);
    client.send(GET).await;
    answer(&site.next().await);
    assert_eq!(client.answer().await.status, 200);
}

#[tokio::test]
async fn who_has_waited_too_long_is_told_so_and_keeps_its_connection() {
    let site = Site::open(one(1, Some(SHORT)));
    let (_running, arrival) = site.ask(GET).await;
    let mut client = site.connect().await;
    client.send(GET).await;
    let refused = client.answer().await;
    assert_eq!((refused.status, refused.closes(), refused.header("retry-after")), (503, false, Some("1")));
    assert!(refused.body.ends_with(b"none ended in time"));
    drop(arrival);
    client.send(GET).await;
    answer(&site.next().await);
    assert_eq!(client.answer().await.status, 200);
}

#[tokio::test]
async fn the_body_of_a_request_that_is_not_let_in_makes_room_for_the_next() {
    let site = Site::open(one(0, None));
    let (_running, arrival) = site.ask(GET).await;
    let mut client = site.connect().await;
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234").await;
    assert_eq!(client.answer().await.status, 503);
    drop(arrival);
    client.send(b"56789").await;
    client.send(GET).await;
    answer(&site.next().await);
    assert_eq!(client.answer().await.status, 200);
}

#[tokio::test]
async fn what_is_not_in_order_is_refused_and_not_kept_waiting() {
    let site = Site::open(one(1, None));
    let (_running, _arrival) = site.ask(GET).await;
    let mut client = site.connect().await;
    client.send(b"GET / HTTP/1.1\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 400);
}
