//! One request: judge its head, make its exchange, turn the application's answer into hyper's.
//!
//! Not the messages, which `bridgehead-asgi` has judged, and not the bytes, which hyper writes.
//!
//! Invariant: a request reaches the application only if its host, method, target and framing are in order.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bridgehead_admission::{Permit, TurnedAway};
use bridgehead_asgi::{Acceptance, ResponseParts};
use bridgehead_executor::http_date;
use bridgehead_heads::{asks_unheard_to_close, judge, keeps_connection, say_close};
use bytes::Bytes;
use http::header::{CONNECTION, EXPECT, HeaderValue};
use http::{HeaderMap, Request, Response, StatusCode, Version, request};
use http_body::Body;
use hyper::body::Incoming;

use crate::accept::Worker;
use crate::app::{Arrival, RequestHead, WebSocketRequest};
use crate::app_half::AppHalf;
use crate::body::{AnswerBody, Framing};
use crate::client_half::ClientHalf;
use crate::config::{Config, Departures};
use crate::exchange::{self, After, Answer, Flow};
use crate::line::Line;
use crate::overseer::Term;
use crate::refusal::Refusal;
use crate::request_id;
use crate::session_end::Opened;
use crate::socket::Socket;
use crate::static_answer;
use crate::turn::Turn;
use crate::upload::{Begin, Progress, Uploader};
use crate::websocket;
use crate::websocket_handshake::{self as handshake, Handshake};

/// The application was told that its client has gone, or did not keep to what it declared to the last one: hyper closes
/// the connection and says nothing.
#[derive(Debug, thiserror::Error)]
#[error("the client has gone")]
pub(crate) struct ClientGone;

/// Answers one request.
pub(crate) async fn answer(
    line: Arc<Line>,
    worker: Arc<Worker>,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, ClientGone> {
    if line.previous_is_through().await == After::Close {
        return Err(ClientGone);
    }
    let (mut head, body) = request.into_parts();
    let mut turn = line.begin(&head);
    let version = head.version;
    if asks_unheard_to_close(&head) {
        line.ends_with_next();
    }
    if let Some(response) = health_of(&worker, &line, &head, body.is_end_stream()) {
        turn.was_a_probe(response.status());
        return Ok(said(response, &line, turn));
    }
    if let Some(asked) = static_answer::asked(&worker, &head) {
        let request = (head, turn, body.is_end_stream());
        match Box::pin(static_answer::answer(&worker, &line, asked, request)).await {
            Ok(response) => return Ok(response),
            Err(elsewhere) => (head, turn) = elsewhere,
        }
    }
    let wish = worker.config.compression.as_ref().map(|compression| compression.wish(&head));
    let upgrade = match judge(&head).map_err(Refusal::from).and_then(|()| upgrade_of(&head, &line, &worker)) {
        Ok(upgrade) => upgrade,
        Err(refusal) => return Ok(refuse(refusal, &line, version, turn)),
    };
    let (upgrade, websocket) = upgrade.unzip();
    if upgrade.is_some() {
        turn.asks_for_websocket();
    }
    let flow = if body.is_end_stream() { Flow::Complete } else { Flow::Open };
    let (mut client, uploader, half) = open(&worker, &mut turn, flow);
    let hinted = worker.config.http1_early_hints && version == Version::HTTP_11 && websocket.is_none();
    if hinted {
        client.takes_hints();
    }
    // The rest of its body waits in the client's socket meanwhile.
    let admitted = admit(&worker, &client).await?;
    if flow == Flow::Open
        && let Err(refusal) = upload(&worker, uploader, body, &head).await
    {
        drop((client, half, admitted));
        return Ok(refuse(refusal, &line, version, turn));
    }
    match admitted {
        Ok(permit) => {
            // A WebSocket is there for as long as its client likes.
            let permit = if websocket.is_some() { worker.admission.exempt(permit) } else { permit };
            dispatch(&worker, &client, arrival(head, &turn, Asked { half, permit, websocket }));
        }
        Err(turned_away) => {
            client.refused(turned_away.into());
            drop(half);
        }
    }
    let mut answer = poll_fn(|cx| match hinted {
        true => line.socket.interim.poll_answer(&mut client, cx),
        false => client.poll_answer(cx),
    })
    .await;
    if let (Some(compression), Some(wish)) = (&worker.config.compression, wish) {
        compression.apply(&wish, &mut answer, &mut client);
    }
    Said { line: &line, version, upgrade }.reply(client, answer, turn)
}

/// What a request at the health path is told, where there is one.
fn health_of(
    worker: &Worker,
    line: &Line,
    head: &request::Parts,
    bodiless: bool,
) -> Option<Response<&'static str>> {
    let health = worker.config.health.as_ref().filter(|_| bodiless && judge(head).is_ok())?;
    let mut response = health.answer(head)?;
    if line.is_last_call() {
        say_close(&mut response, head.version);
    }
    Some(response)
}

