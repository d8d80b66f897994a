//! How an access line looks: uvicorn's shape, a text with fields, or an object of JSON.
//!
//! Which fields there are is also in `access_format.py`, which reads what an operator wrote and knows the near name of
//! a wrong one; here a wrong one is a bug.
//!
//! Invariant: whatever a client sends, what is written is one line of printable ASCII.

use std::io::Write;
use std::time::SystemTime;

use bridgehead_proxies::escape;
use http::header::{HeaderName, HeaderValue};

use crate::access::{Facts, Kind, NONE};
use crate::timestamp;

/// A look of access lines, made once.
#[derive(Clone, Debug)]
pub struct Layout {
    style: Style,
    request_headers: Vec<HeaderName>,
    response_headers: Vec<HeaderName>,
}

/// Whether a person watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// A person does.
    On,
    /// A file does.
    Off,
}

#[derive(Clone, Debug)]
enum Style {
    Usual(Colours),
    Text(Vec<Piece>),
    /// Each field with its key.
    Json(Vec<(String, Field)>),
}

#[derive(Clone, Debug)]
enum Piece {
    Literal(String),
    Field(Field),
}

#[derive(Clone, Copy, Debug)]
enum Field {
    BytesIn,
    BytesOut,
    Client,
    Duration,
    Method,
    Protocol,
    RequestId,
    Status,
    Target,
    Time,
    Traceparent,
    /// Which of the layout's headers.
    RequestHeader(usize),
    ResponseHeader(usize),
}

/// A field's value, as it is before a line is made of it.
enum Value<'a> {
    Absent,
    Number(String),
    Text(&'a [u8]),
    Made(Vec<u8>),
}

/// A piece of a layout that nobody knows.
#[derive(Debug, thiserror::Error)]
#[error("access lines have no field {0:?}")]
pub struct UnknownField(String);

impl Layout {
    /// The shape that uvicorn made usual, with what ties it to other lines behind it, if that is given.
    #[must_use]
    pub fn usual(colours: Colours) -> Self {
        Self { style: Style::Usual(colours), request_headers: Vec::new(), response_headers: Vec::new() }
    }

    /// A text of pieces, each a kind and a word: `text`, `field`, `header`, `response`.
    ///
    /// # Errors
    /// When a kind or a field is not known.
    pub fn text(pieces: &[(String, String)]) -> Result<Self, UnknownField> {
        let mut layout = Self::usual(Colours::Off);
        let read = |(kind, word): &(String, String)| match kind.as_str() {
            "text" => Ok(Piece::Literal(word.clone())),
            _ => layout.field(kind, word).map(Piece::Field),
        };
        layout.style = Style::Text(pieces.iter().map(read).collect::<Result<_, _>>()?);
        Ok(layout)
    }

    /// An object of JSON that has the fields among these pieces as keys.
    ///
    /// # Errors
    /// When a kind or a field is not known.
    pub fn json(pieces: &[(String, String)]) -> Result<Self, UnknownField> {
        let mut layout = Self::usual(Colours::Off);
        let mut fields = Vec::new();
        for (kind, word) in pieces.iter().filter(|(kind, _)| kind != "text") {
            let key = if kind == "field" { word.clone() } else { format!("{kind}{{{word}}}") };
            // Every object has its time already.
            if key != "time" && fields.iter().all(|(known, _)| *known != key) {
                fields.push((key, layout.field(kind, word)?));
            }
        }
        layout.style = Style::Json(fields);
        Ok(layout)
    }

    fn field(&mut self, kind: &str, word: &str) -> Result<Field, UnknownField> {
        let unknown = || UnknownField(format!("{kind} {word}"));
        let place = |names: &mut Vec<HeaderName>| {
            names.push(HeaderName::from_bytes(word.as_bytes()).map_err(|_| unknown())?);
            Ok(names.len() - 1)
        };
        Ok(match (kind, word) {
            ("header", _) => Field::RequestHeader(place(&mut self.request_headers)?),
            ("response", _) => Field::ResponseHeader(place(&mut self.response_headers)?),
            ("field", "bytes_in") => Field::BytesIn,
            ("field", "bytes_out") => Field::BytesOut,
            ("field", "client") => Field::Client,
            ("field", "duration") => Field::Duration,
            ("field", "method") => Field::Method,
            ("field", "protocol") => Field::Protocol,
            ("field", "request_id") => Field::RequestId,
            ("field", "status") => Field::Status,
            ("field", "target") => Field::Target,
            ("field", "time") => Field::Time,
            ("field", "traceparent") => Field::Traceparent,
            _ => return Err(unknown()),
        })
    }

    /// Whether nothing has to be measured or kept for it.
    pub(crate) fn is_usual(&self) -> bool {
        matches!(self.style, Style::Usual(_))
    }

    pub(crate) fn request_headers(&self) -> &[HeaderName] {
        &self.request_headers
    }

    pub(crate) fn response_headers(&self) -> &[HeaderName] {
        &self.response_headers
    }

    /// Writes a line without its end.
    pub(crate) fn write(&self, facts: &Facts<'_>, line: &mut Vec<u8>) {
        match &self.style {
            Style::Usual(colours) => write_usual(facts, *colours, line),
            Style::Text(pieces) => write_text(pieces, facts, line),
            Style::Json(fields) => write_json(fields, facts, line),
        }
    }

