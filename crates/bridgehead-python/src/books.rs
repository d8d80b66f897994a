//! What the loop's side keeps between its callbacks: which requests run, what of theirs is kept back, whether the network is over.
//!
//! Not what is done with it (`drain.rs`).
//!
//! Invariant: borrowed only where no Python can run.

use pyo3::prelude::*;
use slab::Slab;

use crate::http::Http;

/// What the loop's side keeps between callbacks.
#[derive(Default)]
pub(crate) struct Books {
    /// `None` for a moment, while a request is being made.
    pub(crate) requests: Slab<Option<Py<Http>>>,
    /// How many there were, with those that are over.
    pub(crate) begun: u64,
    /// Requests that keep something back.
    pub(crate) held: Vec<Py<Http>>,
    pub(crate) flush: Flush,
    pub(crate) network: Network,
}

/// Who has what is kept back leave.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Flush {
    #[default]
    Nobody,
    /// A callback that is scheduled.
    Scheduled,
    /// The drain when it is through, or the fused runtime's next turn.
    Itself,
}

/// Whether there are connections.
#[derive(Default, PartialEq, Eq)]
pub(crate) enum Network {
    #[default]
    Serving,
    /// No connection is left.
    Over,
    /// And it was said.
    Told,
}

impl Books {
    pub(crate) fn starting(flush: Flush) -> Self {
        Self { flush, ..Self::default() }
    }

    /// A request begins: its place.
    pub(crate) fn admit(&mut self) -> usize {
        self.begun += 1;
        self.requests.insert(None)
    }
}
