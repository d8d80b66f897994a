//! The only file that may say `unsafe`: one operation a block, each with the fact that makes it sound.
//!
//! Contexts, coroutine steps and the GIL (CPython), signals and descriptors (the system).

#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use std::{io, mem, ptr, slice};

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString, PyTuple};
use pyo3::{ffi, intern};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::under_gil::UnderGil;

// SAFETY: a `RefCell` is not shared, since two threads might change its count of borrowers at once. This one's is changed
// by whoever shows its hold of the GIL as it begins to borrow, and as it ends: what is borrowed cannot be sent into a
// closure that runs without the GIL. If the GIL is let go of in between, whoever comes finds it borrowed.
unsafe impl<T: Send> Sync for UnderGil<T> {}

/// A context that this thread is in until the guard is dropped. A guard and nothing else: an early return between
/// enter and exit would leave the thread in another request's context.
pub(crate) struct Entered<'a, 'py>(&'a Bound<'py, PyAny>);

impl<'a, 'py> Entered<'a, 'py> {
    pub(crate) fn new(context: &'a Bound<'py, PyAny>) -> PyResult<Self> {
        // SAFETY: the thread is attached, and a pointer that is no context is refused with a TypeError.
        let entered = unsafe { ffi::PyContext_Enter(context.as_ptr()) };
        if entered < 0 { Err(PyErr::fetch(context.py())) } else { Ok(Self(context)) }
    }
}

impl Drop for Entered<'_, '_> {
    fn drop(&mut self) {
        let py = self.0.py();
        // An exception that is on its way must not be seen, or overwritten, by the exit.
        let pending = PyErr::take(py);
        // SAFETY: the thread is attached, and `new` has entered this context on it: guards nest, so it is on top.
        let exited = unsafe { ffi::PyContext_Exit(self.0.as_ptr()) };
        if exited < 0 {
            PyErr::fetch(py).write_unraisable(py, Some(self.0));
        }
        if let Some(pending) = pending {
            pending.restore(py);
        }
    }
}

/// A copy of a context, sharing what it holds until one of them changes.
pub(crate) fn copy_of<'py>(context: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = context.py();
    // SAFETY: the thread is attached, and a pointer that is no context is refused with a TypeError.
    let copy = unsafe { ffi::PyContext_Copy(context.as_ptr()) };
    // SAFETY: the call gives a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, copy) }
}

/// A copy of the context that this thread is in.
pub(crate) fn copy_of_current(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: the thread is attached, as `py` proves.
    let copy = unsafe { ffi::PyContext_CopyCurrent() };
    // SAFETY: the call gives a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, copy) }
}

/// Where this thread's state is, for who reads it without the GIL.
pub(crate) fn thread_state(_: Python<'_>) -> usize {
    // SAFETY: the thread is attached, so it has a state; what is given is a number, and nothing is done through it.
    unsafe { ffi::PyThreadState_Get() }.addr()
}

/// What a step of a coroutine came to.
pub(crate) enum Stepped<'py> {
    Yielded(Bound<'py, PyAny>),
    Returned(Bound<'py, PyAny>),
    Raised(PyErr),
}

/// Has a coroutine go on, as `send(None)` does, without an exception for what it returns.
pub(crate) fn step<'py>(coroutine: &Bound<'py, PyAny>) -> Stepped<'py> {
    let py = coroutine.py();
    let mut given = ptr::null_mut();
    // SAFETY: the thread is attached, both arguments are live objects, and the last one is valid for a write.
    let result = unsafe { ffi::PyIter_Send(coroutine.as_ptr(), ffi::Py_None(), &raw mut given) };
    // SAFETY: the call has written a new reference, or null with an exception set.
    match (result, unsafe { Bound::from_owned_ptr_or_err(py, given) }) {
        (_, Err(error)) => Stepped::Raised(error),
        (ffi::PySendResult::PYGEN_RETURN, Ok(given)) => Stepped::Returned(given),
        (_, Ok(given)) => Stepped::Yielded(given),
    }
}

/// `target.name(argument, context=context)`, without a dictionary for the keyword.
pub(crate) fn call_in<'py>(
    target: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    argument: &Bound<'py, PyAny>,
    context: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    static KEYWORD: PyOnceLock<Py<PyTuple>> = PyOnceLock::new();
    let py = target.py();
    let keyword =
        KEYWORD.get_or_try_init(py, || PyTuple::new(py, [intern!(py, "context")]).map(Bound::unbind))?;
    let arguments = [target.as_ptr(), argument.as_ptr(), context.as_ptr()];
    // SAFETY: the thread is attached; two positional arguments and one for each name of the tuple, all of them live.
    let given =
        unsafe { ffi::PyObject_VectorcallMethod(name.as_ptr(), arguments.as_ptr(), 2, keyword.as_ptr()) };
    // SAFETY: the call gives a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, given) }
}

