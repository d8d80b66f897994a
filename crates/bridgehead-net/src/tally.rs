//! How often clients were refused, cut off or kept waiting, by reason.
//!
//! Counted where it is decided, in memory that outlives the worker. Not lines for an operator, which are `App::report`'s.
//!
//! Invariant: what is counted is counted once, and no count goes back.

use std::collections::BTreeMap;

use bridgehead_metrics::{Counter, REASONS, Sheet};
use bridgehead_websocket::{NO_MEMORY, TOO_BIG};

use crate::refusal::Refusal;

/// The number of the first hardship: behind all refusals that there may ever be.
const HARDSHIPS: usize = 48;
const _: () = assert!(Refusal::ALL.len() <= HARDSHIPS && HARDSHIPS + Hardship::ALL.len() <= REASONS);

/// The counts of a worker, from its first client to its last. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Tally(Sheet);

/// What a client met that is no refusal of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hardship {
    /// It sent nothing, and was closed.
    Silence,
    /// It did not read, and was reset.
    SlowReader,
    /// hyper could not read its head.
    UnreadableHead,
    /// It has not answered a ping, of HTTP/2 or of its WebSocket.
    NoPong,
    /// Its frames are not in order, of HTTP/2 or of its WebSocket.
    BadFrames,
    /// They are too many.
    Flood,
    /// No header of the PROXY protocol came of it, or of nobody who may send one.
    NoPreamble,
    /// No handshake of TLS came of it.
    NoHandshake,
    /// It waits, since there are as many connections as may be.
    Crowd,
    /// It waits, since no connection can be accepted.
    Shortage,
    /// A stream of HTTP/2 was broken off, since a request or its body is not as that has it.
    BadStream,
    /// Nothing was said on its WebSocket for too long.
    IdleWebSocket,
    /// Its WebSocket has had its time.
    OldWebSocket,
    /// A message on its WebSocket is larger than is allowed.
    LargeMessage,
    /// There is no memory left for its messages.
    NoMemory,
}

impl Hardship {
    const ALL: [Self; 15] = [
        Self::Silence,
        Self::SlowReader,
        Self::UnreadableHead,
        Self::NoPong,
        Self::BadFrames,
        Self::Flood,
        Self::NoPreamble,
        Self::NoHandshake,
        Self::Crowd,
        Self::Shortage,
        Self::BadStream,
        Self::IdleWebSocket,
        Self::OldWebSocket,
        Self::LargeMessage,
        Self::NoMemory,
    ];

    /// What it is that frames cannot be understood, by the code that closes their WebSocket.
    pub(crate) fn of_failure(code: u16) -> Self {
        match code {
            code if code == TOO_BIG.code => Self::LargeMessage,
            code if code == NO_MEMORY.code => Self::NoMemory,
            _ => Self::BadFrames,
        }
    }

    /// What is said of it where it happened, in words for the log.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Silence => "Request Timeout: nothing came on the connection",
            Self::SlowReader => "the client reads its answer too slowly, or not at all",
            _ => self.name(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Silence => "silence",
            Self::SlowReader => "slow_reader",
            Self::UnreadableHead => "unreadable_head",
            Self::NoPong => "no_pong",
            Self::BadFrames => "bad_frames",
            Self::Flood => "flood",
            Self::NoPreamble => "no_proxy_header",
            Self::NoHandshake => "no_handshake",
            Self::Crowd => "crowd",
            Self::Shortage => "shortage",
            Self::BadStream => "bad_stream",
            Self::IdleWebSocket => "idle_websocket",
            Self::OldWebSocket => "old_websocket",
            Self::LargeMessage => "large_message",
            Self::NoMemory => "no_memory",
        }
    }
}

impl Tally {
    /// Counts here.
    #[must_use]
    pub fn on(sheet: Sheet) -> Self {
        Self(sheet)
    }

    /// What has happened so far, and how often. What has not is left out.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        let counts: Vec<_> = self.0.refusals().collect();
        let counted =
            Self::reasons().map(|(number, name)| (name, counts.get(number).copied().unwrap_or_default()));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// Every reason that there is: by which number a sheet knows it, and its name.
    pub fn reasons() -> impl Iterator<Item = (usize, &'static str)> {
        let refusals = Refusal::ALL.map(|each| (each as usize, each.name()));
        refusals.into_iter().chain(Hardship::ALL.map(|each| (HARDSHIPS + each as usize, each.name())))
    }

    /// Why a request was not answered, by its number.
    #[must_use]
    pub fn name_of_refusal(number: usize) -> Option<&'static str> {
        Refusal::ALL.get(number).map(|refusal| refusal.name())
    }

    /// Whether the reason of this number is that there was no room for a request.
    #[must_use]
    pub fn is_overload(number: usize) -> bool {
        Refusal::ALL.get(number).is_some_and(|refusal| refusal.is_overload())
    }

    pub(crate) fn refused(&self, refusal: Refusal) {
        self.0.refuse(refusal as usize);
    }

    pub(crate) fn met(&self, hardship: Hardship) {
        self.0.refuse(HARDSHIPS + hardship as usize);
    }

    /// A connection that nobody waits on is closed, which its client has to expect.
    pub(crate) fn closed(&self, time: Counter) {
        self.0.add(time, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_by_its_name() {
        let tally = Tally::default();
        tally.refused(Refusal::NoHost);
        tally.met(Hardship::Flood);
        tally.refused(Refusal::NoHost);
        assert_eq!(tally.counts(), BTreeMap::from([("flood", 1), ("no_host", 2)]));
    }

    #[test]
    fn every_reason_has_a_number_and_a_name_of_its_own() {
        let (numbers, names): (Vec<_>, Vec<_>) = Tally::reasons().unzip();
        assert!(numbers.is_sorted_by(|one, next| one < next));
        assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), names.len());
        assert!(Refusal::ALL.iter().enumerate().all(|(at, each)| *each as usize == at));
    }
}
