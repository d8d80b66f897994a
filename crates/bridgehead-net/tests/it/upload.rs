//! How a request's body reaches the application, and what holds its client back.

use std::time::Duration;

use bridgehead_asgi::More;
use bridgehead_net::{Arrival, Reception, Room};
use bytes::Bytes;
use tokio::net::TcpStream;

use crate::harness::{Client, LONG, PATIENCE, Site, TOKEN, head, plain, within};

const MARK: usize = 64 * 1024;

/// A head that declares its body.
fn post(length: usize) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n").into_bytes()
}

const CHUNKED: &[u8] = b"POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n";
const EXPECTING: &[u8] =
    b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";

fn chunk(bytes: &'static str, more: More) -> Reception {
    Reception::Chunk(Bytes::from(bytes).into(), more)
}

#[tokio::test]
async fn a_body_that_is_already_there_is_received_at_once() {
    let site = Site::open(plain(LONG));
    let requests =
        [[post(4), b"body".to_vec()].concat(), [CHUNKED, b"2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n"].concat()];
    for request in requests {
        let (_client, asked) = site.ask(&request).await;
        assert_eq!(asked.half.receive(TOKEN), chunk("body", More::Ends));
    }
}

#[tokio::test]
async fn a_body_that_comes_in_parts_is_received_as_it_comes() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(&[post(8), b"half".to_vec()].concat()).await;
    assert_eq!(asked.half.receive(TOKEN), chunk("half", More::Follows));
    assert_eq!(asked.half.receive(TOKEN), Reception::Nothing);
    client.send(b"rest").await;
    site.told(TOKEN).await;
    assert_eq!(asked.half.receive(TOKEN), chunk("rest", More::Ends));
}

#[tokio::test]
async fn an_end_that_comes_by_itself_is_an_empty_last_piece() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(&[CHUNKED, b"4\r\nbody\r\n"].concat()).await;
    assert_eq!(asked.half.receive(TOKEN), chunk("body", More::Follows));
    assert_eq!(asked.half.receive(TOKEN), Reception::Nothing);
    client.send(b"0\r\n\r\n").await;
    site.told(TOKEN).await;
    assert_eq!(asked.half.receive(TOKEN), chunk("", More::Ends));
}

#[tokio::test]
async fn trailers_are_passed_over() {
    let site = Site::open(plain(LONG));
    let (_client, asked) = site.ask(&[CHUNKED, b"4\r\nbody\r\n0\r\nx-trailer: yes\r\n\r\n"].concat()).await;
    let Reception::Chunk(first, more) = asked.half.receive(TOKEN) else { panic!("a piece was due") };
    assert_eq!(first, Bytes::from("body").into());
    if more == More::Follows {
        assert_eq!(asked.half.receive(TOKEN), chunk("", More::Ends));
    }
    assert!(!asked.head.headers.contains_key("x-trailer"));
}

#[tokio::test]
async fn a_client_that_breaks_off_its_body_has_gone() {
    let site = Site::open(plain(LONG));
    for (head, part) in [(post(8), "half".as_bytes()), (CHUNKED.to_vec(), b"8\r\nhalf")] {
        let (mut client, asked) = site.ask(&[head, part.to_vec()].concat()).await;
        let token = site.token();
        assert_eq!(asked.half.receive(token), chunk("half", More::Follows));
        assert_eq!(asked.half.receive(token), Reception::Nothing);
        client.half_close().await;
        site.told(token).await;
        assert_eq!(asked.half.receive(token), Reception::Gone);
    }
}

#[tokio::test]
async fn a_body_that_broke_off_before_its_application_began_is_received_as_gone() {
    let listener = crate::harness::listener();
    let address = listener.local_addr().expect("an address");
    let stream = within(TcpStream::connect(address)).await.expect("the backlog takes it");
    let mut client = Client::new(stream);
    client.send(&[post(8), b"half".to_vec()].concat()).await;
    client.half_close().await;
    let site = Site::on(listener, plain(LONG));
    let asked = site.next().await;
    // Whether the end was seen before the application began is up to the network's turns.
    while asked.half.receive(TOKEN) != Reception::Gone {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_body_whose_framing_is_wrong_is_refused_or_received_as_gone() {
    let site = Site::open(plain(LONG));
    let mut client = site.connect().await;
    client.send(&[CHUNKED, b"zz\r\n"].concat()).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.closes()), (400, true));
    client.assert_closed().await;
    assert!(site.is_quiet().await);

    let (mut client, asked) = site.ask(&[CHUNKED, b"4\r\nbody\r\n"].concat()).await;
    assert_eq!(asked.half.receive(TOKEN), chunk("body", More::Follows));
    assert_eq!(asked.half.receive(TOKEN), Reception::Nothing);
    client.send(b"zz\r\n").await;
    site.told(TOKEN).await;
    assert_eq!(asked.half.receive(TOKEN), Reception::Gone);
}

