//! What Python sees of the watching behind `--reload`.
//!
//! The watching thread never touches Python: it puts what has changed into a list, and makes a descriptor readable.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bridgehead_watch::{Method, Pattern, Report, Selection, Watch};
use pyo3::prelude::*;

use crate::ffi;
use crate::wake::Descriptor;

/// `bridgehead.watched.Watched`, read once.
#[derive(FromPyObject)]
struct Watched {
    folders: Vec<PathBuf>,
    include: Vec<String>,
    exclude: Vec<String>,
    left_out: Vec<PathBuf>,
    delay: f64,
    polls: bool,
}

/// Watches files until it is closed. Its `fileno()` is readable when there is something to take.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Watcher {
    news: Arc<News>,
    // Python's thread takes it once, to end it; pyo3 wants classes to be shareable.
    watch: Mutex<Option<Watch>>,
}

/// Between the watching thread, which adds, and Python's, which takes.
struct News {
    waiting: Mutex<Waiting>,
    wake: Descriptor,
}

#[derive(Default)]
struct Waiting {
    // A set: a parent that is busy for long costs no more than the files there are.
    changed: BTreeSet<PathBuf>,
    polling: Option<String>,
    begun: bool,
}

/// What has changed, whether something has that will be told of later, and why changes have to be looked for.
type Taken = (Vec<OsString>, bool, Option<String>);

impl News {
    fn add(&self, report: Report) {
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            match report {
                Report::Begun => waiting.begun = true,
                Report::Changed(paths) => waiting.changed.extend(paths),
                Report::Polling(why) => waiting.polling = Some(why),
            }
        }
        self.wake.signal();
    }
}

#[pymethods]
impl Watcher {
    #[new]
    fn new(py: Python<'_>, watched: Watched) -> PyResult<Self> {
        let delay = Duration::try_from_secs_f64(watched.delay)?;
        let method = if watched.polls { Method::Polling } else { Method::Native };
        let patterns = |texts: &[String]| texts.iter().map(|text| Pattern::new(text)).collect();
        let selection = Selection {
            include: patterns(&watched.include),
            exclude: patterns(&watched.exclude),
            folders: watched.folders,
            left_out: watched.left_out,
        };
        let news = Arc::new(News { waiting: Mutex::default(), wake: Descriptor::new()? });
        let teller = Arc::clone(&news);
        let watch = py.detach(|| {
            ffi::without_signals(|| Watch::start(selection, method, delay, move |report| teller.add(report)))
        })?;
        Ok(Self { news, watch: Mutex::new(Some(watch)) })
    }

    /// What to wait for.
    fn fileno(&self) -> RawFd {
        self.news.wake.number()
    }

    /// What has changed since it was last taken, whether changes have begun, why they have to be looked for, if that is new.
    fn take(&self) -> Taken {
        self.news.wake.clear();
        let mut waiting = self.news.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Waiting { changed, polling, begun } = std::mem::take(&mut *waiting);
        (changed.into_iter().map(PathBuf::into_os_string).collect(), begun, polling)
    }

    /// Ends the watching.
    fn close(&self, py: Python<'_>) {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(watch));
    }
}
