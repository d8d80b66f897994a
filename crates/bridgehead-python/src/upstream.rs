//! The faulty upstream as Python sees it: begun, changed, counted, ended.
//!
//! Not the fixture: `bridgehead.testing` has the words. Nothing here touches a server's loop.
//!
//! Invariant: the GIL is not held while its thread is waited for.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bridgehead_load::{Faults, Upstream as Native};
use http::StatusCode;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::ffi;

/// `bridgehead.testing.faults.Faults`.
#[derive(FromPyObject)]
struct Words {
    latency: f64,
    jitter: f64,
    error_rate: f64,
    error_status: u16,
    reset_rate: f64,
    truncate_rate: f64,
    hang_rate: f64,
    body_size: usize,
    seed: u64,
}

/// An HTTP server with faults, from when it is made until it is closed.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Upstream {
    // `close` takes it; pyo3 wants classes to be shareable.
    native: Mutex<Option<Native>>,
    #[pyo3(get)]
    port: u16,
}

#[pymethods]
impl Upstream {
    #[new]
    fn new(py: Python<'_>, faults: Words) -> PyResult<Self> {
        let faults = read(&faults)?;
        // Signals are for Python's threads.
        let native = py.detach(|| ffi::without_signals(|| Native::start(faults)))?;
        Ok(Self { port: native.port(), native: Mutex::new(Some(native)) })
    }

    /// What is wrong from the next request on.
    fn change(&self, faults: Words) -> PyResult<()> {
        self.held().as_ref().ok_or_else(closed)?.change(read(&faults)?);
        Ok(())
    }

    /// What has been asked so far, and what became of it.
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = self.held().as_ref().ok_or_else(closed)?.counts();
        let dict = PyDict::new(py);
        dict.set_item("requests", counts.requests)?;
        dict.set_item("answers", counts.answers)?;
        dict.set_item("errors", counts.errors)?;
        dict.set_item("resets", counts.resets)?;
        dict.set_item("truncated", counts.truncated)?;
        dict.set_item("hung", counts.hung)?;
        Ok(dict)
    }

    /// Ends it and its connections.
    fn close(&self, py: Python<'_>) {
        let native = self.held().take();
        py.detach(|| drop(native));
    }
}

impl Upstream {
    fn held(&self) -> MutexGuard<'_, Option<Native>> {
        self.native.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed() -> PyErr {
    PyRuntimeError::new_err("the upstream has been closed")
}

fn read(words: &Words) -> PyResult<Faults> {
    Ok(Faults {
        latency: Duration::try_from_secs_f64(words.latency)?,
        jitter: Duration::try_from_secs_f64(words.jitter)?,
        error_rate: words.error_rate,
        error_status: StatusCode::from_u16(words.error_status)
            .map_err(|error| PyValueError::new_err(error.to_string()))?,
        reset_rate: words.reset_rate,
        truncate_rate: words.truncate_rate,
        hang_rate: words.hang_rate,
        body_size: words.body_size,
        seed: words.seed,
    })
}