/// New bytes that hold these parts, one behind the other.
pub(crate) fn bytes_of<'a, 'py>(
    py: Python<'py>,
    parts: impl Iterator<Item = &'a [u8]> + Clone,
) -> PyResult<Bound<'py, PyBytes>> {
    let length: usize = parts.clone().map(<[u8]>::len).sum();
    let size = ffi::Py_ssize_t::try_from(length).map_err(|_| PyMemoryError::new_err(()))?;
    // SAFETY: the thread is attached, and from null come bytes that are as long, hold anything, and that nobody else has.
    let made = unsafe { ffi::PyBytes_FromStringAndSize(ptr::null(), size) };
    // SAFETY: the call gives a new reference, or null with an exception set.
    let made = unsafe { Bound::from_owned_ptr_or_err(py, made) }?.cast_into::<PyBytes>()?;
    // SAFETY: it is a bytes object, which has its bytes in one place for as long as it lives.
    let place = unsafe { ffi::PyBytes_AsString(made.as_ptr()) }.cast::<u8>();
    let mut filled = 0;
    for part in parts {
        assert!(filled + part.len() <= length, "parts that were counted did not grow");
        // SAFETY: so many bytes are there behind those that are filled, and nobody reads or writes them meanwhile.
        unsafe { ptr::copy_nonoverlapping(part.as_ptr(), place.add(filled), part.len()) };
        filled += part.len();
    }
    Ok(made)
}

/// A descriptor of our own for what `descriptor` names.
pub(crate) fn duplicate(descriptor: RawFd) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: it is not -1, and a number that is not open is refused by the system with EBADF.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    borrowed.try_clone_to_owned()
}

/// Memory that all processes share that have this file, which is as long as `count` words. It stays until the process
/// ends: whoever runs may look at it any time.
pub(crate) fn share_words(file: &OwnedFd, count: usize) -> io::Result<&'static [AtomicU64]> {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    let size = mem::size_of::<AtomicU64>() * count;
    // A shorter file would be mapped as well, and its missing pages end whoever touches them.
    let length = std::fs::File::from(file.try_clone()?).metadata()?.len();
    if usize::try_from(length).map_or(true, |length| length < size) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: the system chooses the place, so nothing of ours is there, and it judges the descriptor.
    let place = unsafe { libc::mmap(ptr::null_mut(), size, access, kind, file.as_raw_fd(), 0) };
    if place == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is as long, begins at a page, is never unmapped, and everybody writes to it by atomics only;
    // any bytes are a valid integer.
    Ok(unsafe { slice::from_raw_parts(place.cast::<AtomicU64>(), count) })
}

/// Has the current runtime watch a descriptor for being readable.
pub(crate) fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open file for as long as it lives, and the `AsyncFd` owns it.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?)
}

/// How many bytes of a socket the other side's system has not confirmed yet.
#[cfg(target_os = "linux")]
pub(crate) fn unconfirmed(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open, and SIOCOUTQ, which has this number, writes an int through a pointer that is valid.
    let told = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if told == 0 { u64::try_from(bytes).ok() } else { None }
}

/// How many bytes of a socket the other side's system has not confirmed yet.
#[cfg(target_vendor = "apple")]
pub(crate) fn unconfirmed(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut bytes: libc::c_int = 0;
    let mut size = mem::size_of_val(&bytes) as libc::socklen_t;
    let value = (&raw mut bytes).cast();
    // SAFETY: the descriptor is open, the value is valid for as many bytes as the size says, and so is the size.
    let told = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NWRITE, value, &raw mut size)
    };
    if told == 0 { u64::try_from(bytes).ok() } else { None }
}

/// Other systems do not say.
#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
pub(crate) fn unconfirmed(_: BorrowedFd<'_>) -> Option<u64> {
    None
}

/// Gives the system the memory that is free, wherever it lies. Others that want memory meanwhile may wait.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn give_back() {
    // SAFETY: it takes no pointer, and may be called by any thread.
    unsafe { libc::malloc_trim(0) };
}

/// Other systems do it by themselves, or not at all.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back() {}

/// Closes a descriptor in a forked child, where whatever owns it will never run.
pub(crate) fn close(descriptor: RawFd) {
    // SAFETY: no code of the child uses the number: the threads that did are not there.
    unsafe { libc::close(descriptor) };
}

/// What is called for a signal: it may only do what is allowed between any two instructions.
pub(crate) type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// What the system does about a signal.
#[derive(Clone, Copy)]
pub(crate) struct Disposition(libc::sigaction);

impl PartialEq for Disposition {
    fn eq(&self, other: &Self) -> bool {
        self.0.sa_sigaction == other.0.sa_sigaction
    }
}

impl Disposition {
    /// What is in force.
    pub(crate) fn of(signal: i32) -> Self {
        // SAFETY: all zeroes is a valid `sigaction` (SIG_DFL, no flags, an empty mask).
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: the second pointer may be null, the third is valid for a write.
        unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
        Self(action)
    }

