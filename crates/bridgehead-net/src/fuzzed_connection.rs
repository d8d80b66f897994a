//! Whole connections for fuzzers: what clients send over them, and what has to hold of what they are told.
//!
//! Not how a connection is served (`fuzzed_site`). Each is served twice, by bytes that come all at once and by bytes that
//! come a few at a time.
//!
//! Invariant: what a client is told does not depend on the pieces that its bytes come in.

use crate::fuzzed_site::{Begins, Script, ask};

/// More than any fuzzer sends.
const WHOLE: usize = 1024 * 1024;

/// What HTTP/2 begins with, and a client's settings.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Whoever begins so speaks HTTP/2, and is answered in it.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

const PROXY_LINE: &[u8] = b"PROXY ";
const PROXY_SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Whoever waits for it is told so by when its body comes, so it is there or not by chance.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

const KEY: [u8; 4] = [1, 2, 3, 4];

/// A close frame, 1000, and its mask.
const CLOSE: &[u8] = &[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8];

/// A connection of HTTP/1, behind a PROXY header if it begins with one: what comes back is answers, and an end.
pub fn http1(bytes: &[u8]) {
    if bytes.starts_with(PREFACE) {
        return;
    }
    let proxied = bytes.starts_with(PROXY_LINE) || bytes.starts_with(PROXY_SIGNATURE);
    let begins = if proxied { Begins::Preamble } else { Begins::Nothing };
    let [whole, pieces] = [WHOLE, piece(bytes)].map(|room| ask(&Script { begins, bytes, room }));
    // Behind a PROXY header HTTP/2 may begin.
    if !proxied || whole.starts_with(b"HTTP/1.") {
        assert_eq!(Answers::of(&whole), Answers::of(&pieces));
    }
}

/// A connection of HTTP/2 by a script of frames, four bytes of type, flags, stream and length before each: what comes back
/// is settings, and whole frames behind them.
pub fn http2(script: &[u8]) {
    let mut sent = HTTP2.to_vec();
    let mut rest = script;
    while let Some((&[kind, flags, stream, length], behind)) = rest.split_first_chunk::<4>() {
        let (payload, next) = behind.split_at(usize::from(length).min(behind.len()));
        let size = u32::try_from(payload.len()).unwrap_or_default().to_be_bytes();
        sent.extend_from_slice(&[size[1], size[2], size[3], kind, flags, 0, 0, 0, stream]);
        sent.extend_from_slice(payload);
        rest = next;
    }
    for room in [WHOLE, piece(script)] {
        let said = ask(&Script { begins: Begins::Nothing, bytes: &sent, room });
        assert!(said.is_empty() || said.get(3) == Some(&4), "{said:x?}");
        let mut rest = &said[..];
        while let Some((&[a, b, c, ..], behind)) = rest.split_first_chunk::<9>() {
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            rest = behind.get(length..).expect("a frame that is whole");
        }
        assert!(rest.is_empty(), "{rest:x?}");
    }
}

/// A WebSocket by a script of frames, whose first byte says what is offered of compression, and two of each what its head says and
/// how long it is. What comes back is sound frames, which say again what came, and a close.
pub fn websocket(script: &[u8]) {
    let Some((&offer, frames)) = script.split_first() else { return };
    let mut bytes = Vec::new();
    let mut rest = frames;
    while let Some((&[first, length], behind)) = rest.split_first_chunk::<2>() {
        let (payload, next) = behind.split_at(usize::from(length).min(behind.len()));
        match u8::try_from(payload.len()) {
            Ok(short) if short < 126 => bytes.extend_from_slice(&[first, 0x80 | short]),
            Ok(short) => bytes.extend_from_slice(&[first, 0xfe, 0, short]),
            Err(_) => return,
        }
        bytes.extend_from_slice(&KEY);
        bytes.extend(payload.iter().zip(KEY.iter().cycle()).map(|(byte, key)| byte ^ key));
        rest = next;
    }
    bytes.extend_from_slice(CLOSE);
    let compressed = offer & 1 != 0;
    let request = handshake(offer);
    let [whole, pieces] = [WHOLE, piece(script)].map(|room| {
        let begins = Begins::Handshake { request: &request, until: is_closed };
        let said = ask(&Script { begins, bytes: &bytes, room });
        Heard::of(&said, compressed)
    });
    assert_eq!(whole, pieces);
}

