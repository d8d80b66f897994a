//! Message types, and the sentences that refuse.

use bridgehead_asgi::{Excerpt, HttpMessage, LifespanMessage, Misuse, More};

const HTTP: [HttpMessage; 6] = [
    HttpMessage::EarlyHint,
    HttpMessage::Start,
    HttpMessage::Body,
    HttpMessage::PathSend,
    HttpMessage::ZeroCopySend,
    HttpMessage::Trailers,
];
const LIFESPAN: [LifespanMessage; 4] = [
    LifespanMessage::StartupComplete,
    LifespanMessage::StartupFailed,
    LifespanMessage::ShutdownComplete,
    LifespanMessage::ShutdownFailed,
];
const WEBSOCKET: [&str; 5] = [
    "websocket.accept",
    "websocket.send",
    "websocket.close",
    "websocket.http.response.start",
    "websocket.http.response.body",
];

#[test]
fn every_message_is_found_by_its_own_name() {
    for message in HTTP {
        assert_eq!(HttpMessage::from_type(message.name()), Ok(message));
    }
    for message in LIFESPAN {
        assert_eq!(LifespanMessage::from_type(message.name()), Ok(message));
    }
}

#[test]
fn a_message_of_another_protocol_is_told_from_an_unknown_one() {
    let is_astray = |misuse: Option<Misuse>, name: &str| {
        assert!(matches!(misuse, Some(Misuse::WrongProtocol { came, .. }) if came == name), "{name}");
    };
    for name in WEBSOCKET.into_iter().chain(LIFESPAN.map(LifespanMessage::name)) {
        is_astray(HttpMessage::from_type(name).err(), name);
    }
    for name in WEBSOCKET.into_iter().chain(HTTP.map(HttpMessage::name)) {
        is_astray(LifespanMessage::from_type(name).err(), name);
    }
}

#[test]
fn an_unknown_type_is_refused_in_either_scope() {
    for name in
        ["", "http", "http.request", "HTTP.RESPONSE.START", "http.response.start ", "lifespan.startup"]
    {
        let is_unknown = |misuse: Option<Misuse>| {
            assert!(
                matches!(&misuse, Some(Misuse::UnknownType { came, .. }) if *came == Excerpt::of(name)),
                "{name:?} gave {misuse:?}"
            );
        };
        is_unknown(HttpMessage::from_type(name).err());
        is_unknown(LifespanMessage::from_type(name).err());
    }
}

#[test]
fn more_body_reads_and_writes_as_the_flag_it_is() {
    for flag in [true, false] {
        assert_eq!(More::from(flag).follows(), flag);
    }
    assert_eq!(More::from(true), More::Follows);
}

#[test]
fn an_excerpt_is_escaped() {
    let table: [(&[u8], &str); 4] =
        [(b"plain", "plain"), (b"a\r\n\0", r"a\r\n\x00"), ("é".as_bytes(), r"\xc3\xa9"), (b"", "")];
    for (quoted, expected) in table {
        assert_eq!(Excerpt::of(quoted).to_string(), expected);
    }
}

#[test]
fn an_excerpt_is_cut_at_80_bytes_and_shows_it() {
    let fits = "x".repeat(77);
    assert_eq!(Excerpt::of(&fits).to_string(), fits);
    assert_eq!(Excerpt::of("x".repeat(78)).to_string(), format!("{fits}..."));
    let escaped = Excerpt::of([0; 1_000]).to_string();
    assert_eq!(escaped, format!("{}...", r"\x00".repeat(19)));
}

