//! Each machine's table, cell by cell: every state meets every event.
//!
//! Not sequences: `properties` makes those.

use bridgehead_asgi::{
    Excess, Fate, HttpMessage, Length, Lifespan, LifespanMessage, LifespanReceipt, Missing, Misuse, More,
    Reply, Request, RequestEvent, RequestReceipt, Response, ResponseHead, Then, Trailers, Write,
};
use http::Method;

const WHOLE: Response = Response::AwaitingStart { reply: Reply::Whole };
const HEAD_ONLY: Response = Response::AwaitingStart { reply: Reply::HeadOnly };
const OPEN: Response = Response::Streaming { left: Length::Open };
const FIVE_LEFT: Response = streaming(5);

const fn streaming(left: u64) -> Response {
    Response::Streaming { left: Length::Declared(left) }
}

fn head(status: i64, declared: Option<u64>) -> ResponseHead {
    let mut head = ResponseHead::new(status).expect("the tests' statuses are good");
    if let Some(length) = declared {
        head.header(b"content-length", length.to_string().as_bytes()).expect("a number is a length");
    }
    head
}

fn after_end(message: HttpMessage) -> Misuse {
    Misuse::AfterEnd { came: message.name() }
}

#[test]
fn only_head_asks_for_the_head_alone() {
    assert_eq!(Response::to(&Method::HEAD), HEAD_ONLY);
    for method in [Method::GET, Method::POST, Method::OPTIONS, Method::CONNECT] {
        assert_eq!(Response::to(&method), WHOLE, "{method}");
    }
}

#[test]
fn every_response_state_meets_a_start() {
    let twice = || Err(Misuse::StartTwice);
    let table = [
        (WHOLE, head(200, None), Ok(OPEN)),
        (WHOLE, head(200, Some(5)), Ok(FIVE_LEFT)),
        (WHOLE, head(200, Some(0)), Ok(streaming(0))),
        (WHOLE, head(204, None), Ok(Response::Bodiless)),
        (WHOLE, head(204, Some(5)), Ok(Response::Bodiless)),
        (WHOLE, head(304, Some(5)), Ok(Response::Bodiless)),
        (HEAD_ONLY, head(200, None), Ok(Response::Bodiless)),
        (HEAD_ONLY, head(200, Some(5)), Ok(Response::Bodiless)),
        (HEAD_ONLY, head(304, None), Ok(Response::Bodiless)),
        (OPEN, head(200, None), twice()),
        (FIVE_LEFT, head(500, None), twice()),
        (Response::Bodiless, head(200, None), twice()),
        (Response::Discarding, head(200, None), twice()),
        (Response::Ended, head(200, None), Err(after_end(HttpMessage::Start))),
    ];
    for (state, head, expected) in table {
        assert_eq!(state.start(&head), expected, "{state:?} with {head:?}");
    }
}

