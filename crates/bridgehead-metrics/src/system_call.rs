//! System calls that block, by their numbers on this machine, and what they are called.
//!
//! Not all there are: one that is not listed is shown by its number.

use std::fmt;

/// A call of the system, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemCall(u16);

/// Those that a call of Python's is likely to wait in.
#[cfg(target_os = "linux")]
const NAMES: &[(libc::c_long, &str)] = &[
    (libc::SYS_read, "read"),
    (libc::SYS_write, "write"),
    (libc::SYS_readv, "readv"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_pread64, "pread64"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_recvfrom, "recvfrom"),
    (libc::SYS_recvmsg, "recvmsg"),
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_sendmsg, "sendmsg"),
    (libc::SYS_sendfile, "sendfile"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_accept, "accept"),
    (libc::SYS_accept4, "accept4"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_ppoll, "ppoll"),
    (libc::SYS_pselect6, "pselect6"),
    (libc::SYS_epoll_pwait, "epoll_pwait"),
    (libc::SYS_futex, "futex"),
    (libc::SYS_nanosleep, "nanosleep"),
    (libc::SYS_clock_nanosleep, "clock_nanosleep"),
    (libc::SYS_wait4, "wait4"),
    (libc::SYS_waitid, "waitid"),
    (libc::SYS_getdents64, "getdents64"),
    (libc::SYS_statx, "statx"),
    (libc::SYS_rt_sigtimedwait, "rt_sigtimedwait"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_poll, "poll"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_select, "select"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_epoll_wait, "epoll_wait"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, "open"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_stat, "stat"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_pause, "pause"),
];
#[cfg(not(target_os = "linux"))]
const NAMES: &[(libc::c_long, &str)] = &[];

impl SystemCall {
    /// Any, or one whose number is not known.
    pub(crate) const ANY: Self = Self(u16::MAX);

    /// Of this number.
    #[must_use]
    pub fn of(number: u16) -> Self {
        Self(number)
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (number, _) = NAMES.iter().find(|(_, known)| *known == name)?;
        u16::try_from(*number).ok().map(Self)
    }

    pub(crate) fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for SystemCall {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(number, _)| *number == libc::c_long::from(self.0)) {
            Some((_, name)) => out.write_str(name),
            None if *self == Self::ANY => out.write_str("unknown"),
            None => write!(out, "number {}", self.0),
        }
    }
}
