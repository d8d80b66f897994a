//! What the application's half can do, for each way its client may be.
//!
//! | client | is made by |
//! |---|---|
//! | present | asking, and waiting |
//! | half-closed | an end of its stream that the application may be told of |
//! | served | having read all that was declared |
//! | gone | a reset that the application was told of |

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use bridgehead_asgi::More;
use bridgehead_net::{AppHalf, Arrival, CHUNKS, Reception, Room};
use bytes::Bytes;
use tokio::net::TcpStream;

use crate::harness::{Client, GET, LONG, Site, TOKEN, head, plain, within};

const MARK: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Being {
    Present,
    HalfClosed,
    Served,
    Gone,
}

/// A request whose client is as wanted; the client is kept, or it would leave.
async fn with(site: &Site, being: Being) -> (Option<Client<TcpStream>>, Arrival) {
    let (mut client, asked) = site.ask(GET).await;
    let (half, token) = (&asked.half, site.token());
    match being {
        Being::Present => {}
        Being::HalfClosed => {
            assert_eq!(half.watch(token), Reception::Nothing);
            client.half_close().await;
            site.told(token).await;
        }
        Being::Served => {
            assert_eq!(half.start(head(200, &[("content-length", "4")])), Room::Free);
            assert_eq!(half.write(Bytes::from("body"), More::Follows), Room::Free);
            half.push_out();
            assert_eq!(client.answer().await.body, b"body");
        }
        Being::Gone => {
            assert_eq!(half.watch(token), Reception::Nothing);
            client.reset();
            site.told(token).await;
            return (None, asked);
        }
    }
    (Some(client), asked)
}

async fn room_at_once(half: &AppHalf) -> bool {
    let mut room = pin!(half.room());
    poll_fn(|cx| Poll::Ready(room.as_mut().poll(cx).is_ready())).await
}

const ALL: [Being; 4] = [Being::Present, Being::HalfClosed, Being::Served, Being::Gone];

#[tokio::test]
async fn a_start_is_taken_unless_the_client_is_gone() {
    let site = Site::open(plain(LONG));
    for (being, expected) in
        [(Being::Present, Room::Free), (Being::HalfClosed, Room::Free), (Being::Gone, Room::Gone)]
    {
        let (_client, asked) = with(&site, being).await;
        assert_eq!(asked.half.start(head(200, &[])), expected, "{being:?}");
    }
}

#[tokio::test]
async fn a_write_is_taken_unless_the_client_is_gone() {
    let site = Site::open(plain(LONG));
    for being in ALL {
        let (_client, asked) = with(&site, being).await;
        let expected = if being == Being::Gone { Room::Gone } else { Room::Free };
        let _ = being != Being::Served && asked.half.start(head(200, &[])) == Room::Free;
        assert_eq!(asked.half.write(Bytes::from("x"), More::Follows), expected, "{being:?}");
        assert_eq!(asked.half.write(Bytes::from("x"), More::Ends), expected, "{being:?}");
    }
}

#[tokio::test]
async fn an_answer_reaches_whoever_can_still_read() {
    let site = Site::open(plain(LONG));
    for being in [Being::Present, Being::HalfClosed] {
        let (client, asked) = with(&site, being).await;
        assert_eq!(asked.half.finish(head(200, &[]), Bytes::from("whole")), Room::Free);
        assert_eq!(client.expect("it is there").answer().await.body, b"whole", "{being:?}");
        let (client, asked) = with(&site, being).await;
        assert_eq!(asked.half.start(head(200, &[])), Room::Free);
        assert_eq!(asked.half.write(Bytes::from("in "), More::Follows), Room::Free);
        assert_eq!(asked.half.write(Bytes::from("pieces"), More::Ends), Room::Free);
        assert_eq!(client.expect("it is there").answer().await.body, b"in pieces", "{being:?}");
    }
    let (_, asked) = with(&site, Being::Gone).await;
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::from("whole")), Room::Gone);
}

