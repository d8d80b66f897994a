//! hyper, h2, rustls and tungstenite alone, on one thread: the limits of what a server on them can answer, and what load
//! generators are measured against.
//!
//! `bare PORT` speaks HTTP/1.1 and WebSockets, `bare PORT h2c` HTTP/2, `bare PORT CERTIFICATE KEY` (PEM files) either by
//! TLS. Not a server for anything else.
//!
//! Invariant: it prints its address once it listens; port 0 takes a free one.

mod http1;
mod http2;
mod websocket;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// What a connection speaks.
#[derive(Clone)]
enum Spoken {
    Http1,
    Http2,
    /// Either, as ALPN has it.
    Secret(TlsAcceptor),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let port = words.first().and_then(|port| port.parse().ok()).unwrap_or(0);
    let spoken = match &words[1.min(words.len())..] {
        [certificate, key] => Spoken::Secret(acceptor(certificate, key)?),
        [word] if word == "h2c" => Spoken::Http2,
        _ => Spoken::Http1,
    };
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).await?;
    #[expect(clippy::print_stdout, reason = "whoever started it reads where it listens")]
    {
        println!("{}", listener.local_addr()?);
    }
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(serve(stream, spoken.clone()));
    }
}

async fn serve(stream: TcpStream, spoken: Spoken) {
    match spoken {
        Spoken::Http1 => http1::serve(stream).await,
        Spoken::Http2 => http2::serve(stream).await,
        Spoken::Secret(acceptor) => {
            // Who fails at the handshake has left.
            let Ok(stream) = acceptor.accept(stream).await else { return };
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                http2::serve(stream).await;
            } else {
                http1::serve(stream).await;
            }
        }
    }
}

fn acceptor(certificate: &str, key: &str) -> io::Result<TlsAcceptor> {
    let certificates = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(io::Error::other)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(io::Error::other)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
