//! A connection of HTTP/2 that several workers share, each with one stream at a time.
//!
//! Not a choice of the protocol: by TLS the server has agreed to it, in the clear it is known beforehand.
//!
//! Invariant: the connection is driven by a task of its own, which ends with the last of those that share it.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderValue, Request, header};
use http_body::Body;

use crate::channel::Answer;
use crate::deadline::Deadline;
use crate::expect::Expect;
use crate::fault::{Fault, Kind};
use crate::payload::Payload;
use crate::secure::Line;

/// What a server may send ahead, for each stream and for all: as much as a browser allows, so that a large answer is not
/// held up by us.
const STREAM_AHEAD: u32 = 2 << 20;
const CONNECTION_AHEAD: u32 = 16 << 20;

/// A share of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Http2 {
    sender: SendRequest<Bytes>,
}

/// What is left of a request's body.
struct Upload {
    payload: Payload,
    stream: SendStream<Bytes>,
    /// Taken from the payload, and not yet given to the stream.
    rest: Bytes,
}

impl Http2 {
    pub(crate) async fn open(line: Line) -> Result<Self, Fault> {
        let (sender, connection) = Builder::new()
            .enable_push(false)
            // Until the server has said how many it allows: what is more it would refuse.
            .initial_max_send_streams(1)
            .initial_window_size(STREAM_AHEAD)
            .initial_connection_window_size(CONNECTION_AHEAD)
            .handshake(line)
            .await
            .map_err(|error| Fault::new(Kind::Connect, error.to_string()))?;
        // What ended it is told to the streams it had.
        tokio::spawn(async { drop(connection.await) });
        Ok(Self { sender })
    }

    /// Whether it takes another stream, now or when one of those under way has ended.
    pub(crate) async fn is_open(&mut self, deadline: &mut Deadline) -> bool {
        let ready = deadline.over(poll_fn(|cx| self.sender.poll_ready(cx))).await;
        matches!(ready, Ok(Ok(())))
    }

    /// One request and its whole answer; `None` if the server said that it has not begun with it.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<Payload>,
        expect: &Expect,
    ) -> Result<Option<Answer>, Fault> {
        let (mut head, payload) = request.into_parts();
        let has_ended = payload.is_end_stream();
        if let Some(length) = payload.size_hint().exact()
            && !has_ended
        {
            head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        if poll_fn(|cx| self.sender.poll_ready(cx)).await.is_err() {
            return Ok(None);
        }
        let (response, stream) = self
            .sender
            .send_request(Request::from_parts(head, ()), has_ended)
            .map_err(|error| Fault::of_stream(&error, Kind::Closed))?;
        let upload = (!has_ended).then(|| Upload { payload, stream, rest: Bytes::new() });
        Stream { upload }.answered(response, expect).await
    }
}

/// One request that has been sent, or is being sent.
struct Stream {
    upload: Option<Upload>,
}

impl Stream {
    async fn answered(
        mut self,
        mut response: ResponseFuture,
        expect: &Expect,
    ) -> Result<Option<Answer>, Fault> {
        let came = poll_fn(|cx| {
            self.send(cx);
            Pin::new(&mut response).poll(cx)
        });
        let (head, mut body) = match came.await {
            Ok(response) => response.into_parts(),
            // GOAWAY names the last stream that was begun with, and this one came behind it.
            Err(error) if error.is_go_away() && error.is_remote() && is_calm(&error) => return Ok(None),
            Err(error) => return Err(Fault::of_stream(&error, Kind::Closed)),
        };
        let wrong = expect.of_head(head.status, &head.headers);
        let mut search = expect.search();
        let mut bytes = 0;
        while let Some(piece) = self.piece(&mut body).await? {
            bytes += piece.len() as u64;
            search.see(&piece);
        }
        let wrong = wrong.or_else(|| expect.of_body(&search));
        Ok(Some(Answer { status: Some(head.status), bytes, wrong }))
    }

    async fn piece(&mut self, body: &mut RecvStream) -> Result<Option<Bytes>, Fault> {
        let piece = poll_fn(|cx| {
            self.send(cx);
            body.poll_data(cx)
        });
        let Some(piece) = piece.await else { return Ok(None) };
        let piece = piece.map_err(|error| Fault::of_stream(&error, Kind::ShortBody))?;
        body.flow_control()
            .release_capacity(piece.len())
            .map_err(|error| Fault::of_stream(&error, Kind::ShortBody))?;
        Ok(Some(piece))
    }

    /// As much of the body as there is room for. What goes wrong is told by the answer, or by there being none.
    fn send(&mut self, cx: &mut Context<'_>) {
        if let Some(upload) = &mut self.upload
            && upload.poll(cx).is_ready()
        {
            self.upload = None;
        }
    }
}

impl Upload {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            while !self.rest.is_empty() {
                if self.stream.capacity() == 0 {
                    self.stream.reserve_capacity(self.rest.len());
                    let Some(Ok(_)) = ready!(self.stream.poll_capacity(cx)) else { return Poll::Ready(()) };
                    continue;
                }
                let piece = self.rest.split_to(self.rest.len().min(self.stream.capacity()));
                let is_last = self.rest.is_empty() && self.payload.is_end_stream();
                if self.stream.send_data(piece, is_last).is_err() || is_last {
                    return Poll::Ready(());
                }
            }
            match ready!(Pin::new(&mut self.payload).poll_frame(cx)) {
                Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
                None => {
                    // An error is the answer's to tell.
                    let _ = self.stream.send_data(Bytes::new(), true);
                    return Poll::Ready(());
                }
            }
        }
    }
}

fn is_calm(error: &h2::Error) -> bool {
    error.reason() == Some(Reason::NO_ERROR)
}
