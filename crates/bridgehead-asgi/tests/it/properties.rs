//! What holds for any sequence of messages and any bytes.
//!
//! Not single cells: `transitions` has those.

use bridgehead_asgi::{
    Closing, Excerpt, HttpMessage, Lifespan, LifespanMessage, LifespanReceipt, Misuse, More, NotTaken,
    Request, RequestEvent, RequestReceipt, Response, ResponseHead, Then, WebSocket, WebSocketMessage,
    decode_path, encode_path, is_close_code, is_valid_host,
};
use http::{Method, StatusCode};
use percent_encoding::percent_decode;
use proptest::collection::vec;
use proptest::prelude::*;

/// A message, with all the response machine wants to know of it.
#[derive(Debug, Clone, Copy)]
enum Sent {
    Start { status: i64, declared: Option<u64> },
    Body { bytes: usize, more: More },
}

/// What the wire saw of a response, as a server would have written it.
#[derive(Debug, Default)]
struct Wire {
    heads: usize,
    /// Length and status of the head.
    declared: Option<u64>,
    status: Option<StatusCode>,
    body: u64,
    /// Every `Then` but `Continue`.
    ends: Vec<Then>,
}

fn more() -> impl Strategy<Value = More> {
    any::<bool>().prop_map(More::from)
}

fn sent() -> impl Strategy<Value = Sent> {
    let status = prop_oneof![4 => Just(200), 1 => Just(204), 1 => Just(304), 1 => 200..=999_i64];
    prop_oneof![
        1 => (status, proptest::option::of(0..20_u64))
            .prop_map(|(status, declared)| Sent::Start { status, declared }),
        3 => (0..12_usize, more()).prop_map(|(bytes, more)| Sent::Body { bytes, more }),
    ]
}

fn said() -> impl Strategy<Value = WebSocketMessage> {
    prop_oneof![
        2 => Just(WebSocketMessage::Accept),
        4 => Just(WebSocketMessage::Send),
        1 => Just(WebSocketMessage::Close),
        1 => Just(WebSocketMessage::DenialStart),
        2 => Just(WebSocketMessage::DenialBody),
    ]
}

fn method() -> impl Strategy<Value = Method> {
    prop_oneof![3 => Just(Method::GET), 1 => Just(Method::HEAD)]
}

fn head(status: i64, declared: Option<u64>) -> ResponseHead {
    let mut head = ResponseHead::new(status).expect("between 200 and 999");
    if let Some(length) = declared {
        head.header(b"content-length", length.to_string().as_bytes()).expect("a number");
    }
    head
}

/// Plays messages as a bridge would: a refused one changes nothing, and the next is tried.
fn play(method: &Method, messages: &[Sent]) -> (Response, Wire) {
    let mut wire = Wire::default();
    let state = messages.iter().fold(Response::to(method), |state, message| match *message {
        Sent::Start { status, declared } => {
            let head = head(status, declared);
            let Ok(next) = state.start(&head) else { return state };
            wire.heads += 1;
            (wire.declared, wire.status) = (head.declared(), Some(head.status()));
            next
        }
        Sent::Body { bytes, more } => {
            let Ok((next, write)) = state.body(bytes, more) else { return state };
            assert!(write.take <= bytes, "no byte is made up");
            assert!(write.take == 0 || wire.ends.is_empty(), "nothing is written after the end");
            wire.body += write.take as u64;
            wire.ends.extend(Some(write.then).filter(|then| *then != Then::Continue));
            next
        }
    });
    (state, wire)
}

