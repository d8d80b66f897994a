//! Whom to ask for a certificate, who may have signed it, and which were called back.
//!
//! Invariant: a certificate that a client shows and that does not hold ends its handshake, whether one was asked for or
//! demanded.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateRevocationListDer;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use crate::identity::{certificates_of, sections};
use crate::problem::{Problem, read};

/// Whether a client shows a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// It is not asked.
    None,
    /// If it has one.
    Optional,
    /// Or its handshake fails.
    Required,
}

/// Whom to ask, and whom to believe.
#[derive(Clone, Debug)]
pub struct Clients {
    /// Whether one is asked for.
    pub demand: Demand,
    /// Who may have signed it.
    pub authorities: Option<PathBuf>,
    /// Which do not count any more.
    pub revocations: Vec<PathBuf>,
}

impl Clients {
    pub(crate) fn verifier(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, Problem> {
        if self.demand == Demand::None {
            return Ok(WebPkiClientVerifier::no_client_auth());
        }
        let Some(path) = &self.authorities else {
            return Err(Problem::new(
                "clients are asked for certificates, and nobody is known who may have signed them",
                "name their authorities' file with --ssl-ca-certs, or set --ssl-cert-reqs 0",
            ));
        };
        let mut roots = RootCertStore::empty();
        for certificate in certificates_of(&read(path, "--ssl-ca-certs")?, &path.display().to_string())? {
            roots.add(certificate).map_err(|error| {
                Problem::new(
                    format!("a certificate in {} cannot be an authority: {error}", path.display()),
                    "give X.509 certificates of version 3",
                )
            })?;
        }
        let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        let revocations = self.lists()?;
        if !revocations.is_empty() {
            // Authorities without a list have called nothing back.
            builder = builder.with_crls(revocations).allow_unknown_revocation_status();
        }
        if self.demand == Demand::Optional {
            builder = builder.allow_unauthenticated();
        }
        builder.build().map_err(|error| {
            Problem::new(
                format!("clients' certificates cannot be judged: {error}"),
                "check --ssl-ca-certs and --ssl-crl",
            )
        })
    }

    fn lists(&self) -> Result<Vec<CertificateRevocationListDer<'static>>, Problem> {
        let mut found = Vec::new();
        for path in &self.revocations {
            let before = found.len();
            let bytes = read(path, "--ssl-crl")?;
            for section in sections(&bytes, &path.display().to_string())? {
                if section.tag() == "X509 CRL" {
                    found.push(CertificateRevocationListDer::from(section.into_contents()));
                }
            }
            if found.len() == before {
                return Err(Problem::new(
                    format!(
                        "{} holds no revocation list; a section `-----BEGIN X509 CRL-----` was due",
                        path.display()
                    ),
                    "give a PEM file; `openssl crl -inform der -in FILE -out FILE.pem` makes one of DER",
                ));
            }
        }
        Ok(found)
    }
}
