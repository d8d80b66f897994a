//! One application's life: started once, shut down once.
//!
//! Not who waits for it, nor for how long; nor what it means that the application returns or raises, which is up
//! to the worker.
//!
//! Invariant: `lifespan.startup` and `lifespan.shutdown` are given at most once each, and each is answered at most
//! once.
//!
//! | state          | receive                   | shut down     | startup.complete | startup.failed | shutdown.complete | shutdown.failed |
//! |----------------|---------------------------|---------------|------------------|----------------|-------------------|-----------------|
//! | `Fresh`        | startup, → `Starting`     | –             | misuse           | misuse         | misuse            | misuse          |
//! | `Starting`     | wait                      | –             | `Started`        | `Failed`       | misuse            | misuse          |
//! | `Started`      | wait                      | `ShutdownDue` | misuse           | misuse         | misuse            | misuse          |
//! | `ShutdownDue`  | shutdown, → `ShuttingDown`| –             | misuse           | misuse         | misuse            | misuse          |
//! | `ShuttingDown` | wait                      | –             | misuse           | misuse         | `Done`            | `Failed`        |
//! | `Done`         | wait                      | –             | misuse           | misuse         | misuse            | misuse          |
//! | `Failed`       | wait                      | –             | misuse           | misuse         | misuse            | misuse          |
//!
//! A third `receive()` waits for ever, as under uvicorn: applications that loop over `receive()` without leaving
//! the loop are common and do no harm. The worker cancels the call once it is `Done` or `Failed`. Stricter than
//! uvicorn is that an answer must follow its question: uvicorn takes `lifespan.shutdown.complete` from an
//! application that was never told to shut down, and would then not wait for its shutdown at all.

use crate::message::LifespanMessage;
use crate::misuse::Misuse;

/// How far an application's life has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lifespan {
    /// `lifespan.startup` was not received yet.
    #[default]
    Fresh,
    /// `lifespan.startup` was received and not answered.
    Starting,
    /// The application serves.
    Started,
    /// `lifespan.shutdown` is to be received.
    ShutdownDue,
    /// `lifespan.shutdown` was received and not answered.
    ShuttingDown,
    /// The application has shut down.
    Done,
    /// The application said that its startup or its shutdown failed.
    Failed,
}

/// What a call of `receive()` is to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifespanReceipt {
    /// `lifespan.startup`.
    Startup,
    /// `lifespan.shutdown`.
    Shutdown,
    /// Nothing before the state changes; then ask again.
    Wait,
}

impl Lifespan {
    /// What a call of `receive()` is to be given now, and the state once it was.
    pub fn receive(self) -> (Self, LifespanReceipt) {
        match self {
            Self::Fresh => (Self::Starting, LifespanReceipt::Startup),
            Self::ShutdownDue => (Self::ShuttingDown, LifespanReceipt::Shutdown),
            Self::Starting | Self::Started | Self::ShuttingDown | Self::Done | Self::Failed => {
                (self, LifespanReceipt::Wait)
            }
        }
    }

    /// The server has closed its connections. Changes only what is `Started`: nothing else has anything to shut
    /// down, so a server asked to stop while it starts waits for `Started` first.
    #[must_use]
    pub fn shut_down(self) -> Self {
        match self {
            Self::Started => Self::ShutdownDue,
            other => other,
        }
    }

    /// Judges a message of the application.
    pub fn send(self, message: LifespanMessage) -> Result<Self, Misuse> {
        match (self, message) {
            (Self::Starting, LifespanMessage::StartupComplete) => Ok(Self::Started),
            (Self::Starting, LifespanMessage::StartupFailed) => Ok(Self::Failed),
            (Self::ShuttingDown, LifespanMessage::ShutdownComplete) => Ok(Self::Done),
            (Self::ShuttingDown, LifespanMessage::ShutdownFailed) => Ok(Self::Failed),
            (state, message) => Err(Misuse::OutOfPlace { came: message.name(), due: state.due() }),
        }
    }

    fn due(self) -> &'static str {
        match self {
            Self::Fresh => "receiving `lifespan.startup`",
            Self::Starting => "`lifespan.startup.complete` or `lifespan.startup.failed`",
            Self::Started | Self::ShutdownDue => "receiving `lifespan.shutdown`",
            Self::ShuttingDown => "`lifespan.shutdown.complete` or `lifespan.shutdown.failed`",
            Self::Done | Self::Failed => "nothing more",
        }
    }
}
