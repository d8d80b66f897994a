//! What the loop's thread measures of requests, where somebody may read it.
//!
//! The network's part is in `bridgehead_net`.

use std::time::{Duration, Instant};

use bridgehead_metrics::{Gauge, Sheet, Timing};
use bridgehead_net::Story;

/// A worker's; empty when nothing is measured.
pub(crate) struct Figures(pub(crate) Option<Sheet>);

impl Figures {
    /// The application is called for a request of which this is known. Gives when that is.
    pub(crate) fn called(&self, story: Option<&Story>) -> Option<Instant> {
        let sheet = self.0.as_ref()?;
        let now = Instant::now();
        sheet.down(Gauge::Inbox);
        sheet.record(Timing::Queue, story.map_or(Duration::ZERO, |story| now - story.began()));
        Some(now)
    }

    /// It has returned.
    pub(crate) fn returned(&self, called: Option<Instant>) {
        if let (Some(sheet), Some(called)) = (&self.0, called) {
            sheet.record(Timing::Handler, called.elapsed());
        }
    }

    /// So many have not.
    pub(crate) fn running(&self, count: impl FnOnce() -> usize) {
        if let Some(sheet) = &self.0 {
            sheet.set(Gauge::Running, count() as u64);
        }
    }
}