    pub(crate) fn default() -> Self {
        // SAFETY: all zeroes is a valid `sigaction` (SIG_DFL, no flags, an empty mask).
        Self(unsafe { mem::zeroed() })
    }

    /// Calls this.
    pub(crate) fn calling(handler: Handler) -> Self {
        let mut action = Self::default();
        action.0.sa_sigaction = handler as libc::sighandler_t;
        // What is interrupted goes on afterwards, and who has a stack for handlers has it used, as CPython's are.
        action.0.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        action
    }

    /// Puts this into force.
    pub(crate) fn set(&self, signal: i32) {
        // SAFETY: the action came from the system, is SIG_DFL, or calls what is written for that.
        unsafe { libc::sigaction(signal, &raw const self.0, ptr::null_mut()) };
    }
}

/// Keeps signals away from this thread: they are for the threads that Python knows.
pub(crate) fn block_signals() {
    // SAFETY: all zeroes is a valid signal set to be filled.
    let mut set: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: the pointer is valid for a write.
    unsafe { libc::sigfillset(&raw mut set) };
    // SAFETY: both pointers are valid or null, and only this thread's mask changes.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut()) };
}

/// Does `work` with signals kept away, so that a thread that it starts has them kept away too.
pub(crate) fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: all zeroes is a valid signal set to be filled.
    let mut all: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: all zeroes is a valid signal set to be filled.
    let mut before: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: the pointer is valid for a write.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: both pointers are valid, and only this thread's mask changes.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
    let done = work();
    // SAFETY: the set is the one that was in force.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
    done
}

/// Has Python's own handler for a signal run, as if the signal had come to Python.
pub(crate) fn tell_python(signal: i32) {
    // SAFETY: documented as callable without the GIL and from a signal handler.
    unsafe { ffi::PyErr_SetInterruptEx(signal) };
}

/// Whether a process sent the signal that a handler was called for, and not the system. (Elsewhere than on Linux this is not
/// told apart.)
pub(crate) fn is_of_a_process(about: *const libc::siginfo_t) -> bool {
    // SAFETY: the system hands a valid pointer to handlers that ask for it, as all of ours do.
    let code = unsafe { (*about).si_code };
    cfg!(target_os = "linux") && code <= 0
}

/// Has the system do with a signal what it does by itself, once the handler has returned that is called for it.
pub(crate) fn by_default(signal: i32) {
    Disposition::default().set(signal);
    // SAFETY: sends a signal to this process.
    unsafe { libc::kill(libc::getpid(), signal) };
}

/// Ends the process by a signal, whatever else is going on.
pub(crate) fn die_by(signal: i32) -> ! {
    Disposition::default().set(signal);
    // SAFETY: sends a signal to this process.
    unsafe { libc::kill(libc::getpid(), signal) };
    // Another thread takes the signal; this one must not go on meanwhile.
    std::thread::sleep(Duration::from_secs(1));
    exit_now(128 + signal)
}

/// Last words, when nothing else can be relied on to say them. A pipe that nobody reads any more does not hold them up.
pub(crate) fn complain(sentence: &str) {
    let mut stderr = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one entry is there, and lives on.
    let ready = unsafe { libc::poll(&raw mut stderr, 1, 0) };
    // A pipe that is ready takes 4 KiB without waiting, which is more than a sentence.
    if ready == 1 && stderr.revents & libc::POLLOUT != 0 {
        // SAFETY: the pointer and the length are those of a live string.
        unsafe { libc::write(libc::STDERR_FILENO, sentence.as_ptr().cast(), sentence.len()) };
    }
}

/// How long a thread has run, for whoever asks.
#[cfg(target_os = "linux")]
pub(crate) struct ThreadClock(libc::clockid_t);

#[cfg(target_os = "linux")]
impl ThreadClock {
    pub(crate) fn of_this_thread() -> Option<Self> {
        let mut clock = 0;
        // SAFETY: the thread is this one, which lives, and the pointer is to a live number.
        let refused = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
        (refused == 0).then_some(Self(clock))
    }

    /// None once the thread has ended.
    pub(crate) fn read(&self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a live time; a clock that is gone is an error.
        let refused = unsafe { libc::clock_gettime(self.0, &raw mut time) };
        let read = || Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?));
        (refused == 0).then(read).flatten()
    }
}

/// Other systems have no such clock.
#[cfg(not(target_os = "linux"))]
pub(crate) struct ThreadClock;

#[cfg(not(target_os = "linux"))]
impl ThreadClock {
    pub(crate) fn of_this_thread() -> Option<Self> {
        None
    }

    pub(crate) fn read(&self) -> Option<Duration> {
        None
    }
}

/// Ends the process without running anything else.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: ends the process; nothing of it runs afterwards.
    unsafe { libc::_exit(code) }
}
