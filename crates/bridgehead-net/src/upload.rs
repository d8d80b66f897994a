//! Carries a request's body from the network to the application, no further ahead than it is read.
//!
//! Small bodies that are already there are taken before the application starts ([`Uploader::prefetch`]); the rest is a
//! task of its own ([`Uploader::pump`]), since hyper does not poll the answer while it cannot write.
//!
//! Invariant: at most the high-water mark, or as many chunks as an answer may have, and one frame wait for the application; above that its source is not asked, so
//! it does not read, and the client is held by TCP, or by its stream's window.

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use bridgehead_executor::{Executor, Sleep};
use bytes::Bytes;
use http_body::Body;
use hyper::body::Incoming;

use crate::exchange::{DISCARDED, Flow, Shared};
use crate::pace::{Pace, PaceLimits};
use crate::refusal::Refusal;

/// Time for the rest of a body that nobody reads.
const PATIENCE: Duration = Duration::from_secs(5);

/// When a body is first asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    AtOnce,
    /// The client waits for `100 Continue`, which hyper sends when the body is asked for.
    WhenWanted,
}

/// How far a body came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All of it is there.
    Complete,
    /// More is to come.
    Partial,
    /// The client broke off.
    CutOff,
    /// It is not taken any further.
    Refused(Refusal),
}

/// Where a body comes from.
pub(crate) trait Source: Body<Data = Bytes> + Unpin {
    /// Whether this is the client's leaving, and not its fault in framing.
    fn is_cut_off(error: &Self::Error) -> bool;
}

impl Source for Incoming {
    fn is_cut_off(error: &hyper::Error) -> bool {
        let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        io.is_none_or(|error| {
            !matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData)
        })
    }
}

/// The half of an exchange that bodies are put into.
#[derive(Debug)]
pub(crate) struct Uploader(pub(crate) Arc<Shared>);

impl Uploader {
    /// Says what is to come, and when.
    pub(crate) fn announce(&self, body: &impl Source, begin: Begin, limit: Option<u64>, keeps: bool) {
        let mut state = self.0.lock();
        state.upload.keeps = keeps;
        state.upload.limit = limit;
        state.upload.left = body.size_hint().exact();
        state.upload.begin = begin;
    }

