//! Messages of a `websocket` scope, from Python's dictionaries and to them.
//!
//! Types are checked here, order and values in `bridgehead-asgi`. What is read as in an `http` scope is `message`'s.

use std::sync::Arc;

use bridgehead_asgi::{Acceptance, Closing, Misuse, More, ResponseHead, WebSocketMessage};
use bridgehead_net::Ending;
use bridgehead_websocket::Message;
use bytes::Bytes;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyString};

use crate::lent::Lender;
use crate::message::{self, digits, other_bytes, wrong};
use crate::{names, raise};

/// What an application sent.
pub(crate) enum Sent {
    Accept(Acceptance),
    Message(Message),
    Close(Closing),
    DenialStart(ResponseHead),
    DenialBody(Bytes, More),
}

const ACCEPT: &str = "websocket.accept";
const SEND: &str = "websocket.send";
const CLOSE: &str = "websocket.close";

/// Reads one message.
pub(crate) fn read(came: &Bound<'_, PyAny>, lender: &Arc<Lender>) -> PyResult<Sent> {
    let (came, kind) = message::kind_of(came)?;
    let kind = WebSocketMessage::from_type(&kind.to_string_lossy()).map_err(raise::misuse)?;
    match kind {
        WebSocketMessage::Send => payload(came, lender).map(Sent::Message),
        WebSocketMessage::Accept => accept(came).map(Sent::Accept),
        WebSocketMessage::Close => close(came).map(Sent::Close),
        WebSocketMessage::DenialStart => message::start(came, kind.name()).map(Sent::DenialStart),
        WebSocketMessage::DenialBody => {
            message::body(came, kind.name(), lender).map(|(body, more)| Sent::DenialBody(body, more))
        }
    }
}

fn accept(came: &Bound<'_, PyDict>) -> PyResult<Acceptance> {
    let py = came.py();
    let mut acceptance = Acceptance::default();
    if let Some(subprotocol) = given(came, intern!(py, "subprotocol"))? {
        let Ok(word) = subprotocol.cast::<PyString>() else {
            return Err(wrong(ACCEPT, "subprotocol", &subprotocol, "a str, or None,"));
        };
        acceptance.choose(&utf8(ACCEPT, "subprotocol", word)?).map_err(raise::misuse)?;
    }
    if let Some(headers) = given(came, names::headers(py))? {
        message::read_headers(ACCEPT, &headers, |name, value| acceptance.header(name, value))?;
    }
    Ok(acceptance)
}

fn payload(came: &Bound<'_, PyDict>, lender: &Arc<Lender>) -> PyResult<Message> {
    let py = came.py();
    match (given(came, names::text(py))?, given(came, names::bytes(py))?) {
        (Some(text), None) => match text.cast::<PyString>() {
            Ok(text) => Ok(Message::Text(utf8(SEND, "text", text)?.into())),
            Err(_) => Err(wrong(SEND, "text", &text, "a str, or None,")),
        },
        (None, Some(bytes)) => match bytes.cast::<PyBytes>() {
            Ok(bytes) => Ok(Message::Binary(lender.lend(bytes))),
            Err(_) => match other_bytes(&bytes)? {
                Some(bytes) => Ok(Message::Binary(bytes.into())),
                None => {
                    Err(wrong(SEND, "bytes", &bytes, "bytes, or an object with a buffer of them, or None,"))
                }
            },
        },
        (Some(_), Some(_)) => Err(raise::misuse(Misuse::OnePayload { came: "both" })),
        (None, None) => Err(raise::misuse(Misuse::OnePayload { came: "neither" })),
    }
}

fn close(came: &Bound<'_, PyDict>) -> PyResult<Closing> {
    let py = came.py();
    let code = match given(came, intern!(py, "code"))? {
        None => None,
        Some(code) if !code.is_instance_of::<PyInt>() || code.is_instance_of::<PyBool>() => {
            return Err(wrong(CLOSE, "code", &code, "an int"));
        }
        Some(code) => match code.extract() {
            Ok(code) => Some(code),
            Err(_) => return Err(raise::misuse(Misuse::BadCloseCode { came: digits(&code) })),
        },
    };
    let reason = match given(came, intern!(py, "reason"))? {
        None => String::new(),
        Some(reason) => match reason.cast::<PyString>() {
            Ok(reason) => utf8(CLOSE, "reason", reason)?,
            Err(_) => return Err(wrong(CLOSE, "reason", &reason, "a str, or None,")),
        },
    };
    Closing::new(code, reason).map_err(raise::misuse)
}

/// A key's value; `None` is as good as no key.
fn given<'py>(came: &Bound<'py, PyDict>, key: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(came.get_item(key)?.filter(|value| !value.is_none()))
}

fn utf8(message: &'static str, key: &'static str, text: &Bound<'_, PyString>) -> PyResult<String> {
    match text.to_str() {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(raise::misuse(Misuse::LoneSurrogate { message, key })),
    }
}

/// `websocket.connect`.
pub(crate) fn connect(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let message = PyDict::new(py);
    message.set_item(names::kind(py), intern!(py, "websocket.connect"))?;
    Ok(message.into_any().unbind())
}

/// `websocket.receive`.
pub(crate) fn receive(py: Python<'_>, came: &Message) -> PyResult<Py<PyAny>> {
    let message = PyDict::new(py);
    message.set_item(names::kind(py), names::websocket_receive(py))?;
    match came {
        Message::Text(text) => message.set_item(names::text(py), PyString::from_bytes(py, text)?)?,
        Message::Binary(bytes) => message.set_item(names::bytes(py), PyBytes::new(py, bytes))?,
    }
    Ok(message.into_any().unbind())
}

/// `websocket.disconnect`.
pub(crate) fn disconnect(py: Python<'_>, ending: &Ending) -> PyResult<Py<PyAny>> {
    let message = PyDict::new(py);
    message.set_item(names::kind(py), intern!(py, "websocket.disconnect"))?;
    message.set_item(intern!(py, "code"), ending.code)?;
    message.set_item(intern!(py, "reason"), &ending.reason)?;
    Ok(message.into_any().unbind())
}
