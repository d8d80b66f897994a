//! What a scope says: paths, versions, hosts.

use std::borrow::Cow;

use bridgehead_asgi::{
    ASGI_VERSION, LIFESPAN_SPEC_VERSION, SPEC_VERSION, decode_path, http_version, is_valid_host, without_port,
};
use http::Version;

#[test]
fn the_versions_are_those_of_the_specification() {
    assert_eq!((ASGI_VERSION, SPEC_VERSION, LIFESPAN_SPEC_VERSION), ("3.0", "2.5", "2.0"));
}

/// Expected values are what Python's `urllib.parse.unquote` gives.
#[test]
fn a_path_is_decoded_as_unquote_does() {
    let table = [
        ("/", "/"),
        ("/a%20b", "/a b"),
        ("/a+b", "/a+b"),
        ("/%e4%bd%a0", "/你"),
        ("/%E4%BD%A0", "/你"),
        ("/a%2Fb", "/a/b"),
        ("/%", "/%"),
        ("/%4", "/%4"),
        ("/%zz", "/%zz"),
        ("/%%41", "/%A"),
        ("/%25%34%31", "/%41"),
        ("/%00", "/\0"),
        ("/%ff", "/\u{fffd}"),
        ("/%e4%bd", "/\u{fffd}"),
        ("/%e4%bda", "/\u{fffd}a"),
        ("/%ed%a0%80", "/\u{fffd}\u{fffd}\u{fffd}"),
        ("", ""),
    ];
    for (raw, expected) in table {
        assert_eq!(decode_path(raw), expected, "{raw}");
    }
}

#[test]
fn a_path_is_copied_only_if_it_changes() {
    assert!(matches!(decode_path("/plain/path"), Cow::Borrowed("/plain/path")));
    assert!(matches!(decode_path("/100%"), Cow::Borrowed("/100%")));
    assert!(matches!(decode_path(b"/bytes".as_slice()), Cow::Borrowed("/bytes")));
    assert!(matches!(decode_path("/a%62"), Cow::Owned(_)));
}

#[test]
fn a_version_is_one_of_the_three_of_asgi() {
    let table = [
        (Version::HTTP_09, "1.0"),
        (Version::HTTP_10, "1.0"),
        (Version::HTTP_11, "1.1"),
        (Version::HTTP_2, "2"),
        (Version::HTTP_3, "2"),
    ];
    for (version, expected) in table {
        assert_eq!(http_version(version), expected);
    }
}

#[test]
fn a_host_is_a_name_or_an_address_and_maybe_a_port() {
    let hosts = [
        "",
        "localhost",
        "example.com",
        "example.com.",
        "EXAMPLE.com:80",
        "example.com:",
        "example.com:0",
        "example.com:00080",
        "example.com:65535",
        "under_score.example",
        "xn--bcher-kva.example",
        "a%20b",
        "it's;(a)=name!$&*+~",
        "127.0.0.1",
        "127.0.0.1:8000",
        "[::1]",
        "[::1]:8000",
        "[2001:db8::1]:",
        "[::ffff:127.0.0.1]:443",
    ];
    for host in hosts {
        assert!(is_valid_host(host.as_bytes()), "{host:?}");
    }
}

#[test]
fn what_is_no_host_is_refused() {
    let others = [
        ":80",
        ":",
        "user@example.com",
        "user:password@example.com",
        "example.com/path",
        "/",
        "example.com?query",
        "example.com#fragment",
        "http://example.com",
        "example.com, example.org",
        "a,b",
        " example.com",
        "example.com ",
        "a b",
        "a\tb",
        "a\r\nb",
        "a\0b",
        "a\u{7f}",
        "bücher.example",
        "a\\b",
        "a\"b",
        "<a>",
        "a^b",
        "a`b",
        "{a}",
        "a|b",
        "a%",
        "a%2",
        "a%zz",
        "example.com:65536",
        "example.com:+80",
        "example.com:-1",
        "example.com:http",
        "example.com:80:80",
        "example.com:8 0",
        "example.com:99999999999999999999",
        "[",
        "]",
        "[]",
        "[::1",
        "::1",
        "::1]",
        "[[::1]]",
        "[::1]8000",
        "[::1]:65536",
        "[::1]:80]",
        "[127.0.0.1]",
        "[example.com]",
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "[v1.future]",
        "a[::1]",
    ];
    for host in others {
        assert!(!is_valid_host(host.as_bytes()), "{host:?}");
    }
    assert!(!is_valid_host(&[b'a', 0xff]));
}

#[test]
fn every_single_byte_is_judged_by_the_grammar() {
    for byte in 0..=u8::MAX {
        let expected = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+;=".contains(&byte);
        assert_eq!(is_valid_host(&[byte]), expected, "byte 0x{byte:02x}");
    }
}

#[test]
fn a_port_is_behind_the_host_and_not_in_it() {
    for (host, expected) in
        [("a.test", "a.test"), ("a.test:80", "a.test"), ("[::1]", "[::1]"), ("[::1]:8000", "[::1]")]
    {
        assert_eq!(without_port(host), expected);
    }
}
