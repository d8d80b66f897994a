//! Which runtime the loop's thread hands work to.
//!
//! The loop's thread is not Tokio's: `Handle::current()` finds nothing there, or something else. The drain sets the
//! handle first thing, each time, in a thread-local of our own; whoever hands work to the network reads it here. The
//! work becomes a task of the network's executor, so that whoever turns Tokio knows of it.
//!
//! Invariant: nothing on the loop's thread looks for a runtime in any other way.

use std::cell::RefCell;

use bridgehead_net::Executor;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tokio::runtime::Handle;

/// Takes work for the network.
#[derive(Clone, Debug)]
pub(crate) struct RuntimeHandle {
    pub(crate) executor: Executor,
    pub(crate) tokio: Handle,
}

thread_local! {
    static HANDLE: RefCell<Option<RuntimeHandle>> = const { RefCell::new(None) };
}

/// From here on, this thread's work for the network goes to `handle`.
pub(crate) fn set_runtime_handle(handle: &RuntimeHandle) {
    HANDLE.with_borrow_mut(|current| {
        if current.as_ref().is_none_or(|current| current.executor != handle.executor) {
            *current = Some(handle.clone());
        }
    });
}

/// Forgets the runtime, which is about to end.
pub(crate) fn clear_runtime_handle() {
    HANDLE.with_borrow_mut(|current| *current = None);
}

/// Hands work to the network.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> PyResult<()> {
    with_handle(|handle| handle.executor.spawn(work))
}

/// Hands work to Tokio that may block.
pub(crate) fn spawn_blocking(work: impl FnOnce() + Send + 'static) -> PyResult<()> {
    with_handle(|handle| drop(handle.tokio.spawn_blocking(work)))
}

fn with_handle(hand_over: impl FnOnce(&RuntimeHandle)) -> PyResult<()> {
    HANDLE.with_borrow(|current| match current {
        Some(handle) => {
            hand_over(handle);
            Ok(())
        }
        None => Err(PyRuntimeError::new_err("no runtime: the drain has not set its handle on this thread")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_no_drain_ran_on_has_no_runtime() {
        assert!(HANDLE.with_borrow(Option::is_none));
    }

    #[test]
    fn what_is_set_is_found_until_it_is_cleared() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let handle = RuntimeHandle { executor: Executor::default(), tokio: runtime.handle().clone() };
        set_runtime_handle(&handle);
        assert!(spawn(async {}).is_ok());
        clear_runtime_handle();
        assert!(HANDLE.with_borrow(Option::is_none));
    }
}
