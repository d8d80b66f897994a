//! Messages as applications send them, in any order and with any contents, for fuzzers.
//!
//! Not heads by themselves (`fuzzing::answer`), and not what Python's types come to, which the bridge converts.
//!
//! | a line begins with | is |
//! |---|---|
//! | `s` | `http.response.start`: a status of two bytes, then fields between 0xfe; `S` promises trailers |
//! | `b` | `http.response.body`: as many bytes as it has; `B` is the last |
//! | `t` | `http.response.trailers`: a field; `T` is the last |
//! | `a` | `websocket.accept`: a field; `A` a subprotocol |
//! | `m` | `websocket.send` |
//! | `c` | `websocket.close`: a code of two bytes, a reason; `C` without a code |
//! | `d` | `websocket.http.response.start`; `D` a body of it |
//! | else | a type |
//!
//! Invariant: what is taken of a response never differs from what its head says, and a WebSocket says nothing before it
//! is accepted and after it is closed.

use bridgehead_asgi::{
    Acceptance, Closing, Fate, HttpMessage, LifespanMessage, Misuse, More, NotTaken, Response, ResponseHead,
    Then, Trailers, WebSocket, WebSocketMessage, add_trailer, is_close_code, is_token,
};
use http::{HeaderMap, Method};

/// One application for each protocol that says all of it; what is judged wrong is passed over, as one that catches does.
pub fn messages(bytes: &[u8]) {
    let mut answers = [Answer::to(&Method::GET), Answer::to(&Method::HEAD)];
    let mut talk = Talk::default();
    for line in bytes.split(|byte| *byte == 0xff) {
        let Some((kind, rest)) = line.split_first() else { continue };
        let more = More::from(kind.is_ascii_lowercase());
        match kind.to_ascii_lowercase() {
            b's' => answers.iter_mut().for_each(|answer| answer.start(rest, more)),
            b'b' => answers.iter_mut().for_each(|answer| answer.body(rest.len(), more)),
            b't' => answers.iter_mut().for_each(|answer| answer.trailers(rest, more)),
            b'a' => talk.accept(rest, more),
            b'm' => talk.say(WebSocketMessage::Send),
            b'c' => talk.close(rest, more),
            b'd' if more.follows() => talk.say(WebSocketMessage::DenialStart),
            b'd' => talk.say(WebSocketMessage::DenialBody),
            _ => named(line),
        }
    }
    answers.iter().for_each(Answer::assert_kept);
}

fn named(line: &[u8]) {
    let Ok(name) = std::str::from_utf8(line) else { return };
    let kinds = [
        HttpMessage::from_type(name).map(HttpMessage::name),
        WebSocketMessage::from_type(name).map(WebSocketMessage::name),
        LifespanMessage::from_type(name).map(LifespanMessage::name),
    ];
    for kind in kinds {
        match kind {
            Ok(known) => assert_eq!(known, name),
            Err(misuse) => assert_one_line(&misuse),
        }
    }
}

