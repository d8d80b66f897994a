//! The gate of a listening TCP socket: who knocks, and is not greeted yet.
//!
//! Not when it is shut (`listen`, `accept`).
//!
//! | client | is |
//! |---|---|
//! | knocks (SYN) | passed over: it asks again, and is refused |
//! | was greeted (SYN-ACK), and has yet to answer | let in when it has: it may have taken itself for connected since |
//! | has answered, and waits | let in |
//!
//! Invariant: who has been greeted stays, and is let in as before.

use std::io;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

/// `BPF_LD | BPF_B | BPF_ABS`.
#[cfg(target_os = "linux")]
const BPF_LOAD_BYTE: u16 = 0x30;
/// `BPF_JMP | BPF_JSET | BPF_K`.
#[cfg(target_os = "linux")]
const BPF_JUMP_IF_SET: u16 = 0x45;
/// `BPF_RET | BPF_K`.
#[cfg(target_os = "linux")]
const BPF_RETURN: u16 = 0x06;
/// Where TCP's header has its flags, and those of whoever does not knock: ACK and RST.
#[cfg(target_os = "linux")]
const FLAGS: u32 = 13;
#[cfg(target_os = "linux")]
const NO_KNOCK: u32 = 0x14;
/// `SYN_RECV`, as the system writes it: greeted, and not heard of since.
#[cfg(target_os = "linux")]
const GREETED: &str = "03";

/// So long is waited for who was greeted: three times the way to the other side of the earth and back. And so long between looks.
pub(crate) const GREETING_TIME: Duration = Duration::from_secs(1);
pub(crate) const GREETING_PAUSE: Duration = Duration::from_millis(5);

/// Lets nobody new knock at listening TCP sockets, through whichever descriptors, and waits for those who have been greeted;
/// see `Open::shut_gate`. Others are left as they are.
///
/// # Errors
/// When one is no socket.
pub fn shut_gates(descriptors: Vec<OwnedFd>) -> io::Result<()> {
    let mut ports = Vec::new();
    for descriptor in descriptors {
        let socket = socket2::Socket::from(descriptor);
        if let Some(address) = socket.local_addr()?.as_socket() {
            drop_newcomers(&socket2::SockRef::from(&socket));
            ports.push(address.port());
        }
    }
    ports.dedup();
    let until = Instant::now() + GREETING_TIME;
    while Instant::now() < until && ports.iter().any(|port| has_greeted(*port)) {
        thread::sleep(GREETING_PAUSE);
    }
    Ok(())
}

/// The kernel drops each SYN that arrives for the listener. A refusal of that leaves the gate open, as it was.
#[cfg(target_os = "linux")]
pub(crate) fn drop_newcomers(listener: &socket2::SockRef<'_>) {
    let filter = [
        socket2::SockFilter::new(BPF_LOAD_BYTE, 0, 0, FLAGS),
        socket2::SockFilter::new(BPF_JUMP_IF_SET, 0, 1, NO_KNOCK),
        socket2::SockFilter::new(BPF_RETURN, 0, 0, u32::MAX),
        socket2::SockFilter::new(BPF_RETURN, 0, 0, 0),
    ];
    let _ = listener.attach_filter(&filter);
}

/// Whether the kernel has greeted somebody at this port who has yet to answer.
#[cfg(target_os = "linux")]
pub(crate) fn has_greeted(port: u16) -> bool {
    let is_told_in = |table| {
        std::fs::read_to_string(table).is_ok_and(|text| text.lines().any(|line| is_greeted(line, port)))
    };
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"].into_iter().any(is_told_in)
}

/// A line of the system's table: its number, the local address, the other, the state, and more.
#[cfg(target_os = "linux")]
fn is_greeted(line: &str, port: u16) -> bool {
    let mut words = line.split_whitespace().skip(1);
    let (own, state) = (words.next(), words.nth(1));
    let own = own.and_then(|own| u16::from_str_radix(own.rsplit_once(':')?.1, 16).ok());
    state == Some(GREETED) && own == Some(port)
}

/// Elsewhere sockets take no filter, and the gate stays open.
#[cfg(not(target_os = "linux"))]
pub(crate) fn drop_newcomers(_: &socket2::SockRef<'_>) {}

/// And nothing is told.
#[cfg(not(target_os = "linux"))]
pub(crate) fn has_greeted(_: u16) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn who_was_greeted_at_a_port_is_found_in_the_systems_table() {
        let greeted = "   1: 0100007F:1F90 0100007F:C350 03 00000000:00000000 01:00000013 00000000     0        0 0 1 0";
        assert!(is_greeted(greeted, 8080));
        assert!(!is_greeted(greeted, 8081));
        assert!(!is_greeted(&greeted.replace(" 03 ", " 01 "), 8080));
        assert!(is_greeted("  12: 00000000000000000000000001000000:1F90 0:0 03 0", 8080));
        assert!(!is_greeted("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when", 8080));
        assert!(!is_greeted("", 8080));
    }
}
