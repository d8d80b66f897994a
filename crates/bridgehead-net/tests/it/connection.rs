//! What ends a connection while its worker serves, and what must not.

use std::os::fd::OwnedFd;
use std::time::Duration;

use bridgehead_asgi::More;
use bridgehead_net::{Listener, Ownership, Reception, Room};
use bridgehead_proxies::Address;
use bytes::Bytes;
use tokio::net::UnixStream;

use crate::harness::{Client, GET, LONG, SHORT, Site, TOKEN, head, plain, unix_site, within};

/// Until a connection that was let in after all others has been closed for its silence: their time is over as well.
async fn let_the_time_pass(site: &Site) {
    site.connect().await.assert_closed().await;
}

#[tokio::test]
async fn a_fresh_connection_is_closed_after_the_keep_alive_time() {
    let site = Site::open(plain(SHORT));
    site.connect().await.assert_closed().await;
    let mut client = site.connect().await;
    client.send(b"GET / HT").await;
    assert_eq!(client.answer().await.status, 408);
    client.assert_closed().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_the_keep_alive_time() {
    let site = Site::open(plain(SHORT));
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert_eq!(client.answer().await.status, 200);
    client.assert_closed().await;
}

#[tokio::test]
async fn it_is_even_if_the_first_request_had_longer() {
    let mut config = plain(SHORT);
    config.bounds.first_byte = Some(LONG);
    let site = Site::open(config);
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert_eq!(client.answer().await.status, 200);
    client.assert_closed().await;
}

#[tokio::test]
async fn a_busy_connection_is_not() {
    let site = Site::open(plain(SHORT));
    let (mut client, asked) = site.ask(GET).await;
    let_the_time_pass(&site).await;
    assert_eq!(asked.half.start(head(200, &[])), Room::Free);
    asked.half.push_out();
    client.head().await;
    let_the_time_pass(&site).await;
    assert_eq!(asked.half.write(Bytes::from("late"), More::Ends), Room::Free);
    assert_eq!(client.chunk().await, b"late");
}

#[tokio::test]
async fn a_connection_whose_application_has_the_last_word_is_not() {
    let site = Site::open(plain(SHORT));
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.start(head(200, &[("content-length", "1")])), Room::Free);
    assert_eq!(asked.half.write(Bytes::from("x"), More::Follows), Room::Free);
    asked.half.push_out();
    assert_eq!(client.answer().await.body, b"x");
    let_the_time_pass(&site).await;
    assert!(!asked.half.is_gone());
    assert_eq!(asked.half.write(Bytes::new(), More::Ends), Room::Free);
    client.assert_closed().await;
}

#[tokio::test]
async fn a_slow_reader_gets_its_whole_answer_however_long_it_takes() {
    const WHOLE: usize = 16 * 1024 * 1024;
    let site = Site::open(plain(SHORT));
    let mut client = site.connect_narrow().await;
    client.send(GET).await;
    assert_eq!(site.next().await.half.finish(head(200, &[]), Bytes::from(vec![b'x'; WHOLE])), Room::Free);
    client.head().await;
    let_the_time_pass(&site).await;
    assert_eq!(client.exactly(WHOLE).await.len(), WHOLE);
}

