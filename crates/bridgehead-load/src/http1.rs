//! One connection of HTTP/1.1: a request goes out, its answer comes back whole, nothing in between is kept.
//!
//! Not a task of its own: whoever waits for an answer drives the connection meanwhile, so that a request costs no
//! switch of tasks.
//!
//! Invariant: after an error the connection is not used again.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use http::{Request, StatusCode};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;

use crate::channel::Answer;
use crate::deadline::Deadline;
use crate::expect::Expect;
use crate::fault::{Fault, Kind};
use crate::payload::Payload;
use crate::secure::Line;

/// An open connection.
#[derive(Debug)]
pub(crate) struct Http1 {
    sender: SendRequest<Payload>,
    link: Link,
}

type Driven = Connection<TokioIo<Line>, Payload>;

#[derive(Debug)]
struct Link {
    /// Dropped when it is over: a request that is still queued there learns of the end by that.
    connection: Option<Pin<Box<Driven>>>,
}

impl Http1 {
    pub(crate) async fn open(line: Line) -> Result<Self, Fault> {
        let (sender, connection) = http1::handshake(TokioIo::new(line))
            .await
            .map_err(|error| Fault::new(Kind::Connect, error.to_string()))?;
        Ok(Self { sender, link: Link { connection: Some(Box::pin(connection)) } })
    }

    /// Whether it takes another request; the server may have closed it meanwhile.
    pub(crate) async fn is_open(&mut self, deadline: &mut Deadline) -> bool {
        let sender = &mut self.sender;
        let ready = self.link.beside(deadline, poll_fn(|cx| sender.poll_ready(cx))).await;
        matches!(ready, Ok(Ok(()))) && self.link.connection.is_some()
    }

    /// One request and its whole answer; `None` if the connection ended before a byte of it was sent.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<Payload>,
        expect: &Expect,
        deadline: &mut Deadline,
    ) -> Result<Option<Answer>, Fault> {
        let sent = pin!(self.sender.send_request(request));
        let response = match self.link.beside(deadline, sent).await? {
            Ok(response) => response,
            Err(error) if error.is_canceled() => return Ok(None),
            Err(error) => return Err(Fault::of_head(&error)),
        };
        let (head, body) = response.into_parts();
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            // None of our requests asks for it, and no answer follows.
            return Err(Fault::new(
                Kind::Malformed,
                "status 101, though nothing else than HTTP was asked for",
            ));
        }
        let mut wrong = expect.of_head(head.status, &head.headers);
        let mut search = expect.search();
        let bytes = self.link.read(body, deadline, |piece| search.see(piece)).await?;
        wrong = wrong.or_else(|| expect.of_body(&search));
        Ok(Some(Answer { status: Some(head.status), bytes, wrong }))
    }
}

impl Link {
    /// Takes a body to its end, and says how long it was.
    async fn read(
        &mut self,
        mut body: Incoming,
        deadline: &mut Deadline,
        mut see: impl FnMut(&[u8]),
    ) -> Result<u64, Fault> {
        let mut bytes = 0;
        while !body.is_end_stream() {
            let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
            match self.beside(deadline, frame).await? {
                None => break,
                Some(frame) => {
                    let frame = frame.map_err(|error| Fault::of_body(&error))?;
                    if let Some(piece) = frame.data_ref() {
                        bytes += piece.len() as u64;
                        see(piece);
                    }
                }
            }
        }
        Ok(bytes)
    }

    /// Drives the connection until `work` is done.
    async fn beside<F: Future + Unpin>(
        &mut self,
        deadline: &mut Deadline,
        mut work: F,
    ) -> Result<F::Output, Fault> {
        poll_fn(|cx| {
            if let Some(connection) = &mut self.connection
                && connection.as_mut().poll(cx).is_ready()
            {
                // What ended it is told to whoever waits for an answer.
                self.connection = None;
            }
            if let Poll::Ready(done) = Pin::new(&mut work).poll(cx) {
                return Poll::Ready(Ok(done));
            }
            deadline.poll(cx).map(Err)
        })
        .await
    }
}
