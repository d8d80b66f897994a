//! A file as an answer's body: `http.response.pathsend` and `http.response.zerocopysend`.
//!
//! hyper takes no descriptors, so a file is read on Tokio's blocking pool, a piece at a time, and each piece goes the way
//! of any other body: the same rules judge it, and the client's pace holds it. What may have nothing to read for long (a
//! pipe, a socket) is waited for by a task of the network's, and no thread.
//!
//! Invariant: nothing here blocks the loop, no thread waits for a pipe, and once the `await` is over at most the read that
//! had begun goes on.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bridgehead_asgi::More;
use bytes::Bytes;
use pyo3::prelude::*;
use tokio::sync::oneshot;

use crate::{ffi, fused};

/// What is read at once: as much as an answer may have waiting.
const PIECE: usize = 64 * 1024;

/// Where a file's bytes are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// The file's own position, which moves.
    Position,
    /// Here; the position stays where it is.
    Offset(u64),
}

/// A file that is being sent.
pub(crate) struct FileSend {
    shared: Arc<Shared>,
    from: From,
    /// Bytes that may still be sent; `None` for as many as there are.
    left: Option<u64>,
    more: More,
    asked: Asked,
    /// A file that Python has a position of its own in, and where that was.
    position: Option<(Py<PyAny>, u64)>,
    /// For messages of errors.
    pub(crate) path: Option<PathBuf>,
}

/// What is being done elsewhere.
enum Asked {
    Nothing,
    /// An errand, on the blocking pool.
    Errand,
    /// That nothing more is read.
    Skip,
    /// A task waits for something to read, until this is dropped.
    Readable {
        _until: oneshot::Sender<()>,
    },
}

/// What is found elsewhere.
pub(crate) enum Found {
    /// The file is open, and so long if that can be known.
    Opened(Option<u64>),
    /// The next bytes; none at the end.
    Piece(Bytes),
    /// There is nothing to read yet: a pipe whose other end is open.
    Nothing,
    /// There is something to read.
    Readable,
    /// The position is where it would be had everything been read.
    Skipped,
}

struct Shared {
    file: Mutex<Option<Arc<File>>>,
    found: Mutex<Option<io::Result<Found>>>,
}

/// What is to be done on the blocking pool.
pub(crate) struct Errand {
    shared: Arc<Shared>,
    work: Work,
}

enum Work {
    OpenPath(PathBuf),
    Measure,
    Read(From, usize),
    Skip(Option<u64>),
}

impl FileSend {
    /// A whole file by its name.
    pub(crate) fn path(path: PathBuf) -> Self {
        Self::new(None, Some(path), From::Offset(0), None, More::Ends)
    }

    /// A part of an open file.
    pub(crate) fn descriptor(descriptor: OwnedFd, from: From, count: Option<u64>, more: More) -> Self {
        Self::new(Some(Arc::new(File::from(descriptor))), None, from, count, more)
    }

    fn new(
        file: Option<Arc<File>>,
        path: Option<PathBuf>,
        from: From,
        left: Option<u64>,
        more: More,
    ) -> Self {
        let shared = Arc::new(Shared { file: Mutex::new(file), found: Mutex::new(None) });
        Self { shared, from, left, more, asked: Asked::Nothing, position: None, path }
    }

    /// Reads from where Python is in the file, and not from where its descriptor is: Python reads ahead.
    pub(crate) fn start_at(&mut self, file: Py<PyAny>, position: u64) {
        self.from = From::Offset(position);
        self.position = Some((file, position));
    }

    /// The first errand: the file is opened, or measured if it is open already.
    pub(crate) fn begin(&mut self) -> Errand {
        self.asked = Asked::Errand;
        let work = self.path.clone().map_or(Work::Measure, Work::OpenPath);
        Errand { shared: Arc::clone(&self.shared), work }
    }

    /// The next piece, unless it is asked for already.
    pub(crate) fn ask(&mut self) -> Option<Errand> {
        if !matches!(self.asked, Asked::Nothing) {
            return None;
        }
        self.asked = Asked::Errand;
        let length = self.left.map_or(PIECE, |left| left.min(PIECE as u64) as usize);
        Some(Errand { shared: Arc::clone(&self.shared), work: Work::Read(self.from, length) })
    }

    /// Has the position move by what is left, as if that had been read: nobody is to get it. Brings `Found::Skipped`, by
    /// an errand where the position is the system's.
    pub(crate) fn skip(&mut self) -> Option<Errand> {
        self.asked = Asked::Skip;
        match &mut self.from {
            From::Position => Some(Errand { shared: Arc::clone(&self.shared), work: Work::Skip(self.left) }),
            From::Offset(at) => {
                *at = at.saturating_add(self.left.unwrap_or(0));
                *lock(&self.shared.found) = Some(Ok(Found::Skipped));
                None
            }
        }
    }

    /// Whether nothing more is read of it.
    pub(crate) fn is_skipped(&self) -> bool {
        matches!(self.asked, Asked::Skip)
    }

    /// What an errand brought, once it is back.
    pub(crate) fn take(&mut self) -> Option<io::Result<Found>> {
        let found = lock(&self.shared.found).take();
        if found.is_some() && !self.is_skipped() {
            self.asked = Asked::Nothing;
        }
        found
    }

