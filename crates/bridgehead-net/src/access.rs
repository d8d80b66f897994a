//! One line for each request, in the shape that uvicorn made usual, and for each head that hyper refused.
//!
//! Made when the answer's last byte is handed to the socket, or the request ends without one. Where the line goes, and
//! what happens when nobody reads it, is `log_pipe`'s.
//!
//! Invariant: whatever a client sends, a line has one newline, at its end, and at most [`LONGEST`] bytes of a target.

use std::io::Write;
use std::sync::Arc;

use http::{Method, StatusCode, Uri, Version};

use crate::log_pipe::LogPipe;
use crate::peer::Peer;

/// A target is cut here: a log is not a place for a client to store things.
const LONGEST: usize = 1024;

/// What a request that got no answer is logged with, as nginx does.
const CLIENT_LEFT: u16 = 499;

/// Where access lines go, and how they look.
#[derive(Clone, Debug)]
pub struct AccessLog {
    /// Who writes them.
    pub pipe: Arc<LogPipe>,
    /// Whether a person watches.
    pub colours: bool,
    /// In front of every path, as applications see it.
    pub root_path: Arc<str>,
}

/// What is known of a request, filled in while it is answered.
#[derive(Debug)]
pub(crate) struct Record {
    log: AccessLog,
    asked: Asked,
    pub(crate) status: Option<StatusCode>,
    pub(crate) bytes: u64,
}

/// What a client asked for.
#[derive(Debug)]
enum Asked {
    Request {
        method: Method,
        target: Uri,
        version: Version,
    },
    /// Nobody knows: its head could not be read.
    Unread,
}

impl Record {
    pub(crate) fn new(log: &AccessLog, request: &http::request::Parts) -> Box<Self> {
        let asked = Asked::Request {
            method: request.method.clone(),
            target: request.uri.clone(),
            version: request.version,
        };
        Box::new(Self { log: log.clone(), asked, status: None, bytes: 0 })
    }

    /// Of a head that was refused before it was a request.
    pub(crate) fn unread(log: &AccessLog, status: StatusCode) -> Self {
        Self { log: log.clone(), asked: Asked::Unread, status: Some(status), bytes: 0 }
    }

    pub(crate) fn write(self, peer: &Peer) {
        self.log.pipe.write(|line| self.format(peer, line));
    }

    fn format(&self, peer: &Peer, line: &mut Vec<u8>) {
        let (code, reason) = self
            .status
            .map_or((CLIENT_LEFT, ""), |status| (status.as_u16(), status.canonical_reason().unwrap_or("")));
        let ink = if self.log.colours { Ink::of(code) } else { Ink::NONE };
        let Ink { level, bold, status, plain } = ink;
        // Writing to a Vec cannot fail.
        let _ = write!(line, "{level}INFO{plain}:     {} - \"{bold}", peer.client);
        self.asked.format(&self.log.root_path, line);
        let _ = writeln!(line, "{plain}\" {status}{code} {reason}{plain}");
    }
}

impl Asked {
    fn format(&self, root_path: &str, line: &mut Vec<u8>) {
        let Self::Request { method, target, version } = self else {
            // As nginx has it.
            line.push(b'-');
            return;
        };
        let _ = write!(line, "{method} ");
        match target.path_and_query().map(http::uri::PathAndQuery::as_str) {
            Some("*") => line.push(b'*'),
            Some(path) => {
                escape(root_path.as_bytes(), line);
                escape(if path.starts_with('?') { "/" } else { "" }.as_bytes(), line);
                escape(path.as_bytes(), line);
            }
            None => escape(target.to_string().as_bytes(), line),
        }
        let _ = write!(line, " HTTP/{}", bridgehead_asgi::http_version(*version));
    }
}

/// Terminal colours, the same as uvicorn's.
struct Ink {
    level: &'static str,
    bold: &'static str,
    status: &'static str,
    plain: &'static str,
}

impl Ink {
    const NONE: Self = Self { level: "", bold: "", status: "", plain: "" };

    fn of(status: u16) -> Self {
        let status = match status {
            200..=299 => "\x1b[32m",
            300..=399 => "\x1b[33m",
            400..=499 => "\x1b[31m",
            500.. => "\x1b[91m",
            _ => "\x1b[97m",
        };
        Self { level: "\x1b[32m", bold: "\x1b[1m", status, plain: "\x1b[0m" }
    }
}

/// Nothing that a terminal or a log reader would take for its own.
fn escape(text: &[u8], line: &mut Vec<u8>) {
    for &byte in text.iter().take(LONGEST) {
        match byte {
            b'"' | b'\\' | 0..0x20 | 0x7f.. => {
                let _ = write!(line, "\\x{byte:02x}");
            }
            _ => line.push(byte),
        }
    }
    if text.len() > LONGEST {
        line.extend_from_slice(b"...");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Address;

    fn log() -> AccessLog {
        AccessLog { pipe: LogPipe::discarding(), colours: false, root_path: "".into() }
    }

    fn line(target: &str, status: Option<u16>) -> String {
        let request = http::Request::builder().uri(target).body(()).expect("a valid target").into_parts().0;
        let mut record = Record::new(&log(), &request);
        record.status = status.map(|code| StatusCode::from_u16(code).expect("a valid status"));
        formatted(&record)
    }

    fn formatted(record: &Record) -> String {
        let client = Address::inet("127.0.0.1:5000".parse().expect("literal"));
        let mut line = Vec::new();
        record.format(&Peer { client: client.clone(), server: client }, &mut line);
        String::from_utf8(line).expect("lines are ASCII")
    }

    #[test]
    fn a_line_has_uvicorns_shape() {
        assert_eq!(line("/a?b=c", Some(200)), "INFO:     127.0.0.1:5000 - \"GET /a?b=c HTTP/1.1\" 200 OK\n");
    }

    #[test]
    fn a_request_without_an_answer_says_so() {
        assert_eq!(line("/", None), "INFO:     127.0.0.1:5000 - \"GET / HTTP/1.1\" 499 \n");
    }

    #[test]
    fn a_head_that_was_not_read_is_a_dash() {
        let record = Record::unread(&log(), StatusCode::URI_TOO_LONG);
        assert_eq!(formatted(&record), "INFO:     127.0.0.1:5000 - \"-\" 414 URI Too Long\n");
    }

    #[test]
    fn a_long_target_is_cut() {
        assert!(line(&format!("/{}", "x".repeat(5000)), Some(200)).len() < 1200);
    }

    #[test]
    fn control_characters_and_quotes_are_escaped() {
        let mut line = Vec::new();
        escape(b"/\"\\\n\x1b[31m\xff", &mut line);
        assert_eq!(line, b"/\\x22\\x5c\\x0a\\x1b[31m\\xff");
    }
}