/// How many bytes come at a time: few, and not always as many.
fn piece(bytes: &[u8]) -> usize {
    1 + bytes.len() % 61
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// What a client of HTTP/1 was told. In which words it is refused may depend on what has come.
#[derive(Debug, Default, PartialEq, Eq)]
struct Answers {
    given: Vec<String>,
    refused: bool,
}

impl Answers {
    /// Reads what a server said, which has to be answers, and a refusal the last of them.
    fn of(said: &[u8]) -> Self {
        let (mut answers, mut rest) = (Self::default(), said);
        while !rest.is_empty() {
            if let Some(behind) = rest.strip_prefix(CONTINUE) {
                rest = behind;
                continue;
            }
            assert!(!answers.refused, "something came behind a refusal: {}", text(said));
            let end = rest.windows(4).position(|mark| mark == b"\r\n\r\n").expect("a head that is whole") + 4;
            let head = text(&rest[..end]);
            let length = head.split_once("content-length: ").and_then(|(_, behind)| behind.split_once('\r'));
            let length: usize = length.map_or(0, |(length, _)| length.parse().expect("a number"));
            assert!(head.starts_with("HTTP/1."), "{}", text(said));
            answers.refused = !head[8..].starts_with(" 200 ");
            if !answers.refused {
                let answer = rest.get(..end + length).expect("a body that is whole");
                answers.given.push(text(answer).into_owned());
            }
            // A refused HEAD is told of a body that does not come.
            rest = rest.get(end + length..).unwrap_or_default();
        }
        answers
    }
}

fn handshake(offer: u8) -> Vec<u8> {
    let mut head = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n".to_vec();
    head.extend_from_slice(b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
    if offer & 1 != 0 {
        head.extend_from_slice(b"Sec-WebSocket-Extensions: permessage-deflate");
        let words = ["server_no_context_takeover", "client_no_context_takeover", "client_max_window_bits"];
        for (bit, word) in words.into_iter().enumerate().filter(|(bit, _)| offer >> (bit + 1) & 1 != 0) {
            head.extend_from_slice(format!(";{}{word}", " ".repeat(bit)).as_bytes());
        }
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// What a client of a WebSocket has heard. Pongs may come between any two of these.
#[derive(Debug, Default, PartialEq, Eq)]
struct Heard {
    /// Frames of messages: their heads' first bytes, and what is behind them.
    messages: Vec<(u8, Vec<u8>)>,
    close: Option<Vec<u8>>,
}

impl Heard {
    /// Reads what a server said, whose frames have to be sound.
    fn of(said: &[u8], compressed: bool) -> Self {
        let end = said.windows(4).position(|mark| mark == b"\r\n\r\n").expect("a head") + 4;
        assert!(said.starts_with(b"HTTP/1.1 101 "), "{}", text(said));
        let (mut heard, mut open, mut rest) = (Self::default(), false, &said[end..]);
        while let Some((first, payload, next)) = frame(rest) {
            assert!(heard.close.is_none(), "something came behind a close");
            match (first, open) {
                // A message that is wrong in two ways is refused for the one that is seen first.
                (0x88, _) if compressed && matches!(payload, [0x03, 0xef | 0xf1, ..]) => {
                    heard.close = Some(Vec::new());
                }
                (0x88, _) => heard.close = Some(payload.to_vec()),
                (0x8a, _) => assert!(payload.len() < 126),
                (0x00 | 0x80, true) | (0x01 | 0x02 | 0x81 | 0x82, false) => {
                    open = first & 0x80 == 0;
                    heard.messages.push((first, payload.to_vec()));
                }
                (0x41 | 0x42 | 0xc1 | 0xc2, false) if compressed => {
                    open = first & 0x80 == 0;
                    heard.messages.push((first, payload.to_vec()));
                }
                _ => panic!("a frame that may not come: {first:x}"),
            }
            rest = next;
        }
        assert!(rest.is_empty() && heard.close.is_some(), "{rest:x?}");
        heard
    }
}

/// A server's frame, if one has come: its first byte, its payload, and what is behind it.
fn frame(said: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[first, second], behind) = said.split_first_chunk::<2>()?;
    let (length, behind) = match (second, behind) {
        (126, [a, b, behind @ ..]) => (usize::from(u16::from_be_bytes([*a, *b])), behind),
        (127, [0, 0, 0, 0, 0, a, b, c, behind @ ..]) => {
            (u32::from_be_bytes([0, *a, *b, *c]) as usize, behind)
        }
        (126 | 127, _) => return None,
        (length, behind) => (usize::from(length), behind),
    };
    let (payload, next) = behind.split_at_checked(length)?;
    Some((first, payload, next))
}

/// Whether a server's frames have come to a close.
fn is_closed(mut frames: &[u8]) -> bool {
    while let Some((first, _, next)) = frame(frames) {
        if first == 0x88 {
            return true;
        }
        frames = next;
    }
    false
}
