//! The handshake of a WebSocket: whether it is in order, and the answer. Over HTTP/2, whether it is one is
//! `stream_websocket`'s.
//!
//! Not whether it is welcome, which is the application's to say; so is whether its `Origin` is.
//!
//! Invariant: what is in order is answered by the application, what is not never reaches it.

use bridgehead_asgi::{Acceptance, is_token};
use bridgehead_websocket::{Agreement, Deflation, Memory};
use http::header::{
    CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT as ACCEPT,
    SEC_WEBSOCKET_EXTENSIONS as EXTENSIONS, SEC_WEBSOCKET_KEY as KEY, SEC_WEBSOCKET_PROTOCOL as PROTOCOL,
    SEC_WEBSOCKET_VERSION as VERSION, TRANSFER_ENCODING, UPGRADE,
};
use http::{Method, Response, StatusCode, Version, request};
use sha1_smol::Sha1;

use crate::config::WebSockets;
use crate::refusal::Refusal;

/// RFC 6455 §1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A handshake that is in order.
#[derive(Debug)]
pub(crate) struct Handshake {
    /// Of HTTP/1.1.
    accept: Option<HeaderValue>,
    /// What the client offers, in its order.
    pub(crate) subprotocols: Vec<String>,
    /// How messages may be compressed.
    pub(crate) agreed: Option<Agreement>,
}

/// Whether a request asks for a WebSocket: the connection is to be upgraded, and to that.
pub(crate) fn is_asked_for(head: &request::Parts) -> bool {
    lists(&head.headers, &CONNECTION, b"upgrade") && lists(&head.headers, &UPGRADE, b"websocket")
}

/// Judges a request that asks for one.
pub(crate) fn judge(head: &request::Parts) -> Result<Handshake, Refusal> {
    let framed = head.headers.contains_key(TRANSFER_ENCODING)
        || head.headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0");
    if head.method != Method::GET || head.version != Version::HTTP_11 || framed {
        return Err(Refusal::BadUpgrade);
    }
    if only(&head.headers, &VERSION).is_none_or(|version| version != "13") {
        return Err(Refusal::UnknownWebSocket);
    }
    let key =
        only(&head.headers, &KEY).filter(|key| is_key(key.as_bytes())).ok_or(Refusal::BadWebSocketKey)?;
    Ok(Handshake {
        accept: Some(accept_of(key.as_bytes())),
        subprotocols: subprotocols(&head.headers)?,
        agreed: bridgehead_websocket::agree(&head.headers),
    })
}

/// Judges a stream of HTTP/2 that asks for one, by RFC 8441.
pub(crate) fn judge_stream(head: &request::Parts) -> Result<Handshake, Refusal> {
    if only(&head.headers, &VERSION).is_none_or(|version| version != "13") {
        return Err(Refusal::OtherWebSocket);
    }
    Ok(Handshake {
        accept: None,
        subprotocols: subprotocols(&head.headers)?,
        agreed: bridgehead_websocket::agree(&head.headers),
    })
}

impl Handshake {
    /// What messages are compressed with, if that is wanted and there is memory for it; the answer says so.
    pub(crate) fn agree(&mut self, settings: WebSockets, memory: &Memory) -> Option<Deflation> {
        let agreed = self.agreed.take_if(|_| settings.deflate);
        let deflation = agreed.and_then(|agreed| Deflation::new(agreed, memory));
        self.agreed = agreed.filter(|_| deflation.is_some());
        deflation
    }

    /// The answer that accepts it in HTTP/1.1.
    pub(crate) fn answer(mut self, acceptance: Acceptance) -> Response<()> {
        let accept = self.accept.take();
        let mut response = self.answer_stream(acceptance);
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.extend(accept.map(|accept| (ACCEPT, accept)));
        response
    }

    /// The answer that accepts it in HTTP/2.
    pub(crate) fn answer_stream(self, acceptance: Acceptance) -> Response<()> {
        let mut response = Response::new(());
        *response.headers_mut() = acceptance.headers;
        let headers = response.headers_mut();
        if let Some(subprotocol) = acceptance.subprotocol {
            headers.insert(PROTOCOL, subprotocol);
        }
        if let Some(agreed) = self.agreed {
            headers.insert(EXTENSIONS, agreed.answer());
        }
        response
    }
}

/// A header's value, if it is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut all = headers.get_all(name).iter();
    all.next().filter(|_| all.next().is_none())
}

fn members<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    let values = headers.get_all(name).iter();
    values.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
}

fn lists(headers: &HeaderMap, name: &HeaderName, token: &[u8]) -> bool {
    members(headers, name).any(|member| member.eq_ignore_ascii_case(token))
}

