//! Requests that files answer, without the application and without Python.
//!
//! What is answered is `bridgehead-static`'s; how it is written is `static_answer`'s, and in HTTP/2 `stream_static`'s.
//!
//! Invariant: nothing here blocks: files are opened on the blocking pool. There are never more open, or being opened, than
//! there are permits, whoever has left meanwhile.

use std::sync::Arc;

use bridgehead_admission::{Admission, Permit, TurnedAway};
use bridgehead_proxies::Peer;
use bridgehead_static::{Asked, Mounts, Outcome, Reply};
use http::request;
use tokio::task::JoinError;

use crate::accept::Worker;
use crate::refusal::Refusal;

/// What files answer.
#[derive(Debug)]
pub struct StaticFiles {
    /// Which paths.
    pub mounts: Arc<Mounts>,
    /// Below which clients see them, unless a proxy says otherwise.
    pub root_path: String,
    /// How many may be open, and how others wait.
    pub admission: Admission,
}

/// What becomes of a request for a file.
pub(crate) enum Served {
    /// A file that is read on has its permit until it is read.
    Reply(Box<Reply>, Permit),
    Refused(Refusal),
    /// It is the application's.
    Elsewhere(request::Parts),
}

impl StaticFiles {
    /// What a request asks for, if that is theirs.
    pub(crate) fn asked(&self, head: &request::Parts) -> Option<Asked> {
        self.mounts.find(head.uri.path()).filter(|asked| asked.concerns(&head.method))
    }

    pub(crate) async fn serve(
        &self,
        asked: Asked,
        head: request::Parts,
        peer: &Peer,
        worker: &Worker,
    ) -> Served {
        let permit = match self.admission.enter(|patience| worker.executor.sleep(patience)).await {
            Ok(permit) => permit,
            Err(TurnedAway::Full) => return Served::Refused(Refusal::FilesFull),
            Err(TurnedAway::Late) => return Served::Refused(Refusal::FilesTooLong),
        };
        let prefix = peer.prefix().unwrap_or(&self.root_path).trim_end_matches('/').to_owned();
        let errand = worker.pool.spawn_blocking(move || {
            let outcome = asked.answer(&head, &prefix);
            (outcome, head, permit)
        });
        match settled(errand.await) {
            Some((Outcome::Reply(reply), _, permit)) => Served::Reply(reply, permit),
            Some((Outcome::Elsewhere, head, _)) => Served::Elsewhere(head),
            None => std::future::pending().await,
        }
    }
}

/// What an errand brought. A panic in it is its connection's; `None` when the runtime has ended, and nobody waits.
pub(crate) fn settled<T>(joined: Result<T, JoinError>) -> Option<T> {
    match joined.map_err(JoinError::try_into_panic) {
        Ok(brought) => Some(brought),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => None,
    }
}
