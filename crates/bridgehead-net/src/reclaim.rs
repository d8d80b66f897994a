//! Gives memory back to the system once many connections have fallen asleep, or were ended over what they sent.
//!
//! An allocator keeps what lies between things that live: of ten thousand clients that asked once, the buffers would
//! stay for as long as any of them is connected.
//!
//! Invariant: it is asked for at most once in `PAUSE`, and never by a thread that serves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bridgehead_executor::Executor;
use tokio::runtime::Handle;

/// Connections that gave back what is worth the asking: two megabytes or more.
const MANY: usize = 256;

/// Time for others to fall asleep as well.
const PAUSE: Duration = Duration::from_secs(2);

/// Knows how many fell asleep lately. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Reclaim {
    // Only the network's thread comes here; tasks want what they share to be shareable.
    asleep: Arc<AtomicUsize>,
    give_back: fn(),
    executor: Executor,
    blocking: Handle,
}

impl Reclaim {
    /// To be made within the runtime whose threads may block.
    pub(crate) fn new(give_back: fn(), executor: Executor) -> Self {
        Self { asleep: Arc::default(), give_back, executor, blocking: Handle::current() }
    }

    /// One connection needs its buffers no more: it sleeps, or has ended.
    pub(crate) fn is_empty_handed(&self) {
        // The one that makes it many, and no other until they are counted anew.
        if self.asleep.fetch_add(1, Ordering::Relaxed) + 1 == MANY {
            let this = self.clone();
            self.executor.spawn(async move {
                this.executor.sleep(PAUSE).await;
                this.asleep.store(0, Ordering::Relaxed);
                drop(this.blocking.spawn_blocking(this.give_back));
            });
        }
    }
}
