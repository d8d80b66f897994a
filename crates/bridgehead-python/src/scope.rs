//! A request's head as the dictionary that ASGI wants.
//!
//! Built in the drain, on the loop's thread; what is the same for every request of a worker is in a template.
//!
//! Invariant: nothing in a scope is shared with another request but immutable objects.

use std::borrow::Cow;

use bridgehead_asgi::{Fate, decode_path, encode_path, http_version};
use bridgehead_net::{RequestHead, Trace};
use bridgehead_proxies::{Peer, Scheme};
use http::header::{HOST, HeaderMap, HeaderName, HeaderValue, TE};
use http::{Method, Version};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::kept::{Addresses, HeaderNames, Secured, method};
use crate::names;

/// What all scopes of a worker have in common.
pub(crate) struct Template {
    scope: Py<PyDict>,
    asgi: Py<PyDict>,
    root_path: String,
    /// As it is in a target.
    raw_root_path: String,
    /// The lifespan's state, once there is one: copied for each request, shallowly.
    state: Option<Py<PyDict>>,
    extensions: Extensions,
    addresses: Addresses,
    secured: Secured,
    header_names: HeaderNames,
}

/// What a worker offers beyond ASGI's own messages.
pub(crate) struct Extensions {
    /// `http.response.pathsend`.
    pub(crate) paths: bool,
    /// `http.response.early_hint` in HTTP/1.1 as well.
    pub(crate) http1_hints: bool,
    /// `bridgehead.shutdown`: what says that the end has begun.
    pub(crate) shutdown: Py<PyDict>,
}

impl Extensions {
    fn to_dict<'py>(
        &self,
        py: Python<'py>,
        head: &RequestHead,
        trailers: Fate,
    ) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        all.set_item(intern!(py, "http.response.zerocopysend"), PyDict::new(py))?;
        if self.paths {
            all.set_item(intern!(py, "http.response.pathsend"), PyDict::new(py))?;
        }
        let hints = head.version >= Version::HTTP_2 || self.http1_hints && head.version == Version::HTTP_11;
        if hints {
            all.set_item(intern!(py, "http.response.early_hint"), PyDict::new(py))?;
        }
        // HEAD's answer has no body that they could follow.
        if trailers == Fate::Written && head.method != Method::HEAD {
            all.set_item(intern!(py, "http.response.trailers"), PyDict::new(py))?;
        }
        all.set_item(intern!(py, "bridgehead.shutdown"), self.shutdown.bind(py).copy()?)?;
        Ok(all)
    }

    fn to_websocket_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        all.set_item(intern!(py, "websocket.http.response"), PyDict::new(py))?;
        all.set_item(intern!(py, "bridgehead.shutdown"), self.shutdown.bind(py).copy()?)?;
        Ok(all)
    }
}

/// Whether a client takes trailers, in a framing that has a place for them.
pub(crate) fn trailers(head: &RequestHead) -> Fate {
    let takes = |value: &HeaderValue| {
        value
            .as_bytes()
            .split(|byte| *byte == b',')
            .any(|token| token.trim_ascii().eq_ignore_ascii_case(b"trailers"))
    };
    if head.version >= Version::HTTP_11 && head.headers.get_all(TE).iter().any(takes) {
        Fate::Written
    } else {
        Fate::Dropped
    }
}

impl Template {
    pub(crate) fn new(
        py: Python<'_>,
        root_path: String,
        state: Option<Py<PyDict>>,
        extensions: Extensions,
    ) -> PyResult<Self> {
        let asgi = PyDict::new(py);
        asgi.set_item("version", bridgehead_asgi::ASGI_VERSION)?;
        asgi.set_item("spec_version", bridgehead_asgi::SPEC_VERSION)?;
        let scope = PyDict::new(py);
        scope.set_item(names::kind(py), "http")?;
        // Each has its place in the copies, which then need not grow.
        scope.set_item(names::asgi(py), py.None())?;
        scope.set_item(names::http_version(py), intern!(py, "1.1"))?;
        scope.set_item(names::method(py), py.None())?;
        scope.set_item(intern!(py, "scheme"), Scheme::Http.as_str())?;
        scope.set_item(names::path(py), py.None())?;
        scope.set_item(names::raw_path(py), py.None())?;
        scope.set_item(names::query_string(py), py.None())?;
        scope.set_item(intern!(py, "root_path"), &root_path)?;
        for key in [names::headers(py), names::client(py), names::server(py), intern!(py, "extensions")] {
            scope.set_item(key, py.None())?;
        }
        Ok(Self {
            scope: scope.unbind(),
            asgi: asgi.unbind(),
            raw_root_path: encode_path(&root_path),
            root_path,
            state,
            extensions,
            addresses: Addresses::new(),
            secured: Secured::new(),
            header_names: HeaderNames::new(py),
        })
    }

    pub(crate) fn offers_paths(&self) -> bool {
        self.extensions.paths
    }

