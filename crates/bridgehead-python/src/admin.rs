//! The thread that answers operators, as Python starts and ends it.
//!
//! Not what it answers, which is `bridgehead_admin`'s. Of several workers it is in their parent, else in the process that
//! serves.
//!
//! Invariant: the thread never takes the GIL, so it answers whatever Python does.

use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bridgehead_admin::{Facts, Listener, Rules};
use pyo3::prelude::*;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::board::since_the_start;
use crate::ffi;
use crate::sheets::{Sheet, Sheets};

/// `bridgehead.admin.Wanted`, read once.
#[derive(FromPyObject)]
struct Wanted {
    /// Listens already.
    descriptor: RawFd,
    unix: bool,
    figures: Source,
    /// After so many seconds without a sign of life a process that is alone is not alive; zero: it always is.
    silence: f64,
    python: String,
    target: String,
}

/// Whose figures they are.
#[derive(FromPyObject)]
enum Source {
    Workers(Py<Sheets>),
    Alone(Py<Sheet>),
}

/// Answers operators until it is closed.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Admin(
    // Taken once, to end it; pyo3 wants classes to be shareable.
    Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
);

#[pymethods]
impl Admin {
    /// Begins to answer on a socket that listens.
    #[new]
    fn new(py: Python<'_>, wanted: Wanted) -> PyResult<Self> {
        let owned = ffi::duplicate(wanted.descriptor)?;
        let listener = wanted.listener(owned);
        let admin = Arc::new(wanted.read()?);
        let (stop, stopped) = oneshot::channel();
        let thread = py.detach(|| start(admin, listener, stopped))?;
        Ok(Self(Mutex::new(Some((stop, thread)))))
    }

    /// Lets nobody in any more; the last answers have a moment.
    fn close(&self, py: Python<'_>) {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((stop, thread)) = taken {
            drop(stop);
            // One that panicked has ended too.
            let _ = py.detach(|| thread.join());
        }
    }
}

impl Wanted {
    fn listener(&self, owned: OwnedFd) -> Listener {
        if self.unix { Listener::Unix(owned.into()) } else { Listener::Tcp(owned.into()) }
    }

    fn read(self) -> PyResult<bridgehead_admin::Admin> {
        let rules = Rules {
            silence: (self.silence > 0.0).then(|| Duration::try_from_secs_f64(self.silence)).transpose()?,
            clock: since_the_start,
        };
        let facts =
            Facts { version: env!("CARGO_PKG_VERSION").to_owned(), python: self.python, target: self.target };
        let sheets = match self.figures {
            Source::Workers(sheets) => sheets.get().words(),
            Source::Alone(sheet) => bridgehead_metrics::Sheets::alone(sheet.get().words()),
        };
        Ok(bridgehead_admin::Admin::new(sheets, rules, facts))
    }
}

/// Starts the thread, and waits until it has a runtime.
fn start(
    admin: Arc<bridgehead_admin::Admin>,
    listener: Listener,
    stopped: oneshot::Receiver<()>,
) -> PyResult<JoinHandle<()>> {
    let (ready, started) = mpsc::channel();
    let thread = thread::Builder::new().name("bridgehead-admin".to_owned()).spawn(move || {
        ffi::block_signals();
        match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => {
                let _ = ready.send(Ok(()));
                // A listener that cannot be driven is one that nobody reaches.
                let _ = runtime.block_on(bridgehead_admin::serve(admin, listener, stopped));
            }
            Err(error) => {
                let _ = ready.send(Err(error));
            }
        }
    })?;
    started.recv().map_err(std::io::Error::other)??;
    Ok(thread)
}
