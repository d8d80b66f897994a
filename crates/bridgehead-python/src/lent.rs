//! Bodies of Python's that leave as they are, without a copy.
//!
//! The network's threads do not touch Python, so what was written goes back to the loop's thread, which lets go of it.
//! Copying costs less for small ones.
//!
//! Invariant: what was lent is dropped by a thread that is attached, or never.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::inbox::{Event, Inbox};

/// From here on, a copy costs more than the way back.
const LEAST: usize = 32 * 1024;

/// Lends the network what Python owns.
#[derive(Debug)]
pub(crate) struct Lender {
    inbox: Arc<Inbox>,
    // Pushed to by whoever has written a body, emptied by the loop's thread.
    returned: Mutex<Vec<PyBackedBytes>>,
}

impl Lender {
    pub(crate) fn new(inbox: Arc<Inbox>) -> Arc<Self> {
        Arc::new(Self { inbox, returned: Mutex::default() })
    }

    /// Bytes for the network: lent, or copied.
    pub(crate) fn lend(self: &Arc<Self>, body: &Bound<'_, PyBytes>) -> Bytes {
        if body.as_bytes().len() < LEAST {
            return Bytes::copy_from_slice(body.as_bytes());
        }
        Bytes::from_owner(Lent { body: Some(body.clone().into()), lender: Arc::clone(self) })
    }

    /// Lets go of what came back.
    pub(crate) fn let_go(&self, _: Python<'_>) {
        let returned = std::mem::take(&mut *self.returned());
        drop(returned);
    }

    fn returned(&self) -> MutexGuard<'_, Vec<PyBackedBytes>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Lent {
    body: Option<PyBackedBytes>,
    lender: Arc<Lender>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.body.as_deref().unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(body) = self.body.take() else { return };
        let mut returned = self.lender.returned();
        returned.push(body);
        let first = returned.len() == 1;
        drop(returned);
        if first {
            self.lender.inbox.push(Event::Returned);
        }
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        // Nobody is left to let go of them: better kept for ever than dropped where Python is not.
        std::mem::take(&mut *self.returned()).into_iter().for_each(std::mem::forget);
    }
}
