//! The set in which asyncio keeps its tasks, written to without running a line of Python.
//!
//! Up to 3.11 every task is put into a `WeakSet` as it is made and taken out as it goes, by two functions written in
//! Python. From 3.12 on, a task that is over in its first step is never put there, so nothing would be gained.
//!
//! Invariant: the set stays asyncio's own, and what stands in for its `add` leaves in it what `WeakSet.add` would.

use std::sync::{Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySet, PyWeakrefReference};

/// `bridgehead.private_names.Register`: the set, and what it is made of.
#[derive(FromPyObject)]
pub(crate) struct Register {
    attributes: Py<PyDict>,
    references: Py<PySet>,
    pending: Py<PyList>,
    iterating: Py<PySet>,
    /// Takes out the pending ones.
    commit: Py<PyAny>,
}

/// What stands in for `add`, until it is told to leave.
// The loop's thread only; pyo3 wants classes to be shareable.
pub(crate) struct StandIn(Mutex<Option<Place>>);

struct Place {
    attributes: Py<PyDict>,
    add: Py<PyAny>,
}

impl StandIn {
    /// Takes its place, where there is one to take.
    pub(crate) fn take_place(py: Python<'_>, register: Option<Register>) -> PyResult<Self> {
        let place = register.map(|register| Place::take(py, register)).transpose()?;
        Ok(Self(Mutex::new(place)))
    }

    /// The set is as it was.
    pub(crate) fn leave(&self, py: Python<'_>) -> PyResult<()> {
        let place = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        place.map_or(Ok(()), |place| place.leave(py))
    }
}

impl Place {
    fn take(py: Python<'_>, register: Register) -> PyResult<Self> {
        let Register { attributes, references, pending, iterating, commit } = register;
        let removal = Py::new(py, Removal { references, pending, iterating })?;
        let remove = removal.bind(py).getattr("remove")?.unbind();
        let name = intern!(py, "add");
        let add = Bound::new(py, Addition { commit, removal, remove })?.getattr(name)?;
        attributes.bind(py).set_item(name, &add)?;
        Ok(Self { attributes, add: add.unbind() })
    }

    fn leave(self, py: Python<'_>) -> PyResult<()> {
        let (attributes, name) = (self.attributes.bind(py), intern!(py, "add"));
        match attributes.get_item(name)? {
            Some(found) if found.is(&self.add) => attributes.del_item(name),
            _ => Ok(()),
        }
    }
}

/// Adds tasks.
#[pyclass(frozen, module = "bridgehead._native")]
struct Addition {
    commit: Py<PyAny>,
    removal: Py<Removal>,
    /// The removal's method, which each reference calls.
    remove: Py<PyAny>,
}

#[pymethods]
impl Addition {
    fn add(&self, item: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = item.py();
        let removal = self.removal.get();
        if !removal.pending.bind(py).is_empty() {
            self.commit.call0(py)?;
        }
        let reference = PyWeakrefReference::new_with(item, self.remove.bind(py))?;
        removal.references.bind(py).add(reference)
    }
}

/// Takes out the references of tasks that are gone. Apart, so that no reference keeps the set itself.
#[pyclass(frozen, module = "bridgehead._native")]
struct Removal {
    references: Py<PySet>,
    /// Those that go once nobody iterates any more.
    pending: Py<PyList>,
    iterating: Py<PySet>,
}

#[pymethods]
impl Removal {
    fn remove(&self, reference: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = reference.py();
        if self.iterating.bind(py).is_empty() {
            self.references.bind(py).discard(reference).map(drop)
        } else {
            self.pending.bind(py).append(reference)
        }
    }
}
