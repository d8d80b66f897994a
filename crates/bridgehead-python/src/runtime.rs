//! Who turns Tokio, and how the loop hears of what came.
//!
//! | runtime | Tokio is turned by | the loop is woken by |
//! |---|---|---|
//! | `threaded` | a thread of its own | a descriptor that the loop watches |
//! | `fused` | the loop's thread, in its poll; a standby while the loop is busy | nothing: the poll returns |
//!
//! Invariant: everything above this seam is the same code.

use std::thread;

use bridgehead_net::Stage;

use crate::runtime_handle::RuntimeHandle;

/// A network that serves.
pub(crate) trait Runtime: Send + Sync {
    /// Where the loop's thread hands work.
    fn handle(&self) -> RuntimeHandle;

    /// Moves the worker's end on.
    fn advance(&self, stage: Stage);

    /// Ends whatever is left and waits for it; to be called without the GIL.
    ///
    /// # Errors
    /// When the network panicked.
    fn join(self: Box<Self>) -> thread::Result<()>;
}
