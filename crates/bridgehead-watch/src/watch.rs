//! The watching thread: says when changes begin, gathers them until there are no more, then reports them together.
//!
//! Not how changes are found: the system tells (`native.rs`), or they are looked for (`snapshot.rs`).
//!
//! Invariant: what is being watched when [`Watch::start`] returns stays watched until the [`Watch`] is dropped, by one
//! method or the other.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::native::{Inbox, Native, QUEUE, Told, Unavailable};
use crate::selection::Selection;
use crate::snapshot::Snapshot;

/// Between two looks, when changes have to be looked for.
const INTERVAL: Duration = Duration::from_millis(500);

/// Who writes all the time does not keep a report back for longer.
const LONGEST: Duration = Duration::from_secs(2);

/// How changes are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The system tells.
    Native,
    /// They are looked for.
    Polling,
}

/// What is reported, on the thread that watches.
#[derive(Debug, PartialEq, Eq)]
pub enum Report {
    /// Something has changed: a report of what will follow, once there are no more changes.
    Begun,
    /// These have changed: files, or folders that are gone. In order, each once.
    Changed(Vec<PathBuf>),
    /// From here on changes are looked for, and why.
    Polling(String),
}

/// Watches until it is dropped.
#[derive(Debug)]
pub struct Watch {
    queue: SyncSender<Told>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to watch. Changes are reported when there was none for `delay`.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(
        selection: Selection,
        method: Method,
        delay: Duration,
        mut report: impl FnMut(Report) + Send + 'static,
    ) -> io::Result<Self> {
        let selection = Arc::new(selection);
        let (queue, told) = sync_channel(QUEUE);
        let inbox = Inbox { queue: queue.clone(), lost: Arc::new(AtomicBool::new(false)) };
        let lost = Arc::clone(&inbox.lost);
        let source = match method {
            Method::Polling => Source::Polling(Snapshot::take(&selection)),
            Method::Native => match Native::start(&selection, inbox) {
                Ok(native) => Source::Native(native),
                Err(why) => Source::instead(&selection, &why, &mut report),
            },
        };
        let gathering = Gathering { selection, source, told, lost, delay, changed: BTreeSet::new() };
        let thread = thread::Builder::new()
            .name("bridgehead-watch".to_owned())
            .spawn(move || gathering.run(report))?;
        Ok(Self { queue, thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // An error means that the thread is over already.
        let _ = self.queue.send(Told::Enough);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
enum Source {
    Native(Native),
    Polling(Snapshot),
}

impl Source {
    /// Looking, since the system cannot be asked.
    fn instead(selection: &Selection, why: &Unavailable, report: &mut impl FnMut(Report)) -> Self {
        report(Report::Polling(why.to_string()));
        Self::Polling(Snapshot::take(selection))
    }
}

/// Belongs to the watching thread.
struct Gathering {
    selection: Arc<Selection>,
    source: Source,
    told: Receiver<Told>,
    lost: Arc<AtomicBool>,
    delay: Duration,
    changed: BTreeSet<PathBuf>,
}

impl Gathering {
    fn run(mut self, mut report: impl FnMut(Report)) {
        let mut first = None;
        loop {
            match self.next(first) {
                Ok(Told::Changed(path)) => {
                    // That it is another one is certain: what is new of it has to be known.
                    self.differs(&path);
                    self.changed.insert(path);
                }
                Ok(Told::Touched(path)) => {
                    if self.differs(&path) {
                        self.changed.insert(path);
                    }
                }
                Ok(Told::Appeared(path)) => self.enter(path, &mut report),
                Ok(Told::Gone(path)) => self.leave(path),
                // Seen below.
                Ok(Told::Lost) => {}
                Ok(Told::Enough) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let quiet =
                        !self.look() || first.is_some_and(|since: Instant| since.elapsed() >= LONGEST);
                    if quiet && !self.changed.is_empty() {
                        report(Report::Changed(std::mem::take(&mut self.changed).into_iter().collect()));
                        first = None;
                    }
                }
            }
            if self.lost.swap(false, Ordering::AcqRel) {
                self.start_over(&mut report);
            }
            if !self.changed.is_empty() && first.is_none() {
                first = Some(Instant::now());
                report(Report::Begun);
            }
        }
    }

    /// What is told next. A timeout means that it is time to look, or to report.
    fn next(&self, first: Option<Instant>) -> Result<Told, RecvTimeoutError> {
        let pause = match (first, &self.source) {
            // Not by a pause of nothing: what is told without end would always be there before it.
            (Some(since), _) if since.elapsed() >= LONGEST => return Err(RecvTimeoutError::Timeout),
            (Some(since), _) => self.delay.min(LONGEST.saturating_sub(since.elapsed())),
            (None, Source::Polling(_)) => INTERVAL,
            (None, Source::Native(_)) => return self.told.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        self.told.recv_timeout(pause)
    }

    /// Whether looking has found anything. Where the system tells, there is nothing to look for.
    fn look(&mut self) -> bool {
        let Source::Polling(before) = &mut self.source else { return false };
        let now = Snapshot::take(&self.selection);
        let found = now.since(before);
        *before = now;
        let any = !found.is_empty();
        self.changed.extend(found);
        any
    }

    fn differs(&mut self, file: &Path) -> bool {
        match &mut self.source {
            Source::Native(native) => native.differs(file),
            Source::Polling(_) => false,
        }
    }

    /// A folder has come: what is in it has come before it was watched.
    fn enter(&mut self, path: PathBuf, report: &mut impl FnMut(Report)) {
        let Source::Native(native) = &mut self.source else { return };
        if !path.is_dir() {
            return;
        }
        match native.enter(&path, &self.selection) {
            Ok(files) => self.changed.extend(files),
            Err(why) => {
                self.changed.insert(path);
                self.source = Source::instead(&self.selection, &why, report);
            }
        }
    }

    /// A folder that was moved away takes its files with it, of which nobody tells.
    fn leave(&mut self, path: PathBuf) {
        if let Source::Native(native) = &mut self.source
            && native.leave(&path)
        {
            self.changed.insert(path);
        }
    }

    /// More has happened than was told: folders may have come, and anything may have changed.
    fn start_over(&mut self, report: &mut impl FnMut(Report)) {
        for top in self.selection.folders.clone() {
            self.changed.insert(top.clone());
            self.enter(top, report);
        }
    }
}
