//! One request's time on its connection: what is known of it, and what comes after.
//!
//! Invariant: the connection is busy for as long as its turn lives. One of HTTP/2 has many, and counts
//! them itself.

use std::sync::Arc;
use std::task::Context;

use bridgehead_metrics::{Counter, Gauge};
use bridgehead_proxies::Peer;
use http::{HeaderMap, request};

use crate::access::Record;
use crate::client_half::{Encore, Witness};
use crate::config::Config;
use crate::line::{Line, Lookout, Phase};
use crate::log_pipe::Written;
use crate::meters::Course;
use crate::refusal::Refusal;
use crate::request_id::Trace;
use crate::socket::Socket;
use crate::story::Story;
use crate::traced::{self, Traced};

/// One request's time on the connection; dropping it makes the connection idle and writes the access line.
#[derive(Debug)]
pub(crate) struct Turn {
    line: Arc<Line>,
    peer: Arc<Peer>,
    record: Option<Box<Record>>,
    trace: Option<Arc<Trace>>,
    next: Next,
    /// What is measured of it, if anything is.
    course: Option<Course>,
    /// Its span, if that is kept.
    traced: Option<Box<Traced>>,
    story: Option<Arc<Story>>,
}

/// What a turn leaves behind.
#[derive(Debug)]
enum Next {
    Idle,
    Encore(Encore),
    Closing,
    /// The connection has other turns.
    Others,
}

/// What both sides are to know of it, if anybody measures or traces.
fn story(config: &Config, head: &request::Parts) -> Option<Arc<Story>> {
    if config.meters.is_none() && config.tracer.is_none() {
        return None;
    }
    let span = config.tracer.as_ref().map(|tracer| traced::handed(tracer, &head.headers));
    let sheet = config.meters.as_ref().map(|meters| meters.sheet.clone());
    Some(Arc::new(Story::begin(sheet, span)))
}

impl Turn {
    pub(crate) fn new(line: Arc<Line>, peer: Arc<Peer>, head: &request::Parts) -> Self {
        let record = line.config.access_log.as_ref().and_then(|log| Record::begin(log, head));
        let trace = line.config.request_ids.as_ref().map(|ids| Arc::new(ids.trace(&head.headers)));
        let story = story(&line.config, head);
        let meters = line.config.meters.as_ref().zip(story.as_ref());
        let course = meters.map(|(meters, story)| Course::begin(meters, head, peer.scheme, story));
        let tracer = line.config.tracer.as_ref().zip(story.as_ref());
        let traced = tracer.and_then(|(tracer, story)| Traced::begin(tracer, head, story));
        Self { line, peer, record, trace, next: Next::Idle, story, course, traced }
    }

    /// One of many at a time.
    pub(crate) fn beside_others(line: Arc<Line>, peer: Arc<Peer>, head: &request::Parts) -> Self {
        let mut turn = Self::new(line, peer, head);
        turn.next = Next::Others;
        turn
    }

    /// Whose request this is: it hears of the client's leaving.
    pub(crate) fn watched_by(&self, witness: Witness) {
        *self.line.phase() = Phase::Busy(Lookout::Witness(witness));
    }

    /// Whether the client is to take what it was given, before there is more for it.
    pub(crate) fn is_held_up(&self, cx: &mut Context<'_>) -> bool {
        self.line.socket.poll_at_rest(cx).is_pending()
    }

    /// Who sent it.
    pub(crate) fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// Where its answer is written.
    pub(crate) fn socket(&self) -> &Socket {
        &self.line.socket
    }

    /// What is known of it on both sides, if anything is measured.
    pub(crate) fn story(&self) -> Option<Arc<Story>> {
        self.story.clone()
    }

    /// What it is called, if ids are given.
    pub(crate) fn trace(&self) -> Option<&Arc<Trace>> {
        self.trace.as_ref()
    }

    /// What the application is to read in its head of what comes from us.
    pub(crate) fn name_span(&self, headers: &mut HeaderMap) {
        if let Some(span) = self.story.as_ref().and_then(|story| story.span()) {
            traced::name_in(headers, span);
        }
    }

