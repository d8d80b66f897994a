//! The loop's side of cancelling requests: all of them when the server ends, one when the network says so.
//!
//! Not when that is (`patience.py`, and `overseer` of the network), nor what becomes of a handler that ignores it.
//!
//! Invariant: only a request that is meant is cancelled, whoever has its token since.

use std::sync::atomic::Ordering;

use bridgehead_net::Token;
use pyo3::intern;
use pyo3::prelude::*;

use crate::drain::Bridge;
use crate::http::Http;

impl Bridge {
    /// Cancels whatever still runs.
    pub(crate) fn cancel(&self, py: Python<'_>) -> PyResult<usize> {
        self.cancels.store(true, Ordering::Relaxed);
        let running: Vec<Py<Http>> = self
            .books(py)
            .requests
            .iter()
            .filter_map(|(_, http)| Some(http.as_ref()?.clone_ref(py)))
            .collect();
        for http in &running {
            if let Some(task) = http.get().task(py) {
                task.call_method0(py, intern!(py, "cancel"))?;
            }
        }
        Ok(running.len())
    }

    /// Cancels one, unless it has returned since: its token may be another's by now.
    pub(crate) fn cancel_one(&self, py: Python<'_>, token: Token) -> PyResult<()> {
        let Some(http) = self.request(py, token).filter(|http| http.get().is_cancelled(py)) else {
            return Ok(());
        };
        let Some(task) = http.get().task(py) else { return Ok(()) };
        task.call_method0(py, intern!(py, "cancel")).map(drop)
    }
}
