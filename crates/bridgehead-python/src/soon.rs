//! Has the bridge called by the loop's queue of callbacks, in asyncio's debug mode: there a loop measures what it calls.
//! What it calls for a descriptor uvloop does not measure.

use pyo3::prelude::*;

use crate::drain::Bridge;
use crate::names;

/// What a loop is given to call when a descriptor is readable.
pub(crate) fn reader<'py>(bridge: &Bound<'py, Bridge>) -> PyResult<Bound<'py, PyAny>> {
    let debug = bridge.get().event_loop.bind(bridge.py()).call_method0("get_debug")?;
    if !debug.is_truthy()? {
        return Ok(bridge.clone().into_any());
    }
    Ok(Bound::new(bridge.py(), Soon { bridge: bridge.clone().unbind() })?.into_any())
}

#[pyclass(frozen, module = "bridgehead._native")]
struct Soon {
    bridge: Py<Bridge>,
}

#[pymethods]
impl Soon {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let event_loop = self.bridge.get().event_loop(py);
        event_loop.call_method1(py, names::call_soon(py), (&self.bridge,)).map(drop)
    }
}
