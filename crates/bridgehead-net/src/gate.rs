//! The gate of a listening TCP socket: who knocks, and is not greeted yet.
//!
//! Not when it is shut (`listen`, `accept`).
//!
//! Invariant: who has been greeted stays, and is let in as before.

use std::io;
use std::os::fd::OwnedFd;

/// `BPF_RET | BPF_K`.
#[cfg(target_os = "linux")]
const BPF_RETURN: u16 = 0x06;

/// Lets nobody new knock at a listening TCP socket, through whichever descriptor; see `Open::shut_gate`.
///
/// # Errors
/// When it is no socket.
pub fn shut_gate(descriptor: OwnedFd) -> io::Result<()> {
    let socket = socket2::Socket::from(descriptor);
    if socket.local_addr()?.as_socket().is_some() {
        drop_newcomers(&socket2::SockRef::from(&socket));
    }
    Ok(())
}

/// BPF's "return 0": the kernel drops what arrives for the listener, and their clients ask again and are refused. Those
/// who wait already have sockets of their own. A refusal of it leaves the gate open, as it was.
#[cfg(target_os = "linux")]
pub(crate) fn drop_newcomers(listener: &socket2::SockRef<'_>) {
    let filter = [socket2::SockFilter::new(BPF_RETURN, 0, 0, 0)];
    let _ = listener.attach_filter(&filter);
}

/// Elsewhere sockets take no filter, and the gate stays open.
#[cfg(not(target_os = "linux"))]
pub(crate) fn drop_newcomers(_: &socket2::SockRef<'_>) {}
