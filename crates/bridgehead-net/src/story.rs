//! What both sides know of a request that is measured: when it began, and by which route the framework answers it.
//!
//! Not how it ends (`meters`). The application's side is asked for the route only when somebody will want to read it.
//!
//! Invariant: a route is named once.

use std::sync::OnceLock;
use std::time::Instant;

use bridgehead_metrics::Sheet;

/// A request that is measured.
#[derive(Debug)]
pub struct Story {
    began: Instant,
    sheet: Sheet,
    route: OnceLock<Box<str>>,
}

impl Story {
    pub(crate) fn begin(sheet: Sheet) -> Self {
        Self { began: Instant::now(), sheet, route: OnceLock::new() }
    }

    /// When its head was complete.
    #[must_use]
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Whether its route is worth looking for: it is unknown, and the request is slow.
    #[must_use]
    pub fn wants_route(&self) -> bool {
        self.route.get().is_none() && self.sheet.is_slow(self.began.elapsed())
    }

    /// It is answered by this route.
    pub fn name_route(&self, route: &str) {
        // The first word is the one that counts.
        let _ = self.route.set(route.into());
    }

    pub(crate) fn route(&self) -> Option<&str> {
        self.route.get().map(|route| &**route)
    }
}
