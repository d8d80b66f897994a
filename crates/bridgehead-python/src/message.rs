//! An application's message, from a Python dictionary to what `bridgehead-asgi` judges.
//!
//! Types are checked here, order and values there. Keys that ASGI does not know are passed over, as it asks.

use std::borrow::Cow;

use bridgehead_asgi::{Excerpt, HttpMessage, Misuse, More, ResponseHead};
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyInt, PyList, PyMemoryView, PyString, PyTuple};

use crate::names;
use crate::raise;

/// A message that an HTTP application sent.
pub(crate) enum Message {
    Start(ResponseHead),
    Body(Bytes, More),
}

const START: &str = "http.response.start";
const BODY: &str = "http.response.body";

/// Reads one message.
pub(crate) fn read(message: &Bound<'_, PyAny>) -> PyResult<Message> {
    let py = message.py();
    let Ok(message) = message.cast::<PyDict>() else {
        return Err(raise::misuse(Misuse::NotADict { came: type_name(message) }));
    };
    let Some(kind) = message.get_item(names::kind(py))? else {
        return Err(raise::misuse(Misuse::MissingType));
    };
    let Ok(kind) = kind.cast::<PyString>() else {
        return Err(wrong("message", "type", &kind, "a str"));
    };
    match HttpMessage::from_type(&kind.to_string_lossy()).map_err(raise::misuse)? {
        HttpMessage::Start => start(message).map(Message::Start),
        HttpMessage::Body => body(message),
    }
}

fn start(message: &Bound<'_, PyDict>) -> PyResult<ResponseHead> {
    let py = message.py();
    let Some(status) = message.get_item(names::status(py))? else {
        return Err(raise::misuse(Misuse::MissingKey { message: START, key: "status" }));
    };
    if !status.is_instance_of::<PyInt>() || status.is_instance_of::<PyBool>() {
        return Err(wrong(START, "status", &status, "an int"));
    }
    // An int that fits no i64 fits no status either.
    let mut head = ResponseHead::new(status.extract().unwrap_or(i64::MAX)).map_err(raise::misuse)?;
    if let Some(headers) = message.get_item(names::headers(py))? {
        read_headers(&headers, &mut head)?;
    }
    Ok(head)
}

fn read_headers(headers: &Bound<'_, PyAny>, head: &mut ResponseHead) -> PyResult<()> {
    if headers.is_instance_of::<PyDict>() || headers.is_instance_of::<PyString>() {
        return Err(wrong(START, "headers", headers, "an iterable of pairs of bytes"));
    }
    let Ok(pairs) = headers.try_iter() else {
        return Err(wrong(START, "headers", headers, "an iterable of pairs of bytes"));
    };
    for pair in pairs {
        let pair = pair?;
        let (name, value) = split(&pair)?;
        head.header(&bytes_of(&name)?, &bytes_of(&value)?).map_err(raise::misuse)?;
    }
    Ok(())
}

fn split<'py>(pair: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    if let Ok(pair) = pair.cast::<PyTuple>()
        && pair.len() == 2
    {
        return Ok((pair.get_item(0)?, pair.get_item(1)?));
    }
    if let Ok(pair) = pair.cast::<PyList>()
        && pair.len() == 2
    {
        return Ok((pair.get_item(0)?, pair.get_item(1)?));
    }
    // Any other iterable of two will do.
    let parts: Option<Vec<_>> =
        pair.try_iter().ok().and_then(|parts| parts.take(3).collect::<PyResult<_>>().ok());
    match parts.as_deref() {
        Some([name, value]) => Ok((name.clone(), value.clone())),
        _ => Err(wrong(START, "headers", pair, "each header as a pair of bytes")),
    }
}

fn bytes_of<'a>(part: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = part.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    match other_bytes(part)? {
        Some(bytes) => Ok(Cow::Owned(bytes)),
        None => Err(wrong(START, "headers", part, "names and values as bytes")),
    }
}

/// What a bytearray or a memoryview holds.
fn other_bytes(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if let Ok(value) = value.cast::<PyByteArray>() {
        return Ok(Some(value.to_vec()));
    }
    if !value.is_instance_of::<PyMemoryView>() {
        return Ok(None);
    }
    // Whatever its items are, its bytes are what is meant; `tobytes` also takes one with gaps.
    let bytes = value.call_method0("tobytes")?;
    Ok(bytes.cast::<PyBytes>().ok().map(|bytes| bytes.as_bytes().to_vec()))
}

fn body(message: &Bound<'_, PyDict>) -> PyResult<Message> {
    let py = message.py();
    let body = match message.get_item(names::body(py))? {
        Some(body) => read_body(&body)?,
        None => Bytes::new(),
    };
    let more = match message.get_item(names::more_body(py))? {
        None => More::Ends,
        // Numbers and None are what applications send for a bool; nothing else is.
        Some(more) if more.is_none() || more.is_instance_of::<PyInt>() => More::from(more.is_truthy()?),
        Some(more) => return Err(wrong(BODY, "more_body", &more, "a bool")),
    };
    Ok(Message::Body(body, more))
}

fn read_body(body: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if let Ok(body) = body.cast::<PyBytes>() {
        return Ok(Bytes::copy_from_slice(body.as_bytes()));
    }
    match other_bytes(body)? {
        Some(body) => Ok(Bytes::from(body)),
        None => Err(wrong(BODY, "body", body, "bytes, a bytearray or a memoryview")),
    }
}

fn wrong(message: &'static str, key: &'static str, came: &Bound<'_, PyAny>, due: &'static str) -> PyErr {
    raise::misuse(Misuse::WrongType { message, key, came: type_name(came), due })
}

fn type_name(value: &Bound<'_, PyAny>) -> Excerpt {
    match value.get_type().name() {
        Ok(name) => Excerpt::of(name.to_string_lossy().as_bytes()),
        Err(_) => Excerpt::of("an object"),
    }
}