/// It is told in a log, and to who wrote the application.
fn assert_one_line(misuse: &Misuse) {
    let text = misuse.to_string();
    assert!(text.len() < 600 && text.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{text:?}");
}

/// What would be on the wire of one response.
struct Answer {
    method: Method,
    response: Response,
    trailers: Trailers,
    declared: Option<u64>,
    written: u64,
    fields: HeaderMap,
    completed: bool,
    broken_off: bool,
}

impl Answer {
    fn to(method: &Method) -> Self {
        Self {
            method: method.clone(),
            response: Response::to(method),
            trailers: Trailers::default(),
            declared: None,
            written: 0,
            fields: HeaderMap::new(),
            completed: false,
            broken_off: false,
        }
    }

    fn start(&mut self, rest: &[u8], trailers: More) {
        let (status, fields) = rest.split_at(rest.len().min(2));
        let status = status.iter().fold(0, |sum, byte| sum << 8 | i64::from(*byte));
        let mut head = match ResponseHead::new(status) {
            Ok(head) => head,
            Err(misuse) => return assert_one_line(&misuse),
        };
        if trailers == More::Ends {
            head.promise_trailers();
        }
        for field in fields.split(|byte| *byte == 0xfe) {
            let (name, value) = cut(field);
            if let Err(misuse) = head.header(name, value) {
                assert_one_line(&misuse);
            }
        }
        match self.response.start(&head) {
            Ok(next) => {
                assert!(!self.response.has_started());
                self.response = next;
                self.declared = head.declared();
                if head.promises_trailers() {
                    self.trailers = Trailers::Promised(Fate::Written);
                }
            }
            Err(misuse) => assert_one_line(&misuse),
        }
    }

    fn body(&mut self, offered: usize, more: More) {
        let was_over = self.response.is_ended();
        let (next, write) = match self.response.body(offered, more) {
            Ok(judged) => judged,
            Err(misuse) => return assert_one_line(&misuse),
        };
        assert!(self.response.has_started() && write.take <= offered);
        assert!(!was_over || write.take == 0, "nothing is written behind the end");
        self.response = next;
        self.written += write.take as u64;
        if more == More::Ends {
            self.trailers = self.trailers.body_ended();
        }
        let ends = match write.then {
            Then::Continue => false,
            Then::Complete => true,
            Then::Overflow { excess } => {
                assert_eq!(excess, (offered - write.take) as u64);
                true
            }
            Then::Short { missing } => {
                assert_eq!(self.declared, Some(self.written + missing));
                self.broken_off = true;
                false
            }
        };
        assert!(!(ends && self.completed), "it is complete once");
        self.completed |= ends;
    }

    fn trailers(&mut self, rest: &[u8], more: More) {
        match self.trailers.trailers(more) {
            Ok(next) => self.trailers = next,
            Err(misuse) => return assert_one_line(&misuse),
        }
        let (name, value) = cut(rest);
        if let Err(misuse) = add_trailer(&mut self.fields, name, value) {
            assert_one_line(&misuse);
        }
    }

    fn assert_kept(&self) {
        assert!(self.method != Method::HEAD || self.written == 0);
        assert!(self.declared.is_none_or(|declared| self.written <= declared));
        assert!(!(self.completed && self.broken_off));
        if self.completed && matches!(self.response, Response::Discarding) {
            assert_eq!(Some(self.written), self.declared);
        }
        for framing in ["content-length", "transfer-encoding", "trailer", "host"] {
            assert!(!self.fields.contains_key(framing));
        }
        assert_fields(&self.fields);
    }
}

/// One WebSocket.
#[derive(Default)]
struct Talk {
    socket: WebSocket,
    acceptance: Acceptance,
    accepted: bool,
    closed: bool,
}

impl Talk {
    fn accept(&mut self, rest: &[u8], field: More) {
        let (name, value) = cut(rest);
        let judged = match (field, std::str::from_utf8(rest)) {
            (More::Ends, Ok(subprotocol)) => self.acceptance.choose(subprotocol),
            _ => self.acceptance.header(name, value),
        };
        if let Err(misuse) = judged {
            return assert_one_line(&misuse);
        }
        assert_fields(&self.acceptance.headers);
        assert!(!self.acceptance.headers.contains_key("sec-websocket-accept"));
        assert!(self.acceptance.subprotocol.as_ref().is_none_or(|chosen| is_token(chosen.as_bytes())));
        self.say(WebSocketMessage::Accept);
    }

    fn close(&mut self, rest: &[u8], coded: More) {
        let (code, reason) =
            if coded.follows() { rest.split_at(rest.len().min(2)) } else { rest.split_at(0) };
        let code = coded.follows().then(|| code.iter().fold(0, |sum, byte| sum << 8 | i64::from(*byte)));
        let Ok(reason) = String::from_utf8(reason.to_vec()) else { return };
        match Closing::new(code, reason) {
            Ok(closing) => {
                assert!(is_close_code(closing.code()) && closing.reason().len() <= 123);
                self.say(WebSocketMessage::Close);
            }
            Err(misuse) => assert_one_line(&misuse),
        }
    }

    fn say(&mut self, message: WebSocketMessage) {
        match self.socket.send(message) {
            Ok(next) => {
                assert!(!self.closed, "nothing is said behind the end");
                match message {
                    WebSocketMessage::Accept => assert!(!std::mem::replace(&mut self.accepted, true)),
                    WebSocketMessage::Send => assert!(self.accepted),
                    WebSocketMessage::Close => self.closed = true,
                    WebSocketMessage::DenialStart | WebSocketMessage::DenialBody => assert!(!self.accepted),
                }
                self.socket = next;
            }
            Err(NotTaken::Misuse(misuse)) => assert_one_line(&misuse),
            Err(NotTaken::Over) => assert!(self.closed),
        }
    }
}

fn assert_fields(fields: &HeaderMap) {
    for (name, value) in fields {
        assert!(is_token(name.as_str().as_bytes()));
        assert!(!value.as_bytes().iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
    }
}

/// A name and a value, with a colon between them.
fn cut(field: &[u8]) -> (&[u8], &[u8]) {
    let at = field.iter().position(|byte| *byte == b':').unwrap_or(field.len());
    (&field[..at], field.get(at + 1..).unwrap_or_default())
}