    /// Takes what has already arrived. Gives hyper one more turn for each time it brought something, since it
    /// decodes one frame a turn.
    pub(crate) async fn prefetch(&self, body: &mut impl Source) -> Progress {
        let mut brought = false;
        poll_fn(|cx| {
            loop {
                if !self.0.lock().upload.has_room() {
                    return Poll::Ready(Progress::Partial);
                }
                match self.poll_frame(body, cx) {
                    Poll::Ready(Progress::Partial) => brought = true,
                    Poll::Ready(end) => return Poll::Ready(end),
                    Poll::Pending if std::mem::take(&mut brought) => {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    Poll::Pending => return Poll::Ready(Progress::Partial),
                }
            }
        })
        .await
    }

    /// Carries the rest, until it is complete, broken, too slow, or no longer of use.
    pub(crate) async fn pump(self, mut body: impl Source, limits: PaceLimits, executor: Executor) {
        let (mut pace, mut received) = (Pace::new(limits), 0);
        // What came with the head pays as well.
        self.count(&mut pace, &mut received);
        let mut timer: Option<Pin<Box<Sleep>>> = None;
        let mut discard = Discard::default();
        poll_fn(|cx| {
            loop {
                match ready!(self.poll_wanted(cx)) {
                    Wanted::Now => {}
                    Wanted::Never => return Poll::Ready(()),
                    Wanted::Elsewhere => return discard.poll(&mut body, &executor, cx),
                }
                let Poll::Ready(came) = self.poll_frame(&mut body, cx) else {
                    if !self.is_awaited() {
                        pace.rest();
                        return Poll::Pending;
                    }
                    pace.wait();
                    ready!(poll_deadline(&mut timer, pace.deadline(), &executor, cx));
                    self.end(Flow::Refused(Refusal::SlowBody));
                    return Poll::Ready(());
                };
                match came {
                    Progress::Partial => {
                        self.count(&mut pace, &mut received);
                        pace.rest();
                    }
                    Progress::Complete | Progress::CutOff | Progress::Refused(_) => return Poll::Ready(()),
                }
            }
        })
        .await;
    }

    /// Has what came since it was counted last pay for waiting.
    fn count(&self, pace: &mut Pace, counted: &mut u64) {
        let before = std::mem::replace(counted, self.0.lock().upload.received);
        pace.progress(usize::try_from(*counted - before).unwrap_or(usize::MAX));
    }

    /// Whether the application waits for more: only then a client can be too slow.
    fn is_awaited(&self) -> bool {
        self.0.lock().parked.is_some()
    }

    fn poll_wanted(&self, cx: &mut Context<'_>) -> Poll<Wanted> {
        let mut state = self.0.lock();
        if state.is_gone() {
            let asked = state.upload.begin == Begin::AtOnce || state.upload.wanted;
            return Poll::Ready(if asked && state.upload.keeps { Wanted::Elsewhere } else { Wanted::Never });
        }
        // Kept also while hyper is waited for: the exchange may end first.
        state.upload.uploader = Some(cx.waker().clone());
        let asked = state.upload.begin == Begin::AtOnce || state.upload.wanted;
        if asked && state.upload.has_room() { Poll::Ready(Wanted::Now) } else { Poll::Pending }
    }

    /// One frame from hyper into the exchange.
    fn poll_frame<S: Source>(&self, body: &mut S, cx: &mut Context<'_>) -> Poll<Progress> {
        if body.is_end_stream() {
            self.end(Flow::Complete);
            return Poll::Ready(Progress::Complete);
        }
        Poll::Ready(match ready!(Pin::new(&mut *body).poll_frame(cx)) {
            None => {
                self.end(Flow::Complete);
                Progress::Complete
            }
            Some(Err(error)) => {
                let (flow, progress) = if S::is_cut_off(&error) {
                    (Flow::Broken, Progress::CutOff)
                } else {
                    (Flow::Refused(Refusal::BadBody), Progress::Refused(Refusal::BadBody))
                };
                self.end(flow);
                progress
            }
            // Trailers have no place in ASGI and are never merged into the headers.
            Some(Ok(frame)) => match frame.into_data() {
                Ok(chunk) => {
                    let flow = if body.is_end_stream() { Flow::Complete } else { Flow::Open };
                    self.feed(chunk, flow)
                }
                Err(_) => Progress::Partial,
            },
        })
    }

    fn feed(&self, chunk: Bytes, flow: Flow) -> Progress {
        let mut state = self.0.lock();
        state.upload.received += chunk.len() as u64;
        if state.upload.limit.is_some_and(|limit| state.upload.received > limit) {
            drop(state);
            self.end(Flow::Refused(Refusal::LargeBody));
            return Progress::Refused(Refusal::LargeBody);
        }
        state.upload.size += chunk.len();
        state.upload.left = state.upload.left.map(|left| left.saturating_sub(chunk.len() as u64));
        state.upload.chunks.push_back(chunk);
        state.upload.flow = flow;
        let parked = state.unpark();
        drop(state);
        self.0.tell(parked);
        if flow == Flow::Complete { Progress::Complete } else { Progress::Partial }
    }

    fn end(&self, flow: Flow) {
        let mut state = self.0.lock();
        state.upload.flow = flow;
        let wakers = if let Flow::Refused(refusal) = flow { state.refuse(refusal) } else { Vec::new() };
        let parked = state.unpark();
        drop(state);
        self.0.tell(parked);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Takes what is left of a body that nobody reads, for as long as that is little and quick. Ended before the body is, hyper
/// closes the connection.
#[derive(Default)]
struct Discard {
    bytes: usize,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Discard {
    fn poll(&mut self, body: &mut impl Source, executor: &Executor, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(executor.sleep(PATIENCE)));
        while let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(cx) {
            let Some(Ok(frame)) = frame else { return Poll::Ready(()) };
            self.bytes += frame.data_ref().map_or(0, Bytes::len);
            if self.bytes > DISCARDED {
                return Poll::Ready(());
            }
        }
        timer.as_mut().poll(cx)
    }
}

/// Ready when there is a deadline and it has passed. The timer is made when somebody has to be waited for.
fn poll_deadline(
    timer: &mut Option<Pin<Box<Sleep>>>,
    deadline: Option<Instant>,
    executor: &Executor,
    cx: &mut Context<'_>,
) -> Poll<()> {
    let Some(deadline) = deadline else { return Poll::Pending };
    let timer = timer.get_or_insert_with(|| Box::pin(executor.sleep_until(deadline)));
    if timer.deadline() != deadline {
        timer.as_mut().reset(deadline);
    }
    timer.as_mut().poll(cx)
}

#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Now,
    /// The answer is complete: what is left makes room for the next request.
    Elsewhere,
    Never,
}
