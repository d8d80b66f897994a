//! What a head takes, drops and refuses.
//!
//! Not its effect on the body: `transitions` has that.

use bridgehead_asgi::{Excerpt, HeaderCount, Misuse, ResponseHead, add_trailer};
use http::HeaderMap;

fn head() -> ResponseHead {
    ResponseHead::new(200).expect("200 is a status")
}

fn with(headers: &[(&str, &str)]) -> Result<ResponseHead, Misuse> {
    let mut head = head();
    for (name, value) in headers {
        head.header(name.as_bytes(), value.as_bytes())?;
    }
    Ok(head)
}

/// The headers that a head gives back, in its order.
fn kept(head: ResponseHead) -> Vec<(String, Vec<u8>)> {
    let parts = head.into_parts();
    parts.headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect()
}

fn bad_length(came: &str) -> Misuse {
    Misuse::BadContentLength { came: Excerpt::of(came) }
}

#[test]
fn a_status_is_between_200_and_999() {
    for status in [200, 204, 304, 404, 599, 600, 999] {
        let head = ResponseHead::new(status).expect("a good status");
        assert_eq!(i64::from(head.status().as_u16()), status);
    }
    for came in [i64::MIN, -200, -1, 0, 99, 1000, 65_736, i64::MAX] {
        let told = Excerpt::of(came.to_string());
        assert_eq!(ResponseHead::new(came).err(), Some(Misuse::BadStatus { came: told }), "{came}");
    }
}

#[test]
fn an_informational_status_has_its_own_sentence() {
    for came in [100, 101, 103, 199] {
        assert_eq!(ResponseHead::new(came).err(), Some(Misuse::InformationalStatus { came }));
    }
}

#[test]
fn a_head_without_headers_declares_nothing() {
    let head = head();
    assert_eq!(head.declared(), None);
    assert!(!head.wants_close());
    assert!(head.into_parts().headers.is_empty());
}

#[test]
fn names_become_lower_case_and_values_lose_their_outer_blanks() {
    let head =
        with(&[("X-Mixed-Case", " \t inner  blanks\tstay \t"), ("x-empty", " \t ")]).expect("good headers");
    let expected = [("x-mixed-case", "inner  blanks\tstay"), ("x-empty", "")];
    assert_eq!(kept(head), expected.map(|(name, value)| (name.to_owned(), value.into())));
}

#[test]
fn headers_of_one_name_are_all_kept_in_their_order() {
    let head = with(&[("set-cookie", "b=1"), ("x-other", "1"), ("set-cookie", "a=2")]).expect("good headers");
    let parts = head.into_parts();
    let cookies: Vec<_> = parts.headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["b=1", "a=2"]);
    assert_eq!(parts.headers.len(), 3);
}

#[test]
fn a_name_that_is_no_token_is_refused() {
    let names = ["", " ", "x y", "x:", "x\r\n", "x\0", "x\u{7f}", "é", "\"x\"", "(x)", "x/y", "x@y", "x{}"];
    for name in names {
        let refused = head().header(name.as_bytes(), b"value");
        assert_eq!(refused, Err(Misuse::BadHeaderName { name: Excerpt::of(name) }), "{name:?}");
    }
}

#[test]
fn a_name_that_is_too_long_is_refused_for_that() {
    assert_eq!(head().header("n".repeat(65_535).as_bytes(), b""), Ok(()));
    let refused = head().header("n".repeat(65_536).as_bytes(), b"");
    assert_eq!(refused, Err(Misuse::LongHeaderName { came: 65_536, max: 65_535 }));
}

#[test]
fn what_the_applications_connection_names_is_dropped_with_it() {
    let given =
        [("x-hop", "1"), ("connection", "X-Hop , x-later,content-length"), ("x-later", "2"), ("x-end", "3")];
    let mut head = with(&given).expect("good headers");
    head.declare_length(5).expect("a length");
    let parts = head.into_parts();
    let names: Vec<_> = parts.headers.keys().map(http::HeaderName::as_str).collect();
    assert_eq!(names, ["x-end", "content-length"], "in the order in which they came");
    assert!(!parts.close);
}

