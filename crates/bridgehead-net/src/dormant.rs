//! A connection that sleeps before its first byte, or between two requests, so that it holds no buffers.
//!
//! hyper keeps what it read and wrote with for as long as it has a connection; it gets one when something comes, and one
//! that says nothing for a moment is taken from it until then.
//!
//! Invariant: nothing is taken out of the stream here, and nothing that came is lost.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bridgehead_executor::poll_deadline;
use bytes::Bytes;

use crate::accept::{Worker, driver_turn};
use crate::client::Left;
use crate::inspector::PREFACE_LINE;
use crate::line::{Line, Phase};
use crate::shutdown::{Drain, Stage};
use crate::socket::Sight;
use crate::tally::Hardship;

/// How long a connection is idle before it sleeps. One that is used more often never does: to wake costs about two
/// microseconds.
pub(crate) const AWAKE: Duration = Duration::from_secs(1);

/// Waits for a first byte, and gives how the connection was left if its time passes without one, or if HTTP/2 begins.
pub(crate) async fn before_the_first_byte(line: &Line, worker: &Worker) -> Option<Left> {
    let Phase::Fresh(since) = *line.phase() else { return None };
    let deadline = line.config.bounds.first_byte.map(|time| since + time);
    let mut watch = worker.watch.clone();
    let mut timer = pin!(worker.executor.sleep_until(deadline.unwrap_or(since)));
    tokio::select! {
        biased;
        speaks = line.socket.begins_with(PREFACE_LINE) => {
            // It has buffers of its own, between which hyper's would leave holes.
            (speaks && line.speaks_http2()).then(|| Left::Http2(Bytes::new()))
        }
        // From then on it has a moment, which whoever is awake knows of.
        _ = watch.reached(Drain::Unasked.next_stage()) => None,
        () = poll_fn(|cx| poll_deadline(timer.as_mut(), deadline, cx)) => {
            line.cut_off(Hardship::Silence);
            Some(Left::Ended)
        }
    }
}

/// Waits for the next request, and gives how the connection was left if none comes.
pub(crate) async fn sleep(line: &Line, since: Instant, worker: &Worker) -> Option<Left> {
    worker.reclaim.is_empty_handed();
    let mut watch = worker.watch.clone();
    let executor = &worker.executor;
    let mut timer = pin!(executor.sleep_until(line.idles_until(since)));
    tokio::select! {
        biased;
        sight = poll_fn(|cx| line.socket.poll_sight(cx)) => left_by(sight),
        stage = watch.reached(Stage::Draining) => {
            if stage == Stage::Aborting {
                return Some(Left::Gone);
            }
            // A request that is on its way has had its chance then.
            driver_turn(executor).await;
            match line.socket.poll_sight(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(sight) => left_by(sight),
                Poll::Pending => Some(Left::Ended),
            }
        }
        // It moves when connections run short.
        () = poll_fn(|cx| poll_deadline(timer.as_mut(), Some(line.idles_until(since)), cx)) => {
            line.was_idle();
            Some(Left::Ended)
        }
    }
}

fn left_by(sight: Sight) -> Option<Left> {
    match sight {
        Sight::Bytes => None,
        Sight::Closed | Sight::Broken => Some(Left::Ended),
    }
}
