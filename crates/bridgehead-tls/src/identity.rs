//! A certificate with its key, as one file or two hold them.
//!
//! Not what the key is written in (`key`).
//!
//! Invariant: the first certificate of an identity belongs to its key.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::sign::{CertifiedKey, SigningKey};
use webpki::EndEntityCert;

use crate::key;
use crate::problem::{Problem, read};
use crate::self_signed::SelfSigned;

const CERTIFICATE: &str = "CERTIFICATE";

/// Where an identity comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// From files, which may change.
    Files(Files),
    /// Made by us, and the same until the end.
    Made(SelfSigned),
}

/// The files of one identity.
#[derive(Clone, Debug)]
pub struct Files {
    /// The server's certificate, and those that lead from it to one that clients know.
    pub certificates: PathBuf,
    /// Its key; with the certificates, if it has no file of its own.
    pub key: Option<PathBuf>,
    /// What the key is encrypted with.
    pub password: Option<String>,
    /// What names the two.
    pub options: (&'static str, &'static str),
}

/// Read, and found to fit together.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) certified: Arc<CertifiedKey>,
    /// What operators know it by.
    pub(crate) name: String,
    /// The server's certificate, as the `tls` extension has it.
    pub(crate) pem: Arc<str>,
}

impl Source {
    pub(crate) fn read(&self, provider: &CryptoProvider) -> Result<Identity, Problem> {
        match self {
            Self::Files(files) => files.read(provider),
            Self::Made(made) => identity(
                made.certificate.as_bytes(),
                made.key.as_bytes(),
                None,
                "the certificate",
                "the key",
                provider,
            ),
        }
    }
}

impl Files {
    pub(crate) fn read(&self, provider: &CryptoProvider) -> Result<Identity, Problem> {
        let certificates = read(&self.certificates, self.options.0)?;
        let name = self.certificates.display().to_string();
        let password = self.password.as_deref();
        match &self.key {
            None => identity(&certificates, &certificates, password, &name, &name, provider),
            Some(path) => {
                let key = read(path, self.options.1)?;
                identity(&certificates, &key, password, &name, &path.display().to_string(), provider)
            }
        }
    }
}

fn identity(
    certificates: &[u8],
    key: &[u8],
    password: Option<&str>,
    name: &str,
    key_name: &str,
    provider: &CryptoProvider,
) -> Result<Identity, Problem> {
    let chain = certificates_of(certificates, name)?;
    let key = key::private_key(key, password, key_name, name == key_name)?;
    if key::is_rsa_pss(&key) {
        return Err(Problem::new(
            format!("the key in {key_name} is for RSA-PSS alone, which is not taken"),
            "use a plain RSA key (`openssl genrsa`), which signs by RSA-PSS as well, ECDSA or Ed25519",
        ));
    }
    let key = provider.key_provider.load_private_key(key).map_err(|error| {
        Problem::new(
            format!("the key in {key_name} cannot be used: {error}"),
            "use RSA with 2048 bits or more, ECDSA on P-256, P-384 or P-521, or Ed25519",
        )
    })?;
    fits(&chain, &key, name, key_name)?;
    let pem = pem::encode(&pem::Pem::new(CERTIFICATE, chain[0].as_ref().to_vec()));
    Ok(Identity {
        certified: Arc::new(CertifiedKey::new(chain, key)),
        name: name.to_owned(),
        pem: pem.replace("\r\n", "\n").into(),
    })
}

/// The certificates of a file, in their order.
pub(crate) fn certificates_of(bytes: &[u8], name: &str) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let sections = sections(bytes, name)?;
    let found: Vec<_> = sections
        .into_iter()
        .filter(|section| section.tag() == CERTIFICATE)
        .map(|section| CertificateDer::from(section.into_contents()))
        .collect();
    if found.is_empty() {
        return Err(Problem::new(
            format!("{name} holds no certificate; a section `-----BEGIN CERTIFICATE-----` was due"),
            "give a PEM file; `openssl x509 -inform der -in FILE -out FILE.pem` makes one of DER",
        ));
    }
    Ok(found)
}

pub(crate) fn sections(bytes: &[u8], name: &str) -> Result<Vec<pem::Pem>, Problem> {
    pem::parse_many(bytes).map_err(|error| {
        Problem::new(
            format!("{name} is not well-formed PEM: {error}"),
            "copy the file again, whole and as text",
        )
    })
}

fn fits(
    chain: &[CertificateDer<'static>],
    key: &Arc<dyn SigningKey>,
    name: &str,
    key_name: &str,
) -> Result<(), Problem> {
    let belongs = |certificate: &CertificateDer<'static>| {
        CertifiedKey::new(vec![certificate.clone()], Arc::clone(key)).keys_match()
    };
    let Err(error) = belongs(&chain[0]) else { return Ok(()) };
    if !matches!(error, rustls::Error::InconsistentKeys(_)) {
        return Err(Problem::new(
            format!("the first certificate in {name} cannot be read: {error}"),
            "give an X.509 certificate of version 3",
        ));
    }
    if matches!(error, rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) {
        return Ok(());
    }
    match chain.iter().position(|each| belongs(each).is_ok()) {
        Some(place) => Err(Problem::new(
            format!(
                "the certificates in {name} are in the wrong order: number {} belongs to the key, number 1 was due",
                place + 1
            ),
            "put the server's own certificate first, then who signed it, and so on",
        )),
        None => Err(Problem::new(
            format!("the key in {key_name} does not belong to the certificate in {name}"),
            "give the key that the certificate was made for",
        )),
    }
}

impl Identity {
    /// Whether clients that ask for this name may be shown this certificate.
    pub(crate) fn is_for(&self, name: &str) -> bool {
        let Some(first) = self.certified.cert.first() else { return false };
        let (Ok(certificate), Ok(name)) = (EndEntityCert::try_from(first), ServerName::try_from(name)) else {
            return false;
        };
        certificate.verify_is_valid_for_subject_name(&name).is_ok()
    }
}