#[test]
fn every_sentence_says_what_came_and_what_was_due() {
    let came = || Excerpt::of("X");
    let (message, key) = ("http.response.start", "status");
    let table = [
        (Misuse::NotADict { came: came() }, "a message came as X; a dict was due"),
        (Misuse::MissingType, "a message came without `type`; every message names its type"),
        (
            Misuse::MissingKey { message, key },
            "`http.response.start` came without `status`, which has no default",
        ),
        (
            Misuse::WrongType { message, key, came: came(), due: "int" },
            "`status` of `http.response.start` came as X; int was due",
        ),
        (Misuse::BadStatus { came: came() }, "status X came; 200 to 999 was due"),
        (
            Misuse::InformationalStatus { came: 103 },
            "informational status 103 came; `http.response.start` sends the final one, 200 to 999",
        ),
        (
            Misuse::BadHeaderName { name: came() },
            "header name `X` came; letters, digits and any of !#$%&'*+-.^_`|~ were due",
        ),
        (Misuse::LongHeaderName { came: 9, max: 5 }, "a header name of 9 bytes came; at most 5 were due"),
        (
            Misuse::ClosedDescriptor { came: 9 },
            "`file` of `http.response.zerocopysend` came as descriptor 9; one that is open was due",
        ),
        (
            Misuse::UnreadableDescriptor { reason: came() },
            "`file` of `http.response.zerocopysend` cannot be read (X); a file, pipe or socket that can was due",
        ),
        (Misuse::PseudoHeader { name: came() }, "pseudo-header `X` came; the server writes these itself"),
        (
            Misuse::BadHeaderValue { name: came(), byte: 10, at: 3 },
            "header `X` came with byte 0x0a at 3; no control character but tab was due",
        ),
        (Misuse::TooManyHeaders { held: 9 }, "one header more came than the 9 that a response can hold"),
        (Misuse::LongHeaders { max: 9 }, "headers of more than 9 bytes came; at most so many were due"),
        (
            Misuse::BadContentLength { came: came() },
            "`content-length` came as `X`; digits, at most 18446744073709551615, were due",
        ),
        (
            Misuse::TwoContentLengths { first: 5, second: 6 },
            "`content-length` 6 came after 5; one length was due",
        ),
        (Misuse::BodyBeforeStart, "`http.response.body` came before `http.response.start`"),
        (Misuse::StartTwice, "`http.response.start` came twice; `http.response.body` was due"),
        (
            Misuse::AfterEnd { came: "http.response.body" },
            "`http.response.body` came after the response had ended; nothing more was due",
        ),
        (
            Misuse::NotOffered { came: "http.response.pathsend", due: "something else was due" },
            "`http.response.pathsend` came, which `scope[\"extensions\"]` does not name; something else was due",
        ),
        (
            Misuse::TrailersUnpromised,
            "`http.response.trailers` came; `\"trailers\": True` in `http.response.start` was due before",
        ),
        (Misuse::TrailersBeforeBodyEnd, "`http.response.trailers` came before the last `http.response.body`"),
        (
            Misuse::MisplacedTrailer { name: Excerpt::of("host") },
            "trailer `host` came; it belongs into the headers of `http.response.start`",
        ),
        (
            Misuse::BadSize { message: "http.response.zerocopysend", key: "offset", came: Excerpt::of("-1") },
            "`offset` of `http.response.zerocopysend` came as -1; a number of bytes, 0 to 9223372036854775807, or None, \
             was due",
        ),
        (
            Misuse::OutOfPlace { came: "lifespan.startup.failed", due: "nothing more" },
            "`lifespan.startup.failed` came out of place; nothing more was due",
        ),
    ];
    for (misuse, sentence) in table {
        assert_eq!(misuse.to_string(), sentence);
    }
}

#[test]
fn a_refused_type_is_answered_with_the_types_that_were_due() {
    let table = [
        (
            HttpMessage::from_type("http.response.push").err(),
            "a message of unknown type `http.response.push` came; one of this scope was due: \
             `http.response.start` or `http.response.body`",
        ),
        (
            HttpMessage::from_type("websocket.accept").err(),
            "`websocket.accept` came, which belongs to another type of scope; one of this scope was due: \
             `http.response.start` or `http.response.body`",
        ),
        (
            LifespanMessage::from_type("http.response.body").err(),
            "`http.response.body` came, which belongs to another type of scope; one of this scope was due: \
             `lifespan.startup.complete`, `lifespan.startup.failed`, `lifespan.shutdown.complete` or \
             `lifespan.shutdown.failed`",
        ),
    ];
    for (misuse, sentence) in table {
        assert_eq!(misuse.map(|misuse| misuse.to_string()).as_deref(), Some(sentence));
    }
}
