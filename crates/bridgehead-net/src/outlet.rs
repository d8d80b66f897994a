//! Who takes access lines, which may change while clients are served.
//!
//! Not how lines look (`access_layout`), and not who decides: the application's loggers do, elsewhere.
//!
//! Invariant: a line goes to whoever is asked to take it when it is written; asking costs one load.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use crate::log_pipe::LogPipe;

/// Who takes access lines.
#[derive(Clone, Debug)]
pub enum Sink {
    /// They are not made.
    Nobody,
    /// A descriptor, by a thread of its own. The first one is kept: another in its place is not looked at.
    Pipe(Arc<LogPipe>),
    /// Whoever answers requests, by [`App::report`](crate::App::report).
    App,
}

const NOBODY: u8 = 0;
const PIPE: u8 = 1;
const APP: u8 = 2;

/// Where access lines leave.
#[derive(Debug)]
pub struct Outlet {
    taker: AtomicU8,
    pipe: OnceLock<Arc<LogPipe>>,
}

/// Who takes one line.
pub(crate) enum Taker<'a> {
    Nobody,
    Pipe(&'a LogPipe),
    App,
}

impl Outlet {
    /// Begins with this one.
    #[must_use]
    pub fn to(sink: Sink) -> Arc<Self> {
        let outlet = Self { taker: AtomicU8::new(NOBODY), pipe: OnceLock::new() };
        outlet.turn(sink);
        Arc::new(outlet)
    }

    /// From here on that one takes them.
    pub fn turn(&self, sink: Sink) {
        let taker = match sink {
            Sink::Nobody => NOBODY,
            Sink::Pipe(pipe) => {
                self.pipe.get_or_init(|| pipe);
                PIPE
            }
            Sink::App => APP,
        };
        self.taker.store(taker, Ordering::Release);
    }

    /// What was ever opened, whether it takes lines now or not.
    #[must_use]
    pub fn pipe(&self) -> Option<&Arc<LogPipe>> {
        self.pipe.get()
    }

    /// Whether somebody takes them.
    pub(crate) fn is_open(&self) -> bool {
        self.taker.load(Ordering::Relaxed) != NOBODY
    }

    pub(crate) fn taker(&self) -> Taker<'_> {
        match (self.taker.load(Ordering::Acquire), self.pipe.get()) {
            (PIPE, Some(pipe)) => Taker::Pipe(pipe),
            (APP, _) => Taker::App,
            _ => Taker::Nobody,
        }
    }
}