#[test]
fn every_response_state_meets_a_body() {
    let ok = |state, take, then| Ok((state, Write { take, then }));
    let ended = || Err(after_end(HttpMessage::Body));
    let early = || Err(Misuse::BodyBeforeStart);
    let (bodiless, discarding) = (Response::Bodiless, Response::Discarding);
    let table = [
        (WHOLE, 2, More::Follows, early()),
        (WHOLE, 2, More::Ends, early()),
        (HEAD_ONLY, 2, More::Follows, early()),
        (HEAD_ONLY, 2, More::Ends, early()),
        (OPEN, 2, More::Follows, ok(OPEN, 2, Then::Continue)),
        (OPEN, 2, More::Ends, ok(Response::Ended, 2, Then::Complete)),
        (OPEN, 0, More::Follows, ok(OPEN, 0, Then::Continue)),
        (OPEN, 0, More::Ends, ok(Response::Ended, 0, Then::Complete)),
        (FIVE_LEFT, 0, More::Follows, ok(FIVE_LEFT, 0, Then::Continue)),
        (FIVE_LEFT, 2, More::Follows, ok(streaming(3), 2, Then::Continue)),
        (FIVE_LEFT, 2, More::Ends, ok(Response::Ended, 2, Then::Short { missing: 3 })),
        (FIVE_LEFT, 0, More::Ends, ok(Response::Ended, 0, Then::Short { missing: 5 })),
        (FIVE_LEFT, 5, More::Follows, ok(streaming(0), 5, Then::Continue)),
        (FIVE_LEFT, 5, More::Ends, ok(Response::Ended, 5, Then::Complete)),
        (FIVE_LEFT, 7, More::Follows, ok(discarding, 5, Then::Overflow { excess: 2 })),
        (FIVE_LEFT, 7, More::Ends, ok(Response::Ended, 5, Then::Overflow { excess: 2 })),
        (streaming(0), 0, More::Follows, ok(streaming(0), 0, Then::Continue)),
        (streaming(0), 0, More::Ends, ok(Response::Ended, 0, Then::Complete)),
        (streaming(0), 1, More::Follows, ok(discarding, 0, Then::Overflow { excess: 1 })),
        (bodiless, 9, More::Follows, ok(bodiless, 0, Then::Continue)),
        (bodiless, 9, More::Ends, ok(Response::Ended, 0, Then::Complete)),
        (discarding, 9, More::Follows, ok(discarding, 0, Then::Continue)),
        (discarding, 9, More::Ends, ok(Response::Ended, 0, Then::Continue)),
        (Response::Ended, 9, More::Follows, ended()),
        (Response::Ended, 0, More::Ends, ended()),
    ];
    for (state, offered, more, expected) in table {
        assert_eq!(state.body(offered, more), expected, "{state:?} with {offered} bytes, {more:?}");
    }
}

#[test]
fn a_response_knows_whether_it_has_started_and_whether_it_has_ended() {
    let table = [
        (WHOLE, false, false),
        (HEAD_ONLY, false, false),
        (OPEN, true, false),
        (FIVE_LEFT, true, false),
        (Response::Bodiless, true, false),
        (Response::Discarding, true, true),
        (Response::Ended, true, true),
    ];
    for (state, started, ended) in table {
        assert_eq!((state.has_started(), state.is_ended()), (started, ended), "{state:?}");
    }
}

#[test]
fn every_length_is_spent_and_settled() {
    let excess = |fits, excess| Err(Excess { fits, excess });
    let spending = [
        (Length::Open, usize::MAX, Ok(Length::Open)),
        (Length::Declared(0), 0, Ok(Length::Declared(0))),
        (Length::Declared(0), 1, excess(0, 1)),
        (Length::Declared(5), 5, Ok(Length::Declared(0))),
        (Length::Declared(5), 6, excess(5, 1)),
        (Length::Declared(u64::MAX), 1, Ok(Length::Declared(u64::MAX - 1))),
    ];
    for (length, offered, expected) in spending {
        assert_eq!(length.spend(offered), expected, "{length:?} spends {offered}");
    }
    assert_eq!(Length::Open.settle(), Ok(()));
    assert_eq!(Length::Declared(0).settle(), Ok(()));
    assert_eq!(Length::Declared(7).settle(), Err(Missing(7)));
}

#[test]
fn every_request_state_meets_every_event() {
    use Request::{Disconnected, Read, Reading};
    let events = [
        RequestEvent::Chunk(More::Follows),
        RequestEvent::Chunk(More::Ends),
        RequestEvent::ResponseEnded,
        RequestEvent::ClientGone,
    ];
    let table = [
        (Reading, RequestReceipt::Chunk, [Reading, Read, Disconnected, Disconnected]),
        (Read, RequestReceipt::Wait, [Read, Read, Disconnected, Disconnected]),
        (Disconnected, RequestReceipt::Disconnect, [Disconnected; 4]),
    ];
    for (state, receipt, expected) in table {
        assert_eq!(state.receive(), receipt, "{state:?}");
        assert_eq!(events.map(|event| state.next(event)), expected, "{state:?}");
    }
}

#[test]
fn a_request_begins_unread_and_a_lifespan_begins_fresh() {
    assert_eq!(Request::default(), Request::Reading);
    assert_eq!(Lifespan::default(), Lifespan::Fresh);
}

