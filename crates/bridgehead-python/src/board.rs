//! What a server's workers and their parent share, as Python sees it: memory by its descriptor.
//!
//! Not what is on it: that is `bridgehead_net`'s, whose network writes there while Python blocks.

use std::os::fd::RawFd;
use std::time::Duration;

use pyo3::prelude::*;
use rustix::time::{ClockId, clock_gettime};

use crate::ffi;

/// The memory of one server.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Board(bridgehead_net::Board);

impl Board {
    pub(crate) fn words(&self) -> bridgehead_net::Board {
        self.0
    }
}

#[pymethods]
impl Board {
    /// How long the file has to be, in bytes.
    #[classattr]
    const SIZE: usize = bridgehead_net::Board::WORDS * size_of::<u64>();

    /// On a file that is so long.
    #[new]
    fn new(descriptor: RawFd) -> PyResult<Self> {
        let file = ffi::duplicate(descriptor)?;
        let words = ffi::share_words(&file, bridgehead_net::Board::WORDS)?;
        Ok(Self(bridgehead_net::Board::new(words, since_the_start)))
    }

    /// Whether somebody lets clients in at this slot.
    fn is_kept(&self, slot: usize) -> bool {
        self.0.is_kept(slot)
    }

    /// Nobody does any more: the others stand in at once.
    fn give_up(&self, slot: usize) {
        self.0.give_up(slot);
    }

    /// How the worker at this place fares: a number that changes while its network runs, for how many seconds its loop has
    /// given no sign of life, and how many requests it has had.
    fn look(&self, place: usize) -> (u64, f64, u64) {
        let condition = self.0.look(place);
        (condition.rounds, condition.silence.as_secs_f64(), condition.requests)
    }

    /// The place is somebody else's from here on.
    fn clear(&self, place: usize) {
        self.0.clear(place);
    }
}

/// One clock for all processes of the machine.
pub(crate) fn since_the_start() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, rest) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), rest.unwrap_or_default())
}

/// Lets nobody new knock at listening sockets, and waits for those who have been greeted; they are let in as before.
#[pyfunction]
pub(crate) fn shut_gates(py: Python<'_>, descriptors: Vec<RawFd>) -> PyResult<()> {
    let sockets: Vec<_> = descriptors.into_iter().map(ffi::duplicate).collect::<Result<_, _>>()?;
    Ok(py.detach(|| bridgehead_net::shut_gates(sockets))?)
}
