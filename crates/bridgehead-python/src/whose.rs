//! Whose step it was: said to who looks after the loop, once that has noticed it; and in asyncio's debug mode, which shows
//! what it called when that was slow, whose was the longest of a drain.
//!
//! Not for how long: either measures that itself.
//!
//! Invariant: no task is kept for longer than until the next drain, or turn of the network.

use std::time::Duration;

use pyo3::prelude::*;

use crate::drain::Bridge;
use crate::pace::{NOTABLE, Whose};
use crate::under_gil::UnderGil;

/// The loop's thread only.
#[derive(Default)]
struct Seen {
    /// Whose event is being handled.
    now: Option<Py<PyAny>>,
    longest: Option<(Duration, Py<PyAny>)>,
}

/// What was seen of a drain.
pub(crate) struct Longest(UnderGil<Seen>);

impl Longest {
    /// For a loop in debug mode.
    pub(crate) fn of(event_loop: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let debug = event_loop.call_method0("get_debug")?.is_truthy()?;
        Ok(debug.then(|| Self(UnderGil::new(Seen::default()))))
    }

    /// A drain begins.
    pub(crate) fn begin(&self, py: Python<'_>) {
        let before = std::mem::take(&mut *self.0.lock(py));
        // Its end may run Python.
        drop(before);
    }

    /// The event was handled, for so long.
    pub(crate) fn step(&self, py: Python<'_>, took: Duration) {
        let mut seen = self.0.lock(py);
        let longest = seen.longest.as_ref().map_or(NOTABLE, |(longest, _)| *longest);
        let mut left = seen.now.take();
        if took >= longest {
            left = std::mem::replace(&mut seen.longest, left.map(|task| (took, task))).map(|(_, task)| task);
        }
        drop(seen);
        drop(left);
    }

    /// Whose it was, if it was a request's.
    pub(crate) fn task(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.0.lock(py).longest.as_ref().map(|(_, task)| task.clone_ref(py))
    }
}

impl Bridge {
    /// Says for whom the loop was held, if who looks after it wants to know: by a scope or a task, or else the current task.
    pub(crate) fn say_whose(&self, py: Python<'_>, request: impl FnOnce() -> Option<Py<PyAny>>) {
        let Some(said) = self.pace.as_ref().and_then(|pace| pace.asks_whose()) else { return };
        match self.callables.whose.call1(py, (request(),)).and_then(|whose| whose.extract(py)) {
            Ok((place, request)) => {
                // Nobody else says it.
                let _ = said.set(Whose { place, request });
            }
            Err(error) => error.write_unraisable(py, None),
        }
    }

    /// Taken before the event is handled: a request that ends in it knows its task no more.
    pub(crate) fn for_debug_mode(&self, task: impl FnOnce() -> Option<Py<PyAny>>) -> Option<Py<PyAny>> {
        self.longest.as_ref().and_then(|_| task())
    }

    /// The event that is being handled was for this task.
    pub(crate) fn was_for(&self, py: Python<'_>, task: impl FnOnce() -> Option<Py<PyAny>>) {
        if let Some(Longest(seen)) = &self.longest {
            let task = task();
            let before = std::mem::replace(&mut seen.lock(py).now, task);
            drop(before);
        }
    }

    /// Whose step of the last drain took the longest, in debug mode.
    pub(crate) fn longest_task(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.longest.as_ref().and_then(|longest| longest.task(py))
    }

    /// A turn of the network drains nothing: what it takes was for nobody.
    pub(crate) fn was_for_nobody(&self, py: Python<'_>) {
        self.longest.iter().for_each(|longest| longest.begin(py));
    }
}
