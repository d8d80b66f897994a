//! A scenario, made ready: requests come out of it with as little work as their templates ask for.
//!
//! Not a chooser: `desk` says whose turn it is.
//!
//! Invariant: what was accepted once gives a valid request each time, since templates fill in nothing but letters,
//! digits and dashes.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING, UPGRADE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

use crate::expect::Expect;
use crate::payload::Payload;
use crate::plan::{Plan, PlanError, Protocol, Scenario, Think, Upload};
use crate::random::Random;
use crate::template::Template;
use tungstenite::Message;

/// Written by hyper, from what really is sent.
const FRAMING: [HeaderName; 4] = [CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION, UPGRADE];

/// How to make the requests of one scenario.
#[derive(Debug)]
pub(crate) struct Recipe {
    pub(crate) name: String,
    pub(crate) weight: u64,
    pub(crate) think: Option<Think>,
    pub(crate) expect: Expect,
    method: Method,
    /// HTTP/2 names it in each request.
    origin: Option<Origin>,
    path: Text<Uri>,
    headers: HeaderMap,
    varying: Vec<(HeaderName, Template)>,
    upload: Made,
}

/// Where a request goes, as HTTP/2 says it.
#[derive(Debug, Clone)]
struct Origin {
    scheme: Scheme,
    authority: Authority,
}

/// A part of a request: the same each time, or filled anew.
#[derive(Debug)]
enum Text<T> {
    Constant(T),
    Varying(Template),
}

#[derive(Debug)]
enum Made {
    Message(Text<Message>),
    Whole(Text<Bytes>),
    Stream { size: u64, chunk: Bytes, every: std::time::Duration, declared: bool },
}

impl Recipe {
    /// Understands a scenario of a plan.
    pub(crate) fn new(scenario: &Scenario, plan: &Plan) -> Result<Self, PlanError> {
        let wrong = |reason: String| PlanError::Scenario { scenario: scenario.name.clone(), reason };
        let method = method(&scenario.method).map_err(wrong)?;
        let mut recipe = Self {
            name: scenario.name.clone(),
            weight: u64::from(scenario.weight),
            think: scenario.think,
            expect: scenario.expect.clone(),
            method,
            origin: None,
            path: path(&scenario.path).map_err(wrong)?,
            headers: HeaderMap::new(),
            varying: Vec::new(),
            upload: match plan.protocol {
                Protocol::WebSocket => Made::Message(message(&scenario.upload).map_err(wrong)?),
                Protocol::Http1 | Protocol::Http2 { .. } => made(&scenario.upload).map_err(wrong)?,
            },
        };
        for (name, value) in &scenario.headers {
            recipe.add(name, value).map_err(wrong)?;
        }
        if !recipe.headers.contains_key(HOST) && !recipe.varying.iter().any(|(name, _)| name == HOST) {
            recipe.add("host", &plan.authority.replace('{', "{{")).map_err(wrong)?;
        }
        match plan.protocol {
            Protocol::Http1 if !plan.keep_alive => {
                recipe.headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Protocol::Http2 { .. } => recipe.name_origin(plan).map_err(wrong)?,
            Protocol::Http1 | Protocol::WebSocket => {}
        }
        Ok(recipe)
    }

    /// The Host header becomes a part of what HTTP/2 asks for.
    fn name_origin(&mut self, plan: &Plan) -> Result<(), String> {
        if self.varying.iter().any(|(name, _)| name == HOST) {
            return Err("a Host with templates cannot be sent by HTTP/2".to_owned());
        }
        if self.headers.contains_key("keep-alive") || self.headers.contains_key("proxy-connection") {
            return Err("HTTP/2 knows no header that is about the connection".to_owned());
        }
        if self.headers.get(TE).is_some_and(|value| value != "trailers") {
            return Err("by HTTP/2 TE is `trailers` or nothing".to_owned());
        }
        let host = self.headers.remove(HOST).expect("each request has a Host");
        let authority = Authority::try_from(host.as_bytes()).map_err(|_| format!("{host:?} is no host"))?;
        let scheme = if plan.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP };
        let origin = Origin { scheme, authority };
        if let Text::Constant(uri) = &mut self.path {
            *uri = origin.with(std::mem::take(uri));
        }
        self.origin = Some(origin);
        Ok(())
    }

