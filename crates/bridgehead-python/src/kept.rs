//! Python objects for values that come again and again: addresses, names of headers, methods, what TLS came to.
//!
//! Requests share immutable objects alone, and have copies of the others. Bounded: a value whose place is taken takes it
//! over.
//!
//! Invariant: what is given for a value equals what would have been made for it.

use std::net::SocketAddr;
use std::sync::Arc;

use bridgehead_proxies::Address;
use bridgehead_tls::Facts;
use http::{HeaderName, Method};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::under_gil::UnderGil;

/// A power of two: so many connections in a row have an address of their own here.
const ADDRESSES: usize = 1024;

/// So many certificates, or connections whose clients have shown one, are known at a time.
const SECURED: usize = 64;

/// A power of two, well above the number of names.
const NAMES: usize = 128;

/// What clients send, nearly all of it.
const USUAL: &[&str] = &[
    "accept",
    "accept-encoding",
    "accept-language",
    "authorization",
    "cache-control",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "dnt",
    "expect",
    "forwarded",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "origin",
    "pragma",
    "priority",
    "range",
    "referer",
    "sec-ch-ua",
    "sec-ch-ua-mobile",
    "sec-ch-ua-platform",
    "sec-fetch-dest",
    "sec-fetch-mode",
    "sec-fetch-site",
    "sec-fetch-user",
    "sec-websocket-extensions",
    "sec-websocket-key",
    "sec-websocket-protocol",
    "sec-websocket-version",
    "te",
    "traceparent",
    "transfer-encoding",
    "upgrade",
    "upgrade-insecure-requests",
    "user-agent",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-real-ip",
    "x-request-id",
    "x-requested-with",
];

/// Whose addresses were asked for last.
pub(crate) struct Addresses {
    slots: UnderGil<Vec<Option<Kept>>>,
}

struct Kept {
    of: SocketAddr,
    object: Py<PyAny>,
}

impl Addresses {
    pub(crate) fn new() -> Self {
        Self { slots: UnderGil::new((0..ADDRESSES).map(|_| None).collect()) }
    }

    /// `(host, port)`, `(path, None)` for our end of a Unix socket, `None` for a client without a name.
    pub(crate) fn object<'py>(&self, py: Python<'py>, address: &Address) -> PyResult<Bound<'py, PyAny>> {
        Ok(match address {
            Address::Inet(address) => return self.inet(py, *address),
            Address::Forwarded { host, port } => (host, port).into_pyobject(py)?.into_any(),
            Address::Unix(Some(path)) => (path, py.None()).into_pyobject(py)?.into_any(),
            Address::Unix(None) => py.None().into_bound(py),
        })
    }

    fn inet<'py>(&self, py: Python<'py>, address: SocketAddr) -> PyResult<Bound<'py, PyAny>> {
        let mut slots = self.slots.lock(py);
        let slot = &mut slots[usize::from(address.port()) % ADDRESSES];
        if let Some(kept) = slot
            && kept.of == address
        {
            return Ok(kept.object.bind(py).clone());
        }
        let host = PyString::new(py, &address.ip().to_string());
        let object = (host, address.port()).into_pyobject(py)?.into_any();
        *slot = Some(Kept { of: address, object: object.clone().unbind() });
        Ok(object)
    }
}

/// What handshakes came to last: the texts of certificates are long, and the same for most connections.
pub(crate) struct Secured {
    slots: UnderGil<Vec<Option<Told>>>,
}

/// ASGI's `tls` extension but for its list, which is kept as what cannot be changed.
struct Told {
    of: Arc<Facts>,
    object: Py<PyDict>,
    chain: Py<PyTuple>,
}

impl Secured {
    pub(crate) fn new() -> Self {
        Self { slots: UnderGil::new((0..SECURED).map(|_| None).collect()) }
    }

