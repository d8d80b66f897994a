//! Changes as the system tells of them, through the crate notify.
//!
//! On Linux a folder is watched by itself, so that those that do not count (`.git`, virtual environments) cost no watch;
//! folders that come later are added by whoever is told of them. Elsewhere a watch covers all that is below.
//!
//! Invariant: notify's thread is never held up: what does not fit into the queue is told as lost.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind, RenameMode};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use crate::selection::Selection;
use crate::snapshot::Stamp;
use crate::walk::{Found, walk};

/// One look at the queue covers this many events; a checkout that makes more is a change in any case.
pub(crate) const QUEUE: usize = 4096;

const REACH: RecursiveMode =
    if cfg!(target_os = "linux") { RecursiveMode::NonRecursive } else { RecursiveMode::Recursive };

/// What the system has told.
#[derive(Debug)]
pub(crate) enum Told {
    /// A file that counts is another one.
    Changed(PathBuf),
    /// Something about a file that counts, but for its content: a time, or its rights.
    Touched(PathBuf),
    /// This is there, and may be a folder.
    Appeared(PathBuf),
    /// This is there no more, and may have been a folder.
    Gone(PathBuf),
    /// Something was not told: see [`Inbox`].
    Lost,
    /// Nobody wants to know any more.
    Enough,
}

/// Where the system's word is put.
#[derive(Clone, Debug)]
pub(crate) struct Inbox {
    pub(crate) queue: SyncSender<Told>,
    // Set by notify's thread when something was not told, and before that is said in the queue; taken by the watching thread
    // behind each thing that it is told. A word in the queue alone would find no room when it is due.
    pub(crate) lost: Arc<AtomicBool>,
}

impl Inbox {
    fn put(&self, told: Told) {
        if let Err(TrySendError::Full(_)) = self.queue.try_send(told) {
            self.lose();
        }
    }

    /// Something is not told. Whoever waits is woken for it: a queue without room has something that wakes.
    fn lose(&self) {
        self.lost.store(true, Ordering::Release);
        let _ = self.queue.try_send(Told::Lost);
    }
}

/// Why the system cannot be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unavailable {
    #[error("the system's limit of watched folders is reached (fs.inotify.max_user_watches)")]
    Watches,
    #[error("the system's limit of watching programs is reached (fs.inotify.max_user_instances)")]
    Instances,
    #[error("the system does not tell of changes: {0}")]
    Other(notify::Error),
}

impl From<notify::Error> for Unavailable {
    fn from(error: notify::Error) -> Self {
        match &error.kind {
            notify::ErrorKind::MaxFilesWatch => Self::Watches,
            // EMFILE; inotify has no other word for a user's limit.
            notify::ErrorKind::Io(cause) if cause.raw_os_error() == Some(24) => Self::Instances,
            _ => Self::Other(error),
        }
    }
}

/// The system's watches.
#[derive(Debug)]
pub(crate) struct Native {
    watcher: RecommendedWatcher,
    entered: HashSet<PathBuf>,
    /// Of each file that counts, as it was last known.
    stamps: HashMap<PathBuf, Stamp>,
}

impl Native {
    /// Watches everything that is selected.
    pub(crate) fn start(selection: &Arc<Selection>, inbox: Inbox) -> Result<Self, Unavailable> {
        let known = Arc::clone(selection);
        let watcher = notify::recommended_watcher(move |event| tell(event, &known, &inbox))?;
        let mut native = Self { watcher, entered: HashSet::new(), stamps: HashMap::new() };
        for top in &selection.folders {
            if let (Some(above), RecursiveMode::NonRecursive) = (top.parent(), REACH) {
                // A folder at the top that is removed and made again is noticed there, if that may be watched.
                let _ = native.watcher.watch(above, REACH);
            }
            native.enter(top, selection)?;
        }
        Ok(native)
    }