#[tokio::test]
async fn there_is_room_for_whoever_has_sent_nothing() {
    let site = Site::open(plain(LONG));
    for being in ALL {
        let (_client, asked) = with(&site, being).await;
        let expected = if being == Being::Gone { Room::Gone } else { Room::Free };
        assert_eq!(asked.half.room_now(), expected, "{being:?}");
        assert!(room_at_once(&asked.half).await, "{being:?}");
        assert_eq!(asked.half.is_gone(), being == Being::Gone, "{being:?}");
    }
}

#[tokio::test]
async fn receive_gives_the_end_of_a_request_without_a_body_unless_the_client_is_gone() {
    let site = Site::open(plain(LONG));
    for being in ALL {
        let (_client, asked) = with(&site, being).await;
        let end = Reception::Chunk(Bytes::new().into(), More::Ends);
        let expected = if being == Being::Gone { Reception::Gone } else { end };
        assert_eq!(asked.half.receive(TOKEN), expected, "{being:?}");
    }
}

#[tokio::test]
async fn watch_waits_for_whoever_may_still_leave() {
    let site = Site::open(plain(LONG));
    for (being, expected) in [
        (Being::Present, Reception::Nothing),
        (Being::Served, Reception::Nothing),
        (Being::HalfClosed, Reception::Gone),
        (Being::Gone, Reception::Gone),
    ] {
        let (_client, asked) = with(&site, being).await;
        assert_eq!(asked.half.watch(TOKEN), expected, "{being:?}");
    }
}

#[tokio::test]
async fn an_application_that_was_told_of_the_end_may_still_answer() {
    let site = Site::open(plain(LONG));
    let (client, asked) = with(&site, Being::HalfClosed).await;
    assert!(!asked.half.owes_nothing());
    assert_eq!(asked.half.watch(TOKEN), Reception::Gone);
    assert!(asked.half.owes_nothing());
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::from("late")), Room::Free);
    let mut client = client.expect("it is there");
    assert_eq!(client.answer().await.body, b"late");
    client.assert_closed().await;
}

#[tokio::test]
async fn an_application_that_was_told_of_the_end_owes_an_answer_only_if_it_fails_of_itself() {
    let site = Site::open(plain(LONG));
    for fails in [false, true] {
        let (client, asked) = with(&site, Being::HalfClosed).await;
        assert_eq!(asked.half.watch(TOKEN), Reception::Gone);
        if fails {
            asked.half.owes_an_answer();
        }
        drop(asked);
        let mut client = client.expect("it is there");
        if fails {
            assert_eq!(client.answer().await.status, 500);
        }
        client.assert_closed().await;
    }
}

#[tokio::test]
async fn a_reset_behind_the_end_is_noticed_before_anything_is_written() {
    let site = Site::open(plain(LONG));
    let (client, asked) = with(&site, Being::HalfClosed).await;
    assert_eq!(asked.half.watch(TOKEN), Reception::Gone);
    assert!(!asked.half.is_gone());
    client.expect("it is there").reset();
    let gone = async {
        while !asked.half.is_gone() {
            tokio::task::yield_now().await;
        }
    };
    within(gone).await;
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::new()), Room::Gone);
}

#[tokio::test]
async fn a_client_that_leaves_with_all_that_was_declared_misses_no_last_word() {
    let site = Site::open(plain(LONG));
    for leave in [Client::reset, drop] {
        let (client, asked) = with(&site, Being::Served).await;
        let token = site.token();
        assert_eq!(asked.half.watch(token), Reception::Nothing);
        leave(client.expect("it is there"));
        site.told(token).await;
        assert_eq!(asked.half.watch(token), Reception::Gone);
        assert_eq!(asked.half.write(Bytes::new(), More::Follows), Room::Gone);
        assert_eq!(asked.half.write(Bytes::new(), More::Ends), Room::Free);
    }
}

