//! The same bytes, through TLS: what a layer between a socket and hyper could hold back, lose or cut off.

use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use bridgehead_asgi::More;
use bridgehead_metrics::{Counter, Sheet};
use bridgehead_net::{Config, Listener, Meters, Ownership, Reception, Room};
use bridgehead_proxies::Scheme;
use bridgehead_tls::{
    Clients, Credentials, Demand, Policy, SelfSigned, Settings, Source, Version, self_signed,
};
use bytes::Bytes;
use rustls::crypto::aws_lc_rs;
use rustls::crypto::cipher::{MessageEncrypter, OutboundChunks, OutboundPlainMessage};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConnection, ConnectionTrafficSecrets, ContentType, ProtocolVersion, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::harness::{Client, GET, LONG, SHORT, Site, TOKEN, head, listener, plain, within};

/// A site whose clients speak TLS.
struct Secured {
    site: Site,
    connector: TlsConnector,
}

impl Secured {
    fn open(config: Config, versions: &[Version]) -> Self {
        let made = self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let credentials = Credentials::load(Settings {
            identities: vec![Source::Made(made.clone())],
            clients: Clients { demand: Demand::None, authorities: None, revocations: Vec::new() },
            policy: Policy { versions: versions.to_vec(), ciphers: None },
            protocols: vec![b"http/1.1".to_vec()],
        });
        let listener = listener();
        let address: SocketAddr = listener.local_addr().expect("an address");
        let listener = Listener::new(OwnedFd::from(listener), Ownership::Ours).expect("a listener");
        let listener = listener.secured(Arc::new(credentials.expect("they fit")));
        Self { site: Site::with(address, listener, config), connector: connector(&made) }
    }

    async fn connect(&self) -> Client<TlsStream<TcpStream>> {
        let stream = within(TcpStream::connect(self.site.address)).await.expect("the site listens");
        let name = "localhost".try_into().expect("a name");
        Client::new(within(self.connector.connect(name, stream)).await.expect("a handshake"))
    }
}

fn connector(made: &SelfSigned) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(made.certificate.as_bytes()).expect("PEM"))
        .expect("an authority");
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.enable_secret_extraction = true;
    TlsConnector::from(Arc::new(config))
}

const BOTH: [Version; 2] = [Version::Tls12, Version::Tls13];

#[tokio::test]
async fn requests_follow_each_other_and_tell_of_their_handshake() {
    for (version, number) in [(Version::Tls12, 0x0303), (Version::Tls13, 0x0304)] {
        let secured = Secured::open(plain(LONG), &[version]);
        let mut client = secured.connect().await;
        for _ in 0..2 {
            client.send(GET).await;
            let asked = secured.site.next().await;
            assert_eq!(asked.peer.scheme, Scheme::Https);
            let facts = asked.peer.tls.as_ref().expect("a handshake");
            assert_eq!((facts.version, facts.client_chain.len()), (number, 0));
            assert!(facts.server_cert.starts_with("-----BEGIN CERTIFICATE-----\n"));
            let _ = asked.half.finish(head(200, &[]), Bytes::from("body"));
            assert_eq!(client.answer().await.body, b"body");
        }
    }
}

/// What a client still has to say when it has nothing more to wait for: the last of its handshake, and a request.
async fn last_words(
    client: &mut ClientConnection,
    stream: &mut TcpStream,
    request: &[u8],
) -> (Vec<u8>, usize) {
    let mut words = Vec::new();
    while client.is_handshaking() {
        stream.write_all(&words).await.expect("the server reads");
        words.clear();
        if !client.wants_write() {
            let mut space = [0; 4096];
            let count = within(stream.read(&mut space)).await.expect("the server answers");
            client.read_tls(&mut &space[..count]).expect("there is room");
            client.process_new_packets().expect("a handshake");
        }
        while client.wants_write() {
            client.write_tls(&mut words).expect("memory takes all");
        }
    }
    let ends = words.len();
    client.writer().write_all(request).expect("memory takes all");
    while client.wants_write() {
        client.write_tls(&mut words).expect("memory takes all");
    }
    (words, ends)
}

