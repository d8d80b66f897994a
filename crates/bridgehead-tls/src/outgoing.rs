//! What a client of ours makes handshakes with: whom it believes, and what it shows.
//!
//! Not for the server's own clients (`clients`). Whom the machine believes is found as OpenSSL would: `SSL_CERT_FILE` and
//! `SSL_CERT_DIR` go before the system's own.
//!
//! Invariant: whoever answers is judged; there is no way to take anybody.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, RootCertStore};

use crate::identity::{Files, certificates_of};
use crate::problem::{Problem, read};

/// Each with what named it, for whoever reads what is wrong.
#[derive(Clone, Debug, Default)]
pub struct Outgoing {
    /// Who may have signed the server's certificate; `None` for those whom the machine believes.
    pub authorities: Option<(PathBuf, &'static str)>,
    /// What is shown to a server that asks.
    pub identity: Option<Files>,
}

impl Outgoing {
    /// Reads the files.
    ///
    /// # Errors
    /// When there is nobody to believe, or the identity does not fit together.
    pub fn load(&self) -> Result<Arc<ClientConfig>, Problem> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Problem::new(format!("TLS cannot be spoken: {error}"), "report this as a bug"))?
            .with_root_certificates(self.roots()?);
        let config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(files) => {
                let identity = files.read(&provider)?;
                let shown = SingleCertAndKey::from(identity.certified);
                builder.with_client_cert_resolver(Arc::new(shown))
            }
        };
        Ok(Arc::new(config))
    }

    fn roots(&self) -> Result<RootCertStore, Problem> {
        let mut roots = RootCertStore::empty();
        match &self.authorities {
            Some((path, option)) => {
                for certificate in certificates_of(&read(path, option)?, &path.display().to_string())? {
                    roots.add(certificate).map_err(|error| {
                        Problem::new(
                            format!("a certificate in {} cannot be an authority: {error}", path.display()),
                            "give X.509 certificates of version 3",
                        )
                    })?;
                }
            }
            None => {
                // Some systems have a few that nobody can read.
                roots.add_parsable_certificates(system()?);
            }
        }
        Ok(roots)
    }
}

fn system() -> Result<Vec<CertificateDer<'static>>, Problem> {
    let found = rustls_native_certs::load_native_certs();
    if !found.certs.is_empty() {
        return Ok(found.certs);
    }
    let why: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
    Err(Problem::new(
        format!(
            "this machine believes no authority: {}",
            if why.is_empty() { "there is none".to_owned() } else { why.join("; ") }
        ),
        "install its certificates (Debian: ca-certificates), or name a file of them with SSL_CERT_FILE",
    ))
}
