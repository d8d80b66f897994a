//! Begins spans and takes those that are over, for a thread of its own that exports them.
//!
//! Invariant: nobody who serves waits for a collector.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::{io, thread};

use tokio::sync::{mpsc, oneshot};

use crate::context::{Numbers, SpanContext};
use crate::export::{self, Destination};
use crate::sampler::Sampler;
use crate::span::Span;

/// One worker's.
#[derive(Debug)]
pub struct Tracer {
    sampler: Sampler,
    numbers: Numbers,
    spans: mpsc::Sender<Span>,
    // Counted where spans end, read when all is over.
    dropped: AtomicU64,
    // Taken once, by who ends it.
    thread: Mutex<Option<(oneshot::Sender<()>, JoinHandle<u64>)>>,
}

impl Tracer {
    /// Begins to export. `prepare` is called on the thread that does.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn start(
        sampler: Sampler,
        destination: Destination,
        prepare: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (spans, waiting) = mpsc::channel(destination.queue);
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("bridgehead-otel".to_owned()).spawn(move || {
            prepare();
            runtime.block_on(export::run(destination, waiting, stopped))
        })?;
        let thread = Mutex::new(Some((stop, thread)));
        Ok(Self { sampler, numbers: Numbers::default(), spans, dropped: AtomicU64::new(0), thread })
    }

    /// A request has come, from who names this parent.
    #[must_use]
    pub fn begin(&self, parent: Option<SpanContext>) -> SpanContext {
        let trace = parent.map_or_else(|| self.numbers.trace(), |parent| parent.trace);
        SpanContext { trace, span: self.numbers.span(), sampled: self.sampler.keeps(parent, trace) }
    }

    /// A span is over that is kept.
    pub fn end(&self, span: Span) {
        if self.spans.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends what there is, for as long as one post may take. Gives how many spans were lost, for want of room or of a
    /// collector that took them.
    pub fn close(&self) -> u64 {
        let taken = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let lost = taken.map_or(0, |(stop, thread)| {
            drop(stop);
            thread.join().unwrap_or_default()
        });
        lost + self.dropped.load(Ordering::Relaxed)
    }
}
