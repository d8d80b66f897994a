//! What a handshake came to, as ASGI's `tls` extension tells it.

use std::fmt::Write;
use std::sync::Arc;

use rustls::ServerConnection;
use rustls::pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::der::{Decode, Encode};

use crate::credentials::Served;

/// The names that RFC 4514 has for what a part of a name is of; any other is written by its number, and its value in hex.
const KINDS: [&str; 9] = ["CN", "L", "ST", "O", "OU", "C", "STREET", "DC", "UID"];

/// What applications are told of their connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The certificate that the client was shown, in PEM.
    pub server_cert: Arc<str>,
    /// What the client showed, in PEM, its own first. It was found good.
    pub client_chain: Vec<String>,
    /// Its name, as RFC 4514 writes it.
    pub client_name: Option<String>,
    /// 0x0303 or 0x0304.
    pub version: u16,
    /// As IANA numbers them.
    pub cipher: u16,
}

impl Facts {
    /// Of a connection whose handshake is over.
    #[must_use]
    pub fn of(connection: &ServerConnection, served: &Served) -> Self {
        let chain = connection.peer_certificates().unwrap_or_default();
        Self {
            server_cert: Arc::clone(&served.identity.pem),
            client_chain: chain.iter().map(in_pem).collect(),
            client_name: chain.first().and_then(subject),
            version: connection.protocol_version().map_or(0, u16::from),
            cipher: connection.negotiated_cipher_suite().map_or(0, |suite| u16::from(suite.suite())),
        }
    }
}

fn in_pem(certificate: &CertificateDer<'_>) -> String {
    pem::encode(&pem::Pem::new("CERTIFICATE", certificate.to_vec())).replace("\r\n", "\n")
}

fn subject(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let parts = certificate.tbs_certificate.subject.0;
    let mut name = String::new();
    for (place, part) in parts.iter().rev().enumerate() {
        name.push_str(if place == 0 { "" } else { "," });
        for (place, attribute) in part.0.iter().enumerate() {
            name.push_str(if place == 0 { "" } else { "+" });
            // It comes escaped; what it is of is written by more names than RFC 4514 has. Behind a number stands what the
            // certificate has for a value, as it is encoded there.
            let written = attribute.to_string();
            let (kind, value) = written.split_once('=')?;
            if KINDS.contains(&kind) {
                write!(name, "{kind}={value}").ok()?;
            } else {
                write!(name, "{}=#", attribute.oid).ok()?;
                attribute.value.to_der().ok()?.iter().try_for_each(|byte| write!(name, "{byte:02x}")).ok()?;
            }
        }
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    #[test]
    fn what_rfc_4514_has_no_name_for_is_written_by_its_number() {
        let mut wanted = CertificateParams::new(Vec::new()).expect("no names");
        wanted.distinguished_name = DistinguishedName::new();
        for (kind, value) in [
            (DnType::CountryName, "DE"),
            (DnType::CustomDnType(vec![2, 5, 4, 5]), "12, 3"),
            (DnType::CommonName, "alice=a"),
            (DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]), "a@b"),
        ] {
            wanted.distinguished_name.push(kind, value);
        }
        let made = wanted.self_signed(&KeyPair::generate().expect("a key")).expect("a certificate");
        let name = "1.2.840.113549.1.9.1=#0c03614062,CN=alice=a,2.5.4.5=#0c0531322c2033,C=DE";
        assert_eq!(subject(made.der()).as_deref(), Some(name));
    }
}