#[tokio::test]
async fn the_keep_alive_time_begins_when_the_answer_is_written() {
    let site = Site::open(plain(SHORT));
    let (mut client, asked) = site.ask(GET).await;
    let_the_time_pass(&site).await;
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert_eq!(client.answer().await.status, 200);
    client.send(GET).await;
    assert_eq!(site.next().await.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert_eq!(client.answer().await.status, 200);
}

#[tokio::test]
async fn pipelined_requests_are_answered_one_after_the_other() {
    let site = Site::open(plain(LONG));
    let mut client = site.connect().await;
    client.send(&GET.repeat(3)).await;
    for number in ["1", "2", "3"] {
        let asked = site.next().await;
        assert!(site.is_quiet().await, "two requests of one connection ran at once");
        assert_eq!(asked.half.finish(head(200, &[]), Bytes::from(number)), Room::Free);
        assert_eq!(client.answer().await.body, number.as_bytes());
    }
}

#[tokio::test]
async fn a_half_closed_client_gets_every_answer_and_the_end() {
    let site = Site::open(plain(LONG));
    let mut client = site.connect().await;
    client.send(&GET.repeat(2)).await;
    client.half_close().await;
    for number in ["1", "2"] {
        assert_eq!(site.next().await.half.finish(head(200, &[]), Bytes::from(number)), Room::Free);
        assert_eq!(client.answer().await.body, number.as_bytes());
    }
    client.assert_closed().await;
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_while_its_application_thinks() {
    let site = Site::open(plain(LONG));
    let (client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.watch(TOKEN), Reception::Nothing);
    drop(client);
    site.told(TOKEN).await;
    assert_eq!(asked.half.watch(TOKEN), Reception::Gone);
}

#[tokio::test]
async fn a_client_that_leaves_behind_bytes_that_nobody_reads_is_noticed() {
    let site = Site::open(plain(LONG));
    for behind in [b"\r\n".as_slice(), GET] {
        for leave in [Client::reset, drop] {
            let (mut client, asked) = site.ask(GET).await;
            let token = site.token();
            assert_eq!(asked.half.watch(token), Reception::Nothing);
            client.send(behind).await;
            leave(client);
            site.told(token).await;
            assert_eq!(asked.half.watch(token), Reception::Gone);
        }
    }
}

#[tokio::test]
async fn a_unix_client_that_leaves_behind_bytes_that_nobody_reads_is_noticed() {
    let (site, path) = unix_site("left", plain(LONG));
    let mut client = Client::new(within(UnixStream::connect(&path)).await.expect("it listens"));
    client.send(GET).await;
    let asked = site.next().await;
    assert_eq!(asked.half.watch(TOKEN), Reception::Nothing);
    client.send(GET).await;
    drop(client);
    site.told(TOKEN).await;
    assert_eq!(asked.half.watch(TOKEN), Reception::Gone);
    std::fs::remove_file(&path).expect("our own socket");
}

#[tokio::test]
async fn what_was_looked_past_is_read_when_its_turn_comes() {
    let site = Site::open(plain(LONG));
    let (mut client, first) = site.ask(GET).await;
    let body = vec![b'b'; 300_000];
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n").await;
    // More of it comes while it waits, and the rest when it is read.
    client.send(&body[..100_000]).await;
    let read = tokio::spawn(async move {
        let status = client.answer().await.status;
        client.send(&body[100_000..]).await;
        (status, client.answer().await.body)
    });
    assert_eq!(first.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    let second = site.next().await;
    let mut got = 0;
    loop {
        match second.half.receive(TOKEN) {
            Reception::Chunk(chunk, more) => {
                got += chunk.len();
                if more == More::Ends {
                    break;
                }
            }
            Reception::Nothing => site.told(TOKEN).await,
            Reception::Gone => panic!("the client is there"),
        }
    }
    assert_eq!(got, 300_000);
    assert_eq!(second.half.finish(head(200, &[]), Bytes::from("second")), Room::Free);
    assert_eq!(read.await.expect("a client"), (200, b"second".to_vec()));
}

#[tokio::test]
async fn a_client_that_leaves_with_a_request_behind_is_noticed_while_the_last_word_is_due() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(&[GET, GET].concat()).await;
    assert_eq!(asked.half.start(head(200, &[("content-length", "1")])), Room::Free);
    assert_eq!(asked.half.write(Bytes::from("x"), More::Follows), Room::Free);
    asked.half.push_out();
    assert_eq!(client.answer().await.body, b"x");
    assert_eq!(asked.half.watch(TOKEN), Reception::Nothing);
    client.reset();
    site.told(TOKEN).await;
    assert_eq!(asked.half.watch(TOKEN), Reception::Gone);
}

#[tokio::test]
async fn both_ends_of_a_connection_are_known() {
    let site = Site::open(plain(LONG));
    let (client, asked) = site.ask(GET).await;
    assert_eq!(asked.peer.client, Address::Inet(client.stream.local_addr().expect("an address")));
    assert_eq!(asked.peer.server, Address::Inet(site.address));
}

#[tokio::test]
async fn a_unix_socket_is_served_too() {
    let (site, path) = unix_site("served", plain(SHORT));
    let mut client = Client::new(within(UnixStream::connect(&path)).await.expect("it listens"));
    client.send(GET).await;
    let asked = site.next().await;
    assert_eq!(asked.peer.client, Address::Unix(None));
    assert_eq!(asked.peer.server, Address::Unix(Some(path.to_string_lossy().into_owned())));
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::from("unix")), Room::Free);
    assert_eq!(client.answer().await.body, b"unix");
    client.assert_closed().await;
    std::fs::remove_file(&path).expect("our own socket");
}