    fn add(&mut self, name: &str, value: &str) -> Result<(), String> {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("{name:?} is not the name of a header"))?;
        if FRAMING.contains(&name) {
            return Err(format!("header {name} cannot be set: it is written from what is really sent"));
        }
        let template = Template::parse(value)?;
        let shown = HeaderValue::from_str(&template.fill(0, &mut Random::new(0, 0)))
            .map_err(|_| format!("header {name} holds a character that none may: {value:?}"))?;
        if template.constant().is_some() {
            self.headers.append(name, shown);
        } else {
            self.varying.push((name, template));
        }
        Ok(())
    }

    /// The request with this number.
    pub(crate) fn request(&self, number: u64, random: &mut Random) -> Request<Payload> {
        let mut request = Request::new(self.payload(number, random));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = match &self.path {
            Text::Constant(uri) => uri.clone(),
            Text::Varying(template) => {
                let uri =
                    uri(template.fill(number, random)).expect("it was judged with other letters and digits");
                match &self.origin {
                    Some(origin) => origin.with(uri),
                    None => uri,
                }
            }
        };
        let mut headers = self.headers.clone();
        for (name, template) in &self.varying {
            let value = HeaderValue::from_maybe_shared(Bytes::from(template.fill(number, random)))
                .expect("it was judged with other letters and digits");
            headers.append(name, value);
        }
        *request.headers_mut() = headers;
        request
    }

    /// The message with this number, of a plan of WebSockets.
    pub(crate) fn message(&self, number: u64, random: &mut Random) -> Message {
        match &self.upload {
            Made::Message(Text::Constant(message)) => message.clone(),
            Made::Message(Text::Varying(template)) => Message::text(template.fill(number, random)),
            Made::Whole(_) | Made::Stream { .. } => unreachable!("recipes are made for what is spoken"),
        }
    }

    fn payload(&self, number: u64, random: &mut Random) -> Payload {
        match &self.upload {
            Made::Whole(Text::Constant(bytes)) => Payload::Whole(bytes.clone()),
            Made::Whole(Text::Varying(template)) => Payload::Whole(template.fill(number, random).into()),
            // The request is the handshake.
            Made::Message(_) => Payload::Whole(Bytes::new()),
            Made::Stream { size, chunk, every, declared } => {
                Payload::stream(*size, chunk.clone(), *every, *declared)
            }
        }
    }
}

impl Origin {
    fn with(&self, path: Uri) -> Uri {
        let mut parts = path.into_parts();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        Uri::from_parts(parts).expect("a scheme, an authority and a path make a URI")
    }
}

fn method(written: &str) -> Result<Method, String> {
    match Method::from_bytes(written.as_bytes()) {
        Ok(Method::CONNECT) => Err("CONNECT asks for a tunnel, which is no load".to_owned()),
        Ok(method) => Ok(method),
        Err(_) => Err(format!("{written:?} is not a method")),
    }
}

fn path(written: &str) -> Result<Text<Uri>, String> {
    if !written.starts_with('/') || written.contains('#') {
        return Err(format!("path {written:?} has to begin with / and to end before any #"));
    }
    let template = Template::parse(written)?;
    // The `http` crate lets UTF-8 through, which no server has to understand.
    let shown = if written.is_ascii() { uri(template.fill(0, &mut Random::new(0, 0))).ok() } else { None };
    let shown =
        shown.ok_or_else(|| format!("path {written:?} holds a character that has to be written as %XX"))?;
    Ok(match template.constant() {
        Some(_) => Text::Constant(shown),
        None => Text::Varying(template),
    })
}

fn uri(path: String) -> Result<Uri, http::Error> {
    let path = PathAndQuery::from_maybe_shared(Bytes::from(path))?;
    Ok(Uri::from(path))
}

/// A text is sent as text, bytes as they are; what is not said is a greeting.
fn message(upload: &Upload) -> Result<Text<Message>, String> {
    Ok(match upload {
        Upload::Nothing => Text::Constant(Message::text("hello")),
        Upload::Bytes(bytes) => Text::Constant(Message::Binary(bytes.clone())),
        Upload::Template(text) => {
            let template = Template::parse(text)?;
            match template.constant() {
                Some(text) => Text::Constant(Message::text(text)),
                None => Text::Varying(template),
            }
        }
        Upload::Stream { .. } => return Err("a message is sent whole, so there is no upload".to_owned()),
    })
}

fn made(upload: &Upload) -> Result<Made, String> {
    Ok(match upload {
        Upload::Nothing => Made::Whole(Text::Constant(Bytes::new())),
        Upload::Bytes(bytes) => Made::Whole(Text::Constant(bytes.clone())),
        Upload::Template(text) => {
            let template = Template::parse(text)?;
            Made::Whole(match template.constant() {
                Some(text) => Text::Constant(Bytes::from(text.to_owned())),
                None => Text::Varying(template),
            })
        }
        Upload::Stream { chunk: 0, .. } => {
            return Err("a chunk of an upload has at least one byte".to_owned());
        }
        Upload::Stream { size, chunk, every, declared } => {
            let chunk = Bytes::from(vec![b'x'; *chunk]);
            Made::Stream { size: *size, chunk, every: *every, declared: *declared }
        }
    })
}