proptest! {
    #[test]
    fn an_accepted_body_never_differs_from_its_declared_length(
        method in method(),
        messages in vec(sent(), 0..16),
    ) {
        let (_, wire) = play(&method, &messages);
        let bodiless = method == Method::HEAD
            || matches!(wire.status, Some(StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED));
        let Some(declared) = wire.declared.filter(|_| !bodiless) else { return Ok(()) };
        prop_assert!(wire.body <= declared);
        match wire.ends.first() {
            Some(Then::Complete | Then::Overflow { .. }) => prop_assert_eq!(wire.body, declared),
            Some(Then::Short { missing }) => prop_assert_eq!(wire.body + missing, declared),
            Some(Then::Continue) | None => {}
        }
    }

    #[test]
    fn a_response_without_a_body_writes_none(
        method in method(),
        messages in vec(sent(), 0..16),
    ) {
        let (_, wire) = play(&method, &messages);
        let bodiless = method == Method::HEAD
            || matches!(wire.status, Some(StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED));
        if bodiless {
            prop_assert_eq!(wire.body, 0);
            prop_assert!(wire.ends.iter().all(|then| *then == Then::Complete));
        }
    }

    #[test]
    fn a_response_starts_once_and_ends_once(method in method(), messages in vec(sent(), 0..16)) {
        let (state, wire) = play(&method, &messages);
        prop_assert_eq!(wire.heads, usize::from(state.has_started()));
        prop_assert_eq!(wire.ends.len(), usize::from(state.is_ended()));
    }

    #[test]
    fn a_body_of_unknown_length_is_written_whole(sizes in vec(0..1_000_usize, 0..16)) {
        let mut messages = vec![Sent::Start { status: 200, declared: None }];
        messages.extend(sizes.iter().map(|bytes| Sent::Body { bytes: *bytes, more: More::Follows }));
        messages.push(Sent::Body { bytes: 0, more: More::Ends });
        let (state, wire) = play(&Method::GET, &messages);
        prop_assert_eq!(state, Response::Ended);
        prop_assert_eq!(wire.body, sizes.iter().sum::<usize>() as u64);
        prop_assert_eq!(wire.ends, vec![Then::Complete]);
    }

    #[test]
    fn an_overflow_is_told_once_and_the_rest_swallowed(sizes in vec(0..12_usize, 1..16), declared in 0..20_u64) {
        let mut messages = vec![Sent::Start { status: 200, declared: Some(declared) }];
        messages.extend(sizes.iter().map(|bytes| Sent::Body { bytes: *bytes, more: More::Follows }));
        let (state, wire) = play(&Method::GET, &messages);
        let overflows = sizes.iter().sum::<usize>() as u64 > declared;
        prop_assert_eq!(state == Response::Discarding, overflows);
        prop_assert_eq!(wire.ends.len(), usize::from(overflows));
        prop_assert!(state.body(1, More::Follows).is_ok());
    }

    #[test]
    fn an_accepted_header_never_ends_its_line(name in vec(any::<u8>(), 0..6), value in vec(any::<u8>(), 0..12)) {
        let mut head = head(200, None);
        let accepted = head.header(&name, &value).is_ok();
        let parts = head.into_parts();
        prop_assert!(accepted || parts.headers.is_empty());
        for (name, value) in &parts.headers {
            let line = [name.as_str().as_bytes(), value.as_bytes()].concat();
            prop_assert!(!line.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        }
    }

    #[test]
    fn a_value_is_refused_exactly_for_its_control_characters(value in vec(any::<u8>(), 0..12)) {
        let refused = head(200, None).header(b"x-any", &value);
        let first = value.iter().position(|byte| byte.is_ascii_control() && *byte != b'\t');
        let expected = first.map_or(Ok(()), |at| {
            Err(Misuse::BadHeaderValue { name: Excerpt::of("x-any"), byte: value[at], at })
        });
        prop_assert_eq!(refused, expected);
    }

    #[test]
    fn no_header_of_the_connection_gets_through(
        name in "(?i-u:connection|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade)",
        value in "[ -~]{0,12}",
    ) {
        let mut head = head(200, None);
        prop_assert_eq!(head.header(name.as_bytes(), value.as_bytes()), Ok(()));
        prop_assert!(head.into_parts().headers.is_empty());
    }

    #[test]
    fn any_path_is_encoded_to_what_a_target_may_have_and_decoded_to_itself(path in ".{0,24}") {
        let encoded = encode_path(&path);
        let odd = |byte: &u8| !byte.is_ascii_graphic() || b"\"#<>?[]\\^`{|}".contains(byte);
        prop_assert_eq!(encoded.bytes().find(odd), None);
        let decoded = decode_path(&encoded);
        prop_assert_eq!(&*decoded, &path);
    }

    #[test]
    fn any_path_is_decoded_as_percent_encoding_does(raw in vec(any::<u8>(), 0..24)) {
        let decoded: Vec<u8> = percent_decode(&raw).collect();
        prop_assert_eq!(decode_path(&raw), String::from_utf8_lossy(&decoded));
    }

    #[test]
    fn a_path_of_escapes_is_decoded_as_percent_encoding_does(raw in "(/|%|%[0-9a-fA-F]{2}|[a-z]|é){0,12}") {
        let decoded: Vec<u8> = percent_decode(raw.as_bytes()).collect();
        prop_assert_eq!(decode_path(&raw), String::from_utf8_lossy(&decoded));
    }

    #[test]
    fn an_accepted_host_is_printable_and_has_no_delimiter(host in vec(any::<u8>(), 0..8)) {
        if is_valid_host(&host) {
            prop_assert!(host.iter().all(u8::is_ascii_graphic));
            prop_assert!(!host.iter().any(|byte| b"/?#@,\\\"".contains(byte)));
        }
    }

    #[test]
    fn a_host_of_likely_characters_never_panics(host in r"[\[\]:.a-f0-9%@]{0,12}") {
        let accepted = is_valid_host(host.as_bytes());
        prop_assert!(!accepted || !host.contains('@'));
    }

    #[test]
    fn an_excerpt_is_short_and_printable(quoted in vec(any::<u8>(), 0..200)) {
        let text = Excerpt::of(&quoted).to_string();
        prop_assert!(text.len() <= 80);
        prop_assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    }

    #[test]
    fn any_type_is_named_or_refused(came in "\\PC{0,40}") {
        prop_assert!(HttpMessage::from_type(&came).is_ok_and(|message| message.name() == came)
            || LifespanMessage::from_type(&came).map_or_else(|misuse| misuse.to_string().len() < 400, |_| true));
    }

    #[test]
    fn a_disconnect_is_given_for_ever(events in vec(0..4_u8, 0..16)) {
        let mut state = Request::default();
        let mut disconnected = false;
        for event in events {
            disconnected |= state.receive() == RequestReceipt::Disconnect;
            state = state.next(match event {
                0 => RequestEvent::Chunk(More::Follows),
                1 => RequestEvent::Chunk(More::Ends),
                2 => RequestEvent::ResponseEnded,
                _ => RequestEvent::ClientGone,
            });
            prop_assert!(!disconnected || state.receive() == RequestReceipt::Disconnect);
        }
    }

    #[test]
    fn startup_and_shutdown_are_given_at_most_once_and_in_order(events in vec(0..6_u8, 0..24)) {
        let mut state = Lifespan::default();
        let mut given = Vec::new();
        for event in events {
            let message = match event {
                0 => {
                    let (next, receipt) = state.receive();
                    given.extend(Some(receipt).filter(|receipt| *receipt != LifespanReceipt::Wait));
                    state = next;
                    continue;
                }
                1 => {
                    state = state.shut_down();
                    continue;
                }
                2 => LifespanMessage::StartupComplete,
                3 => LifespanMessage::StartupFailed,
                4 => LifespanMessage::ShutdownComplete,
                _ => LifespanMessage::ShutdownFailed,
            };
            state = state.send(message).unwrap_or(state);
        }
        let all = [LifespanReceipt::Startup, LifespanReceipt::Shutdown];
        prop_assert!(all.starts_with(&given));
        prop_assert!(state != Lifespan::Done || given == all);
    }

    #[test]
    fn a_websocket_is_accepted_or_denied_once_and_says_nothing_before_or_behind_its_close(
        messages in vec(said(), 0..24),
    ) {
        let mut state = WebSocket::default();
        let mut taken = Vec::new();
        for message in messages {
            match state.send(message) {
                Ok(next) => {
                    taken.push(message);
                    state = next;
                }
                Err(NotTaken::Over) => prop_assert!(matches!(state, WebSocket::Closed | WebSocket::Denied)),
                Err(NotTaken::Misuse(_)) => {}
            }
        }
        let first = taken.first().copied();
        let (sends, denials): (Vec<_>, Vec<_>) = match (first, taken.get(1..)) {
            (Some(WebSocketMessage::Accept), Some(rest)) => (rest.to_vec(), Vec::new()),
            (Some(WebSocketMessage::DenialStart), Some(rest)) => (Vec::new(), rest.to_vec()),
            (_, rest) => {
                prop_assert!(matches!(first, None | Some(WebSocketMessage::Close)));
                prop_assert!(rest.is_none_or(<[_]>::is_empty), "nothing is taken behind a refusal");
                return Ok(());
            }
        };
        let (last, before) = sends.split_last().map_or((None, &[][..]), |(last, before)| (Some(last), before));
        prop_assert!(before.iter().all(|each| *each == WebSocketMessage::Send));
        prop_assert!(matches!(last, None | Some(WebSocketMessage::Send | WebSocketMessage::Close)));
        prop_assert!(denials.iter().all(|each| *each == WebSocketMessage::DenialBody));
    }

    #[test]
    fn a_close_that_is_taken_fits_into_its_frame(code in proptest::option::of(-1..=70_000_i64), reason in "\\PC{0,60}") {
        let size = reason.len();
        match Closing::new(code, reason.clone()) {
            Ok(closing) => {
                prop_assert!(is_close_code(closing.code()) && closing.reason() == reason);
                prop_assert_eq!(i64::from(closing.code()), code.unwrap_or(1000));
                prop_assert!(size + 2 <= 125);
            }
            Err(Misuse::LongReason { came, max }) => prop_assert!(came == size && came > max),
            Err(Misuse::BadCloseCode { .. }) => {
                let known = code.and_then(|code| u16::try_from(code).ok()).is_some_and(is_close_code);
                prop_assert!(code.is_some() && !known);
            }
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }
}
