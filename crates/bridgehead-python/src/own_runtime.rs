//! A worker's Tokio: how it is made, and that its end waits for nobody.
//!
//! Not who turns it, which is `fused`'s and `threaded`'s.
//!
//! Invariant: dropping it takes no time. A read that hangs, on a file system that does not answer, holds a thread of the
//! blocking pool and nobody else; such a thread touches no Python.

use std::io;
use std::ops::Deref;

use tokio::runtime::{Builder, Runtime};

use crate::ffi;

/// The runtime.
#[derive(Debug)]
pub(crate) struct OwnRuntime(Option<Runtime>);

impl OwnRuntime {
    /// One that whoever polls it turns; its blocking pool reads files.
    pub(crate) fn new() -> io::Result<Self> {
        Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .thread_name("bridgehead-file")
            .on_thread_start(ffi::block_signals)
            .build()
            .map(|runtime| Self(Some(runtime)))
    }
}

impl Deref for OwnRuntime {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("only its drop takes it")
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_runtime_ends_before_what_its_pool_still_waits_for() {
        let runtime = OwnRuntime::new().expect("a runtime");
        let (answer, asked) = mpsc::channel();
        let (told, heard) = mpsc::channel();
        runtime.spawn_blocking(move || told.send(asked.recv()));
        drop(runtime);
        // Only now: if the drop waited for the pool, this would never be reached.
        answer.send(()).expect("the thread waits");
        assert_eq!(heard.recv(), Ok(Ok(())));
    }
}
