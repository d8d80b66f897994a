//! The control thread: catches the signals that end a worker, whatever the loop is doing.
//!
//! Tokio's signal handling runs on a thread of its own, so that it works with the loop off the main thread, with the
//! loop busy, and without the GIL. The loop learns by `call_soon_threadsafe`. Python's own handlers, the application's
//! among them, are told as well.
//!
//! | signal | what happens |
//! |---|---|
//! | first SIGINT or SIGTERM | Python's handler for it, if there is one of the application's; then the loop is told |
//! | second | the process ends by it, now |
//! | none within the patience after the first | the process ends with code 1 |
//! | none, and the application does not start in its time | the process ends with code 3 |
//!
//! Who is told to end by somebody else, a worker by its parent, says so (`expect_end`): then there is a last deadline too.
//!
//! Invariant: until the first signal has come, the system hands SIGINT and SIGTERM to Tokio, and to nobody else first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::time::{interval, sleep};

use crate::due::Due;
use crate::early;
use crate::ffi::{self, Disposition};
use crate::last_words;
use crate::sheets::Sheet;

/// Between looks whether somebody took a signal away from us below Python, which `own_handlers.py` does not see.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// For a signal that came as the signals were given back.
const LAST_LOOK: Duration = Duration::from_millis(5);

/// What ends a worker.
const SIGNALS: [i32; 2] = [libc::SIGINT, libc::SIGTERM];

/// Listens for the end.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Control {
    shared: Arc<Shared>,
    // The loop's thread takes it once, to end it; pyo3 wants classes to be shareable.
    running: Mutex<Option<Running>>,
}

struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// Between the loop's thread and the control thread.
struct Shared {
    slots: [Slot; SIGNALS.len()],
    listener: Arc<Listener>,
    patience: Duration,
    /// When the end is due that somebody else has asked for. Set by the loop's thread and by the one that hears a parent, read
    /// by the control thread.
    expected: watch::Sender<Option<Due>>,
    /// Whether the first signal has come. Set by the control thread before anybody hears of it, read by the loop's.
    ending: AtomicBool,
    /// Where operators look whether the server is ready. Set by the loop's thread once it is, written to by the control thread.
    sheet: OnceLock<bridgehead_metrics::Sheet>,
    /// Who tells the loop. Started by the control thread, waited for by the loop's: an interpreter that ends under a
    /// thread that is attached to it aborts the process.
    teller: Mutex<Option<JoinHandle<()>>>,
}

struct Slot {
    signal: i32,
    /// What was in force before us.
    before: Disposition,
    /// Tokio's. Written by the control thread before anybody else knows of it.
    ours: OnceLock<Disposition>,
    /// Whether Python has a handler of the application's. Written by the loop's thread, and by the control thread when
    /// it finds one; read by the control thread.
    forward: AtomicBool,
}

/// Whom to tell on the loop, and whom to ask what holds it. Let go of by `Control`, last, which Python owns.
struct Listener {
    event_loop: Py<PyAny>,
    callback: Py<PyAny>,
    witness: Mutex<Option<Py<PyAny>>>,
}

#[pymethods]
impl Control {
    /// Takes the signals over. `callback(number)` is called on the loop for the first one; `patience` seconds after it
    /// the process is ended, should it still be there, for the reason that `witness()` gives.
    #[new]
    fn new(
        event_loop: Bound<'_, PyAny>,
        callback: Py<PyAny>,
        patience: f64,
        witness: Py<PyAny>,
    ) -> PyResult<Self> {
        let py = event_loop.py();
        let slots = SIGNALS.map(|signal| Slot {
            signal,
            before: early::before(signal),
            ours: OnceLock::new(),
            forward: AtomicBool::new(false),
        });
        let patience = Duration::try_from_secs_f64(patience)?;
        let shared = Arc::new(Shared {
            slots,
            listener: Arc::new(Listener {
                event_loop: event_loop.unbind(),
                callback,
                witness: Mutex::new(Some(witness)),
            }),
            patience,
            expected: watch::Sender::new(None),
            ending: AtomicBool::new(false),
            sheet: OnceLock::new(),
            teller: Mutex::new(None),
        });
        // A signal that comes meanwhile waits until all is in its place.
        ffi::without_signals(|| {
            // Tokio calls whatever was there before it. CPython's handler must not be: a KeyboardInterrupt would strike
            // wherever the loop is.
            SIGNALS.iter().for_each(|&signal| Disposition::default().set(signal));
            let running = py.detach(|| Running::start(Arc::clone(&shared)))?;
            let control = Self { shared, running: Mutex::new(Some(running)) };
            control.rearm(py)?;
            Ok(control)
        })
    }

