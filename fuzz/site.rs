//! A served address for fuzzers of whole connections, on a Unix socket: no port, and no clock that matters.
//!
//! Invariant: a connection whose client has sent its last byte ends.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bridgehead_asgi::ResponseHead;
use bridgehead_net::{
    AdmissionLimits, App, Arrival, Config, Connections, Departures, Executor, HeadLimits, Http2, Lifetimes, Limits,
    Listener, Ownership, PaceLimits, Pings, Refusals, Tally, Token,
};
use bytes::Bytes;

/// Longer than any client waits.
const LONG: Duration = Duration::from_secs(600);

/// Answers at once, and reads no body.
struct Desk;

impl App for Desk {
    fn dispatch(&self, arrival: Box<Arrival>) -> Result<(), Box<Arrival>> {
        assert!(arrival.head.method.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
        if let Ok(head) = ResponseHead::new(200) {
            let _ = arrival.half.finish(head.into_parts(), Bytes::from_static(b"ok"));
        }
        Ok(())
    }

    fn progress(&self, _: Token) {}
}

fn config() -> Config {
    Config {
        keep_alive: LONG,
        bounds: Limits {
            first_byte: Some(LONG),
            head_time: Some(LONG),
            connections: None,
            lifetimes: Lifetimes { time: None, requests: None },
            head: HeadLimits { target: 8 * 1024, bytes: 32 * 1024, fields: 100 },
            body: None,
            upload: PaceLimits::default(),
            download: PaceLimits::default(),
            request_time: None,
            departures: Departures::Told,
            admission: AdmissionLimits { permits: None, queue: 0, patience: None },
        },
        http2: Http2::Spoken(Pings { interval: None, timeout: None }),
        date_header: false,
        default_headers: Vec::new(),
        access_log: None,
        refusals: Refusals::Silent,
        tally: Tally::default(),
        admission: Arc::default(),
        connections: Connections::Silent,
        forwarding: None,
        proxy_protocol: None,
        request_ids: None,
        unconfirmed: |_| None,
        give_back: || {},
        websockets: None,
        rota: None,
    }
}

fn place() -> &'static PathBuf {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("bridgehead-fuzz-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).expect("a folder for sockets");
        std::thread::spawn(move || serve(listener));
        path
    })
}

fn serve(listener: UnixListener) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let executor = Executor::default();
        let listener = Listener::new(listener.into(), Ownership::Ours).expect("a listener");
        let (_signal, stage) = bridgehead_net::shutdown_channel();
        let served = bridgehead_net::serve(config(), vec![listener], Arc::new(Desk), stage, &executor);
        executor.drive(served.expect("a runtime")).await;
    });
}

/// What the server says to these bytes, until it ends the connection.
pub fn ask(bytes: &[u8]) -> Vec<u8> {
    let mut client = UnixStream::connect(place()).expect("it listens");
    let mut writer = client.try_clone().expect("a descriptor");
    let mut said = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A server that has refused reads no more.
            let _ = writer.write_all(bytes);
            let _ = writer.shutdown(Shutdown::Write);
        });
        let _ = client.read_to_end(&mut said);
    });
    said
}
