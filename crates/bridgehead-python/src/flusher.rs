//! Has everything leave that is kept back, in the loop's next turn.
//!
//! Not what is kept back, nor for how long: `drain` and `standby` know.

use pyo3::prelude::*;

use crate::drain::Bridge;

/// A callback of the loop.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Flusher {
    pub(crate) bridge: Py<Bridge>,
}

#[pymethods]
impl Flusher {
    fn __call__(&self, py: Python<'_>) {
        // A drain may have begun and ended since, and have flushed them already.
        self.bridge.get().rest(py);
    }
}
