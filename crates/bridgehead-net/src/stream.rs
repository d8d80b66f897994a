//! One request of HTTP/2: judge its head, make its exchange, write the application's answer.
//!
//! What is the same for HTTP/1 is `service`'s. Windows are `h2`'s: a body is taken from it no further ahead than the
//! application reads, and it is given as much of an answer as the client has room for.
//!
//! Invariant: a stream that does not go on holds nothing but itself, and not for longer than a slow client may take.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bridgehead_admission::{Admission, Permit};
use bridgehead_asgi::ResponseParts;
use bridgehead_executor::http_date;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::{CONNECTION, CONTENT_LENGTH};
use http::{HeaderMap, Method, Request, Response, StatusCode, request};
use http_body::Body;
use tokio::sync::{oneshot, watch};

use crate::accept::Worker;
use crate::app::{Arrival, RequestHead, WebSocketRequest};
use crate::client_half::{ClientHalf, Encore, Spoken};
use crate::config::Departures;
use crate::exchange::{self, Answer, Flow};
use crate::line::Line;
use crate::overseer::Term;
use crate::refusal::Refusal;
use crate::service;
use crate::stream_answer::Writing;
use crate::stream_head;
use crate::stream_static::Written;
use crate::stream_upload::UploadBody;
use crate::stream_websocket;
use crate::traffic::Running;
use crate::turn::Turn;
use crate::upload::{Begin, Progress, Uploader};

/// One request's stream.
pub(crate) struct Stream {
    pub(crate) line: Arc<Line>,
    pub(crate) worker: Arc<Worker>,
    pub(crate) running: Running,
    /// How many applications may run for its connection: more than there are streams, when those were broken off.
    pub(crate) admission: Admission,
    /// Ends with the connection.
    pub(crate) alive: watch::Receiver<()>,
}

/// Why a stream has not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The client has broken it off, or is gone, before it had the head of an answer.
    Unanswered,
    /// The same in the middle of an answer, or its application has abandoned it.
    Midway,
    /// The client made no room for its answer, for too long.
    Unread,
}

/// What a client asks for.
pub(crate) struct Asked {
    pub(crate) head: request::Parts,
    /// Of its cookie, which were joined.
    pub(crate) crumbs: usize,
    /// A WebSocket has none.
    pub(crate) body: Option<UploadBody>,
    pub(crate) websocket: Option<WebSocketRequest>,
}

/// What comes before an answer.
enum Word {
    /// The application wants the body that the client holds back.
    Continue,
    Spoken(Spoken),
}

impl Stream {
    pub(crate) async fn answer(mut self, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        let (mut head, body) = request.into_parts();
        let crumbs = stream_head::join_cookies(&mut head.headers);
        let turn = self.line.begin_stream(&head);
        let written = if stream_websocket::is_asked_for(&head.method, &head.extensions) {
            self.answer_websocket((head, body), crumbs, &mut respond, turn).await
        } else {
            self.answer_request((head, body), crumbs, &mut respond, turn).await
        };
        self.running.ends(written.as_ref().err().copied());
        if let Ok(Some(encore)) = written {
            self.wait_for(encore).await;
        }
    }

    async fn answer_request(
        &self,
        (mut head, body): (request::Parts, RecvStream),
        crumbs: usize,
        respond: &mut SendResponse<Bytes>,
        mut turn: Turn,
    ) -> Result<Option<Encore>, Left> {
        let method = head.method.clone();
        if let (Some(health), true) = (&self.line.config.health, body.is_end_stream())
            && stream_head::judge(&head, crumbs, &self.line.config.bounds.head).is_ok()
            && let Some(response) = health.answer(&head)
        {
            turn.was_a_probe(response.status());
            return self.say(response, &method, respond, turn);
        }
        if let Some(asked) = self.asks_for_file(&head, crumbs) {
            match Box::pin(self.answer_by_file(asked, (head, turn), respond)).await? {
                Written::Whole => return Ok(None),
                Written::Not(back) => (head, turn) = *back,
            }
        }
        let compression = self.line.config.compression.as_ref();
        let compression = compression.map(|compression| (compression, compression.wish(&head)));
        let (body, wanted) = UploadBody::new(body, &head.headers);
        let asked = Asked { head, crumbs, body: Some(body), websocket: None };
        let asked = tokio::select! {
            biased;
            _ = poll_fn(|cx| respond.poll_reset(cx)) => return Err(Left::Unanswered),
            asked = self.ask(&mut turn, asked) => asked,
        };
        match asked {
            Ok(mut client) => {
                let mut answer = self.answer_of(&mut client, wanted, respond).await?;
                if let Some((compression, wish)) = compression {
                    compression.apply(&wish, &mut answer, &mut client);
                }
                self.write(answer, client, &method, respond, turn).await
            }
            Err(refusal) => self.refuse(refusal, &method, respond, turn),
        }
    }

