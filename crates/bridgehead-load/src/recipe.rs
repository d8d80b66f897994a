//! A scenario, made ready: requests come out of it with as little work as their templates ask for.
//!
//! Not a chooser: `desk` says whose turn it is.
//!
//! Invariant: what was accepted once gives a valid request each time, since templates fill in nothing but letters,
//! digits and dashes.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

use crate::expect::Expect;
use crate::payload::Payload;
use crate::plan::{Plan, PlanError, Scenario, Think, Upload};
use crate::random::Random;
use crate::template::Template;

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
    path: Text<Uri>,
    headers: HeaderMap,
    varying: Vec<(HeaderName, Template)>,
    upload: Made,
}

/// A part of a request: the same each time, or filled anew.
#[derive(Debug)]
enum Text<T> {
    Constant(T),
    Varying(Template),
}

#[derive(Debug)]
enum Made {
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
            path: path(&scenario.path).map_err(wrong)?,
            headers: HeaderMap::new(),
            varying: Vec::new(),
            upload: made(&scenario.upload).map_err(wrong)?,
        };
        for (name, value) in &scenario.headers {
            recipe.add(name, value).map_err(wrong)?;
        }
        if !recipe.headers.contains_key(HOST) && !recipe.varying.iter().any(|(name, _)| name == HOST) {
            recipe.add("host", &plan.authority.replace('{', "{{")).map_err(wrong)?;
        }
        if !plan.keep_alive {
            recipe.headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(recipe)
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
                uri(template.fill(number, random)).expect("it was judged with other letters and digits")
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

    fn payload(&self, number: u64, random: &mut Random) -> Payload {
        match &self.upload {
            Made::Whole(Text::Constant(bytes)) => Payload::Whole(bytes.clone()),
            Made::Whole(Text::Varying(template)) => Payload::Whole(template.fill(number, random).into()),
            Made::Stream { size, chunk, every, declared } => {
                Payload::stream(*size, chunk.clone(), *every, *declared)
            }
        }
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
