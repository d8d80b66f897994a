//! Begins spans and takes those that are over, for a thread of its own that exports them.
//!
//! Invariant: nobody who serves waits for a collector.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::{io, thread};

use tokio::sync::{mpsc, watch};

use crate::context::{Numbers, SpanContext};
use crate::export::{self, Destination};
use crate::fate::{Listener, Loss};
use crate::sampler::Sampler;
use crate::span::Span;

/// One worker's.
#[derive(Debug)]
pub struct Tracer {
    sampler: Sampler,
    numbers: Numbers,
    spans: mpsc::Sender<Span>,
    listener: Arc<dyn Listener>,
    // Taken once, by who ends it.
    thread: Mutex<Option<(watch::Sender<()>, JoinHandle<()>)>>,
}

impl Tracer {
    /// Begins to export. `prepare` is called on the thread that does.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn start(
        sampler: Sampler,
        destination: Destination,
        listener: Arc<dyn Listener>,
        prepare: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (spans, waiting) = mpsc::channel(destination.queue);
        let (stop, stopped) = watch::channel(());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let told = Arc::clone(&listener);
        let thread = thread::Builder::new().name("bridgehead-otel".to_owned()).spawn(move || {
            prepare();
            runtime.block_on(export::run(destination, waiting, stopped, told));
        })?;
        let thread = Mutex::new(Some((stop, thread)));
        Ok(Self { sampler, numbers: Numbers::default(), spans, listener, thread })
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
            self.listener.lost(1, Loss::Full);
        }
    }

    /// Sends what there is, for as long as one post may take.
    pub fn close(&self) {
        let taken = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((stop, thread)) = taken {
            drop(stop);
            // One that has panicked has said so.
            let _ = thread.join();
        }
    }
}
