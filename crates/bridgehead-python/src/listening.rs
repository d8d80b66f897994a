//! What a worker listens on, made of descriptors, and how each of its own is shut.
//!
//! Not how they are bound (`sockets.py`), and not their clients: those are the network's.

use std::os::fd::RawFd;

use bridgehead_net::{Listener, Ownership, Shutter};
use pyo3::exceptions::{PyIndexError, PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::ffi;
use crate::rota::Rota;
use crate::tls::Tls;

/// What becomes of whoever comes to them.
pub(crate) struct Doors<'a> {
    pub(crate) tls: Option<&'a Py<Tls>>,
    /// The port to which clients in the clear are sent, if they are not served.
    pub(crate) redirect: Option<u16>,
    /// By which whoever lent the listeners calls them back.
    pub(crate) recall: Option<RawFd>,
}

/// How each of a worker's own listeners is shut, in their order.
pub(crate) struct Shutters(Vec<Shutter>);

impl Shutters {
    /// Lets nobody in any more at this one but those who wait.
    pub(crate) fn shut(&self, number: usize) -> PyResult<()> {
        let shutter = self.0.get(number).ok_or_else(|| PyIndexError::new_err(number))?;
        shutter.fall();
        Ok(())
    }
}

/// A worker's own, each with whether it was bound for it and whether its clients speak TLS; behind them those of the
/// other workers.
pub(crate) fn listeners(
    own: &[(RawFd, bool, bool)],
    rota: Option<&Rota>,
    doors: &Doors<'_>,
) -> PyResult<(Vec<Listener>, Shutters)> {
    let ownership = |descriptor, ours| match rota {
        _ if ours => Ownership::Ours,
        Some(rota) if rota.bound.contains(&descriptor) => Ownership::Parents,
        _ => Ownership::Shared,
    };
    let listen =
        |&(descriptor, ours, secure): &_| doors.listen(descriptor, ownership(descriptor, ours), secure);
    let mut listeners = own.iter().map(listen).collect::<PyResult<Vec<_>>>()?;
    let shutters = Shutters(listeners.iter().map(Listener::shutter).collect());
    for &(descriptor, slot, secure) in rota.iter().flat_map(|rota| &rota.others) {
        listeners.push(doors.listen(descriptor, ownership(descriptor, false), secure)?.of_slot(slot));
    }
    Ok((listeners, shutters))
}

impl Doors<'_> {
    fn listen(&self, descriptor: RawFd, ownership: Ownership, secure: bool) -> PyResult<Listener> {
        let listener = Listener::new(ffi::duplicate(descriptor)?, ownership)
            .map_err(|error| PyOSError::new_err(error.to_string()))?;
        let listener = match (secure, self.tls, self.redirect) {
            (true, Some(tls), _) => listener.secured(tls.get().credentials()),
            (true, None, _) => return Err(PyValueError::new_err("there is nothing to make handshakes with")),
            (false, _, Some(port)) => listener.redirecting(port),
            (false, _, None) => listener,
        };
        match self.recall {
            Some(recall) => Ok(listener.lent_until(ffi::duplicate(recall)?)?),
            None => Ok(listener),
        }
    }
}
