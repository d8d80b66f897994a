//! Tells of a connection's beginning and end, where somebody wants to know.
//!
//! Not of its requests, which have records of their own (`access`).
//!
//! Invariant: whose beginning was told, its end is told too.

use std::sync::Arc;

use bridgehead_proxies::Peer;

use crate::accept::Worker;
use crate::app::{App, Report};
use crate::config::Connections;

/// A connection that was told of.
pub(crate) struct Told {
    app: Arc<dyn App>,
    client: String,
}

impl Told {
    /// Tells of a connection that was made, if that is asked for.
    pub(crate) fn of(worker: &Worker, peer: &Peer) -> Option<Self> {
        if worker.config.connections == Connections::Silent {
            return None;
        }
        let told = Self { app: Arc::clone(&worker.app), client: peer.client.escaped() };
        told.tell("made");
        Some(told)
    }

    fn tell(&self, event: &'static str) {
        self.app.report(Report::Connection { client: self.client.clone(), event });
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.tell("lost");
    }
}
