//! How each kind of connection ends with its worker.

use std::os::fd::OwnedFd;

use bridgehead_asgi::More;
use bridgehead_net::{Listener, Ownership, Reception, Room, Stage};
use bytes::Bytes;
use tokio::net::TcpStream;

use crate::harness::{Client, GET, LONG, Site, TOKEN, head, listener, plain, within};

/// Requests that came before on the same listener have been let in by now: it takes clients in their order.
async fn settle(site: &Site) {
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.finish(head(200, &[("connection", "close")]), Bytes::new()), Room::Free);
    client.answer().await;
    client.assert_closed().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_without_a_word() {
    let mut site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    client.answer().await;
    site.advance(Stage::Draining);
    client.assert_closed().await;
    within(&mut site.served).await.expect("it ends with its last connection");
}

#[tokio::test]
async fn who_asks_again_while_the_worker_drains_has_an_answer() {
    let mut site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    client.answer().await;
    let (mut busy, running) = site.ask(GET).await;
    site.advance(Stage::Draining);
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    // This one's answer ends its connection only because the stage has been seen.
    assert_eq!(running.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert!(busy.answer().await.closes());
    client.send(GET).await;
    assert_eq!(site.next().await.half.finish(head(200, &[]), Bytes::from("again")), Room::Free);
    let answer = client.answer().await;
    assert_eq!((answer.body.as_slice(), answer.closes()), (b"again".as_slice(), true));
    client.assert_closed().await;
    within(&mut site.served).await.expect("it ends with its last connection");
}

#[tokio::test]
async fn a_busy_connection_gets_its_answer_and_is_told_that_it_is_the_last() {
    let mut site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    site.advance(Stage::Draining);
    // The other connection ends only because the stage has been seen.
    tokio::task::yield_now().await;
    assert!(!asked.half.is_gone());
    assert!(!site.served.is_finished());
    within(async {
        while tokio::net::TcpStream::connect(site.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::from("last")), Room::Free);
    let answer = client.answer().await;
    assert_eq!((answer.body.as_slice(), answer.closes()), (b"last".as_slice(), true));
    client.assert_closed().await;
    within(&mut site.served).await.expect("it ends with its last connection");
}

#[tokio::test]
async fn at_the_last_call_clients_are_let_in_and_each_answer_ends_its_connection() {
    let mut site = Site::open(plain(LONG));
    let (mut kept, asked) = site.ask(GET).await;
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::from("before")), Room::Free);
    assert!(!kept.answer().await.closes());
    let (mut busy, running) = site.ask(GET).await;
    site.advance(Stage::LastCall);
    let (mut late, new) = site.ask(GET).await;
    kept.send(GET).await;
    let again = site.next().await;
    for (client, asked) in [(&mut kept, again), (&mut busy, running), (&mut late, new)] {
        assert_eq!(asked.half.finish(head(200, &[]), Bytes::from("last")), Room::Free);
        let answer = client.answer().await;
        assert_eq!((answer.body.as_slice(), answer.closes()), (b"last".as_slice(), true));
        client.assert_closed().await;
    }
    assert!(!site.served.is_finished());
    site.advance(Stage::Draining);
    within(&mut site.served).await.expect("it ends with its last connection");
}

#[tokio::test]
async fn a_stream_that_has_begun_is_finished() {
    let mut site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.start(head(200, &[])), Room::Free);
    assert_eq!(asked.half.write(Bytes::from("begun"), More::Follows), Room::Free);
    asked.half.push_out();
    client.head().await;
    assert_eq!(client.chunk().await, b"begun");
    site.advance(Stage::Draining);
    assert_eq!(asked.half.write(Bytes::from("done"), More::Ends), Room::Free);
    assert_eq!(client.chunk().await, b"done");
    assert_eq!(client.chunk().await, b"");
    client.assert_closed().await;
    within(&mut site.served).await.expect("it ends with its last connection");
}

#[tokio::test]
async fn a_large_answer_that_is_being_read_is_finished() {
    const WHOLE: usize = 16 * 1024 * 1024;
    let mut site = Site::open(plain(LONG));
    let mut client = site.connect_narrow().await;
    client.send(GET).await;
    let asked = site.next().await;
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::from(vec![b'x'; WHOLE])), Room::Free);
    client.head().await;
    site.advance(Stage::Draining);
    assert_eq!(client.exactly(WHOLE).await.len(), WHOLE);
    client.assert_closed().await;
    within(&mut site.served).await.expect("it ends with its last connection");
}