#[tokio::test]
async fn a_watch_is_told_when_the_client_leaves_in_any_way() {
    let site = Site::open(plain(LONG));
    for being in [Being::Present, Being::Served] {
        let token = site.token();
        let (client, asked) = with(&site, being).await;
        assert_eq!(asked.half.watch(token), Reception::Nothing);
        client.expect("it is there").reset();
        site.told(token).await;
        assert_eq!(asked.half.watch(token), Reception::Gone, "{being:?}");
    }
    let token = site.token();
    let (client, asked) = with(&site, Being::Served).await;
    assert_eq!(asked.half.watch(token), Reception::Nothing);
    client.expect("it is there").half_close().await;
    site.told(token).await;
    assert_eq!(asked.half.watch(token), Reception::Gone);
}

#[tokio::test]
async fn a_start_alone_leaves_when_it_is_pushed_out() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.start(head(201, &[])), Room::Free);
    // Another request has its whole way while this head is kept back.
    let (mut other, second) = site.ask(GET).await;
    assert_eq!(second.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert_eq!(other.answer().await.status, 200);
    assert!(client.stream.try_read(&mut [0]).is_err());
    asked.half.push_out();
    assert_eq!(client.head().await.status, 201);
}

#[tokio::test]
async fn pieces_leave_together_when_they_are_pushed_out_and_by_themselves_at_the_end() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.start(head(200, &[])), Room::Free);
    for piece in ["one ", "two ", "three"] {
        assert_eq!(asked.half.write(Bytes::from(piece), More::Follows), Room::Free);
    }
    asked.half.push_out();
    client.head().await;
    assert_eq!(client.chunk().await, b"one two three");
    assert_eq!(asked.half.write(Bytes::from("four"), More::Ends), Room::Free);
    assert_eq!(client.chunk().await, b"four");
    assert_eq!(client.chunk().await, b"");
}

#[tokio::test]
async fn pushing_out_nothing_does_nothing() {
    let site = Site::open(plain(LONG));
    for being in ALL {
        let (_client, asked) = with(&site, being).await;
        asked.half.push_out();
        assert_eq!(asked.half.is_gone(), being == Being::Gone);
    }
}

/// Writes until there is no room; how much that took.
fn fill(half: &AppHalf, chunk: &Bytes) -> usize {
    let mut written = 0;
    loop {
        written += chunk.len();
        if half.write(chunk.clone(), More::Follows) == Room::Full {
            return written;
        }
    }
}

#[tokio::test]
async fn bytes_above_the_mark_or_chunks_above_their_number_fill_the_way() {
    let site = Site::open(plain(LONG));
    for (size, expected) in [
        (1, CHUNKS),
        (MARK, MARK),
        (MARK / 4, MARK / 4 * 3),
        (MARK / 3, MARK / 3 * 2),
        (MARK / 2 + 1, MARK / 2 + 1),
    ] {
        let (_client, asked) = site.ask(GET).await;
        assert_eq!(asked.half.start(head(200, &[])), Room::Free);
        // Not one turn of the network's between them.
        assert_eq!(fill(&asked.half, &Bytes::from(vec![b'x'; size])), expected, "chunks of {size}");
        assert_eq!(asked.half.room_now(), Room::Full);
        assert!(!room_at_once(&asked.half).await);
    }
}

/// Fills the way to a client that does not read, the kernel's buffers included.
async fn stall(asked: &Arrival) -> usize {
    assert_eq!(asked.half.start(head(200, &[])), Room::Free);
    let chunk = Bytes::from(vec![b'x'; MARK]);
    let mut written = 0;
    loop {
        written += fill(&asked.half, &chunk);
        let taken = tokio::time::timeout(std::time::Duration::from_millis(200), asked.half.room()).await;
        if taken.is_err() {
            return written;
        }
    }
}

#[tokio::test]
async fn what_a_client_has_not_taken_counts_with_what_waits() {
    let site = Site::open(plain(LONG));
    let mut client = site.connect_narrow().await;
    client.send(GET).await;
    let asked = site.next().await;
    let _ = stall(&asked).await;
    // The network has taken the last piece: nothing waits in the exchange, and yet another like it is too much.
    assert_eq!(asked.half.room_now(), Room::Full);
    assert!(!room_at_once(&asked.half).await);
}