/// What its answer depends on.
struct Said<'a> {
    line: &'a Line,
    version: Version,
    // In a box, for nearly every request carries none through its waits.
    upgrade: Option<Box<Upgrade>>,
}

/// A permit, or why there is none. A client whose leaving ends its request leaves the queue as well.
async fn admit(worker: &Worker, client: &ClientHalf) -> Result<Result<Permit, TurnedAway>, ClientGone> {
    let mut admitted = pin!(worker.admit());
    poll_fn(|cx| match admitted.as_mut().poll(cx) {
        Poll::Ready(admitted) => Poll::Ready(Ok(admitted)),
        Poll::Pending => client.poll_cancelled(cx).map(|()| Err(ClientGone)),
    })
    .await
}

/// What is handed over beside the head.
struct Asked {
    half: AppHalf,
    permit: Permit,
    websocket: Option<WebSocketRequest>,
}

/// A handshake that the application answers, and what takes over if it accepts.
struct Upgrade {
    handshake: Handshake,
    opened: Opened,
}

/// What a request asks for that asks for a WebSocket; `None` for any other.
fn upgrade_of(
    head: &request::Parts,
    line: &Line,
    worker: &Worker,
) -> Result<Option<(Box<Upgrade>, WebSocketRequest)>, Refusal> {
    let Some(settings) = worker.config.websockets.filter(|_| handshake::is_asked_for(head)) else {
        return Ok(None);
    };
    let mut handshake = handshake::judge(head)?;
    if line.has_more() {
        return Err(Refusal::EarlyFrames);
    }
    let (end, half) = websocket::open(Arc::clone(&worker.app), settings.max_queue);
    let asked = WebSocketRequest { subprotocols: std::mem::take(&mut handshake.subprotocols), half };
    let deflation = handshake.agree(settings, &worker.memory);
    let opened = Opened { end, settings, deflation };
    Ok(Some((Box::new(Upgrade { handshake, opened }), asked)))
}

/// The exchange of a request that was judged.
fn open(worker: &Worker, turn: &mut Turn, flow: Flow) -> (ClientHalf, Uploader, AppHalf) {
    let (client, uploader, half, witness) = exchange::open(Arc::clone(&worker.app), flow);
    turn.counts(&witness);
    if worker.config.bounds.departures == Departures::Cancelled {
        client.ends_with_client();
    }
    turn.watched_by(witness);
    (client, uploader, half)
}

/// What the application is to have. Made where it stays: a head is long.
fn arrival(mut head: request::Parts, turn: &Turn, asked: Asked) -> Box<Arrival> {
    turn.name_span(&mut head.headers);
    Box::new(Arrival {
        head: RequestHead {
            method: head.method,
            target: head.uri,
            version: head.version,
            headers: head.headers,
            trace: turn.trace().cloned(),
        },
        peer: Arc::clone(turn.peer()),
        story: turn.story(),
        half: asked.half,
        permit: asked.permit,
        websocket: asked.websocket,
    })
}

/// Hands a request to the application.
fn dispatch(worker: &Worker, client: &ClientHalf, arrival: Box<Arrival>) {
    if let Some(term) = Term::of(&worker.config, arrival.websocket.as_ref()) {
        worker.executor.spawn(client.overseer().watch(term, worker.executor.clone()));
    }
    if let Err(arrival) = worker.app.dispatch(arrival) {
        client.refused(Refusal::Overloaded);
        drop(arrival);
    }
}

/// Takes as much of a body as is there, and sees to the rest.
async fn upload(
    worker: &Worker,
    uploader: Uploader,
    mut body: Incoming,
    head: &request::Parts,
) -> Result<(), Refusal> {
    let limit = worker.config.bounds.body;
    if limit.is_some_and(|limit| body.size_hint().lower() > limit) {
        return Err(Refusal::LargeBody);
    }
    let keeps = keeps_connection(head);
    let pump =
        |uploader: Uploader, body| uploader.pump(body, worker.config.bounds.upload, worker.executor.clone());
    if head.version == Version::HTTP_11 && head.headers.contains_key(EXPECT) {
        uploader.announce(&body, Begin::WhenWanted, limit, keeps);
        worker.executor.spawn(pump(uploader, body));
        return Ok(());
    }
    uploader.announce(&body, Begin::AtOnce, limit, keeps);
    match uploader.prefetch(&mut body).await {
        // The application is told of a client that left; a client whose framing is wrong is told itself.
        Progress::Complete | Progress::CutOff => {}
        Progress::Partial => {
            worker.executor.spawn(pump(uploader, body));
        }
        Progress::Refused(refusal) => return Err(refusal),
    }
    Ok(())
}

