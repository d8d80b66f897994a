//! The names of a sheet's words, and who writes each.
//!
//! Not where they lie (`sheet`). A new one goes to the end of its list: a parent that was replaced by a newer version reads
//! what older workers write.
//!
//! | written by | what |
//! |---|---|
//! | the network, in whichever thread turns it | requests, connections, bytes, WebSockets, refusals, waiting |
//! | the thread that exports spans, and the network's where one finds no room | [`Counter::SpansExported`] to [`Counter::SpansUnsent`] |
//! | the loop's thread | running requests, the times of queue and handler |
//! | the health of the loop, in Rust, as `bridgehead.diagnostics` shows it | [`Gauge::LoopLag`] to [`Gauge::BlockedBy`], [`Gauge::BlockedStep`] to [`Gauge::ExecutorHidden`], [`Counter::SlowSteps`], [`Timing::LoopLag`], [`Timing::GilWait`] |
//! | the worker as a whole | [`Gauge::Condition`], [`Gauge::Process`], [`Gauge::StartedAt`], [`Gauge::Beat`] |

/// How many reasons there may be for which clients are refused; their names are the network's.
pub const REASONS: usize = 64;

/// What may go up and down, and is gone with its worker but for the highest, and how the last one that went was left. Times are in microseconds unless it is said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Gauge {
    /// A [`Condition`].
    Condition,
    /// The number of the worker's process.
    Process,
    /// When it was ready, in milliseconds since 1970.
    StartedAt,
    /// When its loop has given a sign of life last, in milliseconds of the machine's monotonic clock; zero: never yet.
    Beat,
    /// Requests between their head and the last byte of their answer: the sum of their kinds, when it is read.
    Active,
    /// Requests that are with the application.
    Running,
    /// Requests that wait for a permit.
    Waiting,
    /// Requests that wait for the loop.
    Inbox,
    /// Connections that are open.
    Connections,
    /// Of these, the ones of HTTP/1 that have a request.
    Http1Busy,
    /// Those that speak HTTP/2.
    Http2,
    /// Those that are WebSockets.
    WebSockets,
    /// How many requests may be with the application; zero is any number.
    Limit,
    /// How late the loop came last to something that was due.
    LoopLag,
    /// The longest step since the worker began.
    LongestStep,
    /// Tasks of the loop that are not done.
    PendingTasks,
    /// Calls that wait for a thread of the default executor.
    ExecutorQueue,
    /// Threads of the default executor.
    ExecutorThreads,
    /// How many it may have.
    ExecutorMost,
    /// The last wait of a thread for the GIL, sampled.
    GilWait,
    /// The longest of those.
    GilWaitLongest,
    /// For how long the step that runs now has held the loop, if that is too long already.
    BlockedFor,
    /// By what, as far as is known; a [`crate::Cause`].
    BlockedBy,
    /// How many requests may wait for a permit now; zero: none ever does.
    QueueLimit,
    /// How many may wait for the loop.
    InboxLimit,
    /// The number of the step that holds the loop for too long; zero while none does.
    BlockedStep,
    /// Where it is told of: the number of the step that was told of last, and of its record.
    BlockedAt,
    /// Whether the default executor is one of which nothing is known: what is said of it means nothing then.
    ExecutorHidden,
}

impl Gauge {
    /// How many there may be.
    pub(crate) const ROOM: usize = 64;
    /// Those that only grow: of several sheets the highest counts, and it is kept when its worker is gone.
    pub(crate) const HIGHEST: [Self; 2] = [Self::LongestStep, Self::GilWaitLongest];
}