#[tokio::test]
async fn a_last_answer_is_read_whole_whatever_came_behind_its_request() {
    const WHOLE: usize = 8 * 1024 * 1024;
    let mut site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    site.advance(Stage::Draining);
    client.send(b"\r\n").await;
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::from(vec![b'x'; WHOLE])), Room::Free);
    assert_eq!(client.answer().await.body.len(), WHOLE);
    client.assert_closed().await;
    drop(client);
    within(&mut site.served).await.expect("it ends with its last connection");
}

#[tokio::test]
async fn a_last_answer_is_read_though_its_request_is_sent_to_the_end() {
    const WHOLE: usize = 400_000;
    let mut site = Site::open(plain(LONG));
    let length = format!("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {WHOLE}\r\n\r\n");
    let (mut client, asked) = site.ask(length.as_bytes()).await;
    site.advance(Stage::Draining);
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::from("unread")), Room::Free);
    client.send(&vec![b'b'; WHOLE]).await;
    let answer = client.answer().await;
    assert_eq!((answer.body.as_slice(), answer.closes()), (b"unread".as_slice(), true));
    client.assert_closed().await;
    drop(client);
    within(&mut site.served).await.expect("it ends with its last connection");
}

#[tokio::test]
async fn an_answer_whose_last_word_is_due_ends_with_it() {
    let mut site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.start(head(200, &[("content-length", "1")])), Room::Free);
    assert_eq!(asked.half.write(Bytes::from("x"), More::Follows), Room::Free);
    asked.half.push_out();
    assert_eq!(client.answer().await.body, b"x");
    site.advance(Stage::Draining);
    // The client has all of it, so its connection may end before.
    client.assert_closed().await;
    let _ = asked.half.write(Bytes::new(), More::Ends);
    drop(asked);
    within(&mut site.served).await.expect("it ends with its last connection");
}

#[tokio::test]
async fn a_fresh_connection_has_a_moment_for_its_request() {
    let mut site = Site::open(plain(LONG));
    let mut client = site.connect().await;
    settle(&site).await;
    site.advance(Stage::Draining);
    client.send(GET).await;
    let asked = site.next().await;
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::from("in time")), Room::Free);
    let answer = client.answer().await;
    assert_eq!((answer.body.as_slice(), answer.closes()), (b"in time".as_slice(), true));
    client.assert_closed().await;
    within(&mut site.served).await.expect("it ends with its last connection");
}

#[tokio::test]
async fn a_fresh_connection_without_a_request_is_closed_after_its_moment() {
    let mut site = Site::open(plain(LONG));
    let mut client = site.connect().await;
    settle(&site).await;
    site.advance(Stage::Draining);
    client.assert_closed().await;
    within(&mut site.served).await.expect("it ends with its last connection");
}

#[tokio::test]
async fn clients_in_the_backlog_are_answered() {
    const CLIENTS: usize = 20;
    let listener = listener();
    let address = listener.local_addr().expect("an address");
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let stream = within(tokio::net::TcpStream::connect(address)).await.expect("the backlog takes it");
        let mut client = Client::new(stream);
        client.send(GET).await;
        clients.push(client);
    }
    let mut site = Site::on(listener, plain(LONG));
    // Before the accepting task has run for the first time.
    site.advance(Stage::Draining);
    for _ in 0..CLIENTS {
        assert_eq!(site.next().await.half.finish(head(200, &[]), Bytes::from("x")), Room::Free);
    }
    for client in &mut clients {
        assert_eq!(client.answer().await.body, b"x");
        client.assert_closed().await;
    }
    within(&mut site.served).await.expect("it ends with its last connection");
}

