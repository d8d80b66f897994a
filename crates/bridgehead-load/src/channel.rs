//! One worker's way to the server: a connection of its own, or a share of one.
//!
//! Not a protocol: `http1`, `http2` and `websocket` speak.
//!
//! Invariant: after an error a channel is not used again.

use crate::deadline::Deadline;
use crate::fault::Fault;
use crate::http1::Http1;
use crate::http2::Http2;
use crate::random::Random;
use crate::recipe::Recipe;
use crate::websocket::WebSocket;

/// A way that is open.
#[derive(Debug)]
pub(crate) enum Channel {
    Http1(Http1),
    Http2(Http2),
    WebSocket(WebSocket),
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Of HTTP; a message has none.
    pub(crate) status: Option<http::StatusCode>,
    /// Bytes of its body.
    pub(crate) bytes: u64,
    /// What is not as it should be.
    pub(crate) wrong: Option<String>,
}

impl Channel {
    /// Whether it takes another request; the server may have closed it meanwhile.
    pub(crate) async fn is_open(&mut self, deadline: &mut Deadline) -> bool {
        match self {
            Self::Http1(channel) => channel.is_open(deadline).await,
            Self::Http2(channel) => channel.is_open(deadline).await,
            Self::WebSocket(channel) => channel.is_open().await,
        }
    }

    /// One request and its whole answer; `None` if the connection ended before the server began with it.
    pub(crate) async fn ask(
        &mut self,
        recipe: &Recipe,
        number: u64,
        random: &mut Random,
        deadline: &mut Deadline,
    ) -> Result<Option<Answer>, Fault> {
        match self {
            Self::Http1(channel) => {
                channel.exchange(recipe.request(number, random), &recipe.expect, deadline).await
            }
            Self::Http2(channel) => {
                let asked = channel.exchange(recipe.request(number, random), &recipe.expect);
                deadline.over(asked).await?
            }
            Self::WebSocket(channel) => {
                let asked = channel.exchange(recipe.message(number, random), &recipe.expect);
                deadline.over(asked).await?
            }
        }
    }

    /// Leaves as the protocol has it, where a server would take a mere end for a failure.
    pub(crate) async fn finish(self) {
        if let Self::WebSocket(channel) = self {
            channel.finish().await;
        }
    }
}
