//! State of Python's objects, which the GIL guards: whoever holds it is alone, and need not lock anything.
//!
//! A mutex would be waited for by nobody, but costs two locked instructions each time, of which a request had a hundred.
//!
//! Invariant: a process without the GIL does not come here: nothing is served in it (`interpreter.py`).

use std::cell::{Ref, RefCell, RefMut};

use pyo3::{PyVisit, Python};

/// What only those reach who show that they hold the GIL. To be shared between threads is all that is unsafe (`ffi.rs`).
pub(crate) struct UnderGil<T>(RefCell<T>);

impl<T> UnderGil<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(RefCell::new(value))
    }

    /// Not to be held while Python runs: whoever comes then, on whichever thread, would find it borrowed.
    pub(crate) fn lock<'a, 'py: 'a>(&'a self, _: Python<'py>) -> RefMut<'a, T> {
        self.0.borrow_mut()
    }

    /// For who has it to itself.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    /// For Python's collector, which holds the GIL. `None` if it was called by somebody who is at it further down.
    pub(crate) fn visited<'a>(&'a self, _: &PyVisit<'a>) -> Option<Ref<'a, T>> {
        self.0.try_borrow().ok()
    }
}