/// A request whose framing breaks once its application runs, and knows of it.
async fn broken_later(site: &Site) -> (Client<TcpStream>, Arrival) {
    let (mut client, asked) = site.ask(&[CHUNKED, b"4\r\nbody\r\n"].concat()).await;
    let token = site.token();
    assert_eq!(asked.half.receive(token), chunk("body", More::Follows));
    assert_eq!(asked.half.receive(token), Reception::Nothing);
    client.send(b"zz\r\n").await;
    site.told(token).await;
    assert_eq!(asked.half.receive(token), Reception::Gone);
    (client, asked)
}

#[tokio::test]
async fn a_framing_that_breaks_later_is_a_400_unless_the_answer_has_begun() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = broken_later(&site).await;
    drop(asked);
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.closes()), (400, true));
    assert_eq!(answer.body, b"Bad Request: the body's framing is broken");
    client.assert_closed().await;

    let (mut client, asked) = broken_later(&site).await;
    assert_eq!(asked.half.finish(head(422, &[]), Bytes::from("its own")), Room::Gone);
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.closes()), (400, true));
    client.assert_closed().await;

    let (mut client, asked) = site.ask(&[CHUNKED, b"4\r\nbody\r\n"].concat()).await;
    assert_eq!(asked.half.receive(TOKEN), chunk("body", More::Follows));
    assert_eq!(asked.half.start(head(200, &[])), Room::Free);
    assert_eq!(asked.half.write(Bytes::from("begun"), More::Follows), Room::Free);
    asked.half.push_out();
    assert_eq!(client.head().await.status, 200);
    assert_eq!(client.chunk().await, b"begun");
    assert_eq!(asked.half.receive(TOKEN), Reception::Nothing);
    client.send(b"zz\r\n").await;
    site.told(TOKEN).await;
    assert_eq!(asked.half.receive(TOKEN), Reception::Gone);
    drop(asked);
    assert_eq!(client.rest().await.0, b"", "neither a last chunk nor a second answer");
}

#[tokio::test]
async fn a_client_is_held_while_nobody_reads_and_goes_on_when_somebody_does() {
    const WHOLE: usize = 32 * 1024 * 1024;
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(&post(WHOLE)).await;
    let mut upload = tokio::spawn(async move {
        client.send(&vec![b'u'; WHOLE]).await;
        client
    });
    // The kernel holds some megabytes, and nothing tells when it is full.
    let held = tokio::time::timeout(Duration::from_millis(500), &mut upload).await;
    assert!(held.is_err(), "the client was not held");
    let mut received = 0;
    loop {
        match asked.half.receive(TOKEN) {
            Reception::Chunk(piece, more) => {
                // The mark, and one frame of hyper's.
                assert!(piece.len() <= 2 * MARK, "{} bytes waited", piece.len());
                received += piece.len();
                if more == More::Ends {
                    break;
                }
            }
            Reception::Nothing => site.told(TOKEN).await,
            Reception::Gone => panic!("the client is there"),
        }
    }
    assert_eq!(received, WHOLE);
    let mut client = within(upload).await.expect("all was sent");
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert_eq!(client.answer().await.status, 200);
}

#[tokio::test]
async fn many_small_chunks_are_received_together() {
    let site = Site::open(plain(LONG));
    let chunks = "1\r\nx\r\n".repeat(5000);
    let (_client, asked) = site.ask(&[CHUNKED, chunks.as_bytes(), b"0\r\n\r\n"].concat()).await;
    let (mut received, mut pieces) = (0, 0);
    loop {
        match asked.half.receive(TOKEN) {
            Reception::Chunk(piece, more) => {
                received += piece.len();
                pieces += 1;
                if more == More::Ends {
                    break;
                }
            }
            Reception::Nothing => site.told(TOKEN).await,
            Reception::Gone => panic!("the client is there"),
        }
    }
    assert_eq!(received, 5000);
    assert!(pieces < 1000, "{pieces} pieces");
}

