//! A connection that sleeps between two requests, so that it holds no buffers.
//!
//! hyper keeps what it read and wrote with for as long as it has a connection; one that says nothing for a moment is
//! taken from it, and given to it anew when something comes.
//!
//! Invariant: nothing is taken out of the stream here, and nothing that came is lost.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::accept::{Worker, driver_turn};
use crate::client::Left;
use crate::line::Line;
use crate::shutdown::Stage;
use crate::socket::Sight;
use crate::timers::poll_deadline;

/// How long a connection is idle before it sleeps. One that is used more often never does: to wake costs about two
/// microseconds.
pub(crate) const AWAKE: Duration = Duration::from_secs(1);

/// Waits for the next request, and gives how the connection was left if none comes.
pub(crate) async fn sleep(line: &Line, since: Instant, worker: &Worker) -> Option<Left> {
    worker.reclaim.fell_asleep();
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
