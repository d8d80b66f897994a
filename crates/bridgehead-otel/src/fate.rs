//! What became of spans, and whether the collector takes any: told to who watches.
//!
//! Not how they are posted (`export`).
//!
//! Invariant: who watches hears of a collector when its state changes, and never for each post.

use std::cell::Cell;
use std::sync::Arc;

use crate::export::Destination;

/// Attempts in a row that fail before anybody is told: one may be lost with a connection.
const FAILURES: u32 = 2;

/// Who is told. Called on the thread that exports, [`Listener::lost`] also where a span ends.
pub trait Listener: std::fmt::Debug + Send + Sync {
    /// The collector has them.
    fn exported(&self, spans: u64);
    /// Nobody will have them.
    fn lost(&self, spans: u64, why: Loss);
    /// The collector takes spans no more, or again.
    fn changed(&self, collector: Collector);
}

/// Why spans are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// As many waited as may.
    Full,
    /// The collector could not be reached, or said that it is busy.
    Unreachable,
    /// The collector does not want them.
    Refused,
    /// The server ended before they could be sent.
    Unsent,
}

/// What the collector does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Collector {
    /// It takes none.
    Away {
        /// Where it was looked for.
        place: String,
        /// What came instead.
        why: String,
    },
    /// It takes them again.
    Back {
        /// Where it is.
        place: String,
        /// How many spans were lost meanwhile.
        lost: u64,
    },
    /// The server has ended, and it has not taken these.
    Left {
        /// Where it is, or was looked for.
        place: String,
        /// How many spans: what waited, and what was lost since it was away.
        unsent: u64,
    },
}

/// Kept by who posts.
pub(crate) struct Fate {
    listener: Arc<dyn Listener>,
    /// Without what may be secret in an address.
    place: String,
    failures: Cell<u32>,
    away: Cell<bool>,
    lost: Cell<u64>,
}

impl Fate {
    pub(crate) fn new(listener: Arc<dyn Listener>, destination: &Destination) -> Self {
        let endpoint = &destination.endpoint;
        let authority = endpoint.authority().map_or("", |authority| authority.as_str());
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let place = format!("{}://{host}", endpoint.scheme_str().unwrap_or("http"));
        Self { listener, place, failures: Cell::new(0), away: Cell::new(false), lost: Cell::new(0) }
    }

    /// The collector has taken a post, but for some.
    pub(crate) fn taken(&self, spans: u64, rejected: u64) {
        self.failures.set(0);
        if self.away.replace(false) {
            let back = Collector::Back { place: self.place.clone(), lost: self.lost.take() };
            self.listener.changed(back);
        }
        self.listener.exported(spans - rejected);
        if rejected > 0 {
            self.lost(rejected, Loss::Refused);
        }
    }

    /// An attempt has failed that may succeed another time.
    pub(crate) fn failed(&self, why: &str) {
        self.failures.set(self.failures.get() + 1);
        if self.failures.get() >= FAILURES {
            self.tell(why);
        }
    }

    /// One has failed that never will.
    pub(crate) fn refused(&self, why: &str) {
        self.tell(why);
    }

    pub(crate) fn lost(&self, spans: u64, why: Loss) {
        if spans > 0 {
            self.lost.set(self.lost.get() + spans);
            self.listener.lost(spans, why);
        }
    }

    /// Whether that was told.
    pub(crate) fn is_away(&self) -> bool {
        self.away.get()
    }

    /// All is over, and these were not sent; nor those that were lost since the collector went away, which nobody has told of.
    pub(crate) fn ended(&self, unsent: u64) {
        if unsent > 0 {
            self.listener.lost(unsent, Loss::Unsent);
        }
        let unsent = unsent + if self.away.get() { self.lost.get() } else { 0 };
        if unsent > 0 {
            self.listener.changed(Collector::Left { place: self.place.clone(), unsent });
        }
    }

    fn tell(&self, why: &str) {
        if !self.away.replace(true) {
            self.lost.set(0);
            self.listener.changed(Collector::Away { place: self.place.clone(), why: why.to_owned() });
        }
    }
}