/// One header or several, with commas or without: one list.
fn subprotocols(headers: &HeaderMap) -> Result<Vec<String>, Refusal> {
    members(headers, &PROTOCOL)
        .filter(|member| !member.is_empty())
        .map(|member| {
            let word = std::str::from_utf8(member).ok().filter(|_| is_token(member));
            word.map(str::to_owned).ok_or(Refusal::BadSubprotocol)
        })
        .collect()
}

/// Sixteen bytes in base64.
fn is_key(key: &[u8]) -> bool {
    key.len() == 24 && key.ends_with(b"==") && key[..22].iter().all(|byte| ALPHABET.contains(byte))
}

fn accept_of(key: &[u8]) -> HeaderValue {
    let mut hash = Sha1::from(key);
    hash.update(GUID);
    // Base64 is ASCII.
    HeaderValue::from_str(&base64(&hash.digest().bytes())).unwrap_or(HeaderValue::from_static(""))
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let [a, b, c] = group.map(u32::from);
        let bits = a << 16 | b << 8 | c;
        for place in 0..4 {
            let index = (bits >> (18 - 6 * place)) as usize & 63;
            text.push(if place <= chunk.len() { char::from(ALPHABET[index]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn parts(change: impl FnOnce(&mut Request<()>)) -> request::Parts {
        let mut request = Request::new(());
        let headers = request.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("WebSocket"));
        headers.insert(KEY, HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ=="));
        headers.insert(VERSION, HeaderValue::from_static("13"));
        change(&mut request);
        request.into_parts().0
    }

    fn verdict(change: impl FnOnce(&mut Request<()>)) -> Option<Refusal> {
        judge(&parts(change)).err()
    }

    fn add(name: HeaderName, value: &'static str) -> impl FnOnce(&mut Request<()>) {
        move |request| {
            request.headers_mut().append(name, HeaderValue::from_static(value));
        }
    }

    #[test]
    fn the_answer_is_that_of_the_rfc() {
        let handshake = judge(&parts(|_| ())).expect("it is in order");
        assert_eq!(handshake.accept.as_ref().expect("a digest"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(base64(b""), "");
        assert_eq!(base64(b"a"), "YQ==");
        assert_eq!(base64(b"ab"), "YWI=");
    }

    #[test]
    fn only_what_names_both_is_a_handshake() {
        assert!(is_asked_for(&parts(|_| ())));
        assert!(!is_asked_for(&parts(|request| drop(request.headers_mut().remove(CONNECTION)))));
        assert!(!is_asked_for(&parts(|request| {
            request.headers_mut().insert(UPGRADE, HeaderValue::from_static("h2c"));
        })));
    }

    #[test]
    fn what_is_not_in_order_is_refused() {
        assert_eq!(verdict(|_| ()), None);
        assert_eq!(verdict(|request| *request.method_mut() = Method::POST), Some(Refusal::BadUpgrade));
        assert_eq!(verdict(|request| *request.version_mut() = Version::HTTP_10), Some(Refusal::BadUpgrade));
        assert_eq!(verdict(add(CONTENT_LENGTH, "0")), None);
        assert_eq!(verdict(add(CONTENT_LENGTH, "1")), Some(Refusal::BadUpgrade));
        assert_eq!(verdict(add(VERSION, "13")), Some(Refusal::UnknownWebSocket));
        assert_eq!(verdict(add(KEY, "dGhlIHNhbXBsZSBub25jZQ==")), Some(Refusal::BadWebSocketKey));
        for key in ["", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25j", "dGhlIHNhbXBsZSBub25?ZQ=="] {
            let set = |request: &mut Request<()>| {
                request.headers_mut().insert(KEY, HeaderValue::from_static(key));
            };
            assert_eq!(verdict(set), Some(Refusal::BadWebSocketKey), "{key:?}");
        }
    }

    #[test]
    fn subprotocols_are_one_list_however_they_come() {
        let head = parts(|request| {
            add(PROTOCOL, "chat , superchat,,")(request);
            add(PROTOCOL, "v2.x")(request);
        });
        assert_eq!(judge(&head).expect("in order").subprotocols, ["chat", "superchat", "v2.x"]);
        assert_eq!(verdict(add(PROTOCOL, "a b")), Some(Refusal::BadSubprotocol));
        let letters = |request: &mut Request<()>| {
            let value = HeaderValue::from_bytes(b"caf\xc3\xa9").expect("a value");
            request.headers_mut().insert(PROTOCOL, value);
        };
        assert_eq!(verdict(letters), Some(Refusal::BadSubprotocol));
    }
}
