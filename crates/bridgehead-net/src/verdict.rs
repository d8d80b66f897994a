//! What is said of a connection that sends what nobody answers: to its client, to the log, to who counts.
//!
//! Not the judging, which `bridgehead-heads` and `service` do, nor what becomes of the connection.

use std::sync::Arc;

use bridgehead_executor::Executor;
use bridgehead_proxies::Peer;
use http::StatusCode;

use crate::access::Record;
use crate::app::Report;
use crate::config::Refusals;
use crate::farewell;
use crate::line::Line;
use crate::refusal::{self, Refusal};
use crate::request_id::Trace;
use crate::tally::Hardship;

impl Line {
    /// hyper answers a head that it cannot read, and no request comes of it: it is told of here, should there ever be one
    /// that the guard has let through.
    pub(crate) fn record_refusal(&self, ended: hyper::Result<()>) {
        let Err(error) = ended else { return };
        let Some(status) = refusal::status_of(&error) else { return };
        self.will_linger();
        self.config.tally.met(Hardship::UnreadableHead);
        // hyper's answer to it has no body.
        self.record(status, 0, || format!("{}: {error}", status.canonical_reason().unwrap_or_default()));
    }

    /// Says to the client why nothing comes of its head.
    pub(crate) async fn refuse(&self, refusal: Refusal, executor: &Executor) {
        self.config.tally.refused(refusal);
        self.will_linger();
        let bytes_out = farewell::say(refusal, self, executor).await;
        self.record(refusal.status(), bytes_out, || refusal.text().to_owned());
    }

    /// A client loses its connection for that, without an answer.
    pub(crate) fn cut_off(&self, hardship: Hardship) {
        self.config.tally.met(hardship);
        self.tell_refusal(&self.peer, || hardship.text().to_owned(), None);
    }

    fn record(&self, status: StatusCode, bytes_out: usize, reason: impl FnOnce() -> String) {
        self.tell_refusal(&self.peer, reason, None);
        if let Some(log) = &self.config.access_log {
            log.write(&Record::unread(status, bytes_out), &self.peer, None, &*self.app);
        }
    }

    /// Says to who wants to know why a request did not reach the application.
    pub(crate) fn tell_refusal(
        &self,
        peer: &Peer,
        reason: impl FnOnce() -> String,
        trace: Option<&Arc<Trace>>,
    ) {
        if self.config.refusals == Refusals::Reported {
            self.app.report(Report::Refused {
                client: peer.client.escaped(),
                reason: reason(),
                trace: trace.cloned(),
            });
        }
    }
}