    /// It asks for a WebSocket, which its access line says.
    pub(crate) fn asks_for_websocket(&mut self) {
        if let Some(record) = &mut self.record {
            record.asks_for_websocket();
        }
    }

    /// Whose body is counted for its access line.
    pub(crate) fn counts(&mut self, upload: &Witness) {
        if let Some(record) = &mut self.record {
            record.counts(upload);
        }
    }

    /// The head of its answer is complete.
    pub(crate) fn answered(&mut self, status: http::StatusCode, headers: &HeaderMap) {
        if let (Some(course), Some(meters)) = (&mut self.course, &self.line.config.meters) {
            course.answered(meters, status);
        }
        if let Some(traced) = &mut self.traced {
            traced.answered(status);
        }
        if let (Some(record), Some(log)) = (&mut self.record, &self.line.config.access_log) {
            record.answered(log, status, headers);
        }
    }

    /// A file was due, and this is why it is not what is answered.
    pub(crate) fn has_no_file(&self, why: &'static str) {
        self.line.tell_refusal(&self.peer, || why.to_owned(), self.trace.as_ref());
    }

    /// It was a probe, and was told this.
    pub(crate) fn was_a_probe(&mut self, told: http::StatusCode) {
        if let (Some(course), Some(meters)) = (self.course.take(), &self.line.config.meters) {
            course.was_a_probe(meters, told);
        }
    }

    /// It does not reach the application, or gets no answer of it, for this reason.
    pub(crate) fn refused(mut self, refusal: Refusal) -> Self {
        self.line.config.tally.refused(refusal);
        if let Some(course) = &mut self.course {
            course.refused(refusal);
        }
        if let Some(traced) = &mut self.traced {
            traced.refused(refusal);
        }
        // What the application raised is in the log.
        if refusal != Refusal::ApplicationFailed {
            self.line.tell_refusal(&self.peer, || refusal.text().to_owned(), self.trace.as_ref());
        }
        self
    }

    /// The same when its answer has begun: its client cannot be told.
    pub(crate) fn refused_late(&self, refusal: Refusal) {
        self.line.config.tally.refused(refusal);
        self.line.tell_refusal(&self.peer, || refusal.text().to_owned(), self.trace.as_ref());
    }

    pub(crate) fn wrote(&mut self, bytes: usize) {
        if let Some(record) = &mut self.record {
            record.wrote(bytes);
        }
    }

    pub(crate) fn close_after(&mut self) {
        self.next = Next::Closing;
    }

    /// Every byte is written; the application has the last word on what comes then.
    pub(crate) fn wait_for(&mut self, encore: Encore) {
        self.next = Next::Encore(encore);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let alone = !matches!(self.next, Next::Others);
        let after = match std::mem::replace(&mut self.next, Next::Idle) {
            Next::Idle => Some(self.line.rest()),
            Next::Encore(encore) => Some(Phase::Encore(encore)),
            Next::Closing => Some(Phase::Closing),
            Next::Others => None,
        };
        if let Some(after) = after {
            *self.line.phase() = after;
        }
        let meters = self.line.config.meters.as_ref();
        if let Some(meters) = meters {
            if alone {
                meters.sheet.down(Gauge::Http1Busy);
            }
            self.course.take().into_iter().for_each(|course| course.end(meters));
        }
        if let Some(traced) = self.traced.take() {
            traced.end(&self.peer);
        }
        if let (Some(record), Some(log)) = (self.record.take(), &self.line.config.access_log) {
            let written = log.write(&record, &self.peer, self.trace.as_ref(), &*self.line.app);
            if let (Written::Dropped, Some(meters)) = (written, meters) {
                meters.sheet.add(Counter::LinesDropped, 1);
            }
        }
    }
}

// A turn shows whose it is.
impl std::fmt::Debug for Line {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Line").field("peer", &self.peer).finish_non_exhaustive()
    }
}