    /// Looks which handlers the application has set, and takes the signals back from them; they are still told. Called
    /// whenever it has set one.
    ///
    /// Not once the first signal has come: a server within ours puts back what it found, and raises the signal again,
    /// which is no second one. The next look of the control thread's finds it.
    fn rearm(&self, py: Python<'_>) -> PyResult<()> {
        if self.shared.ending.load(Ordering::Relaxed) {
            return Ok(());
        }
        let signals = py.import(intern!(py, "signal"))?;
        let usual = signals.getattr(intern!(py, "default_int_handler"))?;
        for slot in &self.shared.slots {
            let handler = signals.call_method1(intern!(py, "getsignal"), (slot.signal,))?;
            slot.forward.store(handler.is_callable() && !handler.is(&usual), Ordering::Relaxed);
            slot.take_back();
        }
        Ok(())
    }

    /// Waits until nothing of ours is attached to the interpreter any more. Signals are caught as before.
    fn detach(&self, py: Python<'_>) -> PyResult<()> {
        let teller = self.shared.teller.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(teller) = teller else { return Ok(()) };
        py.detach(|| teller.join())
            .map_err(|_| PyRuntimeError::new_err("a signal's thread panicked: this is a bug in Bridgehead"))
    }

    /// Ends the process with this code in so many seconds, should it still be there, for the reason that `witness()` gives.
    /// Said again, the last word counts. For any thread.
    fn expect_end(&self, seconds: f64, code: i32) -> PyResult<()> {
        let within = Duration::try_from_secs_f64(seconds)?;
        self.shared.expected.send_modify(|expected| *expected = Some(Due::told(within, code, *expected)));
        Ok(())
    }

    /// The same, should the application not have started by then.
    fn expect_start(&self, seconds: f64, code: i32) -> PyResult<()> {
        let within = Duration::try_from_secs_f64(seconds)?;
        self.shared.expected.send_replace(Some(Due::unless_started(within, code)));
        Ok(())
    }

    /// That the server is about to end is to be seen there from the first signal on, though the loop may have yet to hear of it.
    fn shows(&self, sheet: &Sheet) {
        // It is told once: a server has one.
        let _ = self.shared.sheet.set(sheet.words());
        if self.shared.ending.load(Ordering::Relaxed) {
            self.shared.show_the_end();
        }
    }

    /// It has started, or never will.
    fn has_started(&self) {
        self.shared.expected.send_if_modified(|expected| expected.take_if(|due| due.is_a_start()).is_some());
    }

    /// Whether a signal has come, also one that the loop was not there to hear of.
    #[getter]
    fn heard(&self) -> bool {
        self.shared.ending.load(Ordering::Relaxed)
    }

    /// Gives the signals back.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(running) = self.running.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        for slot in &self.shared.slots {
            slot.give_back();
        }
        py.detach(|| running.stop())
            .map_err(|_| PyRuntimeError::new_err("the control thread panicked: this is a bug in Bridgehead"))
    }
}

impl Slot {
    fn take_back(&self) {
        if let Some(ours) = self.ours.get()
            && Disposition::of(self.signal) != *ours
        {
            ours.set(self.signal);
        }
    }

    fn give_back(&self) {
        if self.ours.get().is_some_and(|ours| Disposition::of(self.signal) == *ours) {
            self.before.set(self.signal);
        }
    }
}

impl Running {
    /// Starts the thread, and waits until the signals are its own.
    fn start(shared: Arc<Shared>) -> PyResult<Self> {
        let (stop, stopped) = oneshot::channel();
        let (ready, started) = mpsc::channel();
        let thread = thread::Builder::new().name("bridgehead-control".to_owned()).spawn(move || {
            ffi::block_signals();
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _ = ready.send(Err(error));
                    return;
                }
            };
            runtime.block_on(async {
                match shared.take_over() {
                    Ok(signals) => {
                        let _ = ready.send(Ok(()));
                        shared.listen(signals, stopped).await;
                    }
                    Err(error) => {
                        let _ = ready.send(Err(error));
                    }
                }
            });
        })?;
        started.recv().map_err(|_| PyRuntimeError::new_err("the control thread ended before it began"))??;
        Ok(Self { stop, thread })
    }

    fn stop(self) -> thread::Result<()> {
        drop(self.stop);
        self.thread.join()
    }
}