    /// Watches a folder, which may just have come, and those below it; the files that count in them.
    pub(crate) fn enter(&mut self, start: &Path, selection: &Selection) -> Result<Vec<PathBuf>, Unavailable> {
        let mut files = Vec::new();
        let mut outcome = Ok(());
        walk(start, selection, |found| match found {
            Found::Folder(folder) if outcome.is_ok() => {
                if REACH == RecursiveMode::NonRecursive || selection.is_top(folder) {
                    outcome = self.watch(folder);
                }
            }
            Found::File(file, metadata) => files.push((file.to_owned(), Stamp::of(metadata))),
            Found::Folder(_) => {}
        });
        let found = files.iter().map(|(file, _)| file.clone()).collect();
        self.stamps.extend(files);
        outcome.map(|()| found)
    }

    /// Whether a file is another one than it was last known to be; that is known from here on.
    pub(crate) fn differs(&mut self, file: &Path) -> bool {
        let Ok(metadata) = file.metadata() else { return self.stamps.remove(file).is_some() };
        let now = Stamp::of(&metadata);
        let same = self.stamps.get(file) == Some(&now);
        self.stamps.insert(file.to_owned(), now);
        !same
    }

    /// Whether `path` was a folder that is watched; it is not any more.
    pub(crate) fn leave(&mut self, path: &Path) -> bool {
        self.entered.remove(path)
    }

    fn watch(&mut self, folder: &Path) -> Result<(), Unavailable> {
        self.entered.insert(folder.to_owned());
        match self.watcher.watch(folder, REACH) {
            Err(error) if is_of_the_folder(&error) => Ok(()),
            done => Ok(done?),
        }
    }
}

/// It has gone again, or is not ours to read.
fn is_of_the_folder(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(cause) => {
            matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
        }
        _ => false,
    }
}

/// Runs on notify's thread.
fn tell(event: notify::Result<Event>, selection: &Selection, inbox: &Inbox) {
    let event = match event {
        Ok(event) if !event.need_rescan() => event,
        _ => return inbox.lose(),
    };
    let Some(meaning) = Meaning::of(&event.kind) else { return };
    for path in event.paths {
        let may_be_folder = matches!(meaning, Meaning::Appeared | Meaning::Gone) && selection.enters(&path);
        if selection.counts(&path) {
            let told = if meaning == Meaning::Touched { Told::Touched } else { Told::Changed };
            inbox.put(told(path.clone()));
        }
        match meaning {
            Meaning::Appeared if may_be_folder => inbox.put(Told::Appeared(path)),
            Meaning::Gone if may_be_folder => inbox.put(Told::Gone(path)),
            _ => {}
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Changed,
    Touched,
    Appeared,
    Gone,
}

impl Meaning {
    /// Nothing for what only reads.
    fn of(kind: &EventKind) -> Option<Self> {
        match kind {
            EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => {
                Some(Self::Appeared)
            }
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => Some(Self::Gone),
            // Told a second time, for both ends at once.
            EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => None,
            // Systems that do not say which end it is.
            EventKind::Modify(ModifyKind::Name(_)) | EventKind::Any => Some(Self::Appeared),
            EventKind::Modify(ModifyKind::Metadata(_)) => Some(Self::Touched),
            EventKind::Modify(_) | EventKind::Access(AccessKind::Close(AccessMode::Write)) => {
                Some(Self::Changed)
            }
            EventKind::Access(_) | EventKind::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use notify::event::Flag;

    use super::*;

    #[test]
    fn who_waits_for_changes_is_woken_when_the_system_has_lost_some() {
        let (queue, told) = sync_channel(1);
        let inbox = Inbox { queue, lost: Arc::default() };
        let nothing = Selection::default();
        tell(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)), &nothing, &inbox);
        assert!(matches!(told.try_recv(), Ok(Told::Lost)));
        assert!(inbox.lost.swap(false, Ordering::Acquire));
    }

    #[test]
    fn what_finds_no_room_is_known_to_be_lost_by_who_takes_what_did() {
        let (queue, told) = sync_channel(1);
        let inbox = Inbox { queue, lost: Arc::default() };
        inbox.put(Told::Changed(PathBuf::from("one")));
        inbox.put(Told::Changed(PathBuf::from("two")));
        assert!(matches!(told.try_recv(), Ok(Told::Changed(_))));
        assert!(inbox.lost.load(Ordering::Acquire));
    }
}