#[tokio::test]
async fn nobody_is_let_in_any_more() {
    let mut site = Site::open(plain(LONG));
    site.advance(Stage::Draining);
    within(&mut site.served).await.expect("there is no connection");
    let refused = within(tokio::net::TcpStream::connect(site.address)).await.expect_err("it listens no more");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn aborting_ends_every_connection_and_tells_every_application() {
    for before in [Stage::Serving, Stage::LastCall, Stage::Draining] {
        let mut site = Site::open(plain(LONG));
        let (mut busy, asked) = site.ask(GET).await;
        assert_eq!(asked.half.watch(TOKEN), Reception::Nothing);
        let (mut streaming, stream) = site.ask(GET).await;
        assert_eq!(stream.half.start(head(200, &[])), Room::Free);
        stream.half.push_out();
        streaming.head().await;
        let mut fresh = site.connect().await;
        settle(&site).await;
        site.advance(before);
        site.advance(Stage::Aborting);
        for client in [&mut busy, &mut streaming, &mut fresh] {
            assert_eq!(client.rest().await.0, b"");
        }
        site.told(TOKEN).await;
        assert_eq!(asked.half.watch(TOKEN), Reception::Gone);
        assert_eq!(stream.half.write(Bytes::from("x"), More::Follows), Room::Gone);
        within(&mut site.served).await.expect("nothing is left");
    }
}

#[tokio::test]
async fn a_signal_that_is_lost_ends_everything() {
    let mut site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    drop(site.signal.take());
    assert_eq!(client.rest().await.0, b"");
    assert!(asked.half.is_gone());
    within(&mut site.served).await.expect("nothing is left");
}

#[tokio::test]
async fn a_listener_that_is_shut_lets_those_in_who_wait_and_connections_go_on() {
    let ours = listener();
    let address = ours.local_addr().expect("an address");
    let listener = Listener::new(OwnedFd::from(ours), Ownership::Ours).expect("a listener");
    let shutter = listener.shutter();
    let mut waiting = Client::new(within(TcpStream::connect(address)).await.expect("it listens"));
    let mut site = Site::with(address, listener, plain(LONG));
    let (mut kept, asked) = site.ask(GET).await;
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::from("before")), Room::Free);
    kept.answer().await;
    shutter.fall();
    shutter.fall();
    within(async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    for client in [&mut waiting, &mut kept] {
        client.send(GET).await;
        assert_eq!(site.next().await.half.finish(head(200, &[]), Bytes::from("after")), Room::Free);
        let answer = client.answer().await;
        assert_eq!((answer.body.as_slice(), answer.closes()), (b"after".as_slice(), false));
    }
    assert!(!site.served.is_finished());
    drop((waiting, kept));
    within(&mut site.served).await.expect("it ends with its last connection");
}

#[tokio::test]
async fn a_listener_that_is_called_back_is_the_next_ones_with_all_who_wait() {
    let ours = listener();
    let theirs = ours.try_clone().expect("a descriptor");
    let (lender, recall) = std::os::unix::net::UnixStream::pair().expect("a socket pair");
    let lent = Listener::new(OwnedFd::from(theirs), Ownership::Shared).expect("a listener");
    let lent = lent.lent_until(OwnedFd::from(recall)).expect("a socket");
    let mut old = Site::with(ours.local_addr().expect("an address"), lent, plain(LONG));
    let (mut before, asked) = old.ask(GET).await;
    drop(lender);
    let mut after = old.connect().await;
    after.send(GET).await;
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::from("old")), Room::Free);
    assert_eq!(before.answer().await.body, b"old");
    old.advance(Stage::Draining);
    before.assert_closed().await;
    within(&mut old.served).await.expect("it ends with its last connection");
    assert!(old.is_quiet().await);
    let next = Site::on(ours, plain(LONG));
    assert_eq!(next.next().await.half.finish(head(200, &[]), Bytes::from("new")), Room::Free);
    assert_eq!(after.answer().await.body, b"new");
}

#[tokio::test]
async fn a_listener_that_is_lent_and_not_called_back_drains_as_any_other() {
    let (_lender, recall) = std::os::unix::net::UnixStream::pair().expect("a socket pair");
    let ours = listener();
    let address = ours.local_addr().expect("an address");
    let lent = Listener::new(OwnedFd::from(ours), Ownership::Shared).expect("a listener");
    let lent = lent.lent_until(OwnedFd::from(recall)).expect("a socket");
    let mut waiting = Client::new(within(TcpStream::connect(address)).await.expect("it listens"));
    let mut site = Site::with(address, lent, plain(LONG));
    site.advance(Stage::Draining);
    waiting.send(GET).await;
    assert_eq!(site.next().await.half.finish(head(200, &[]), Bytes::from("in time")), Room::Free);
    assert_eq!(waiting.answer().await.body, b"in time");
    within(&mut site.served).await.expect("it ends with its last connection");
}