#[tokio::test]
async fn bytes_that_come_with_the_end_of_a_handshake_are_counted_and_those_of_the_handshake_not() {
    let request = [b"GET / HTTP/1.1\r\nHost: test\r\nX: ".as_slice(), &[b'x'; 3000], b"\r\n\r\n"].concat();
    // By TLS 1.2 a client has to wait for the server's end first. The whole at once; the end of the handshake cut in two;
    // the request cut in two.
    for cut in [|_, all| all, |ends, _| ends - 10, |ends, _| ends + 100] {
        let sheet = Sheet::own();
        let meters = Some(Meters { sheet: sheet.clone(), clock: || Duration::ZERO });
        let secured = Secured::open(Config { meters, ..plain(LONG) }, &[Version::Tls13]);
        let mut stream = within(TcpStream::connect(secured.site.address)).await.expect("the site listens");
        stream.set_nodelay(true).expect("TCP");
        let config = Arc::clone(secured.connector.config());
        let mut client =
            ClientConnection::new(config, "localhost".try_into().expect("a name")).expect("a client");
        let (words, ends) = last_words(&mut client, &mut stream, &request).await;
        let cut: usize = cut(ends, words.len());
        stream.write_all(&words[..cut]).await.expect("the server reads");
        tokio::task::yield_now().await;
        stream.write_all(&words[cut..]).await.expect("the server reads");
        let asked = secured.site.next().await;
        assert_eq!(sheet.count(Counter::BytesIn), (words.len() - ends) as u64, "cut at {cut}");
        let _ = asked.half.finish(head(204, &[]), Bytes::new());
    }
}

#[tokio::test]
async fn what_is_larger_than_every_buffer_passes_both_ways() {
    const SIZE: usize = 3_000_000;
    let secured = Secured::open(plain(LONG), &BOTH);
    let client = secured.connect().await;
    let (mut reads, mut writes) = tokio::io::split(client.stream);
    let sent = tokio::spawn(async move {
        let head = format!("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {SIZE}\r\n\r\n");
        writes.write_all(head.as_bytes()).await.expect("the server reads");
        writes.write_all(&vec![b'x'; SIZE]).await.expect("the server reads");
        writes
    });
    let asked = secured.site.next().await;
    let mut count = 0;
    loop {
        match asked.half.receive(TOKEN) {
            Reception::Chunk(chunk, More::Follows) => count += chunk.len(),
            Reception::Chunk(chunk, More::Ends) => break count += chunk.len(),
            Reception::Nothing => secured.site.told(TOKEN).await,
            _ => panic!("another kind of key"),
        }
    }
    assert_eq!(count, SIZE);
    let _writes = within(sent).await.expect("it was sent");
    let _ = asked.half.finish(head(200, &[]), Bytes::from(vec![b'y'; SIZE]));
    let mut answer = Client::new(tokio::io::join(&mut reads, tokio::io::sink()));
    let answer = answer.answer().await;
    assert_eq!((answer.status, answer.body.len()), (200, SIZE));
}

#[tokio::test]
async fn a_client_that_sends_no_more_is_answered_and_hears_of_the_end() {
    let secured = Secured::open(plain(LONG), &BOTH);
    let mut client = secured.connect().await;
    client.send(GET).await;
    let asked = secured.site.next().await;
    assert_eq!(asked.half.watch(TOKEN), Reception::Nothing);
    client.half_close().await;
    secured.site.told(TOKEN).await;
    assert_eq!(asked.half.start(head(200, &[])), Room::Free);
    let _ = asked.half.write(Bytes::from("body"), More::Ends);
    asked.half.push_out();
    assert_eq!(client.answer().await.body, b"body");
    // An end without `close_notify` would be an error.
    client.assert_closed().await;
}

#[tokio::test]
async fn a_client_that_is_closed_by_its_time_hears_of_the_end() {
    let secured = Secured::open(plain(SHORT), &BOTH);
    secured.connect().await.assert_closed().await;
}