    /// To be run as a task of the network's: ends when there is something to read, or this is dropped.
    pub(crate) fn until_readable(&mut self) -> impl Future<Output = ()> + Send + 'static {
        let (sender, dropped) = oneshot::channel();
        self.asked = Asked::Readable { _until: sender };
        let shared = Arc::clone(&self.shared);
        async move {
            let found = tokio::select! {
                biased;
                _ = dropped => return,
                found = shared.readable() => found,
            };
            *lock(&shared.found) = Some(found.map(|()| Found::Readable));
        }
    }

    /// Whether it is a pipe that has nothing to read.
    pub(crate) fn waits_for_a_writer(&self) -> bool {
        matches!(self.asked, Asked::Readable { .. })
    }

    /// Everything was sent: Python's own position moves, as the descriptor's would have.
    pub(crate) fn settle(&mut self, py: Python<'_>) {
        let (Some((file, before)), From::Offset(now)) = (self.position.take(), self.from) else { return };
        if now > before {
            // One that was closed meanwhile has no position any more, which nobody will miss.
            let _ = file.call_method1(py, pyo3::intern!(py, "seek"), (now,));
        }
    }

    /// The file is so long: no more is asked for than there is.
    pub(crate) fn measured(&mut self, size: Option<u64>) {
        let start = match self.from {
            From::Position => return,
            From::Offset(start) => start,
        };
        if let Some(size) = size {
            let there = size.saturating_sub(start);
            self.left = Some(self.left.map_or(there, |left| left.min(there)));
        }
    }

    /// How many bytes are still to come, if that is known.
    pub(crate) fn left(&self) -> Option<u64> {
        self.left
    }

    /// So many bytes were read; says whether the body goes on after them, and whether the file does.
    pub(crate) fn passed(&mut self, bytes: usize) -> (More, Going) {
        if let From::Offset(at) = &mut self.from {
            *at += bytes as u64;
        }
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(bytes as u64);
        }
        if bytes == 0 || self.left == Some(0) { (self.more, Going::Over) } else { (More::Follows, Going::On) }
    }
}

/// Whether a file has more to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Going {
    On,
    Over,
}

impl Errand {
    /// Does the work; to be called where blocking harms nobody.
    pub(crate) fn run(self) {
        let found = match self.work {
            Work::OpenPath(path) => open(&path).map(|(file, size)| {
                *lock(&self.shared.file) = Some(Arc::new(file));
                Found::Opened(size)
            }),
            Work::Measure => self.shared.file().and_then(|file| measure(&file)).map(Found::Opened),
            Work::Read(from, length) => self.shared.file().and_then(|file| read(&file, from, length)),
            Work::Skip(count) => self.shared.file().and_then(|file| skip(&file, count)),
        };
        *lock(&self.shared.found) = Some(found);
    }
}

impl Shared {
    fn file(&self) -> io::Result<Arc<File>> {
        lock(&self.file).clone().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    async fn readable(&self) -> io::Result<()> {
        let watched = ffi::watch(self.file()?.try_clone()?.into())?;
        watched.readable().await.map(drop)
    }
}

/// Each holds for one assignment.
fn lock<T>(slot: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open(path: &std::path::Path) -> io::Result<(File, Option<u64>)> {
    // Looked at before it is opened: opening a pipe would wait for whoever writes into it.
    let kind = std::fs::metadata(path)?;
    if kind.is_dir() {
        return Err(rustix::io::Errno::ISDIR.into());
    }
    if !kind.is_file() {
        return Err(rustix::io::Errno::INVAL.into());
    }
    let file = File::open(path)?;
    let size = measure(&file)?;
    Ok((file, size))
}

fn measure(file: &File) -> io::Result<Option<u64>> {
    let kind = file.metadata()?;
    if !kind.is_file() {
        return Ok(None);
    }
    // What the kernel makes up while it is read (/proc) says that it is empty, and is not.
    let made_up = kind.len() == 0 && file.read_at(&mut [0], 0)? > 0;
    Ok((!made_up).then_some(kind.len()))
}

/// Moves the position by so many bytes, at most to the end; a pipe has none, and keeps what it has.
fn skip(mut file: &File, count: Option<u64>) -> io::Result<Found> {
    if let Some(size) = measure(file)? {
        let position = file.stream_position()?;
        let rest = size.saturating_sub(position);
        file.seek(SeekFrom::Start(position + count.map_or(rest, |count| count.min(rest))))?;
    }
    Ok(Found::Skipped)
}

/// Reads a piece; a pipe gives what it has, and is not waited for.
fn read(file: &File, from: From, length: usize) -> io::Result<Found> {
    if !fused::is_readable(file) {
        return Ok(Found::Nothing);
    }
    match fill(file, from, length) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Found::Nothing),
        piece => piece.map(Found::Piece),
    }
}

fn fill(mut file: &File, from: From, length: usize) -> io::Result<Bytes> {
    let mut piece = vec![0; length];
    let mut filled = 0;
    while filled < length {
        let read = match from {
            From::Position => file.read(&mut piece[filled..]),
            From::Offset(at) => file.read_at(&mut piece[filled..], at + filled as u64),
        };
        match read {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // What was read before it is sent first; the next piece meets the error again.
            Err(_) if filled > 0 => break,
            Err(error) => return Err(error),
        }
        // A pipe gives what it has.
        if from == From::Position {
            break;
        }
    }
    piece.truncate(filled);
    Ok(piece.into())
}
