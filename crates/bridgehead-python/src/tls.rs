//! Certificates and keys as Python hands them over, and what is wrong with them.
//!
//! Not when they are read again: `certificates.py` knows.

use std::path::PathBuf;
use std::sync::Arc;

use bridgehead_tls::{
    Clients, Credentials, Demand, Files, Policy, Problem, SelfSigned, Settings, Source, Version,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Who names the files of an identity.
const OPTIONS: (&str, &str) = ("--ssl-certfile", "--ssl-keyfile");

/// Of ALPN, the best first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// `bridgehead.certificates.Wanted`.
#[derive(FromPyObject)]
struct Wanted {
    identities: Vec<(PathBuf, Option<PathBuf>)>,
    password: Option<String>,
    made: Option<(String, String)>,
    demand: u8,
    authorities: Option<PathBuf>,
    revocations: Vec<PathBuf>,
    versions: Vec<String>,
    ciphers: Option<String>,
    http2: bool,
}

/// What handshakes are made with.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Tls(Arc<Credentials>);

impl Tls {
    pub(crate) fn credentials(&self) -> Arc<Credentials> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl Tls {
    /// Reads the files; `StartError` says what is wrong with them.
    #[new]
    fn new(py: Python<'_>, wanted: Wanted) -> PyResult<Self> {
        let settings = wanted.settings()?;
        let loaded = py.detach(|| Credentials::load(settings));
        loaded.map(|credentials| Self(Arc::new(credentials))).map_err(|problem| start_error(py, problem))
    }

    /// Reads them again. When something is wrong with them, all is as it was.
    fn reload(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.reload()).map_err(|problem| start_error(py, problem))
    }
}

impl Wanted {
    fn settings(self) -> PyResult<Settings> {
        let Self { identities, password, made, demand, authorities, revocations, versions, ciphers, http2 } =
            self;
        let files = |(certificates, key)| {
            Source::Files(Files { certificates, key, password: password.clone(), options: OPTIONS })
        };
        let mut identities: Vec<_> = identities.into_iter().map(files).collect();
        identities.extend(made.map(|(certificate, key)| Source::Made(SelfSigned { certificate, key })));
        let demand = match demand {
            0 => Demand::None,
            1 => Demand::Optional,
            _ => Demand::Required,
        };
        let versions = versions.iter().map(|version| match version.as_str() {
            "1.2" => Ok(Version::Tls12),
            "1.3" => Ok(Version::Tls13),
            other => Err(PyValueError::new_err(format!("TLS has no version {other:?}"))),
        });
        Ok(Settings {
            identities,
            clients: Clients { demand, authorities, revocations },
            policy: Policy { versions: versions.collect::<PyResult<_>>()?, ciphers },
            // Whoever agrees on HTTP/2 begins with its preface, which is known by itself.
            protocols: PROTOCOLS[usize::from(!http2)..].iter().map(|name| name.to_vec()).collect(),
        })
    }
}

/// A certificate and its key for these names, in PEM.
#[pyfunction]
pub(crate) fn self_signed(py: Python<'_>, names: Vec<String>) -> PyResult<(String, String)> {
    let made =
        py.detach(|| bridgehead_tls::self_signed(names)).map_err(|problem| start_error(py, problem))?;
    Ok((made.certificate, made.key))
}

pub(crate) fn start_error(py: Python<'_>, Problem { what, next }: Problem) -> PyErr {
    let error = py.import("bridgehead.errors").and_then(|errors| errors.getattr("StartError"));
    error.and_then(|error| error.call1((what, next))).map_or_else(|error| error, PyErr::from_value)
}