#[tokio::test]
async fn a_client_that_leaves_is_seen_while_its_answer_is_made() {
    let secured = Secured::open(plain(LONG), &BOTH);
    let mut client = secured.connect().await;
    client.send(GET).await;
    let asked = secured.site.next().await;
    assert_eq!(asked.half.watch(TOKEN), Reception::Nothing);
    Client::new(client.stream.into_inner().0).reset();
    secured.site.told(TOKEN).await;
    assert!(asked.half.is_gone());
}

#[tokio::test]
async fn a_body_that_is_cut_off_is_no_body() {
    let secured = Secured::open(plain(LONG), &BOTH);
    let mut client = secured.connect().await;
    client.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 8\r\n\r\nhalf").await;
    let asked = secured.site.next().await;
    assert_eq!(asked.half.receive(TOKEN), Reception::Chunk(Bytes::from("half").into(), More::Follows));
    assert_eq!(asked.half.receive(TOKEN), Reception::Nothing);
    // Without `close_notify`.
    let mut stream = client.stream.into_inner().0;
    stream.shutdown().await.expect("the connection is there");
    secured.site.told(TOKEN).await;
    assert!(asked.half.owes_nothing());
}

#[tokio::test]
async fn what_is_no_handshake_is_closed_and_holds_up_nobody() {
    let secured = Secured::open(plain(LONG), &BOTH);
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(secured.site.connect().await);
    }
    let mut garbage = secured.site.connect().await;
    garbage.send(&[0x17; 1024]).await;
    let mut client = secured.connect().await;
    client.send(GET).await;
    let _ = secured.site.next().await.half.finish(head(204, &[]), Bytes::new());
    assert_eq!(client.head().await.status, 204);
    // An alert, and the end.
    let (alert, _) = garbage.rest().await;
    assert!(alert.is_empty() || alert[0] == 0x15, "{alert:?}");
    assert!(secured.site.is_quiet().await);
}

#[tokio::test]
async fn a_flood_of_new_keys_holds_up_nobody() {
    let secured = Secured::open(plain(LONG), &[Version::Tls13]);
    let mut flooding = secured.connect().await;
    for _ in 0..1000 {
        flooding.stream.get_mut().1.refresh_traffic_keys().expect("TLS 1.3");
    }
    // A server that has had enough may have closed already.
    let _ = flooding.stream.write_all(b"G").await;
    let mut client = secured.connect().await;
    client.send(GET).await;
    let _ = secured.site.next().await.half.finish(head(204, &[]), Bytes::new());
    assert_eq!(client.head().await.status, 204);
}

/// What a session encrypts its records by, taken out of it.
fn sealer(session: ClientConnection) -> (Box<dyn MessageEncrypter>, u64) {
    let suite = session.negotiated_cipher_suite().and_then(|suite| suite.tls13()).expect("TLS 1.3");
    let (number, secrets) = session.dangerous_extract_secrets().expect("it was allowed").tx;
    let (key, iv) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (key, iv),
        _ => panic!("another kind of key"),
    };
    (suite.aead_alg.encrypter(key, iv), number)
}

#[tokio::test]
async fn a_flood_of_empty_records_holds_up_nobody_and_is_waited_for_no_longer_than_silence() {
    let secured = Secured::open(plain(SHORT), &[Version::Tls13]);
    let (stream, session) = secured.connect().await.stream.into_inner();
    let (mut sealer, first) = sealer(session);
    let nothing = || OutboundPlainMessage {
        typ: ContentType::ApplicationData,
        version: ProtocolVersion::TLSv1_3,
        payload: OutboundChunks::Single(b""),
    };
    let mut flooding = Client::new(stream);
    let mut sent = first;
    while sent < first + 100_000 {
        let records: Vec<u8> = (sent..sent + 100)
            .flat_map(|number| sealer.encrypt(nothing(), number).expect("a key").encode())
            .collect();
        sent += 100;
        if flooding.stream.write_all(&records).await.is_err() {
            break;
        }
    }
    let mut client = secured.connect().await;
    client.send(GET).await;
    let _ = secured.site.next().await.half.finish(head(204, &[]), Bytes::new());
    assert_eq!(client.head().await.status, 204);
    // Its time has passed, or it has been told that it is no client.
    let _ = flooding.rest().await;
}
