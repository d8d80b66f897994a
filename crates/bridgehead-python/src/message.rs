//! An application's message, from a Python dictionary to what `bridgehead-asgi` judges.
//!
//! Types are checked here, order and values there. Keys that ASGI does not know are passed over, as it asks.

use std::borrow::Cow;
use std::sync::Arc;

use bridgehead_asgi::{Excerpt, HeaderCount, HttpMessage, Misuse, More, ResponseHead, add_link, add_trailer};
use bytes::Bytes;
use http::HeaderMap;
use pyo3::exceptions::{PyOSError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFrozenSet, PyInt, PyList, PyMemoryView, PySet, PyString, PyTuple,
};

use crate::file_send::{FileSend, From};
use crate::lent::Lender;
use crate::{ffi, names, raise};

/// A message that an HTTP application sent.
pub(crate) enum Message {
    Hint(HeaderMap),
    Start(ResponseHead),
    Body(Bytes, More),
    File(HttpMessage, Box<FileSend>),
    Trailers(HeaderMap, More),
}

const HINT: &str = "http.response.early_hint";
const START: &str = "http.response.start";
const BODY: &str = "http.response.body";
const PATH: &str = "http.response.pathsend";
const ZERO_COPY: &str = "http.response.zerocopysend";
const TRAILERS: &str = "http.response.trailers";

/// A file that a message brings, taken when `send()` is called: whoever sends it may close it before the `await`. What is
/// wrong with it is told at the `await`.
pub(crate) fn take_file(message: &Bound<'_, PyAny>) -> Option<Box<FileSend>> {
    let message = message.cast::<PyDict>().ok()?;
    message.get_item(intern!(message.py(), "file")).ok()??;
    let kind = message.get_item(names::kind(message.py())).ok()??;
    if kind.cast::<PyString>().ok()?.to_str().ok()? != ZERO_COPY {
        return None;
    }
    zero_copy_send(message).ok().map(Box::new)
}

/// Reads one message; its file may have been taken before.
pub(crate) fn read(
    message: &Bound<'_, PyAny>,
    file: &mut Option<Box<FileSend>>,
    lender: &Arc<Lender>,
) -> PyResult<Message> {
    let (message, kind) = kind_of(message)?;
    match HttpMessage::from_type(&kind.to_string_lossy()).map_err(raise::misuse)? {
        HttpMessage::EarlyHint => hint(message).map(Message::Hint),
        HttpMessage::Start => start(message, START).map(Message::Start),
        HttpMessage::Body => body(message, BODY, lender).map(|(body, more)| Message::Body(body, more)),
        HttpMessage::PathSend => Ok(Message::File(HttpMessage::PathSend, Box::new(path_send(message)?))),
        HttpMessage::ZeroCopySend => {
            let file = file.take().map_or_else(|| zero_copy_send(message).map(Box::new), Ok)?;
            Ok(Message::File(HttpMessage::ZeroCopySend, file))
        }
        HttpMessage::Trailers => trailers(message),
    }
}

fn hint(message: &Bound<'_, PyDict>) -> PyResult<HeaderMap> {
    let Some(links) = message.get_item(intern!(message.py(), "links"))? else {
        return Err(raise::misuse(Misuse::MissingKey { message: HINT, key: "links" }));
    };
    let refused = || wrong(HINT, "links", &links, "an iterable of bytes");
    // A text or bytes are iterable, and no list of links.
    if links.is_instance_of::<PyString>() || links.is_instance_of::<PyBytes>() {
        return Err(refused());
    }
    let mut headers = HeaderMap::new();
    let mut count = HeaderCount::default();
    for link in links.try_iter().map_err(|_| refused())? {
        let link = link?;
        let Ok(link) = link.cast::<PyBytes>() else { return Err(refused()) };
        count.spend(b"link", link.as_bytes()).map_err(raise::misuse)?;
        add_link(&mut headers, link.as_bytes()).map_err(raise::misuse)?;
    }
    Ok(headers)
}

/// A message, and the type that it names.
pub(crate) fn kind_of<'a, 'py>(
    message: &'a Bound<'py, PyAny>,
) -> PyResult<(&'a Bound<'py, PyDict>, Bound<'py, PyString>)> {
    let Ok(message) = message.cast::<PyDict>() else {
        return Err(raise::misuse(Misuse::NotADict { came: type_name(message) }));
    };
    let Some(kind) = message.get_item(names::kind(message.py()))? else {
        return Err(raise::misuse(Misuse::MissingType));
    };
    match kind.cast_into::<PyString>() {
        Ok(kind) => Ok((message, kind)),
        Err(error) => Err(wrong("message", "type", &error.into_inner(), "a str")),
    }
}

