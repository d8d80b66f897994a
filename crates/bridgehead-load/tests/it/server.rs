//! A server that says what a test tells it to, byte by byte; and a plan against it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bridgehead_load::{Address, Expect, Limits, Plan, Protocol, Report, Run, Scenario, Upload};

pub(crate) const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// What has been asked so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Seen>>>);

impl Log {
    pub(crate) fn all(&self) -> Vec<Seen> {
        self.0.lock().expect("no test thread panicked").clone()
    }
}

/// Serves each connection by `serve` on a thread of its own, for as long as the test process lives.
pub(crate) fn connections(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
    port
}

/// Answers each request of each connection with what `answer` says of it; with nothing, it closes.
pub(crate) fn answering(answer: impl Fn(&Seen) -> Vec<u8> + Send + Sync + 'static) -> (u16, Log) {
    let log = Log::default();
    let written = log.clone();
    let port = connections(move |stream| {
        let mut reader = BufReader::new(stream.try_clone().expect("it is open"));
        let mut stream = stream;
        while let Some(seen) = read(&mut reader) {
            let bytes = answer(&seen);
            written.0.lock().expect("no test thread panicked").push(seen);
            if bytes.is_empty() || stream.write_all(&bytes).is_err() {
                return;
            }
        }
    });
    (port, log)
}

/// One request, if one comes.
pub(crate) fn read(reader: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).map(|rest| rest.lines().next().unwrap_or("").parse());
    let mut body = vec![0; length.map_or(0, |length: Result<usize, _>| length.expect("a number"))];
    reader.read_exact(&mut body).ok()?;
    if head.contains("transfer-encoding: chunked") {
        body = chunks(reader)?;
    }
    Some(Seen { line: head.lines().next().unwrap_or_default().to_owned(), head, body })
}

fn chunks(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut size = String::new();
        reader.read_line(&mut size).ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        reader.read_exact(&mut chunk).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(&chunk[..size]);
    }
}

pub(crate) fn scenario(path: &str) -> Scenario {
    Scenario {
        name: path.to_owned(),
        weight: 1,
        method: "GET".to_owned(),
        path: path.to_owned(),
        headers: Vec::new(),
        upload: Upload::Nothing,
        think: None,
        expect: Expect::default(),
    }
}

/// One connection, `requests` requests.
pub(crate) fn plan(port: u16, requests: u64) -> Plan {
    Plan {
        address: Address::Tcp("127.0.0.1".to_owned(), port),
        tls: None,
        protocol: Protocol::Http1,
        authority: format!("127.0.0.1:{port}"),
        scenarios: vec![scenario("/")],
        connections: 1,
        threads: 1,
        rate: None,
        limits: Limits { duration: None, requests: Some(requests) },
        warm_up: Duration::ZERO,
        timeout: Duration::from_secs(20),
        keep_alive: true,
        seed: 1,
    }
}

/// Runs a plan to its end.
pub(crate) fn run(plan: &Plan) -> Report {
    let run = Run::start(plan).expect("the plan is right and somebody listens");
    assert!(run.handle().wait(Duration::from_secs(50)), "the run does not end");
    run.report()
}
