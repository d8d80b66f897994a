//! One WebSocket of HTTP/2, asked for by an extended CONNECT (RFC 8441): its handshake, until its stream is its own.
//!
//! What is the same for HTTP/1 is `websocket_handshake`'s, and what follows is `websocket_session`'s.
//!
//! Invariant: the stream's data are frames of a WebSocket, or nobody's.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use h2::RecvStream;
use h2::ext::Protocol;
use h2::server::SendResponse;
use http::{Extensions, Method, request};

use crate::app::WebSocketRequest;
use crate::client_half::Encore;
use crate::exchange::Answer;
use crate::refusal::Refusal;
use crate::session_end::Opened;
use crate::stream::{Asked, Left, Stream};
use crate::stream_socket::StreamSocket;
use crate::turn::Turn;
use crate::websocket;
use crate::websocket_handshake::{self as handshake, Handshake};
use crate::websocket_session;

/// Whether a request asks for a WebSocket. Any other protocol is a CONNECT like any other.
pub(crate) fn is_asked_for(method: &Method, extensions: &Extensions) -> bool {
    let protocol = extensions.get::<Protocol>();
    *method == Method::CONNECT && protocol.is_some_and(|protocol| protocol.as_str() == "websocket")
}

impl Stream {
    /// Answers a handshake, and serves what comes of it.
    pub(crate) async fn answer_websocket(
        &self,
        (mut head, came): (request::Parts, RecvStream),
        crumbs: usize,
        respond: &mut SendResponse<Bytes>,
        mut turn: Turn,
    ) -> Result<Option<Encore>, Left> {
        turn.asks_for_websocket();
        // For those who judge it, it is what it would be in HTTP/1.
        head.method = Method::GET;
        let (handshake, opened, websocket) = match self.open(&head) {
            Ok(open) => open,
            Err(refusal) => return self.refuse(refusal, &Method::GET, respond, turn),
        };
        let asked = Asked { head, crumbs, body: None, websocket: Some(websocket) };
        let client = tokio::select! {
            biased;
            _ = poll_fn(|cx| respond.poll_reset(cx)) => return Err(Left::Unanswered),
            asked = self.ask(&mut turn, asked) => asked,
        };
        let mut client = match client {
            Ok(client) => client,
            Err(refusal) => return self.refuse(refusal, &Method::GET, respond, turn),
        };
        let acceptance = match self.answer_of(&mut client, None, respond).await? {
            Answer::Accepted(acceptance) => acceptance,
            // Here it would say that it is accepted.
            Answer::Whole(parts, _) | Answer::HeadOnly(parts) | Answer::Stream(parts)
                if parts.status.is_success() =>
            {
                return self.refuse(Refusal::BadDenial, &Method::GET, respond, turn);
            }
            answer => return self.write(answer, client, &Method::GET, respond, turn).await,
        };
        let mut answer = handshake.answer_stream(acceptance);
        self.complete(&mut answer, &mut turn);
        let send = self.begin(answer, false, respond)?;
        drop((client, turn));
        let io = StreamSocket::new(came, send, &self.running);
        // Apart, so that other streams need no room for it.
        Box::pin(websocket_session::run(io, Bytes::new(), opened, &self.worker)).await;
        Ok(None)
    }

    fn open(&self, head: &request::Parts) -> Result<(Handshake, Opened, WebSocketRequest), Refusal> {
        let settings = self.worker.config.websockets.ok_or(Refusal::BadMethod)?;
        let mut handshake = handshake::judge_stream(head)?;
        let (end, half) = websocket::open(Arc::clone(&self.worker.app), settings.max_queue);
        let deflation = handshake.agree(settings, &self.worker.memory);
        let asked = WebSocketRequest { subprotocols: std::mem::take(&mut handshake.subprotocols), half };
        Ok((handshake, Opened { end, settings, deflation }, asked))
    }
}