    /// The scope of one request.
    pub(crate) fn scope<'py>(
        &self,
        py: Python<'py>,
        head: &RequestHead,
        peer: &Peer,
        trailers: Fate,
    ) -> PyResult<Bound<'py, PyDict>> {
        let scope = self.common(py, head, peer)?;
        scope.set_item(names::method(py), method(py, &head.method))?;
        if peer.scheme != Scheme::Http {
            scope.set_item(intern!(py, "scheme"), peer.scheme.as_str())?;
        }
        self.set_extensions(&scope, self.extensions.to_dict(py, head, trailers)?, peer)?;
        Ok(scope)
    }

    /// The scope of one WebSocket.
    pub(crate) fn websocket_scope<'py>(
        &self,
        py: Python<'py>,
        head: &RequestHead,
        peer: &Peer,
        subprotocols: &[String],
    ) -> PyResult<Bound<'py, PyDict>> {
        let scope = self.common(py, head, peer)?;
        scope.set_item(names::kind(py), intern!(py, "websocket"))?;
        scope.del_item(names::method(py))?;
        scope.set_item(intern!(py, "scheme"), peer.scheme.of_websocket().as_str())?;
        scope.set_item(intern!(py, "subprotocols"), PyList::new(py, subprotocols)?)?;
        self.set_extensions(&scope, self.extensions.to_websocket_dict(py)?, peer)?;
        Ok(scope)
    }

    /// What is offered to one request, and what its connection's TLS came to.
    fn set_extensions<'py>(
        &self,
        scope: &Bound<'py, PyDict>,
        all: Bound<'py, PyDict>,
        peer: &Peer,
    ) -> PyResult<()> {
        let py = scope.py();
        if let Some(facts) = &peer.tls {
            all.set_item(intern!(py, "tls"), self.secured.object(py, facts)?)?;
        }
        scope.set_item(intern!(py, "extensions"), all)
    }

    /// What scopes of every type have.
    fn common<'py>(&self, py: Python<'py>, head: &RequestHead, peer: &Peer) -> PyResult<Bound<'py, PyDict>> {
        let scope = self.scope.bind(py).copy()?;
        scope.set_item(names::asgi(py), self.asgi.bind(py).copy()?)?;
        if head.version != Version::HTTP_11 {
            scope.set_item(names::http_version(py), http_version(head.version))?;
        }
        self.set_target(&scope, head, peer.prefix())?;
        scope.set_item(names::headers(py), self.headers(py, head, peer.host())?)?;
        scope.set_item(names::client(py), self.addresses.object(py, &peer.client)?)?;
        scope.set_item(names::server(py), self.addresses.object(py, &peer.server)?)?;
        let mut state = self.state.as_ref().map(|state| state.bind(py).copy()).transpose()?;
        if let Some(trace) = &head.trace {
            state = Some(named(py, trace, state)?);
        }
        if let Some(state) = state {
            scope.set_item(names::state(py), state)?;
        }
        Ok(scope)
    }

    /// The target, below the root path as a proxy would have cut it off, or below what a proxy says to have cut off.
    fn set_target(
        &self,
        scope: &Bound<'_, PyDict>,
        head: &RequestHead,
        prefix: Option<&str>,
    ) -> PyResult<()> {
        let py = scope.py();
        let raw = head.target.path();
        let path = decode_path(raw.as_bytes());
        let root = prefix.map_or(Cow::Borrowed(&*self.root_path), |prefix| decode_path(prefix.as_bytes()));
        if prefix.is_some() {
            scope.set_item(intern!(py, "root_path"), root.as_ref())?;
        }
        // `*` is the whole server, which no proxy has cut anything off.
        if root.is_empty() || raw == "*" {
            scope.set_item(names::path(py), path.as_ref())?;
            scope.set_item(names::raw_path(py), PyBytes::new(py, raw.as_bytes()))?;
        } else {
            let raw = format!("{}{raw}", prefix.unwrap_or(&self.raw_root_path));
            scope.set_item(names::path(py), format!("{root}{path}"))?;
            scope.set_item(names::raw_path(py), PyBytes::new(py, raw.as_bytes()))?;
        }
        let query = head.target.query().unwrap_or_default();
        scope.set_item(names::query_string(py), PyBytes::new(py, query.as_bytes()))
    }

    /// Names are lower-case, values and their order as they came. The host of an absolute target takes the Host header's
    /// place, as RFC 9112 section 3.2.2 asks; the one that a trusted proxy names takes the place of both.
    fn headers<'py>(
        &self,
        py: Python<'py>,
        head: &RequestHead,
        named: Option<&[u8]>,
    ) -> PyResult<Bound<'py, PyList>> {
        let target = || head.target.authority().map(|authority| authority.as_str().as_bytes());
        let host = named.or_else(target);
        let pair = |(name, value): (&HeaderName, &HeaderValue)| {
            let value = match host {
                Some(host) if name == HOST => host,
                _ => value.as_bytes(),
            };
            (self.header_names.object(py, name), PyBytes::new(py, value))
        };
        // Those of HTTP/2 lie wherever: of several with one name it is known how they came, which is all that matters.
        let list = if head.headers.len() == head.headers.keys_len() || head.version >= Version::HTTP_2 {
            PyList::new(py, head.headers.iter().map(pair))?
        } else {
            PyList::new(py, as_received(&head.headers).into_iter().map(pair))?
        };
        if let Some(host) = host
            && !head.headers.contains_key(HOST)
        {
            list.insert(0, (PyBytes::new(py, b"host"), PyBytes::new(py, host)))?;
        }
        Ok(list)
    }
}

/// A state that says what the request is called.
fn named<'py>(
    py: Python<'py>,
    trace: &Trace,
    state: Option<Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let state = state.unwrap_or_else(|| PyDict::new(py));
    state.set_item(intern!(py, "request_id"), trace.id())?;
    if let Some(parent) = trace.parent() {
        state.set_item(intern!(py, "traceparent"), parent)?;
    }
    Ok(state)
}

/// A map keeps the values of one name together. Those of one head lie in one buffer, so where they lie tells how they
/// came.
fn as_received(headers: &HeaderMap) -> Vec<(&HeaderName, &HeaderValue)> {
    let mut pairs: Vec<_> = headers.iter().collect();
    pairs.sort_by_key(|(_, value)| value.as_bytes().as_ptr());
    pairs
}