#[test]
fn every_byte_of_a_token_is_accepted_and_no_other() {
    for byte in 0..=u8::MAX {
        let token = byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        assert_eq!(head().header(&[b'x', byte], b"value").is_ok(), token, "byte 0x{byte:02x}");
    }
}

#[test]
fn a_pseudo_header_is_refused_as_one() {
    for name in [":status", ":", ":x y"] {
        let refused = head().header(name.as_bytes(), b"200");
        assert_eq!(refused, Err(Misuse::PseudoHeader { name: Excerpt::of(name) }));
    }
}

#[test]
fn a_control_character_in_a_value_is_refused_with_its_place() {
    for byte in (0..0x20).chain([0x7f]).filter(|byte| *byte != b'\t') {
        for at in [0, 1, 3] {
            let mut value = *b" ab ";
            value[at] = byte;
            let expected = Misuse::BadHeaderValue { name: Excerpt::of("x-name"), byte, at };
            assert_eq!(head().header(b"X-Name", &value), Err(expected));
        }
    }
}

#[test]
fn bytes_beyond_ascii_stay_in_a_value_as_they_are() {
    let mut head = head();
    head.header(b"x-latin", &[0x80, b'-', 0xff]).expect("obs-text is allowed");
    assert_eq!(kept(head), [("x-latin".to_owned(), vec![0x80, b'-', 0xff])]);
}

#[test]
fn headers_of_the_connection_are_dropped() {
    let names =
        ["Connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade"];
    for name in names {
        let head = with(&[(name, "chunked")]).expect("dropped, not refused");
        assert!(!head.wants_close());
        assert_eq!(kept(head), [], "{name}");
    }
}

#[test]
fn a_dropped_header_is_still_judged() {
    let refused = head().header(b"transfer-encoding", b"chunked\r\nx: y");
    assert!(matches!(refused, Err(Misuse::BadHeaderValue { byte: b'\r', at: 7, .. })));
}

#[test]
fn a_wish_to_close_is_remembered_from_any_connection_header() {
    let table = [
        ("close", true),
        ("Close", true),
        ("keep-alive, CLOSE", true),
        ("\tclose ,upgrade", true),
        ("keep-alive", false),
        ("closed", false),
        ("not close", false),
        ("", false),
    ];
    for (value, close) in table {
        assert_eq!(with(&[("connection", value)]).expect("judged").wants_close(), close, "{value:?}");
    }
    let head = with(&[("connection", "close"), ("connection", "keep-alive")]).expect("judged");
    assert!(head.into_parts().close);
}

#[test]
fn a_content_length_is_declared_and_kept_once() {
    for value in ["0", "5", "005", " 5 ", "18446744073709551615"] {
        let number: u64 = value.trim().parse().expect("a number");
        let head = with(&[("content-length", value), ("Content-Length", value)]).expect("a good length");
        assert_eq!(head.declared(), Some(number));
        assert_eq!(kept(head), [("content-length".to_owned(), number.to_string().into_bytes())]);
    }
}

#[test]
fn a_content_length_that_is_no_number_of_64_bits_is_refused() {
    for value in ["", "+5", "-5", "5.0", "0x5", "5, 5", "5 5", "five", "18446744073709551616", "٥"] {
        assert_eq!(with(&[("content-length", value)]).err(), Some(bad_length(value)), "{value:?}");
    }
}

#[test]
fn two_content_lengths_that_differ_are_refused() {
    let refused = with(&[("content-length", "5"), ("content-length", "6")]);
    assert_eq!(refused.err(), Some(Misuse::TwoContentLengths { first: 5, second: 6 }));
}

#[test]
fn a_204_loses_its_content_length_and_a_304_keeps_it() {
    for (status, expected) in [(204, None), (304, Some(7)), (200, Some(7))] {
        let mut head = ResponseHead::new(status).expect("a status");
        head.header(b"content-length", b"7").expect("a length");
        assert_eq!(head.declared(), expected, "{status}");
        let parts = head.into_parts();
        assert_eq!(parts.declared, expected);
        assert_eq!(parts.headers.contains_key("content-length"), expected.is_some());
    }
    let mut empty = ResponseHead::new(204).expect("a status");
    assert_eq!(empty.header(b"content-length", b"x"), Err(bad_length("x")));
}

