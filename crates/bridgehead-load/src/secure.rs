//! A connection in the clear or by TLS, whichever was asked for.
//!
//! Whom it reaches is not verified: the load is put on whoever answers. No session is resumed, so that each connection
//! costs what a new client's costs.
//!
//! Invariant: what is written is on its way once it was flushed.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::plan::{PlanError, Protocol};
use crate::stream::Stream;

/// What a client of TLS needs to know.
#[derive(Clone)]
pub(crate) struct Secrecy {
    connector: TlsConnector,
    name: ServerName<'static>,
    /// Whether a server that does not agree to HTTP/2 is of no use.
    needs_http2: bool,
}

/// The name that ALPN has for it.
const HTTP2: &[u8] = b"h2";

/// What a request is sent by.
#[derive(Debug)]
pub(crate) enum Line {
    Clear(Stream),
    Secret(Box<TlsStream<Stream>>),
}

impl Secrecy {
    /// For a server that is asked for by this name.
    pub(crate) fn of(name: &str, protocol: Protocol) -> Result<Self, PlanError> {
        let wrong =
            |reason: String| PlanError::Numbers(format!("{name:?} cannot be asked for by TLS: {reason}"));
        let name = ServerName::try_from(name.to_owned()).map_err(|error| wrong(error.to_string()))?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let anybody = Arc::new(Anybody(Arc::clone(&provider)));
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(anybody)
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        let spoken: &[u8] = match protocol {
            Protocol::Http2 { .. } => HTTP2,
            Protocol::Http1 | Protocol::WebSocket => b"http/1.1",
        };
        config.alpn_protocols = vec![spoken.to_vec()];
        let needs_http2 = spoken == HTTP2;
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), name, needs_http2 })
    }
}

impl std::fmt::Debug for Secrecy {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Secrecy").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Line {
    /// Once both ends have what they need.
    pub(crate) async fn over(stream: Stream, secrecy: Option<&Secrecy>) -> io::Result<Self> {
        let Some(Secrecy { connector, name, needs_http2 }) = secrecy else { return Ok(Self::Clear(stream)) };
        let stream = connector.connect(name.clone(), stream).await?;
        if *needs_http2 && stream.get_ref().1.alpn_protocol() != Some(HTTP2) {
            return Err(io::Error::other("the server did not agree to HTTP/2"));
        }
        Ok(Self::Secret(Box::new(stream)))
    }
}

/// Takes every certificate whose owner has its key.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

impl AsyncRead for Line {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Secret(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Secret(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Secret(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_flush(cx),
            Self::Secret(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Secret(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