    /// Writes what is said of lines that were lost.
    pub(crate) fn write_notice(&self, text: &str, line: &mut Vec<u8>) {
        if let Style::Json(_) = self.style {
            write_opening("WARNING", SystemTime::now(), text.as_bytes(), line);
            line.push(b'}');
        } else {
            let _ = write!(line, "WARNING:  {text}");
        }
    }
}

// Writing to a Vec cannot fail.

fn write_usual(facts: &Facts<'_>, colours: Colours, line: &mut Vec<u8>) {
    let (code, reason) = facts.status();
    let Ink { level, bold, status, plain } = if colours == Colours::On { Ink::of(code) } else { Ink::NONE };
    let _ = write!(line, "{level}INFO{plain}:     ");
    facts.peer.client.write_escaped(line);
    let _ = write!(line, " - \"{bold}");
    match facts.kind() {
        Kind::Http => {
            write_request(facts, escape::plain, line);
            let _ = write!(line, "{plain}\" {status}{code} {reason}{plain}");
        }
        Kind::WebSocket => {
            line.extend_from_slice(b"WebSocket ");
            facts.target().iter().flatten().for_each(|part| escape::plain(part.as_bytes(), line));
            let _ = match (code, facts.version()) {
                (101, _) | (200, Some("2")) => write!(line, "{plain}\" [accepted]"),
                _ => write!(line, "{plain}\" {code}"),
            };
        }
    }
    if let Some(trace) = facts.trace {
        let _ = write!(line, " request_id={}", trace.id());
        if let Some(parent) = trace.parent() {
            let _ = write!(line, " traceparent={parent}");
        }
    }
}

/// Method, target and protocol, or a dash for a head that could not be read.
fn write_request(facts: &Facts<'_>, escaped: fn(&[u8], &mut Vec<u8>), line: &mut Vec<u8>) {
    let (Some(method), Some(target), Some(version)) = (facts.method(), facts.target(), facts.version())
    else {
        line.extend_from_slice(NONE.as_bytes());
        return;
    };
    let _ = write!(line, "{method} ");
    for part in target {
        escaped(part.as_bytes(), line);
    }
    let _ = write!(line, " HTTP/{version}");
}

fn write_text(pieces: &[Piece], facts: &Facts<'_>, line: &mut Vec<u8>) {
    for piece in pieces {
        match piece {
            Piece::Literal(text) => line.extend_from_slice(text.as_bytes()),
            Piece::Field(field) => match field.of(facts) {
                Value::Absent => line.extend_from_slice(NONE.as_bytes()),
                Value::Number(number) => line.extend_from_slice(number.as_bytes()),
                Value::Text(text) => escape::plain(text, line),
                Value::Made(text) => escape::plain(&text, line),
            },
        }
    }
}

fn write_json(fields: &[(String, Field)], facts: &Facts<'_>, line: &mut Vec<u8>) {
    let mut message = Vec::new();
    let _ = write!(message, "{} - \"", facts.peer.client);
    write_request(facts, |text, message| message.extend_from_slice(text), &mut message);
    let _ = write!(message, "\" {}", facts.status().0);
    write_opening("INFO", facts.time, &message, line);
    for (key, field) in fields {
        line.push(b',');
        escape::json(key.as_bytes(), line);
        line.push(b':');
        match field.of(facts) {
            Value::Absent => line.extend_from_slice(b"null"),
            Value::Number(number) => line.extend_from_slice(number.as_bytes()),
            Value::Text(text) => escape::json(text, line),
            Value::Made(text) => escape::json(&text, line),
        }
    }
    line.push(b'}');
}

/// The members that every object has, as the server's own lines have them.
fn write_opening(level: &str, time: SystemTime, message: &[u8], line: &mut Vec<u8>) {
    let time = timestamp::utc(time);
    let _ = write!(line, r#"{{"time":"{time}","level":"{level}","logger":"bridgehead.access","message":"#);
    escape::json(message, line);
}

impl Field {
    fn of<'a>(self, facts: &'a Facts<'_>) -> Value<'a> {
        let text = |text: Option<&'a str>| text.map_or(Value::Absent, |text| Value::Text(text.as_bytes()));
        let made = |text: Option<String>| text.map_or(Value::Absent, |text| Value::Made(text.into_bytes()));
        let header = |value: Option<&'a HeaderValue>| {
            value.map_or(Value::Absent, |value| Value::Text(value.as_bytes()))
        };
        match self {
            Self::BytesIn => Value::Number(facts.bytes_in().to_string()),
            Self::BytesOut => Value::Number(facts.bytes_out().to_string()),
            Self::Client => made(Some(facts.peer.client.to_string())),
            Self::Duration => facts
                .duration()
                .map_or(Value::Absent, |duration| Value::Number(format!("{:.6}", duration.as_secs_f64()))),
            Self::Method => text(facts.method()),
            Self::Protocol => made(facts.version().map(|version| format!("HTTP/{version}"))),
            Self::RequestId => text(facts.trace.map(|trace| trace.id())),
            Self::Status => Value::Number(facts.status().0.to_string()),
            Self::Target => made(facts.target().map(|target| target.concat())),
            Self::Time => made(Some(timestamp::utc(facts.time))),
            Self::Traceparent => text(facts.trace.and_then(|trace| trace.parent())),
            Self::RequestHeader(index) => header(facts.request_header(index)),
            Self::ResponseHeader(index) => header(facts.response_header(index)),
        }
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