    /// Hands a request to the application, with as much of its body as is there.
    pub(crate) async fn ask(&self, turn: &mut Turn, asked: Asked) -> Result<ClientHalf, Refusal> {
        let Asked { mut head, crumbs, body, websocket } = asked;
        stream_head::judge(&head, crumbs, &self.line.config.bounds.head)?;
        let permit = self.admit().await?;
        let body = body.filter(|body| !body.is_end_stream());
        let flow = if body.is_none() { Flow::Complete } else { Flow::Open };
        let (client, uploader, half, witness) = exchange::open(Arc::clone(&self.worker.app), flow);
        turn.counts(&witness);
        client.takes_hints();
        let bounds = &self.line.config.bounds;
        if bounds.departures == Departures::Cancelled {
            client.ends_with_client();
        }
        if let Some(body) = body {
            self.upload(uploader, body).await?;
        }
        turn.name_span(&mut head.headers);
        let head = RequestHead {
            method: head.method,
            target: head.uri,
            version: head.version,
            headers: head.headers,
            trace: turn.trace().cloned(),
        };
        if let Some(term) = Term::of(&self.line.config, websocket.as_ref()) {
            self.worker.executor.spawn(client.overseer().watch(term, self.worker.executor.clone()));
        }
        let arrival = Box::new(Arrival {
            head,
            peer: Arc::clone(turn.peer()),
            story: turn.story(),
            half,
            permit: if websocket.is_some() { self.worker.admission.exempt(permit) } else { permit },
            websocket,
        });
        if let Err(arrival) = self.worker.app.dispatch(arrival) {
            client.refused(Refusal::Overloaded);
            drop(arrival);
        }
        Ok(client)
    }

    /// Of what one connection may have running as well as of what all may.
    async fn admit(&self) -> Result<Permit, Refusal> {
        let sleep = |patience| self.worker.executor.sleep(patience);
        let ours = self.admission.enter(sleep).await.map_err(Refusal::from)?;
        let everybodys = self.worker.admit().await.map_err(Refusal::from)?;
        Ok(ours.and(everybodys))
    }

    async fn upload(&self, uploader: Uploader, mut body: UploadBody) -> Result<(), Refusal> {
        let bounds = &self.line.config.bounds;
        if bounds.body.is_some_and(|limit| body.size_hint().lower() > limit) {
            return Err(Refusal::LargeBody);
        }
        let begin = if body.is_held_back() { Begin::WhenWanted } else { Begin::AtOnce };
        // What nobody reads is the stream's alone: it ends with the answer.
        uploader.announce(&body, begin, bounds.body, false);
        let progress = match begin {
            Begin::WhenWanted => Progress::Partial,
            Begin::AtOnce => uploader.prefetch(&mut body).await,
        };
        match progress {
            Progress::Complete | Progress::CutOff => {}
            Progress::Partial => {
                let executor = self.worker.executor.clone();
                self.worker.executor.spawn(uploader.pump(body, bounds.upload, executor));
            }
            Progress::Refused(refusal) => return Err(refusal),
        }
        Ok(())
    }

    /// Waits for the application's answer.
    pub(crate) async fn answer_of(
        &self,
        client: &mut ClientHalf,
        mut wanted: Option<oneshot::Receiver<()>>,
        respond: &mut SendResponse<Bytes>,
    ) -> Result<Answer, Left> {
        loop {
            match poll_fn(|cx| poll_word(client, &mut wanted, respond, cx)).await? {
                Word::Spoken(Spoken::Answer(answer)) => return Ok(answer),
                Word::Continue => {
                    wanted = None;
                    say_ahead(StatusCode::CONTINUE, HeaderMap::new(), respond)?;
                }
                Word::Spoken(Spoken::Hints(hints)) => {
                    for links in hints {
                        say_ahead(StatusCode::EARLY_HINTS, links, respond)?;
                    }
                }
            }
        }
    }

