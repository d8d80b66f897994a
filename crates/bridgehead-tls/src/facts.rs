//! What a handshake came to, as ASGI's `tls` extension tells it.

use std::sync::Arc;

use rustls::ServerConnection;
use rustls::pki_types::CertificateDer;

use crate::credentials::Served;
use crate::subject::subject;

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
