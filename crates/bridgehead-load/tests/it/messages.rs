//! Messages by WebSockets, of a server that is tungstenite's.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bridgehead_load::{Expect, Limits, Plan, Protocol, Run, Scenario, Upload};
use bytes::Bytes;
use data_encoding::BASE64;
use sha1_smol::Sha1;
use tungstenite::protocol::frame::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{Role, WebSocket};
use tungstenite::{Error, Message};

use crate::server::{HELLO, answering, connections, plan, run, scenario};

const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

type Socket = WebSocket<TcpStream>;
type Log = Arc<Mutex<Vec<String>>>;

/// Agrees to each handshake, and gives the socket to `serve` again and again; the log has what was asked for, and how
/// sockets ended.
fn talking(serve: impl Fn(&mut Socket) -> Result<(), Error> + Send + Sync + 'static) -> (u16, Log) {
    let log = Log::default();
    let written = Arc::clone(&log);
    let port = connections(move |mut stream| {
        let write = |line: String| written.lock().expect("no test thread panicked").push(line);
        let Some(head) = head_of(&mut stream) else { return };
        write(head.lines().next().unwrap_or_default().to_owned());
        agree(&mut stream, &head);
        let mut socket = Socket::from_raw_socket(stream, Role::Server, None);
        let ended = loop {
            if let Err(error) = serve(&mut socket) {
                break error;
            }
        };
        write(format!("{ended}"));
    });
    (port, log)
}

fn head_of(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    String::from_utf8(head).ok()
}

fn agree(stream: &mut TcpStream, head: &str) {
    let value = |name: &str| {
        let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name));
        line.and_then(|line| line.split_once(": ")).map(|(_, value)| value).expect("a handshake has it")
    };
    assert_eq!((value("connection"), value("upgrade")), ("upgrade", "websocket"));
    assert_eq!(value("sec-websocket-version"), "13");
    let mut hash = Sha1::from(value("sec-websocket-key"));
    hash.update(GUID.as_bytes());
    let accept = BASE64.encode(&hash.digest().bytes());
    write!(
        stream,
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
         sec-websocket-accept: {accept}\r\n\r\n"
    )
    .expect("the client reads");
}

fn echo(socket: &mut Socket) -> Result<(), Error> {
    match socket.read()? {
        message @ (Message::Text(_) | Message::Binary(_)) => socket.send(message),
        _ => Ok(()),
    }
}

fn by_websocket(port: u16, messages: u64) -> Plan {
    Plan { protocol: Protocol::WebSocket, ..plan(port, messages) }
}

fn saying(upload: Upload) -> Vec<Scenario> {
    vec![Scenario { upload, ..scenario("/chat?n={n}") }]
}

#[test]
fn each_message_is_sent_when_the_last_has_come_back_and_the_end_is_said() {
    let (port, log) = talking(echo);
    let mut plan = Plan { connections: 3, ..by_websocket(port, 60) };
    plan.scenarios = saying(Upload::Nothing);
    let report = run(&plan);
    assert_eq!((report.whole.requests, report.whole.errors, report.bytes), (60, 0, 300));
    assert!(report.whole.statuses.is_empty());
    assert_eq!(report.connect.count, 3);
    let mut log = log.lock().expect("no test thread panicked").clone();
    log.sort();
    let asked = ["GET /chat?n=0 HTTP/1.1", "GET /chat?n=1 HTTP/1.1", "GET /chat?n=2 HTTP/1.1"];
    assert_eq!(log[3..], asked);
    assert_eq!(log[..3], ["Connection closed normally"; 3]);
}

#[test]
fn a_text_is_sent_as_text_with_its_templates_filled_and_bytes_as_they_are() {
    let said = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&said);
    let (port, _) = talking(move |socket| {
        let message = socket.read()?;
        heard.lock().expect("no test thread panicked").push(message.clone());
        if message.is_close() { Ok(()) } else { socket.send(message) }
    });
    let mut plan = by_websocket(port, 2);
    plan.scenarios = saying(Upload::Template("{\"n\": {n}}".to_owned()));
    assert_eq!(run(&plan).whole.errors, 0);
    plan.scenarios = saying(Upload::Bytes(Bytes::from_static(b"\xff{n}")));
    assert_eq!(run(&plan).whole.errors, 0);
    let said = said.lock().expect("no test thread panicked").clone();
    let said: Vec<Message> = said.into_iter().filter(|message| !message.is_close()).collect();
    let bytes = Message::Binary(Bytes::from_static(b"\xff{n}"));
    assert_eq!(said, [Message::text("{\"n\": 0}"), Message::text("{\"n\": 1}"), bytes.clone(), bytes]);
}

#[test]
fn a_large_message_comes_back_whole() {
    let (port, _) = talking(echo);
    let mut plan = by_websocket(port, 3);
    plan.scenarios = saying(Upload::Bytes(vec![7; 3_000_000].into()));
    let report = run(&plan);
    assert_eq!((report.whole.errors, report.bytes), (0, 9_000_000), "{:?}", report.first_errors);
}

