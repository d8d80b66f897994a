//! Gives memory back to the system once many connections have fallen asleep, or such as held much have ended: over what
//! they sent, as WebSockets, or with many streams.
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

/// What a WebSocket has held, in connections' shares.
const WEBSOCKET: usize = 2;

/// The same of one that is compressed.
const COMPRESSED: usize = 24;

/// The same of a stream of HTTP/2: its head alone may be as large as limits let it.
const STREAM: usize = 4;

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
        self.gets_back(1);
    }

    /// A connection of HTTP/2 has ended, which has had at most so many streams at once.
    pub(crate) fn has_ended(&self, streams: usize) {
        self.gets_back(1 + streams * STREAM);
    }

    /// For as long as a WebSocket holds its buffers.
    pub(crate) fn during_websocket(&self, compressed: bool) -> Held {
        Held { reclaim: self.clone(), shares: if compressed { COMPRESSED } else { WEBSOCKET } }
    }

    fn gets_back(&self, shares: usize) {
        let before = self.asleep.fetch_add(shares, Ordering::Relaxed);
        // The one that makes it many, and no other until they are counted anew.
        if before < MANY && before + shares >= MANY {
            let this = self.clone();
            self.executor.spawn(async move {
                this.executor.sleep(PAUSE).await;
                this.asleep.store(0, Ordering::Relaxed);
                drop(this.blocking.spawn_blocking(this.give_back));
            });
        }
    }
}

/// Is counted when it goes.
#[derive(Debug)]
pub(crate) struct Held {
    reclaim: Reclaim,
    shares: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.reclaim.gets_back(self.shares);
    }
}
