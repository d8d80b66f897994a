//! One request of HTTP/2 that a file answers.
//!
//! Not what is answered (`static_files`), and not how its body meets windows (`stream_answer`).
//!
//! Invariant: as for HTTP/1 (`static_answer`).

use std::future::poll_fn;
use std::sync::Arc;

use bridgehead_static::{Asked, Content};
use bytes::Bytes;
use h2::server::SendResponse;
use http::request;

use crate::file_body::FileBody;
use crate::static_files::Served;
use crate::stream::{Left, Stream};
use crate::stream_answer::Writing;
use crate::stream_head;
use crate::turn::Turn;

/// What became of it.
pub(crate) enum Written {
    Whole,
    /// It is the application's.
    Not(Box<(request::Parts, Turn)>),
}

impl Stream {
    /// What a request asks for, if that is a file's, and it is in order.
    pub(crate) fn asks_for_file(&self, head: &request::Parts, crumbs: usize) -> Option<Asked> {
        let asked = self.line.config.files.as_ref()?.asked(head)?;
        stream_head::judge(head, crumbs, &self.line.config.bounds.head).is_ok().then_some(asked)
    }

    pub(crate) async fn answer_by_file(
        &self,
        asked: Asked,
        (head, mut turn): (request::Parts, Turn),
        respond: &mut SendResponse<Bytes>,
    ) -> Result<Written, Left> {
        let method = head.method.clone();
        let Some(files) = &self.line.config.files else { return Ok(Written::Not((head, turn).into())) };
        let peer = Arc::clone(turn.peer());
        let served = tokio::select! {
            biased;
            _ = poll_fn(|cx| respond.poll_reset(cx)) => return Err(Left::Unanswered),
            served = files.serve(asked, head, &peer, &self.worker) => served,
        };
        let (reply, permit) = match served {
            Served::Reply(reply, permit) => (reply, permit),
            Served::Elsewhere(head) => return Ok(Written::Not((head, turn).into())),
            Served::Refused(refusal) => {
                return self.refuse(refusal, &method, respond, turn).map(|_| Written::Whole);
            }
        };
        if let Some(why) = reply.refusal {
            turn.has_no_file(why);
        }
        let mut head = reply.head;
        self.complete(&mut head, &mut turn);
        let ends = match &reply.content {
            Content::Nothing => true,
            Content::Whole(body) => body.is_empty(),
            Content::File(_) => false,
        };
        let send = self.begin(head, ends, respond)?;
        let writing = Writing::new(self, send, turn);
        match reply.content {
            Content::Nothing => {}
            Content::Whole(body) => writing.write_whole(body).await?,
            Content::File(reading) => {
                let file = FileBody::new(reading, permit, self.worker.pool.clone());
                writing.write_file(file).await?;
            }
        }
        Ok(Written::Whole)
    }
}