#[test]
fn a_message_that_differs_is_an_error_unless_another_is_expected() {
    let (port, _) = talking(|socket| {
        let length = socket.read()?.len();
        socket.send(Message::text(format!("{length} bytes")))
    });
    let report = run(&by_websocket(port, 4));
    assert_eq!(report.whole.errors_by_kind.get("assertion"), Some(&4));
    let said = &report.first_errors["assertion"];
    assert_eq!(said, "a text message of 7 bytes instead of the one that was sent (text of 5)");
    for (body, errors) in [("5 bytes", 0), ("", 0), ("6 bytes", 4)] {
        let mut plan = by_websocket(port, 4);
        plan.scenarios[0].expect = Expect { body: Some(body.into()), ..Expect::default() };
        assert_eq!(run(&plan).whole.errors, errors, "{body}");
    }
}

#[test]
fn a_ping_is_answered_and_is_no_message() {
    let (port, _) = talking(|socket| {
        let message = socket.read()?;
        if message.is_text() {
            socket.send(Message::Ping(Bytes::from_static(b"there?")))?;
            assert_eq!(socket.read()?, Message::Pong(Bytes::from_static(b"there?")));
            socket.send(message)?;
        }
        Ok(())
    });
    assert_eq!(run(&by_websocket(port, 5)).whole.errors, 0);
}

#[test]
fn a_close_instead_of_an_answer_is_an_error_that_says_its_code() {
    let (port, log) = talking(|socket| {
        if socket.read()?.is_text() {
            let frame = CloseFrame { code: CloseCode::Again, reason: "busy".into() };
            socket.close(Some(frame))?;
        }
        Ok(())
    });
    let report = run(&by_websocket(port, 3));
    assert_eq!(report.whole.errors_by_kind.get("closed"), Some(&3), "{:?}", report.first_errors);
    assert!(report.first_errors["closed"].contains("busy"), "{:?}", report.first_errors);
    let asked =
        log.lock().expect("no test thread panicked").iter().filter(|line| line.contains("GET")).count();
    assert_eq!(asked, 3, "each has a connection of its own after that");
}

#[test]
fn a_connection_that_was_closed_between_messages_is_made_anew() {
    let (port, _) = talking(|socket| {
        let message = socket.read()?;
        if message.is_text() {
            // Both in one piece, so that the close is there before the next message.
            socket.write(message)?;
            socket.close(None)?;
        }
        Ok(())
    });
    let report = run(&by_websocket(port, 3));
    assert_eq!((report.whole.errors, report.connect.count), (0, 3), "{:?}", report.first_errors);
}

#[test]
fn each_message_has_a_connection_of_its_own_without_keep_alive() {
    let (port, _) = talking(echo);
    let report = run(&Plan { keep_alive: false, ..by_websocket(port, 5) });
    assert_eq!((report.whole.errors, report.connect.count), (0, 5));
}

#[test]
fn messages_are_sent_at_a_rate() {
    let (port, _) = talking(echo);
    let limits = Limits { duration: None, requests: Some(50) };
    let report = run(&Plan { rate: Some(1000.0), limits, connections: 4, ..by_websocket(port, 0) });
    assert_eq!((report.whole.requests, report.whole.errors, report.unsent), (50, 0, 0));
}

#[test]
fn a_handshake_that_is_not_agreed_to_is_told() {
    let (port, _) = answering(|_| HELLO.to_vec());
    let report = run(&by_websocket(port, 1));
    assert_eq!(report.first_errors["connect"], "the handshake was answered with status 200");
    let (port, _) = answering(|_| {
        b"HTTP/1.1 101 OK\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: no\r\n\r\n"
            .to_vec()
    });
    let report = run(&by_websocket(port, 1));
    assert!(report.first_errors["connect"].contains("wrong Sec-WebSocket-Accept"));
}

#[test]
fn what_is_no_message_is_refused() {
    let refuse = |scenarios: Vec<Scenario>, part: &str| {
        let refused = Run::start(&Plan { scenarios, ..by_websocket(1, 1) }).expect_err(part).to_string();
        assert!(refused.contains(part), "{refused}");
    };
    let stream = Upload::Stream { size: 1, chunk: 1, every: Duration::ZERO, declared: false };
    refuse(vec![Scenario { upload: stream, ..scenario("/") }], "there is no upload");
    refuse(vec![Scenario { method: "POST".to_owned(), ..scenario("/") }], "asked for by GET");
    refuse(vec![scenario("/a"), scenario("/b")], "the same connections");
    let expect = Expect { statuses: vec![http::StatusCode::OK], ..Expect::default() };
    refuse(vec![Scenario { expect, ..scenario("/") }], "neither a status nor headers");
}