/// The start of a response, in a message of this type.
pub(crate) fn start(message: &Bound<'_, PyDict>, kind: &'static str) -> PyResult<ResponseHead> {
    let py = message.py();
    let Some(status) = message.get_item(names::status(py))? else {
        return Err(raise::misuse(Misuse::MissingKey { message: kind, key: "status" }));
    };
    if !status.is_instance_of::<PyInt>() || status.is_instance_of::<PyBool>() {
        return Err(wrong(kind, "status", &status, "an int"));
    }
    let mut head = match status.extract() {
        Ok(status) => ResponseHead::new(status).map_err(raise::misuse)?,
        // An int that fits no i64 fits no status either.
        Err(_) => return Err(raise::misuse(Misuse::BadStatus { came: digits(&status) })),
    };
    if more(message, kind, intern!(py, "trailers"), "trailers")?.follows() {
        head.promise_trailers();
    }
    if let Some(headers) = message.get_item(names::headers(py))? {
        read_headers(kind, &headers, |name, value| head.header(name, value))?;
    }
    Ok(head)
}

pub(crate) fn read_headers(
    message: &'static str,
    headers: &Bound<'_, PyAny>,
    mut add: impl FnMut(&[u8], &[u8]) -> Result<(), Misuse>,
) -> PyResult<()> {
    if headers.is_instance_of::<PyDict>() || headers.is_instance_of::<PyString>() {
        return Err(wrong(message, "headers", headers, "an iterable of pairs of bytes"));
    }
    let mut count = HeaderCount::default();
    let mut take = |pair: Bound<'_, PyAny>| {
        let (name, value) = split(message, &pair)?;
        let (name, value) = (bytes_of(message, &name)?, bytes_of(message, &value)?);
        count.spend(&name, &value).map_err(raise::misuse)?;
        add(&name, &value).map_err(raise::misuse)
    };
    if let Ok(pairs) = headers.cast_exact::<PyList>() {
        // As its iterator does, which need not be made: whatever becomes of the list meanwhile.
        let mut place = 0;
        while place < pairs.len() {
            take(pairs.get_item(place)?)?;
            place += 1;
        }
        return Ok(());
    }
    let Ok(mut pairs) = headers.try_iter() else {
        return Err(wrong(message, "headers", headers, "an iterable of pairs of bytes"));
    };
    pairs.try_for_each(|pair| take(pair?))
}

fn split<'py>(
    message: &'static str,
    pair: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
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
    // Any other iterable of two will do, unless its two are no name and value, or in no order.
    if pair.is_instance_of::<PyString>() || pair.is_instance_of::<PyDict>() || is_set(pair) {
        return Err(wrong(message, "headers", pair, "each header as a pair of bytes"));
    }
    let parts: Option<Vec<_>> =
        pair.try_iter().ok().and_then(|parts| parts.take(3).collect::<PyResult<_>>().ok());
    match parts.as_deref() {
        Some([name, value]) => Ok((name.clone(), value.clone())),
        _ => Err(wrong(message, "headers", pair, "each header as a pair of bytes")),
    }
}

fn is_set(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>()
}

/// ASGI wants bytes; ASCII text can only mean one thing, and so is taken for them.
fn bytes_of<'a>(message: &'static str, part: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = part.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    if let Ok(text) = part.cast::<PyString>()
        && let Ok(text) = text.to_str()
        && text.is_ascii()
    {
        return Ok(Cow::Borrowed(text.as_bytes()));
    }
    match other_bytes(part)? {
        Some(bytes) => Ok(Cow::Owned(bytes)),
        None => Err(wrong(message, "headers", part, "names and values as bytes, or as text of ASCII alone,")),
    }
}

/// What a bytearray, a memoryview or anything else with a buffer holds.
pub(crate) fn other_bytes(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    let py = value.py();
    if let Ok(value) = value.cast::<PyByteArray>() {
        return Ok(Some(value.to_vec()));
    }
    let view = match PyMemoryView::from(value) {
        Ok(view) => view,
        Err(error) if error.is_instance_of::<PyTypeError>(py) => return Ok(None),
        Err(error) => return Err(error),
    };
    // Whatever its items are, its bytes are what is meant; `tobytes` also takes one with gaps.
    let bytes = view.call_method0(intern!(py, "tobytes"))?;
    Ok(bytes.cast::<PyBytes>().ok().map(|bytes| bytes.as_bytes().to_vec()))
}

/// A piece of a response's body, in a message of this type.
pub(crate) fn body(
    message: &Bound<'_, PyDict>,
    kind: &'static str,
    lender: &Arc<Lender>,
) -> PyResult<(Bytes, More)> {
    let py = message.py();
    let body = match message.get_item(names::body(py))? {
        Some(body) => read_body(kind, &body, lender)?,
        None => Bytes::new(),
    };
    Ok((body, more(message, kind, names::more_body(py), "more_body")?))
}

/// A key of ASGI's that is a bool, such as `more_body`.
fn more(
    message: &Bound<'_, PyDict>,
    kind: &'static str,
    name: &Bound<'_, PyString>,
    key: &'static str,
) -> PyResult<More> {
    match message.get_item(name)? {
        None => Ok(More::Ends),
        // Numbers and None are what applications send for a bool; nothing else is.
        Some(more) if more.is_none() || more.is_instance_of::<PyInt>() => Ok(More::from(more.is_truthy()?)),
        Some(more) => Err(wrong(kind, key, &more, "a bool")),
    }
}