    pub(crate) async fn write(
        &self,
        answer: Answer,
        client: ClientHalf,
        method: &Method,
        respond: &mut SendResponse<Bytes>,
        mut turn: Turn,
    ) -> Result<Option<Encore>, Left> {
        match answer {
            Answer::Whole(parts, body) => {
                let mut head = self.head(parts, &mut turn);
                if *method != Method::HEAD && has_length(head.status()) {
                    let length = body.len();
                    head.headers_mut().entry(CONTENT_LENGTH).or_insert_with(|| length.into());
                }
                let send = self.begin(head, body.is_empty(), respond)?;
                Writing::new(self, send, turn).write_whole(body).await.map(|()| None)
            }
            Answer::HeadOnly(parts) => {
                let head = self.head(parts, &mut turn);
                self.begin(head, true, respond)?;
                Ok(Some(client.served()))
            }
            Answer::Stream(parts) => {
                let due = parts.declared;
                let head = self.head(parts, &mut turn);
                let send = self.begin(head, due == Some(0), respond)?;
                if due == Some(0) {
                    return Ok(Some(client.served()));
                }
                Writing::new(self, send, turn).stream_out(client, due).await
            }
            Answer::Failed => self.refuse(Refusal::ApplicationFailed, method, respond, turn),
            Answer::Refused(refusal) => self.refuse(refusal, method, respond, turn),
            // Nothing that could be accepted was asked for.
            Answer::Accepted(_) | Answer::Abandoned => {
                respond.send_reset(Reason::CANCEL);
                Err(Left::Midway)
            }
        }
    }

    fn head(&self, parts: ResponseParts, turn: &mut Turn) -> Response<()> {
        if parts.close {
            self.running.closes();
        }
        let mut head = Response::new(());
        *head.status_mut() = parts.status;
        *head.headers_mut() = parts.headers;
        self.complete(&mut head, turn);
        head
    }

    /// Adds what every answer has.
    pub(crate) fn complete<B>(&self, head: &mut Response<B>, turn: &mut Turn) {
        service::complete(head, &self.line.config, turn);
        let headers = head.headers_mut();
        // It is the connection's, which has a word of its own for it.
        headers.remove(CONNECTION);
        if self.line.config.date_header {
            http_date::add(headers);
        }
    }

    pub(crate) fn begin(
        &self,
        head: Response<()>,
        ends: bool,
        respond: &mut SendResponse<Bytes>,
    ) -> Result<SendStream<Bytes>, Left> {
        self.running.sent(1);
        respond.send_response(head, ends).map_err(|_| Left::Unanswered)
    }

    pub(crate) fn refuse(
        &self,
        refusal: Refusal,
        method: &Method,
        respond: &mut SendResponse<Bytes>,
        turn: Turn,
    ) -> Result<Option<Encore>, Left> {
        self.say(refusal.response(), method, respond, turn.refused(refusal))
    }

    /// Gives an answer of our own.
    fn say(
        &self,
        mut response: Response<&'static str>,
        method: &Method,
        respond: &mut SendResponse<Bytes>,
        mut turn: Turn,
    ) -> Result<Option<Encore>, Left> {
        self.complete(&mut response, &mut turn);
        let (head, text) = response.into_parts();
        let mut head = Response::from_parts(head, ());
        head.headers_mut().insert(CONTENT_LENGTH, text.len().into());
        if *method == Method::HEAD {
            self.begin(head, true, respond)?;
            return Ok(None);
        }
        let mut send = self.begin(head, false, respond)?;
        turn.wrote(text.len());
        // Short, and the last: what the client has no room for waits in `h2`, and goes with the connection.
        send.send_data(Bytes::from_static(text.as_bytes()), true).map_err(|_| Left::Midway)?;
        Ok(None)
    }

    /// The client has its answer; the application may have more to do before it hears that it is through.
    async fn wait_for(&mut self, encore: Encore) {
        tokio::select! {
            biased;
            _ = poll_fn(|cx| encore.poll_through(cx)) => {}
            _ = self.alive.changed() => {}
        }
    }
}

/// An interim answer.
fn say_ahead(status: StatusCode, headers: HeaderMap, respond: &mut SendResponse<Bytes>) -> Result<(), Left> {
    let mut interim = Response::new(());
    *interim.status_mut() = status;
    *interim.headers_mut() = headers;
    respond.send_informational(interim).map_err(|_| Left::Unanswered)
}

fn poll_word(
    client: &mut ClientHalf,
    wanted: &mut Option<oneshot::Receiver<()>>,
    respond: &mut SendResponse<Bytes>,
    cx: &mut Context<'_>,
) -> Poll<Result<Word, Left>> {
    if respond.poll_reset(cx).is_ready() {
        return Poll::Ready(Err(Left::Unanswered));
    }
    if let Poll::Ready(spoken) = client.poll_spoken(cx) {
        return Poll::Ready(Ok(Word::Spoken(spoken)));
    }
    match wanted.as_mut().map(|wanted| Pin::new(wanted).poll(cx)) {
        Some(Poll::Ready(Ok(()))) => Poll::Ready(Ok(Word::Continue)),
        // Whoever would have asked is gone.
        Some(Poll::Ready(Err(_))) => {
            *wanted = None;
            Poll::Pending
        }
        Some(Poll::Pending) | None => Poll::Pending,
    }
}

/// Whether an answer of this status has a length.
fn has_length(status: StatusCode) -> bool {
    !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}
