//! A request's server span, from its head to the last byte of its answer, by OpenTelemetry's conventions for HTTP.
//!
//! Not how spans are exported, which is `bridgehead_otel`'s. Without a tracer none of this runs.
//!
//! Invariant: a request has one span, whatever became of it.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::SystemTime;

use bridgehead_metrics::Series;
use bridgehead_otel::{Attribute, Span, SpanContext, Tracer};
use bridgehead_proxies::{Peer, Scheme};
use http::header::{HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, StatusCode, Uri, Version, request};

use crate::refusal::Refusal;
use crate::story::{Handed, Story};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// A longer one is not passed on: W3C wants that much to be kept.
const LONGEST_STATE: usize = 512;
/// Of a text that the client may make long.
const LONGEST_TEXT: usize = 1024;

/// A span that has begun, and is kept.
#[derive(Debug)]
pub(crate) struct Traced {
    tracer: Arc<Tracer>,
    story: Arc<Story>,
    parent: Option<NonZeroU64>,
    began: SystemTime,
    method: Method,
    target: Uri,
    version: Version,
    host: Option<HeaderValue>,
    agent: Option<HeaderValue>,
    status: Option<StatusCode>,
    refusal: Option<Refusal>,
}

/// Whose part a request is, and which span it is itself.
pub(crate) fn handed(tracer: &Tracer, headers: &HeaderMap) -> Handed {
    let parent = parent(headers);
    let states = headers.get_all(TRACESTATE).iter().filter_map(|state| state.to_str().ok());
    let state = if parent.is_some() { states.collect::<Vec<_>>().join(",") } else { String::new() };
    Handed {
        context: tracer.begin(parent),
        state: Some(state).filter(|state| state.len() <= LONGEST_STATE).unwrap_or_default(),
    }
}

/// Has the application's head name our span as the parent, as a proxy that makes spans would: what reads the head, and
/// not the context that it runs in, then makes its spans below ours.
pub(crate) fn name_in(headers: &mut HeaderMap, span: &Handed) {
    let named = HeaderValue::try_from(span.context.to_string());
    // A head that has no room for one more keeps what it has.
    if named.is_ok_and(|named| headers.try_insert(TRACEPARENT, named).is_ok()) && span.state.is_empty() {
        headers.remove(TRACESTATE);
    }
}

fn parent(headers: &HeaderMap) -> Option<SpanContext> {
    let mut named = headers.get_all(TRACEPARENT).iter();
    match (named.next(), named.next()) {
        (Some(parent), None) => SpanContext::parse(parent.to_str().ok()?),
        // Nobody knows which of several.
        _ => None,
    }
}

impl Traced {
    /// Present if its span is kept.
    pub(crate) fn begin(
        tracer: &Arc<Tracer>,
        head: &request::Parts,
        story: &Arc<Story>,
    ) -> Option<Box<Self>> {
        story.span().filter(|span| span.context.sampled)?;
        Some(Box::new(Self {
            tracer: Arc::clone(tracer),
            story: Arc::clone(story),
            parent: parent(&head.headers).map(|parent| parent.span),
            began: SystemTime::now(),
            method: head.method.clone(),
            target: head.uri.clone(),
            version: head.version,
            host: head.headers.get(HOST).cloned(),
            agent: head.headers.get(USER_AGENT).cloned(),
            status: None,
            refusal: None,
        }))
    }

    /// It gets no answer of the application.
    pub(crate) fn refused(&mut self, refusal: Refusal) {
        self.refusal = Some(refusal);
    }

    /// The head of its answer is complete.
    pub(crate) fn answered(&mut self, status: StatusCode) {
        self.status = Some(status);
    }

    /// It is over.
    pub(crate) fn end(self, peer: &Peer) {
        let Some(span) = self.story.span() else { return };
        let known = Series::method_of(self.method.as_str());
        let named = if known == "_OTHER" { "HTTP" } else { known };
        let name = match self.story.route() {
            Some(route) => format!("{named} {route}"),
            None => named.to_owned(),
        };
        self.tracer.end(Span {
            context: span.context,
            parent: self.parent,
            state: span.state.clone(),
            name,
            began: self.began,
            ended: SystemTime::now(),
            attributes: self.attributes(known, peer),
            failed: self.status.is_some_and(|status| status.is_server_error()),
        });
    }

    fn attributes(&self, method: &str, peer: &Peer) -> Vec<(&'static str, Attribute)> {
        let mut all = vec![
            ("http.request.method", text(method)),
            ("url.scheme", text(if peer.scheme == Scheme::Https { "https" } else { "http" })),
            ("url.path", text(self.target.path())),
            ("network.protocol.version", text(bridgehead_asgi::http_version(self.version))),
        ];
        let client = peer.client.to_string();
        if let Some((address, port)) = client.rsplit_once(':') {
            all.push(("client.address", text(address.trim_matches(['[', ']']))));
            all.extend(port.parse().ok().map(|port| ("client.port", Attribute::Number(port))));
        }
        let original = (method == "_OTHER").then_some(("http.request.method_original", self.method.as_str()));
        let texts = [
            original,
            self.target.query().map(|query| ("url.query", query)),
            self.agent
                .as_ref()
                .and_then(|agent| agent.to_str().ok())
                .map(|agent| ("user_agent.original", agent)),
            self.story.route().map(|route| ("http.route", route)),
        ];
        all.extend(texts.into_iter().flatten().map(|(name, words)| (name, text(words))));
        let host = self.target.authority().map(|host| host.as_str());
        if let Some(host) = host.or_else(|| self.host.as_ref().and_then(|host| host.to_str().ok())) {
            all.extend(address(host));
        }
        if let Some(status) = self.status {
            all.push(("http.response.status_code", Attribute::Number(status.as_u16().into())));
            if status.is_server_error() {
                let named = |refusal: Refusal| text(refusal.name());
                all.push(("error.type", self.refusal.map_or_else(|| text(status.as_str()), named)));
            }
        }
        all
    }
}

/// Under which name we were asked.
fn address(host: &str) -> Vec<(&'static str, Attribute)> {
    let Ok(host) = host.parse::<http::uri::Authority>() else { return Vec::new() };
    let port = host.port_u16().map(|port| ("server.port", Attribute::Number(port.into())));
    std::iter::once(("server.address", text(host.host()))).chain(port).collect()
}

fn text(words: &str) -> Attribute {
    let end = (0..=LONGEST_TEXT.min(words.len())).rev().find(|at| words.is_char_boundary(*at));
    Attribute::Text(words[..end.unwrap_or_default()].to_owned())
}