#[tokio::test]
async fn a_client_that_waits_for_a_word_gets_it_when_its_body_is_wanted() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(EXPECTING).await;
    assert!(client.stream.try_read(&mut [0]).is_err());
    assert_eq!(asked.half.receive(TOKEN), Reception::Nothing);
    assert_eq!(client.until(b"\r\n\r\n").await, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.send(b"body").await;
    site.told(TOKEN).await;
    assert_eq!(asked.half.receive(TOKEN), chunk("body", More::Ends));
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert_eq!(client.answer().await.status, 200);
}

#[tokio::test]
async fn a_client_that_waits_for_a_word_gets_none_when_its_body_is_not_wanted() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(EXPECTING).await;
    assert_eq!(asked.half.finish(head(413, &[]), Bytes::from("no")), Room::Free);
    assert_eq!(client.answer().await.status, 413);
}

#[tokio::test]
async fn a_body_that_nobody_wants_does_not_hold_the_connection() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(&[post(8 * MARK), vec![b'u'; 2 * MARK]].concat()).await;
    assert_eq!(asked.half.finish(head(413, &[]), Bytes::from("no")), Room::Free);
    assert_eq!(client.answer().await.status, 413);
    // Whether it is read to its end or not: the connection ends, or is ready again.
    let rest = vec![b'u'; 6 * MARK];
    let wait = async {
        use tokio::io::AsyncWriteExt;
        client.stream.write_all(&rest).await
    };
    if tokio::time::timeout(PATIENCE, wait).await.expect("it is read or refused").is_ok() {
        let _ = client.rest().await;
    }
}

/// More than anybody takes in that nobody asked for.
const LARGE: usize = 16 * MARK;

#[tokio::test]
async fn an_answer_that_leaves_a_large_body_unread_says_that_its_connection_closes() {
    let site = Site::open(plain(LONG));
    let large = [post(LARGE), b"part".to_vec()].concat();
    for request in [large.as_slice(), EXPECTING] {
        let (mut whole, asked) = site.ask(request).await;
        assert_eq!(asked.half.finish(head(413, &[]), Bytes::from("no")), Room::Free);
        let (mut streamed, asked) = site.ask(request).await;
        assert_eq!(asked.half.start(head(413, &[])), Room::Free);
        assert_eq!(asked.half.write(Bytes::from("n"), More::Follows), Room::Free);
        assert_eq!(asked.half.write(Bytes::from("o"), More::Ends), Room::Free);
        let (mut failed, asked) = site.ask(request).await;
        drop(asked);
        site.refuse(true);
        let mut refused = site.connect().await;
        refused.send(request).await;
        for (client, status) in
            [(&mut whole, 413), (&mut streamed, 413), (&mut failed, 500), (&mut refused, 503)]
        {
            let answer = client.answer().await;
            assert_eq!((answer.status, answer.closes()), (status, true));
            assert_eq!(client.rest().await.0, b"");
        }
        site.refuse(false);
    }
}

#[tokio::test]
async fn an_answer_whose_connection_may_be_kept_does_not_say_otherwise() {
    let site = Site::open(plain(LONG));
    // Nobody knows how much is to come, whether it is under way, or whether it will be read after all.
    let several = [post(2 * MARK), vec![b'u'; 2 * MARK]].concat();
    let chunked = [CHUNKED, b"4\r\npart\r\n"].concat();
    for request in [several, chunked, [post(8), b"part".to_vec()].concat()] {
        let (mut client, asked) = site.ask(&request).await;
        assert_eq!(asked.half.finish(head(200, &[]), Bytes::new()), Room::Free);
        assert!(!client.answer().await.closes());
    }
    let (mut client, asked) = site.ask(&post(LARGE)).await;
    assert_eq!(asked.half.start(head(200, &[])), Room::Free);
    asked.half.push_out();
    assert!(!client.head().await.closes());
}

#[tokio::test]
async fn a_large_body_that_was_read_leaves_its_connection_open() {
    let site = Site::open(plain(LONG));
    let mut client = site.connect().await;
    for _ in 0..2 {
        client.send(&post(LARGE)).await;
        let asked = site.next().await;
        let reading = async {
            let mut received = 0;
            while received < LARGE {
                match asked.half.receive(TOKEN) {
                    Reception::Chunk(piece, _) => received += piece.len(),
                    Reception::Nothing => site.told(TOKEN).await,
                    Reception::Gone => panic!("the client is there"),
                }
            }
        };
        let body = vec![b'u'; LARGE];
        tokio::join!(reading, client.send(&body));
        assert_eq!(asked.half.finish(head(200, &[]), Bytes::new()), Room::Free);
        assert!(!client.answer().await.closes());
    }
}