#[test]
fn a_refused_header_leaves_the_head_as_it_was() {
    let mut head = with(&[("content-length", "5"), ("x-kept", "1")]).expect("good headers");
    for (name, value) in [("content-length", "6"), ("x\n", "1"), ("x-bad", "\n"), (":status", "1")] {
        head.header(name.as_bytes(), value.as_bytes()).expect_err("a bad header");
    }
    assert_eq!(head.declared(), Some(5));
    assert_eq!(head.into_parts().headers.len(), 2);
}

#[test]
fn more_headers_than_a_head_can_hold_are_refused_without_a_panic() {
    let mut head = head();
    let refused = (0..40_000).find_map(|n| head.header(format!("x-{n}").as_bytes(), b"1").err());
    let held = head.into_parts().headers.len();
    assert_eq!(refused, Some(Misuse::TooManyHeaders { held }));
}

#[test]
fn headers_of_one_name_are_counted_as_those_of_many_are() {
    let mut count = HeaderCount::default();
    let taken = (0..).take_while(|_| count.spend(b"a", b"b").is_ok()).count();
    assert_eq!(count.spend(b"a", b"b"), Err(Misuse::TooManyHeaders { held: taken }));
    let mut head = head();
    let distinct = (0..).take_while(|n| head.header(format!("x-{n}").as_bytes(), b"1").is_ok()).count();
    assert_eq!(taken, distinct);
}

#[test]
fn headers_that_no_client_reads_to_their_end_are_refused() {
    let (mut count, value) = (HeaderCount::default(), vec![b'x'; 1_048_575]);
    let refused = (0..).find_map(|taken| count.spend(b"a", &value).err().map(|misuse| (taken, misuse)));
    assert_eq!(refused, Some((16, Misuse::LongHeaders { max: 16_777_216 })));
}

#[test]
fn a_trailer_header_stays_where_trailers_are_promised() {
    let mut head = ResponseHead::new(200).expect("a good status");
    head.promise_trailers();
    head.header(b"trailer", b"X-One, x-two").expect("a good header");
    head.header(b"trailer", b"x-three").expect("a good header");
    assert_eq!(head.announced(), ["x-one", "x-two", "x-three"]);
    head.forgo_trailers();
    assert!(!head.promises_trailers());
    assert!(head.into_parts().headers.is_empty());
}

#[test]
fn what_is_dropped_late_leaves_the_others_in_their_order() {
    let others = [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"), ("d", "5")];
    let in_order = [("a", "1"), ("a", "3"), ("b", "2"), ("c", "4"), ("d", "5")]
        .map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
    let mut nominated =
        with(&[("x-hop", "1"), ("x-hop", "2"), ("connection", "x-hop")]).expect("good headers");
    let mut forgone = head();
    forgone.promise_trailers();
    forgone.header(b"trailer", b"x-sum").expect("a good header");
    for (name, value) in others {
        nominated.header(name.as_bytes(), value.as_bytes()).expect("a good header");
        forgone.header(name.as_bytes(), value.as_bytes()).expect("a good header");
    }
    forgone.forgo_trailers();
    assert_eq!(kept(nominated), in_order);
    assert_eq!(kept(forgone), in_order);
}

#[test]
fn a_trailer_may_not_say_what_is_due_before_the_body() {
    let mut trailers = HeaderMap::new();
    for name in ["Content-Length", "transfer-encoding", "host", "set-cookie", "trailer", "cache-control"] {
        let refused = add_trailer(&mut trailers, name.as_bytes(), b"1");
        assert!(matches!(refused, Err(Misuse::MisplacedTrailer { .. })), "{name}");
    }
    assert_eq!(add_trailer(&mut trailers, b"x-sum", b" 1 "), Ok(()));
    assert!(matches!(add_trailer(&mut trailers, b"x sum", b"1"), Err(Misuse::BadHeaderName { .. })));
    assert!(matches!(add_trailer(&mut trailers, b"x-sum", b"1\n"), Err(Misuse::BadHeaderValue { .. })));
    assert_eq!(trailers.get("x-sum").map(|value| value.as_bytes()), Some(&b"1"[..]));
}
