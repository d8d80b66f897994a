//! A file as an answer's body: `http.response.pathsend` and `http.response.zerocopysend`.
//!
//! hyper takes no descriptors, so a file is read on Tokio's blocking pool, a piece at a time, and each piece goes the way
//! of any other body: the same rules judge it, and the client's pace holds it.
//!
//! Invariant: nothing here blocks the loop, and once the `await` is over at most the read that had begun goes on.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bridgehead_asgi::More;
use bytes::Bytes;

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
    asked: bool,
    /// Lives as long as this does.
    token: Arc<()>,
    /// For messages of errors.
    pub(crate) path: Option<PathBuf>,
}

/// What the blocking pool gives back.
pub(crate) enum Found {
    /// The file is open, and so long if that can be known.
    Opened(Option<u64>),
    /// The next bytes; none at the end.
    Piece(Bytes),
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
        Self { shared, from, left, more, asked: false, token: Arc::new(()), path }
    }

    /// The first errand: the file is opened, or measured if it is open already.
    pub(crate) fn begin(&mut self) -> Errand {
        self.asked = true;
        let work = self.path.clone().map_or(Work::Measure, Work::OpenPath);
        Errand { shared: Arc::clone(&self.shared), work }
    }

    /// Dead once nobody waits for this file.
    pub(crate) fn token(&self) -> Weak<()> {
        Arc::downgrade(&self.token)
    }

    /// The next piece, unless it is asked for already.
    pub(crate) fn ask(&mut self) -> Option<Errand> {
        if std::mem::replace(&mut self.asked, true) {
            return None;
        }
        let length = self.left.map_or(PIECE, |left| left.min(PIECE as u64) as usize);
        Some(Errand { shared: Arc::clone(&self.shared), work: Work::Read(self.from, length) })
    }

    /// What an errand brought, once it is back.
    pub(crate) fn take(&mut self) -> Option<io::Result<Found>> {
        let found = lock(&self.shared.found).take();
        self.asked &= found.is_none();
        found
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
                Found::Opened(Some(size))
            }),
            Work::Measure => self.shared.file().and_then(|file| measure(&file)).map(Found::Opened),
            Work::Read(from, length) => {
                self.shared.file().and_then(|file| read(&file, from, length)).map(Found::Piece)
            }
        };
        *lock(&self.shared.found) = Some(found);
    }
}

impl Shared {
    fn file(&self) -> io::Result<Arc<File>> {
        lock(&self.file).clone().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Each holds for one assignment.
fn lock<T>(slot: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open(path: &std::path::Path) -> io::Result<(File, u64)> {
    // Looked at before it is opened: opening a pipe would wait for whoever writes into it.
    let kind = std::fs::metadata(path)?;
    if kind.is_dir() {
        return Err(rustix::io::Errno::ISDIR.into());
    }
    if !kind.is_file() {
        return Err(rustix::io::Errno::INVAL.into());
    }
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

fn measure(file: &File) -> io::Result<Option<u64>> {
    let kind = file.metadata()?;
    Ok(kind.is_file().then_some(kind.len()))
}

fn read(mut file: &File, from: From, length: usize) -> io::Result<Bytes> {
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
