//! A certificate for trying things out, signed by its own key: no client trusts it before it is told to.

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

use crate::problem::Problem;

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub struct SelfSigned {
    /// What clients are shown.
    pub certificate: String,
    /// What they are not.
    pub key: String,
}

impl std::fmt::Debug for SelfSigned {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SelfSigned").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// Makes one for these names and addresses.
///
/// # Errors
/// When one of them is no name.
pub fn self_signed(names: Vec<String>) -> Result<SelfSigned, Problem> {
    let made = || -> Result<SelfSigned, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut wanted = CertificateParams::new(names)?;
        wanted.distinguished_name = DistinguishedName::new();
        wanted.distinguished_name.push(DnType::CommonName, "bridgehead (for development)");
        let certificate = wanted.self_signed(&key)?;
        Ok(SelfSigned { certificate: certificate.pem(), key: key.serialize_pem() })
    };
    made().map_err(|error| {
        Problem::new(
            format!("no certificate can be made: {error}"),
            "give one of your own with --ssl-certfile",
        )
    })
}
