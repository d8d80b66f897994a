//! Signals that come while the application is imported, when there is neither a loop nor a thread of ours.
//!
//! Not those of a server that is up: `control.rs`. No thread takes them, since an application may fork while it is imported,
//! and no handler of Python's, since a call in C may hold the import for as long as it likes.
//!
//! | signal | what happens |
//! |---|---|
//! | SIGTERM | a line is said, and the process ends with code 0: nothing was begun that is to be ended |
//! | SIGHUP, SIGUSR1 and SIGUSR2, of a process | they are remembered, for the server that is up later |
//! | SIGTTIN and SIGTTOU, of a process | nothing: there is nobody yet to add to, or to take away |
//! | SIGHUP, SIGTTIN and SIGTTOU, of a terminal | what the system does by itself |
//!
//! Invariant: a handler does what is allowed between any two instructions, and in a forked child what the system would.

use std::ffi::c_void;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

use crate::ffi::{self, Disposition, Handler};

/// Each with its handler.
const SIGNALS: [(i32, Handler); 6] = [
    (libc::SIGTERM, end),
    (libc::SIGHUP, remember),
    (libc::SIGUSR1, remember),
    (libc::SIGUSR2, remember),
    (libc::SIGTTIN, pass_over),
    (libc::SIGTTOU, pass_over),
];

/// Whose signals they are, and what is said at an end. Written by the main thread before it takes them, read by the
/// handlers, which may not wait for a lock.
static EARLY: OnceLock<Early> = OnceLock::new();

/// The remembered ones, a bit each. Written by handlers, which may neither wait nor allocate, read by the main thread.
static HEARD: AtomicU64 = AtomicU64::new(0);

struct Early {
    process: u32,
    line: String,
}

/// Takes them, once; `line` is said at an end. A signal that somebody has set something for stays as it is.
#[pyfunction]
pub(crate) fn take_early_signals(line: String) {
    if EARLY.set(Early { process: process::id(), line }).is_err() {
        return;
    }
    for (signal, handler) in SIGNALS {
        if Disposition::of(signal) == Disposition::default() {
            Disposition::calling(handler).set(signal);
        }
    }
}

/// Gives those back that are still ours.
#[pyfunction]
pub(crate) fn give_back_early_signals() {
    SIGNALS.into_iter().for_each(|(signal, _)| before(signal).set(signal));
}

/// The remembered ones, once.
#[pyfunction]
pub(crate) fn early_signals_heard() -> Vec<i32> {
    let heard = HEARD.swap(0, Ordering::Relaxed);
    SIGNALS.into_iter().map(|(signal, _)| signal).filter(|signal| heard & (1 << signal) != 0).collect()
}

/// What is in force for a signal, or was before it was taken here.
pub(crate) fn before(signal: i32) -> Disposition {
    let found = Disposition::of(signal);
    let ours = |(number, handler)| number == signal && found == Disposition::calling(handler);
    if SIGNALS.into_iter().any(ours) { Disposition::default() } else { found }
}

extern "C" fn end(signal: i32, _: *mut libc::siginfo_t, _: *mut c_void) {
    let Some(early) = ours() else { return ffi::by_default(signal) };
    ffi::complain(&early.line);
    ffi::exit_now(0);
}

extern "C" fn remember(signal: i32, about: *mut libc::siginfo_t, _: *mut c_void) {
    if ours().is_some() && ffi::is_of_a_process(about) {
        HEARD.fetch_or(1 << signal, Ordering::Relaxed);
    } else {
        ffi::by_default(signal);
    }
}

extern "C" fn pass_over(signal: i32, about: *mut libc::siginfo_t, _: *mut c_void) {
    if ours().is_none() || !ffi::is_of_a_process(about) {
        ffi::by_default(signal);
    }
}

/// None in a process that was forked meanwhile.
fn ours() -> Option<&'static Early> {
    EARLY.get().filter(|early| early.process == process::id())
}
