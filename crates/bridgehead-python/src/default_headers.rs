//! The operator's own headers, as they are given in Python.
//!
//! Not when they are sent, which the network decides.

use http::{HeaderName, HeaderValue};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Values of one name together, as they are sent or left out together.
pub(crate) fn default_headers(pairs: &[(Vec<u8>, Vec<u8>)]) -> PyResult<Vec<(HeaderName, Vec<HeaderValue>)>> {
    let mut grouped: Vec<(HeaderName, Vec<HeaderValue>)> = Vec::new();
    for (name, value) in pairs {
        let refused = |error: http::Error| PyValueError::new_err(error.to_string());
        let name = HeaderName::from_bytes(name).map_err(|error| refused(error.into()))?;
        let value = HeaderValue::from_bytes(value).map_err(|error| refused(error.into()))?;
        match grouped.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => grouped.push((name, vec![value])),
        }
    }
    Ok(grouped)
}
