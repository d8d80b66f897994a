//! Which runtimes the loop's thread may hand work to.
//!
//! The loop's thread is not Tokio's: `Handle::current()` finds nothing there, or something else. The drain sets its
//! server's handle first thing, each time, in a thread-local of our own; whoever hands work to the network names the
//! server and finds its handle here. One loop may serve several. The work becomes a task of the network's executor, so
//! that whoever turns Tokio knows of it.
//!
//! Invariant: nothing on the loop's thread looks for a runtime in any other way, and work never goes to another
//! server's.

use std::cell::RefCell;

use bridgehead_executor::Executor;
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
    static HANDLES: RefCell<Vec<RuntimeHandle>> = const { RefCell::new(Vec::new()) };
}

/// From here on, this thread may hand work to this server's network.
pub(crate) fn set_runtime_handle(handle: &RuntimeHandle) {
    HANDLES.with_borrow_mut(|handles| {
        if handles.iter().all(|known| known.executor != handle.executor) {
            handles.push(handle.clone());
        }
    });
}

/// Forgets a runtime, which is about to end.
pub(crate) fn forget_runtime_handle(of: &Executor) {
    let forgotten: Vec<_> =
        HANDLES.with_borrow_mut(|handles| handles.extract_if(.., |known| known.executor == *of).collect());
    drop(forgotten);
}

/// Hands work to a server's network.
pub(crate) fn spawn(of: &Executor, work: impl Future<Output = ()> + Send + 'static) -> PyResult<()> {
    with_handle(of, |handle| handle.executor.spawn(work))
}

/// Hands work to a server's Tokio that may block.
pub(crate) fn spawn_blocking(of: &Executor, work: impl FnOnce() + Send + 'static) -> PyResult<()> {
    with_handle(of, |handle| drop(handle.tokio.spawn_blocking(work)))
}

fn with_handle(of: &Executor, hand_over: impl FnOnce(&RuntimeHandle)) -> PyResult<()> {
    HANDLES.with_borrow(|handles| match handles.iter().find(|known| known.executor == *of) {
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

    fn no_work(of: &Executor) -> bool {
        spawn(of, async {}).is_err()
    }

    #[test]
    fn a_thread_that_no_drain_ran_on_has_no_runtime() {
        assert!(no_work(&Executor::default()));
    }

    #[test]
    fn what_is_set_is_found_until_it_is_forgotten_and_no_other() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let handle = || RuntimeHandle { executor: Executor::default(), tokio: runtime.handle().clone() };
        let (one, other) = (handle(), handle());
        set_runtime_handle(&one);
        set_runtime_handle(&one);
        assert!(!no_work(&one.executor) && no_work(&other.executor));
        set_runtime_handle(&other);
        forget_runtime_handle(&one.executor);
        assert!(no_work(&one.executor) && !no_work(&other.executor));
        forget_runtime_handle(&other.executor);
    }
}