impl Said<'_> {
    /// Turns the application's answer into hyper's.
    fn reply(
        self,
        client: ClientHalf,
        answer: Answer,
        mut turn: Turn,
    ) -> Result<Response<AnswerBody>, ClientGone> {
        let Self { line, version, upgrade } = self;
        let config = &*line.config;
        // What a client sends behind a handshake that was not accepted is neither a request nor a frame.
        let closes = client.leaves_unread() || upgrade.is_some();
        let ends = closes || line.is_last_call() || ends_connection(&answer);
        if ends {
            client.closes();
        }
        let mut response = match answer {
            Answer::Accepted(acceptance) => return accept(upgrade, acceptance, line, turn),
            // A 304 keeps its length, which is the body's that the client has: hyper drops it beside one that is whole.
            Answer::Whole(parts, body) if parts.status != StatusCode::NOT_MODIFIED => {
                let head = response(parts, config, &mut turn);
                head.map(|()| AnswerBody::whole(body, turn))
            }
            Answer::HeadOnly(parts) | Answer::Whole(parts, _) => {
                let head = response(parts, config, &mut turn);
                head.map(|()| AnswerBody::stream(client, Framing::Declared(0), turn))
            }
            Answer::Stream(parts) => {
                let framing = framing_of(&parts, version, &line.socket);
                let mut head = response(parts, config, &mut turn);
                if matches!(framing, Framing::UntilClose(_)) {
                    // hyper promises a client of 1.0 to keep the connection, unless the answer is of 1.0 itself.
                    *head.version_mut() = Version::HTTP_10;
                }
                head.map(|()| AnswerBody::stream(client, framing, turn))
            }
            Answer::Failed => refuse(Refusal::ApplicationFailed, line, version, turn),
            Answer::Refused(refusal) => refuse(refusal, line, version, turn),
            Answer::Abandoned => return Err(ClientGone),
        };
        if closes {
            line.will_linger();
        }
        if ends {
            // hyper would close without a word.
            say_close(&mut response, version);
        }
        Ok(response)
    }
}

/// The application has accepted the WebSocket: the connection is its own from here on.
fn accept(
    upgrade: Option<Box<Upgrade>>,
    acceptance: Acceptance,
    line: &Line,
    mut turn: Turn,
) -> Result<Response<AnswerBody>, ClientGone> {
    // Nothing else can be accepted.
    let Some(upgrade) = upgrade else { return Err(ClientGone) };
    let Upgrade { handshake, opened } = *upgrade;
    let mut response = handshake.answer(acceptance);
    complete(&mut response, &line.config, &mut turn);
    line.successor.name(opened);
    Ok(response.map(|()| AnswerBody::whole(Bytes::new(), turn)))
}

/// Whether the application closes the connection with its answer.
fn ends_connection(answer: &Answer) -> bool {
    match answer {
        Answer::Whole(parts, _) | Answer::HeadOnly(parts) | Answer::Stream(parts) => parts.close,
        Answer::Accepted(_) | Answer::Failed | Answer::Abandoned | Answer::Refused(_) => false,
    }
}

/// How the client will see where a streamed body ends.
fn framing_of(parts: &ResponseParts, version: Version, socket: &Arc<Socket>) -> Framing {
    match parts.declared {
        Some(length) => Framing::Declared(length),
        None if version == Version::HTTP_10 => Framing::UntilClose(Arc::clone(socket)),
        None => Framing::Chunked,
    }
}

fn response(parts: ResponseParts, config: &Config, turn: &mut Turn) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = parts.status;
    *response.headers_mut() = parts.headers;
    if parts.close {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some(reason) = config.reasons.of(parts.status) {
        response.extensions_mut().insert(reason);
    }
    complete(&mut response, config, turn);
    response
}

pub(crate) fn refuse(refusal: Refusal, line: &Line, version: Version, turn: Turn) -> Response<AnswerBody> {
    let turn = turn.refused(refusal);
    let mut response = refusal.response();
    if !refusal.keeps_connection() {
        line.will_linger();
    }
    if !refusal.keeps_connection() || line.is_last_call() {
        say_close(&mut response, version);
    }
    said(response, line, turn)
}

/// An answer of our own.
fn said(mut response: Response<&'static str>, line: &Line, mut turn: Turn) -> Response<AnswerBody> {
    complete(&mut response, &line.config, &mut turn);
    response.map(|text| AnswerBody::whole(Bytes::from_static(text.as_bytes()), turn))
}

/// Adds what every answer has, and keeps what its access line shows.
pub(crate) fn complete<B>(response: &mut Response<B>, config: &Config, turn: &mut Turn) {
    if let Some(trace) = turn.trace()
        && !response.headers().contains_key(request_id::HEADER)
    {
        // An answer that is full of headers goes without it.
        let _ = response.headers_mut().try_append(request_id::HEADER, trace.id_value());
    }
    add_defaults(response.headers_mut(), config);
    if config.date_header && http_date::is_set_back() {
        http_date::add(response.headers_mut());
    }
    turn.answered(response.status(), response.headers());
}

/// What the application has said itself is not said twice.
fn add_defaults(headers: &mut HeaderMap, config: &Config) {
    for (name, values) in &config.default_headers {
        if !headers.contains_key(name) {
            for value in values {
                headers.append(name, value.clone());
            }
        }
    }
}