#[test]
fn every_lifespan_state_meets_receive_and_shut_down() {
    use Lifespan::{Done, Failed, Fresh, ShutdownDue, ShuttingDown, Started, Starting};
    let table = [
        (Fresh, (Starting, LifespanReceipt::Startup), Fresh),
        (Starting, (Starting, LifespanReceipt::Wait), Starting),
        (Started, (Started, LifespanReceipt::Wait), ShutdownDue),
        (ShutdownDue, (ShuttingDown, LifespanReceipt::Shutdown), ShutdownDue),
        (ShuttingDown, (ShuttingDown, LifespanReceipt::Wait), ShuttingDown),
        (Done, (Done, LifespanReceipt::Wait), Done),
        (Failed, (Failed, LifespanReceipt::Wait), Failed),
    ];
    for (state, received, shut_down) in table {
        assert_eq!(state.receive(), received, "{state:?}");
        assert_eq!(state.shut_down(), shut_down, "{state:?}");
    }
}

#[test]
fn every_lifespan_state_meets_every_message() {
    use Lifespan::{Done, Failed, Fresh, ShutdownDue, ShuttingDown, Started, Starting};
    let messages = [
        LifespanMessage::StartupComplete,
        LifespanMessage::StartupFailed,
        LifespanMessage::ShutdownComplete,
        LifespanMessage::ShutdownFailed,
    ];
    let (startup, shutdown) = ("receiving `lifespan.startup`", "receiving `lifespan.shutdown`");
    let (no, nothing) = ([None; 4], "nothing more");
    let table = [
        (Fresh, no, startup),
        (
            Starting,
            [Some(Started), Some(Failed), None, None],
            "`lifespan.startup.complete` or `lifespan.startup.failed`",
        ),
        (Started, no, shutdown),
        (ShutdownDue, no, shutdown),
        (
            ShuttingDown,
            [None, None, Some(Done), Some(Failed)],
            "`lifespan.shutdown.complete` or `lifespan.shutdown.failed`",
        ),
        (Done, no, nothing),
        (Failed, no, nothing),
    ];
    for (state, row, due) in table {
        for (message, next) in messages.into_iter().zip(row) {
            let expected = next.ok_or(Misuse::OutOfPlace { came: message.name(), due });
            assert_eq!(state.send(message), expected, "{state:?} with {message:?}");
        }
    }
}

#[test]
fn every_response_state_meets_a_file() {
    let file = HttpMessage::PathSend;
    let early = Err(Misuse::OutOfPlace { came: file.name(), due: "`http.response.start`" });
    let table = [
        (WHOLE, early.clone()),
        (HEAD_ONLY, early),
        (OPEN, Ok(())),
        (FIVE_LEFT, Ok(())),
        (Response::Bodiless, Ok(())),
        (Response::Discarding, Ok(())),
        (Response::Ended, Err(after_end(file))),
    ];
    for (state, expected) in table {
        assert_eq!(state.expects_body(file), expected, "{state:?}");
    }
}

#[test]
fn every_state_of_the_trailers_meets_every_event() {
    use Fate::{Dropped, Written};
    use Trailers::{Due, Promised, Sent, Unpromised};
    let unpromised = || Err(Misuse::TrailersUnpromised);
    let early = || Err(Misuse::TrailersBeforeBodyEnd);
    let late = || Err(after_end(HttpMessage::Trailers));
    let table = [
        (Unpromised, Unpromised, unpromised(), unpromised(), false),
        (Promised(Written), Due(Written), early(), early(), true),
        (Promised(Dropped), Due(Dropped), early(), early(), false),
        (Due(Written), Due(Written), Ok(Due(Written)), Ok(Sent), true),
        (Due(Dropped), Due(Dropped), Ok(Due(Dropped)), Ok(Sent), false),
        (Sent, Sent, late(), late(), false),
    ];
    for (state, after_body, more, last, holds) in table {
        assert_eq!(state.body_ended(), after_body, "{state:?}");
        assert_eq!(state.trailers(More::Follows), more, "{state:?}");
        assert_eq!(state.trailers(More::Ends), last, "{state:?}");
        assert_eq!(state.hold_the_end(), holds, "{state:?}");
    }
}