impl Shared {
    fn take_over(&self) -> std::io::Result<[Signal; SIGNALS.len()]> {
        let signals = [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?];
        for slot in &self.slots {
            // Set once, before anybody can look.
            let _ = slot.ours.set(Disposition::of(slot.signal));
        }
        Ok(signals)
    }

    async fn listen(
        &self,
        [mut interrupt, mut terminate]: [Signal; SIGNALS.len()],
        mut stop: oneshot::Receiver<()>,
    ) {
        let mut look = interval(LOOK_AGAIN);
        let mut expected = self.expected.subscribe();
        let mut due = None;
        loop {
            let asked_for = *expected.borrow_and_update();
            let next = [due, asked_for].into_iter().flatten().min_by_key(|each| each.at);
            let caught = tokio::select! {
                _ = interrupt.recv() => &self.slots[0],
                _ = terminate.recv() => &self.slots[1],
                _ = look.tick() => {
                    self.slots.iter().for_each(Slot::look_again);
                    continue;
                }
                _ = expected.changed() => continue,
                late = Due::reached(next) => self.end_overdue(late),
                _ = &mut stop => {
                    // One that came in the last moment is seen once Tokio's driver had a turn.
                    tokio::select! {
                        _ = interrupt.recv() => self.ending.store(true, Ordering::Relaxed),
                        _ = terminate.recv() => self.ending.store(true, Ordering::Relaxed),
                        () = sleep(LAST_LOOK) => {}
                    }
                    return;
                }
            };
            if due.is_some() {
                ffi::die_by(caught.signal);
            }
            self.ending.store(true, Ordering::Relaxed);
            self.show_the_end();
            due = Some(Due::after_a_signal(self.patience, asked_for));
            self.tell(caught);
        }
    }

    fn show_the_end(&self) {
        self.sheet.get().into_iter().for_each(bridgehead_metrics::Sheet::last_call);
    }

    /// The loop did not start or end in time: something holds it, and the process ends without it.
    fn end_overdue(&self, due: Due) -> ! {
        let witness = self.listener.witness.lock().unwrap_or_else(PoisonError::into_inner).take();
        let reason = witness.map(last_words::ask).unwrap_or_default();
        let (late, process) = (due.in_words(), std::process::id());
        ffi::complain(&format!("ERROR:    {late}: {reason}. Ending process [{process}].\n"));
        ffi::exit_now(due.code)
    }

    /// Tells Python's handler, then the loop. That takes the GIL, so it is another thread's: this one has to be there
    /// for the second signal.
    fn tell(&self, slot: &Slot) {
        // Locked before anybody hears of the signal: a handler of Python's may end the server at once, and whoever ends
        // it looks here for the thread that is about to start.
        let mut teller = self.teller.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.forward.load(Ordering::Relaxed) {
            ffi::tell_python(slot.signal);
        }
        let (signal, listener) = (slot.signal, Arc::clone(&self.listener));
        let told = thread::Builder::new().name("bridgehead-signal".to_owned()).spawn(move || {
            ffi::block_signals();
            Python::attach(|py| {
                // A loop that is closed has nothing left to be told.
                let _ = listener.event_loop.call_method1(
                    py,
                    intern!(py, "call_soon_threadsafe"),
                    (&listener.callback, signal),
                );
                drop(listener);
            });
        });
        match told {
            Ok(started) => *teller = Some(started),
            // No thread to be had: the loop cannot be asked to end well.
            Err(_) => ffi::die_by(signal),
        }
    }
}

impl Slot {
    /// Somebody has set a handler below Python: one of Python's is told, and so are we.
    fn look_again(&self) {
        if let Some(ours) = self.ours.get()
            && Disposition::of(self.signal) != *ours
        {
            self.forward.store(true, Ordering::Relaxed);
            ours.set(self.signal);
        }
    }
}