    /// As ASGI's `tls` extension has it, for one request.
    pub(crate) fn object<'py>(&self, py: Python<'py>, facts: &Arc<Facts>) -> PyResult<Bound<'py, PyDict>> {
        let mut slots = self.slots.lock(py);
        let slot = &mut slots[place_of(facts)];
        let told = match slot {
            Some(told) if is_same(&told.of, facts) => told,
            slot => slot.insert(Told::new(py, facts)?),
        };
        let all = told.object.bind(py).copy()?;
        all.set_item(intern!(py, "client_cert_chain"), PyList::new(py, told.chain.bind(py))?)?;
        Ok(all)
    }
}

impl Told {
    /// A client whose certificate does not hold has no connection, and so no error.
    fn new(py: Python<'_>, facts: &Arc<Facts>) -> PyResult<Self> {
        let all = PyDict::new(py);
        all.set_item(intern!(py, "server_cert"), &*facts.server_cert)?;
        // Its place in the copies.
        all.set_item(intern!(py, "client_cert_chain"), py.None())?;
        all.set_item(intern!(py, "client_cert_name"), facts.client_name.as_deref())?;
        all.set_item(intern!(py, "client_cert_error"), py.None())?;
        all.set_item(intern!(py, "tls_version"), facts.version)?;
        all.set_item(intern!(py, "cipher_suite"), facts.cipher)?;
        let chain = PyTuple::new(py, &facts.client_chain)?.unbind();
        Ok(Self { of: Arc::clone(facts), object: all.unbind(), chain })
    }
}

/// One place for all connections with a certificate of ours whose clients have shown none, else one for each.
fn place_of(facts: &Arc<Facts>) -> usize {
    let address = if facts.client_chain.is_empty() {
        Arc::as_ptr(&facts.server_cert).addr() + usize::from(facts.cipher)
    } else {
        Arc::as_ptr(facts).addr()
    };
    // Allocations begin at multiples of 16.
    (address / 16 + address) % SECURED
}

fn is_same(one: &Arc<Facts>, other: &Arc<Facts>) -> bool {
    let nobodys = one.client_chain.is_empty() && other.client_chain.is_empty();
    Arc::ptr_eq(one, other)
        || nobodys
            && Arc::ptr_eq(&one.server_cert, &other.server_cert)
            && (one.version, one.cipher) == (other.version, other.cipher)
}

/// The names that most headers have.
pub(crate) struct HeaderNames {
    slots: Vec<Option<(&'static str, Py<PyBytes>)>>,
}

impl HeaderNames {
    pub(crate) fn new(py: Python<'_>) -> Self {
        let mut slots: Vec<_> = (0..NAMES).map(|_| None).collect();
        for name in USUAL {
            slots[place(name)] = Some((*name, PyBytes::new(py, name.as_bytes()).unbind()));
        }
        Self { slots }
    }

    pub(crate) fn object<'py>(&self, py: Python<'py>, name: &HeaderName) -> Bound<'py, PyBytes> {
        let name = name.as_str();
        match &self.slots[place(name)] {
            Some((kept, object)) if *kept == name => object.bind(py).clone(),
            _ => PyBytes::new(py, name.as_bytes()),
        }
    }
}

/// Where a name is, if it is kept. A name is never empty.
fn place(name: &str) -> usize {
    let name = name.as_bytes();
    // Found by trying: no two of the usual names share a place.
    let byte = |at: usize| usize::from(name.get(at).copied().unwrap_or_default());
    let length = name.len();
    (length * 77 + byte(0) * 64 + byte(length.saturating_sub(4)) * 18 + byte(length / 2) * 26) % NAMES
}

/// A method's name.
pub(crate) fn method<'py>(py: Python<'py>, method: &Method) -> Bound<'py, PyString> {
    let usual = match *method {
        Method::GET => intern!(py, "GET"),
        Method::POST => intern!(py, "POST"),
        Method::PUT => intern!(py, "PUT"),
        Method::PATCH => intern!(py, "PATCH"),
        Method::DELETE => intern!(py, "DELETE"),
        Method::HEAD => intern!(py, "HEAD"),
        Method::OPTIONS => intern!(py, "OPTIONS"),
        _ => return PyString::new(py, method.as_str()),
    };
    usual.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_names_have_places_of_their_own() {
        let mut places: Vec<_> = USUAL.iter().map(|name| place(name)).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), USUAL.len());
    }
}