/// What only grows, and is kept when its worker is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Read from sockets, before TLS is taken off where there is any.
    BytesIn,
    /// Written to sockets.
    BytesOut,
    /// Connections that were let in.
    Connections,
    /// WebSockets that were accepted.
    WebSockets,
    /// Messages that clients sent.
    MessagesIn,
    /// Messages that applications sent.
    MessagesOut,
    /// Steps that held the loop for longer than `--slow-step`.
    SlowSteps,
    /// Access lines that nobody read.
    LinesDropped,
    /// Steps of the loop that were looked at.
    Steps,
    /// Spans that a collector has.
    SpansExported,
    /// Spans that found as many waiting as may.
    SpansCrowdedOut,
    /// Spans whose collector could not be reached.
    SpansUnreachable,
    /// Spans that their collector did not want.
    SpansRefused,
    /// Spans that their worker ended before.
    SpansUnsent,
    /// Connections that were closed since nothing was asked on them for as long as may be.
    IdleEnds,
    /// The same, for the shorter time that they have while connections run short.
    HurriedEnds,
    /// Connections that have had their time, or all the requests that one may carry.
    LifetimeEnds,
    /// Requests that were under way when their worker died, and are in no histogram.
    RequestsLost,
    /// Probes of the health path that were told that clients are welcome.
    ProbesWelcomed,
    /// Those that were told that they are not.
    ProbesTurnedAway,
}

impl Counter {
    pub(crate) const ROOM: usize = 64;
}

/// A time of which there are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Timing {
    /// From a request's head until the application is called.
    Queue,
    /// From a request's head until the head of its answer.
    FirstByte,
    /// From the application's call until it has returned.
    Handler,
    /// How late the loop comes to what is due, sampled.
    LoopLag,
    /// How long a thread waits for the GIL, sampled.
    GilWait,
}

impl Timing {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Queue, Self::FirstByte, Self::Handler, Self::LoopLag, Self::GilWait];
    pub(crate) const ROOM: usize = 8;
}

/// How far a worker has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub enum Condition {
    /// There is none.
    #[default]
    Absent,
    /// It loads the application, or waits for its startup.
    Starting,
    /// It serves.
    Serving,
    /// It serves on, and is about to end.
    LastCall,
    /// It finishes what it has begun.
    Draining,
}

impl Condition {
    /// In one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Starting => "starting",
            Self::Serving => "serving",
            Self::LastCall => "last_call",
            Self::Draining => "draining",
        }
    }
}

impl From<u64> for Condition {
    fn from(word: u64) -> Self {
        [Self::Absent, Self::Starting, Self::Serving, Self::LastCall, Self::Draining]
            .into_iter()
            .find(|each| *each as u64 == word)
            .unwrap_or_default()
    }
}

/// How a WebSocket ended: by a code of its own, by one of a family, or by any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing(usize);

impl Closing {
    pub(crate) const ROOM: usize = 32;
    /// 1000 to 1015, in their order; then libraries' codes, applications' codes, others.
    const NAMED: usize = 16;

    /// Of this code; 1006 of who went without one.
    #[must_use]
    pub fn of(code: u16) -> Self {
        Self(match code {
            1000..1016 => usize::from(code - 1000),
            3000..4000 => Self::NAMED,
            4000..5000 => Self::NAMED + 1,
            _ => Self::NAMED + 2,
        })
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::NAMED + 3).map(Self)
    }

    /// The code, `3xxx` and `4xxx` for a family, `other`.
    #[must_use]
    pub fn name(self) -> String {
        match self.0.checked_sub(Self::NAMED) {
            None => (1000 + self.0).to_string(),
            Some(0) => "3xxx".to_owned(),
            Some(1) => "4xxx".to_owned(),
            Some(_) => "other".to_owned(),
        }
    }

    pub(crate) fn place(self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_is_counted_by_its_code_or_by_its_family() {
        let named = |code| Closing::of(code).name();
        assert_eq!(
            [1000, 1006, 1015, 3000, 4999, 2999, 999].map(named),
            ["1000", "1006", "1015", "3xxx", "4xxx", "other", "other"]
        );
        assert!(Closing::all().all(|each| each.place() < Closing::ROOM));
    }

    #[test]
    fn a_word_that_means_nothing_is_nobody() {
        assert_eq!(Condition::from(Condition::Draining as u64), Condition::Draining);
        assert_eq!(Condition::from(77), Condition::Absent);
    }
}
