//! Which Tokio runtime the loop's thread hands work to.
//!
//! The loop's thread is not Tokio's: `Handle::current()` finds nothing there, or something else. The drain sets the
//! handle first thing, each time, in a thread-local of our own; whoever hands work to Tokio reads it here.
//!
//! Invariant: nothing on the loop's thread looks for a runtime in any other way.

use std::cell::RefCell;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tokio::runtime::Handle;

thread_local! {
    static HANDLE: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

/// From here on, this thread's work for Tokio goes to `handle`.
pub(crate) fn set_runtime_handle(handle: &Handle) {
    HANDLE.with_borrow_mut(|current| {
        if current.as_ref().is_none_or(|current| current.id() != handle.id()) {
            *current = Some(handle.clone());
        }
    });
}

/// Forgets the runtime, which is about to end.
pub(crate) fn clear_runtime_handle() {
    HANDLE.with_borrow_mut(|current| *current = None);
}

/// Hands work to Tokio.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> PyResult<()> {
    with_handle(|handle| drop(handle.spawn(work)))
}

/// Hands work to Tokio that may block.
pub(crate) fn spawn_blocking(work: impl FnOnce() + Send + 'static) -> PyResult<()> {
    with_handle(|handle| drop(handle.spawn_blocking(work)))
}

fn with_handle(hand_over: impl FnOnce(&Handle)) -> PyResult<()> {
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
        set_runtime_handle(runtime.handle());
        assert!(spawn(async {}).is_ok());
        clear_runtime_handle();
        assert!(HANDLE.with_borrow(Option::is_none));
    }
}
