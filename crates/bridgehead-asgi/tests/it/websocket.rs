//! What a WebSocket takes and refuses, state by state.

use bridgehead_asgi::{
    Acceptance, Closing, Excerpt, Misuse, NotTaken, WebSocket, WebSocketMessage, is_close_code,
};

const MESSAGES: [WebSocketMessage; 5] = [
    WebSocketMessage::Accept,
    WebSocketMessage::Send,
    WebSocketMessage::Close,
    WebSocketMessage::DenialStart,
    WebSocketMessage::DenialBody,
];

#[test]
fn each_state_takes_what_its_row_says() {
    use WebSocket::{Closed, Connecting, Denying, Open};
    let table = [
        (Connecting, [Some(Open), None, Some(Closed), Some(Denying), None]),
        (Denying, [None, None, None, None, Some(Denying)]),
        (Open, [None, Some(Open), Some(Closed), None, None]),
    ];
    for (state, row) in table {
        for (message, next) in MESSAGES.into_iter().zip(row) {
            let judged = state.send(message);
            match next {
                Some(next) => assert_eq!(judged, Ok(next), "{state:?} {message:?}"),
                None => assert!(
                    matches!(judged, Err(NotTaken::Misuse(Misuse::OutOfPlace { came, .. })) if came == message.name()),
                    "{state:?} {message:?} {judged:?}"
                ),
            }
        }
    }
}

#[test]
fn after_its_end_nothing_is_a_misuse_and_nothing_is_taken() {
    for message in MESSAGES {
        assert_eq!(WebSocket::Closed.send(message), Err(NotTaken::Over));
        // A body is judged by the response.
        let denied = WebSocket::Denied.send(message);
        let is_body = message == WebSocketMessage::DenialBody;
        assert_eq!(denied, if is_body { Ok(WebSocket::Denied) } else { Err(NotTaken::Over) });
    }
}

#[test]
fn a_name_and_its_message_are_each_others_inverse() {
    for message in MESSAGES {
        assert_eq!(WebSocketMessage::from_type(message.name()), Ok(message));
    }
    assert!(matches!(WebSocketMessage::from_type("websocket.open"), Err(Misuse::UnknownType { .. })));
    assert!(matches!(
        WebSocketMessage::from_type("http.response.start"),
        Err(Misuse::WrongProtocol { came: "http.response.start", .. })
    ));
}

#[test]
fn a_close_code_is_one_that_a_frame_may_hold() {
    for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 4999] {
        assert!(is_close_code(code), "{code}");
    }
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535] {
        assert!(!is_close_code(code), "{code}");
    }
    assert_eq!(Closing::new(None, String::new()).map(|closing| closing.code()), Ok(1000));
    for came in [-1, 999, 1006, 66_536, i64::MAX] {
        let told = Excerpt::of(came.to_string());
        assert_eq!(Closing::new(Some(came), String::new()), Err(Misuse::BadCloseCode { came: told }));
    }
}

#[test]
fn a_reason_fits_its_frame() {
    assert!(Closing::new(None, "x".repeat(123)).is_ok());
    assert_eq!(Closing::new(None, "é".repeat(62)), Err(Misuse::LongReason { came: 124, max: 123 }));
}

#[test]
fn the_servers_own_headers_are_dropped_and_a_subprotocol_has_its_own_place() {
    let mut acceptance = Acceptance::default();
    for name in
        ["Connection", "upgrade", "sec-websocket-accept", "Sec-WebSocket-Extensions", "content-length"]
    {
        assert_eq!(acceptance.header(name.as_bytes(), b"x"), Ok(()), "{name}");
    }
    assert_eq!(acceptance.header(b"X-Mine", b" y "), Ok(()));
    assert_eq!(acceptance.header(b"sec-websocket-protocol", b"chat"), Err(Misuse::SubprotocolAsHeader));
    assert!(matches!(acceptance.header(b"x-mine", b"a\r\nb"), Err(Misuse::BadHeaderValue { .. })));
    assert_eq!(acceptance.headers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["x-mine"]);
    for subprotocol in ["chat", "graphql-transport-ws", "v2.bearer~1"] {
        assert_eq!(acceptance.choose(subprotocol), Ok(()));
    }
    for subprotocol in ["", "a b", "a,b", "a\r\nb", "é"] {
        assert!(
            matches!(acceptance.choose(subprotocol), Err(Misuse::BadSubprotocol { .. })),
            "{subprotocol:?}"
        );
    }
}
