//! One request of HTTP/1 that a file answers.
//!
//! Not what is answered: that is `static_files`'s.
//!
//! Invariant: a request that is not in order is never answered by a file, and what a file answers has what every answer has.

use std::sync::Arc;

use bridgehead_heads::judge;
use bridgehead_static::{Asked, Content};
use http::{Response, request};

use crate::accept::Worker;
use crate::body::AnswerBody;
use crate::file_body::FileBody;
use crate::line::Line;
use crate::service;
use crate::static_files::Served;
use crate::turn::Turn;
use crate::websocket_handshake;

/// What a request asks for, if that is a file's, and it is in order.
pub(crate) fn asked(worker: &Worker, head: &request::Parts) -> Option<Asked> {
    let asked = worker.config.files.as_ref()?.asked(head)?;
    let is_websocket = !asked.is_alone() && websocket_handshake::is_asked_for(head);
    (!is_websocket && judge(head).is_ok()).then_some(asked)
}

/// Answers it, or gives it back for the application. The last part says whether the whole of it has been read.
pub(crate) async fn answer(
    worker: &Worker,
    line: &Arc<Line>,
    asked: Asked,
    (head, mut turn, is_read): (request::Parts, Turn, bool),
) -> Result<Response<AnswerBody>, (request::Parts, Turn)> {
    let version = head.version;
    let Some(files) = &worker.config.files else { return Err((head, turn)) };
    let peer = Arc::clone(turn.peer());
    let (reply, permit) = match files.serve(asked, head, &peer, worker).await {
        Served::Reply(reply, permit) => (reply, permit),
        Served::Refused(refusal) => return Ok(service::refuse(refusal, line, version, turn)),
        Served::Elsewhere(head) => return Err((head, turn)),
    };
    if let Some(why) = reply.refusal {
        turn.has_no_file(why);
    }
    let mut response = reply.head;
    if let Some(reason) = line.config.reasons.of(response.status()) {
        response.extensions_mut().insert(reason);
    }
    service::complete(&mut response, &line.config, &mut turn);
    if !is_read {
        line.will_linger();
    }
    if !is_read || line.is_last_call() {
        bridgehead_heads::say_close(&mut response, version);
    }
    let body = match reply.content {
        Content::Nothing => AnswerBody::whole(bytes::Bytes::new(), turn),
        Content::Whole(body) => AnswerBody::whole(body, turn),
        Content::File(reading) => AnswerBody::file(FileBody::new(reading, permit, worker.pool.clone()), turn),
    };
    Ok(response.map(|()| body))
}
