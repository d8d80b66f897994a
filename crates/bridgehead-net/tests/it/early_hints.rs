//! Early hints of HTTP/1.1: each stands whole ahead of its own answer, and behind all of the answer before.

use bridgehead_asgi::add_link;
use bridgehead_net::{Config, Room};
use bytes::Bytes;
use http::HeaderMap;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use crate::harness::{Client, GET, LONG, Site, head, plain, unix_site, within};

/// More than a socket takes that nobody reads.
const LARGE: usize = 1 << 20;

/// So much that hyper has the end of an answer while it still has some of its bytes.
const PIECE: usize = 40 << 10;
const ANSWERS: usize = 2 * LARGE / PIECE;

/// More of the runtime's than a request takes.
const TURNS: usize = 100;

fn offering() -> Config {
    Config { http1_early_hints: true, ..plain(LONG) }
}

fn links(link: &str) -> HeaderMap {
    let mut links = HeaderMap::new();
    add_link(&mut links, link.as_bytes()).expect("a link");
    links
}

async fn assert_hint<S>(client: &mut Client<S>, link: &str)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let hint = client.head().await;
    assert_eq!((hint.status, hint.header("link")), (103, Some(link)));
    assert_eq!(hint.headers.len(), 1);
}

#[tokio::test]
async fn a_hint_comes_while_the_application_still_thinks() {
    let site = Site::open(offering());
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.hint(links("</a>")), Some(Room::Free));
    assert_hint(&mut client, "</a>").await;
    assert_eq!(asked.half.hint(links("</b>")), Some(Room::Free));
    assert_hint(&mut client, "</b>").await;
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::from("body")), Room::Free);
    assert_eq!(client.answer().await.body, b"body");
    client.send(GET).await;
    assert_eq!(site.next().await.half.finish(head(204, &[]), Bytes::new()), Room::Free);
    assert_eq!(client.answer().await.status, 204);
}

#[tokio::test]
async fn hints_and_an_answer_that_come_at_once_keep_their_order() {
    let site = Site::open(offering());
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.hint(links("</a>")), Some(Room::Free));
    assert_eq!(asked.half.hint(links("</b>")), Some(Room::Free));
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::from("body")), Room::Free);
    assert_hint(&mut client, "</a>").await;
    assert_hint(&mut client, "</b>").await;
    assert_eq!(client.answer().await.body, b"body");
}

#[tokio::test]
async fn hints_wait_for_the_answers_before_however_slowly_those_are_read() {
    // A Unix socket takes little that nobody reads, and what is read arrives at once.
    let (site, path) = unix_site("hints", offering());
    let (read, mut write) = within(UnixStream::connect(&path)).await.expect("it listens").into_split();
    let mut client = Client::new(tokio::io::join(read, tokio::io::sink()));
    let asking = async {
        for number in 0..ANSWERS {
            write.write_all(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n").await.expect("room");
            let asked = site.next().await;
            assert_eq!(asked.half.hint(links(&format!("</{number}>"))), Some(Room::Free));
            assert_eq!(asked.half.finish(head(200, &[]), Bytes::from(vec![b'x'; PIECE])), Room::Free);
            drop(asked);
            // Behind the answer: the next head may be read as soon as this has been, whatever is still to be written.
            write.write_all(b"body").await.expect("room");
        }
    };
    let reading = async {
        for number in 0..ANSWERS {
            // Answers come faster than they are read, until hyper has to keep some.
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
            assert_hint(&mut client, &format!("</{number}>")).await;
            assert_eq!(client.answer().await.body, vec![b'x'; PIECE]);
        }
    };
    tokio::join!(asking, reading);
    std::fs::remove_file(path).expect("it is there");
}

#[tokio::test]
async fn a_hint_that_a_client_is_slow_to_take_is_whole_before_anything_else() {
    let (site, path) = unix_site("long-hint", offering());
    let mut client = Client::new(within(UnixStream::connect(&path)).await.expect("it listens"));
    client.send(b"POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n").await;
    let asked = site.next().await;
    // Longer than what a socket takes at once.
    let long = format!("<{}>", "a".repeat(LARGE));
    assert_eq!(asked.half.hint(links(&long)), Some(Room::Free));
    let token = site.token();
    assert!(matches!(asked.half.receive(token), bridgehead_net::Reception::Nothing));
    let hint = client.head().await;
    assert_eq!((hint.status, hint.header("link").map(str::len)), (103, Some(long.len())));
    assert_eq!(client.head().await.status, 100);
    client.send(b"body").await;
    site.told(token).await;
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert_eq!(client.answer().await.status, 200);
    std::fs::remove_file(path).expect("it is there");
}

#[tokio::test]
async fn nobody_else_is_offered_them() {
    let site = Site::open(offering());
    let (_client, asked) = site.ask(b"GET / HTTP/1.0\r\nhost: a\r\n\r\n").await;
    assert_eq!(asked.half.hint(links("</a>")), None);
    let site = Site::open(plain(LONG));
    let (_client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.hint(links("</a>")), None);
}