fn path_send(message: &Bound<'_, PyDict>) -> PyResult<FileSend> {
    let Some(path) = message.get_item(names::path(message.py()))? else {
        return Err(raise::misuse(Misuse::MissingKey { message: PATH, key: "path" }));
    };
    if !path.is_instance_of::<PyString>() {
        return Err(wrong(PATH, "path", &path, "a str"));
    }
    Ok(FileSend::path(path.extract()?))
}

fn zero_copy_send(message: &Bound<'_, PyDict>) -> PyResult<FileSend> {
    let py = message.py();
    let Some(file) = message.get_item(intern!(py, "file"))? else {
        return Err(raise::misuse(Misuse::MissingKey { message: ZERO_COPY, key: "file" }));
    };
    // The application's own errors (a file without a descriptor, one that is closed) are raised as they are.
    let is_number = file.is_instance_of::<PyInt>();
    let number = if is_number { file.clone() } else { descriptor_of(&file)? };
    let Ok(number) = number.extract() else {
        return Err(wrong(ZERO_COPY, "file", &file, "a file with a descriptor"));
    };
    let offset = size(message, intern!(py, "offset"), "offset")?;
    let position = if offset.is_none() && !is_number { position_in(&file)? } else { None };
    let count = size(message, intern!(py, "count"), "count")?;
    let more = more(message, ZERO_COPY, names::more_body(py), "more_body")?;
    let descriptor = ffi::duplicate(number).map_err(|error| match error.raw_os_error() {
        Some(libc::EBADF) => raise::misuse(Misuse::ClosedDescriptor { came: number }),
        _ => error.into(),
    })?;
    let mut sending =
        FileSend::descriptor(descriptor, offset.map_or(From::Position, From::Offset), count, more);
    if let Some(position) = position {
        sending.start_at(file.unbind(), position);
    }
    Ok(sending)
}

/// Where Python is in a file; `None` for what has no position, as a pipe.
fn position_in(file: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    let py = file.py();
    let Some(tell) = file.getattr_opt(intern!(py, "tell"))? else { return Ok(None) };
    match tell.call0() {
        Ok(position) => Ok(position.extract().ok()),
        Err(error) if error.is_instance_of::<PyOSError>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

fn descriptor_of<'py>(file: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match file.getattr_opt(intern!(file.py(), "fileno"))? {
        Some(fileno) => fileno.call0(),
        None => Err(wrong(ZERO_COPY, "file", file, "a file with a descriptor")),
    }
}

/// A number of bytes; `None` is as good as nothing.
fn size(message: &Bound<'_, PyDict>, name: &Bound<'_, PyString>, key: &'static str) -> PyResult<Option<u64>> {
    match message.get_item(name)? {
        Some(size) if !size.is_none() => match size.extract() {
            // The system counts in signed numbers.
            Ok(size) if size <= i64::MAX as u64 => Ok(Some(size)),
            _ if size.is_instance_of::<PyInt>() => {
                Err(raise::misuse(Misuse::BadSize { message: ZERO_COPY, key, came: digits(&size) }))
            }
            _ => Err(wrong(ZERO_COPY, key, &size, "a number of bytes, or None,")),
        },
        _ => Ok(None),
    }
}

fn trailers(message: &Bound<'_, PyDict>) -> PyResult<Message> {
    let py = message.py();
    let mut trailers = HeaderMap::new();
    if let Some(headers) = message.get_item(names::headers(py))? {
        read_headers(TRAILERS, &headers, |name, value| add_trailer(&mut trailers, name, value))?;
    }
    let more = more(message, TRAILERS, intern!(py, "more_trailers"), "more_trailers")?;
    Ok(Message::Trailers(trailers, more))
}

fn read_body(kind: &'static str, body: &Bound<'_, PyAny>, lender: &Arc<Lender>) -> PyResult<Bytes> {
    if let Ok(body) = body.cast::<PyBytes>() {
        return Ok(lender.lend(body));
    }
    match other_bytes(body)? {
        Some(body) => Ok(Bytes::from(body)),
        None => Err(wrong(kind, "body", body, "bytes, or an object with a buffer of them,")),
    }
}

pub(crate) fn wrong(
    message: &'static str,
    key: &'static str,
    came: &Bound<'_, PyAny>,
    due: &'static str,
) -> PyErr {
    raise::misuse(Misuse::WrongType { message, key, came: type_name(came), due })
}

/// An int as it is written; Python writes no very long ones.
pub(crate) fn digits(number: &Bound<'_, PyAny>) -> Excerpt {
    match number.str() {
        Ok(digits) => Excerpt::of(digits.to_string_lossy().as_bytes()),
        Err(_) => Excerpt::of("of thousands of digits"),
    }
}

pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> Excerpt {
    match value.get_type().name() {
        Ok(name) => Excerpt::of(name.to_string_lossy().as_bytes()),
        Err(_) => Excerpt::of("an object"),
    }
}
