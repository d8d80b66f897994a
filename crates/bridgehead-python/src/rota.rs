//! The part of one worker among several, as Python says it.
//!
//! Not who lets clients in, and when: that is the network's (`rota.rs` there).

use std::os::fd::RawFd;

use pyo3::prelude::*;

use crate::board::Board;

/// `bridgehead.station.Station`: which slot is this worker's, and where others' sockets are.
#[derive(FromPyObject)]
pub(crate) struct Rota {
    board: Py<Board>,
    slot: usize,
    place: usize,
    /// Each with its slot, and whether its clients speak TLS.
    pub(crate) others: Vec<(RawFd, usize, bool)>,
    /// Which of all these sockets their parent has bound.
    pub(crate) bound: Vec<RawFd>,
}

impl Rota {
    pub(crate) fn read(&self) -> bridgehead_net::Rota {
        bridgehead_net::Rota { board: self.board.get().words(), slot: self.slot, place: self.place }
    }
}
