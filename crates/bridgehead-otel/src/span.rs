//! A server span that is over, and what it becomes on the wire.
//!
//! Not which attributes one has: the network says.

use std::num::NonZeroU64;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::context::SpanContext;
use crate::message::{self, AnyValue, KeyValue, Status, Value};

/// `SPAN_KIND_SERVER`.
const SERVER: i32 = 2;
/// `STATUS_CODE_ERROR`.
const ERROR: i32 = 2;
/// That it is known whether the parent is another process's, and that it is.
const REMOTE: u32 = 0x300;

/// What an attribute says.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// In words.
    Text(String),
    /// A number.
    Number(i64),
}

/// A span that is over.
#[derive(Clone, Debug)]
pub struct Span {
    /// Itself.
    pub context: SpanContext,
    /// Whose part it is.
    pub parent: Option<NonZeroU64>,
    /// `tracestate`, as it came.
    pub state: String,
    /// `GET /items/{id}`.
    pub name: String,
    /// When it began.
    pub began: SystemTime,
    /// When it ended.
    pub ended: SystemTime,
    /// By OpenTelemetry's names.
    pub attributes: Vec<(&'static str, Attribute)>,
    /// Whether it is a fault of the server's.
    pub failed: bool,
}

impl Span {
    pub(crate) fn message(self) -> message::Span {
        let nanos = |time: SystemTime| {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
        };
        message::Span {
            trace_id: self.context.trace.0.get().to_be_bytes().to_vec(),
            span_id: self.context.span.get().to_be_bytes().to_vec(),
            trace_state: self.state,
            parent_span_id: self.parent.map_or_else(Vec::new, |parent| parent.get().to_be_bytes().to_vec()),
            name: self.name,
            kind: SERVER,
            start_time_unix_nano: nanos(self.began),
            end_time_unix_nano: nanos(self.ended),
            attributes: self
                .attributes
                .into_iter()
                .map(|(key, value)| key_value(key.to_owned(), value))
                .collect(),
            status: self.failed.then_some(Status { code: ERROR }),
            flags: u32::from(self.context.sampled) | if self.parent.is_some() { REMOTE } else { 0 },
        }
    }
}

pub(crate) fn key_value(key: String, value: Attribute) -> KeyValue {
    let value = match value {
        Attribute::Text(text) => Value::Text(text),
        Attribute::Number(number) => Value::Number(number),
    };
    KeyValue { key, value: Some(AnyValue { value: Some(value) }) }
}