#[tokio::test]
async fn an_answer_that_closes_is_read_whole_whatever_came_behind_its_request() {
    const WHOLE: usize = 8 * 1024 * 1024;
    let site = Site::open(plain(LONG));
    let behind: [&[u8]; 2] = [b"\r\n", GET];
    for behind in behind {
        for asks in ["Connection: close\r\n", ""] {
            let request = format!("GET / HTTP/1.1\r\nHost: test\r\n{asks}\r\n");
            let (mut client, asked) = site.ask(request.as_bytes()).await;
            client.send(behind).await;
            let closes = if asks.is_empty() { &[("connection", "close")][..] } else { &[] };
            assert_eq!(asked.half.finish(head(200, closes), Bytes::from(vec![b'x'; WHOLE])), Room::Free);
            assert_eq!(client.answer().await.body.len(), WHOLE);
            client.assert_closed().await;
        }
    }
}

#[test]
fn what_is_no_stream_socket_is_no_listener() {
    let (file, datagrams) = (
        std::fs::File::open("Cargo.toml").expect("tests run in the crate's folder"),
        std::os::unix::net::UnixDatagram::unbound().expect("a socket"),
    );
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    assert!(Listener::new(OwnedFd::from(file), Ownership::Ours).is_err());
    assert!(Listener::new(OwnedFd::from(datagrams), Ownership::Ours).is_err());
    assert!(Listener::new(OwnedFd::from(udp), Ownership::Ours).is_err());
}

#[tokio::test]
async fn a_connection_that_has_had_its_time_ends_with_an_answer_and_never_in_between() {
    let mut config = plain(LONG);
    // Over before the first request, which is answered as any other.
    config.bounds.lifetimes.time = Some(Duration::from_nanos(1));
    let site = Site::open(config);
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert_eq!(client.answer().await.header("connection"), None);
    client.send(GET).await;
    assert_eq!(site.next().await.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert_eq!(client.answer().await.header("connection"), Some("close"));
    client.assert_closed().await;
}

#[tokio::test]
async fn a_connection_carries_as_many_requests_as_it_may() {
    let mut config = plain(LONG);
    config.bounds.lifetimes.requests = Some(3);
    let site = Site::open(config);
    let mut client = site.connect().await;
    client.send(&GET.repeat(4)).await;
    for closes in [None, None, Some("close")] {
        assert_eq!(site.next().await.half.finish(head(200, &[]), Bytes::new()), Room::Free);
        assert_eq!(client.answer().await.header("connection"), closes);
    }
    client.assert_closed().await;
    assert!(site.is_quiet().await);
}

#[tokio::test]
async fn an_answer_to_who_asks_for_an_upgrade_is_whole_though_its_request_was_not_read() {
    let body = Bytes::from(vec![b'x'; 16 * 1024 * 1024]);
    for upgrade in ["", "Connection: Upgrade\r\nUpgrade: h2c\r\n"] {
        let site = Site::open(plain(LONG));
        let mut client = site.connect_narrow().await;
        let lines = "Host: test\r\nConnection: close\r\nContent-Length: 1000\r\n";
        client.send(format!("POST / HTTP/1.1\r\n{lines}{upgrade}\r\n").as_bytes()).await;
        let asked = site.next().await;
        let length = body.len().to_string();
        assert_eq!(asked.half.finish(head(200, &[("content-length", &length)]), body.clone()), Room::Free);
        drop(asked);
        assert!(client.answer().await.body == body, "{upgrade}");
    }
}
