//! Who looks how the loop fares: how late it comes, how long its steps hold it; and who is told when one does so for too long.
//!
//! A thread looks (`lookout.rs`), which never takes the GIL and touches no Python: it goes on while the loop is blocked. Of what is
//! ours the loop's thread says when it begins (`pace.rs`). For callbacks that are not, such as a handler that asyncio resumes, the
//! loop is asked: what it does when the question comes is what holds it. One that waits for events (`idleness.rs`) is left alone.
//!
//! Invariant: who looks waits for nobody; what takes the GIL is the census's.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::TrySendError;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bridgehead_metrics::{Cause, Gauge};

use crate::census::{Census, Errand, Inquiry};
use crate::ffi::{self, ThreadClock};
use crate::idleness::Idleness;
use crate::inbox::Probe;
use crate::lookout::{Lookout, Want};
use crate::pace::Pace;

/// Between two looks.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// The threads that look.
pub(crate) struct Health {
    pace: Arc<Pace>,
    thread: JoinHandle<()>,
    census: Census,
}

/// How it is looked at a loop that has rested for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rests {
    /// Hardly ever: whatever it does rouses who looks.
    Roused,
    /// More rarely: of one that polls by itself only what asks the bridge for something is heard of.
    Unheard,
    /// As ever.
    Watched,
}

impl Rests {
    /// Between two looks.
    fn doze(self) -> Option<Duration> {
        match self {
            Self::Roused => Some(Duration::from_secs(2)),
            Self::Unheard => Some(Duration::from_millis(250)),
            Self::Watched => None,
        }
    }
}

impl Health {
    /// Looks after the loop of this thread, which is asked by this.
    pub(crate) fn start(
        pace: Arc<Pace>,
        ask: impl Fn(Probe) + Send + 'static,
        rests: Rests,
        mut inquiry: Inquiry,
    ) -> io::Result<Self> {
        let (suspect, slow, stack) = (inquiry.suspect, pace.slow, inquiry.stack.take());
        // Who looked before has numbered steps as well.
        pace.sheet.set(Gauge::BlockedAt, 0);
        let idleness = Idleness::of_this_thread(suspect);
        let (census, errands) =
            Census::start(Arc::clone(&pace), pace.sheet.clone(), inquiry, ThreadClock::of_this_thread())?;
        let watched = Arc::clone(&pace);
        let thread = thread::Builder::new().name("bridgehead-health".to_owned()).spawn(move || {
            ffi::block_signals();
            let (mut lookout, mut idleness) =
                (Lookout::new(slow, (suspect, stack), Instant::now()), idleness);
            // How long a step was is told, though it may have to wait.
            let mut waits = None;
            while watched
                .wait(rests.doze().filter(|_| idleness.lasts()), lookout.due(Instant::now(), &watched))
            {
                if lookout.hear(&watched.sheet) {
                    idleness.answered();
                }
                let seen = idleness.look();
                let wants = lookout.look(Instant::now(), &watched, seen);
                for want in waits.take().into_iter().chain(wants) {
                    match want {
                        Want::Answer(probe) => ask(probe),
                        // One that is busy has not been given the GIL since the last: it is told of nothing more.
                        Want::Errand(errand) => match errands.try_send(errand) {
                            Err(TrySendError::Full(errand @ Errand::Over(_))) => {
                                waits = Some(Want::Errand(errand));
                            }
                            // It was counted, so it has a cause.
                            Err(TrySendError::Full(Errand::Slow(_))) => {
                                watched.sheet.blame(Cause::Unknown);
                            }
                            Err(TrySendError::Full(Errand::Unseen(steps))) => {
                                steps.iter().for_each(|_| watched.sheet.blame(Cause::Unknown));
                            }
                            Ok(()) | Err(_) => {}
                        },
                    }
                }
            }
            // What is over by now is told of to the end; the census may take the time that it needs.
            let last = lookout.finish(Instant::now(), &watched);
            let last = waits.into_iter().filter_map(Want::errand).chain(last);
            last.for_each(|errand| drop(errands.send(errand)));
        })?;
        Ok(Self { pace, thread, census })
    }

    /// Ends; to be called without the GIL.
    pub(crate) fn stop(self) -> thread::Result<()> {
        self.pace.stop();
        self.thread.join()?;
        self.census.join()
    }
}
