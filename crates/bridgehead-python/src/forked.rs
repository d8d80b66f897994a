//! A child that the application forked forgets what is ours.
//!
//! The child has none of our threads, and everything that owns a socket belongs to them; it closes the numbers and
//! leaves the rest alone. What it does about signals is `worker.py`'s, since Python has to know.

use pyo3::prelude::*;

use crate::ffi;

/// Closes our sockets in a forked child, so that clients and ports are not held by it. Their numbers are the child's
/// from here on: what it forks itself has them.
#[pyfunction]
pub(crate) fn disown_descriptors() {
    bridgehead_net::disown_descriptors(ffi::close);
}