#[tokio::test]
async fn a_sender_goes_on_once_the_client_reads() {
    let site = Site::open(plain(LONG));
    let mut client = site.connect_narrow().await;
    client.send(GET).await;
    let asked = site.next().await;
    let written = stall(&asked).await;
    let room = tokio::spawn(asked.half.room());
    let reader = tokio::spawn(async move { (client.answer().await.body.len(), client) });
    within(room).await.expect("it waits no more");
    assert_eq!(asked.half.room_now(), Room::Free);
    assert_eq!(asked.half.write(Bytes::new(), More::Ends), Room::Free);
    assert_eq!(within(reader).await.expect("it reads").0, written);
}

#[tokio::test]
async fn a_sender_goes_on_once_the_client_is_gone() {
    let site = Site::open(plain(LONG));
    let mut client = site.connect_narrow().await;
    client.send(GET).await;
    let asked = site.next().await;
    stall(&asked).await;
    let room = tokio::spawn(asked.half.room());
    client.reset();
    within(room).await.expect("it waits no more");
    assert_eq!(asked.half.room_now(), Room::Gone);
    assert_eq!(asked.half.write(Bytes::from("x"), More::Follows), Room::Gone);
}

#[tokio::test]
async fn everybody_who_waits_for_room_is_told() {
    let site = Site::open(plain(LONG));
    let mut client = site.connect_narrow().await;
    client.send(GET).await;
    let asked = site.next().await;
    stall(&asked).await;
    let waiting: Vec<_> = (0..3).map(|_| tokio::spawn(asked.half.room())).collect();
    tokio::task::yield_now().await;
    client.reset();
    for room in waiting {
        within(room).await.expect("it waits no more");
    }
}

#[tokio::test]
async fn a_sender_waits_for_a_half_closed_client_until_that_is_given_up() {
    let site = Site::open(plain(LONG));
    let mut client = site.connect_narrow().await;
    client.send(GET).await;
    let asked = site.next().await;
    assert_eq!(asked.half.watch(TOKEN), Reception::Nothing);
    client.half_close().await;
    site.told(TOKEN).await;
    stall(&asked).await;
    assert_eq!(asked.half.watch(TOKEN), Reception::Gone);
    let room = tokio::spawn(asked.half.room());
    tokio::task::yield_now().await;
    assert!(!room.is_finished());
    asked.half.abandon();
    within(room).await.expect("nobody will read what it waits for");
}

#[tokio::test]
async fn after_the_last_piece_there_is_nothing_to_wait_for() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.start(head(200, &[])), Room::Free);
    assert_eq!(asked.half.write(Bytes::from(vec![b'x'; MARK / 4]), More::Follows), Room::Free);
    assert_eq!(asked.half.write(Bytes::from(vec![b'x'; MARK]), More::Ends), Room::Free);
    assert_eq!(client.answer().await.body.len(), MARK + MARK / 4);
}

#[tokio::test]
async fn an_application_that_drops_its_half_has_failed() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    drop(asked);
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.closes()), (500, false));
    // Nothing of the answer was written: the connection is as good as before.
    client.send(GET).await;
    assert_eq!(site.next().await.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    assert_eq!(client.answer().await.status, 200);
}

#[tokio::test]
async fn a_parked_application_is_told_when_its_answer_is_complete() {
    let site = Site::open(plain(LONG));
    let (mut client, asked) = site.ask(GET).await;
    assert_eq!(asked.half.watch(TOKEN), Reception::Nothing);
    assert_eq!(asked.half.finish(head(200, &[]), Bytes::new()), Room::Free);
    site.told(TOKEN).await;
    assert_eq!(asked.half.watch(TOKEN), Reception::Gone);
    assert_eq!(client.answer().await.status, 200);
}
