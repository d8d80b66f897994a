//! Looks after a loop that does not serve yet, or no more: while its application starts, and while it ends.
//!
//! Not who looks (`health.rs`). A server's loop answers by its inbox; here is nothing but a descriptor that it watches.
//!
//! Invariant: once it is closed, each step that was noticed was told of with its length.

use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::census::Inquiry;
use crate::health::{Health, Rests};
use crate::inbox::Probe;
use crate::pace::Pace;
use crate::sheets::Sheet;
use crate::stack::{Files, Stack};
use crate::suspicion::Suspect;
use crate::wake::Descriptor;

/// `bridgehead.vigil.Attention`: what is looked after, and who is told.
#[derive(FromPyObject)]
struct Attention {
    event_loop: Py<PyAny>,
    sheet: Py<Sheet>,
    slow_step: f64,
    census: Py<PyAny>,
    place: Py<PyAny>,
    slow: Py<PyAny>,
    over: Py<PyAny>,
    files: Files,
}

/// Begins on the loop's thread.
#[pyclass(frozen, module = "bridgehead._native")]
pub(crate) struct Vigil {
    event_loop: Py<PyAny>,
    question: Arc<Question>,
    // A child that the application forks has the loop's descriptors, and none of the threads.
    process: u32,
    // The loop's thread takes it once, to end it; pyo3 wants classes to be shareable.
    health: Mutex<Option<Health>>,
}

/// What the loop is asked, if it is.
#[derive(Debug)]
struct Question {
    wake: Descriptor,
    // Put here by the thread that looks, taken by the loop's.
    probe: Mutex<Option<Probe>>,
}

#[pymethods]
impl Vigil {
    #[new]
    fn new(py: Python<'_>, attention: Attention) -> PyResult<Self> {
        let Attention { event_loop, sheet, slow_step, census: look, place, slow, over, files } = attention;
        let question = Arc::new(Question { wake: Descriptor::new()?, probe: Mutex::default() });
        let answers = Answers(Arc::clone(&question));
        event_loop.call_method1(py, "add_reader", (question.wake.number(), answers))?;
        let slow_step = Duration::try_from_secs_f64(slow_step)?;
        let pace = Arc::new(Pace::new(sheet.get().words(), slow_step));
        let asked = Arc::clone(&question);
        let stack = Stack::of_this_thread(py, files)?;
        let inquiry = Inquiry { look, place, slow, over, suspect: Suspect::this_thread(), stack };
        // Nobody would rouse it.
        let health = Health::start(pace, move |probe| asked.ask(probe), Rests::Watched, inquiry)?;
        Ok(Self { event_loop, question, process: process::id(), health: Mutex::new(Some(health)) })
    }

    /// Ends, on the loop's thread.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let health = self.health.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(health) = health else { return Ok(()) };
        if self.process != process::id() {
            // What is left of it is the parent's.
            std::mem::forget(health);
            return Ok(());
        }
        self.event_loop.call_method1(py, "remove_reader", (self.question.wake.number(),))?;
        // Whatever held the loop is over by now.
        self.question.answer();
        py.detach(|| health.stop())
            .map_err(|_| PyRuntimeError::new_err("who looked panicked: this is a bug in Bridgehead"))
    }
}

impl Question {
    fn ask(&self, probe: Probe) {
        *self.probe.lock().unwrap_or_else(PoisonError::into_inner) = Some(probe);
        self.wake.signal();
    }

    fn answer(&self) {
        self.wake.clear();
        let probe = self.probe.lock().unwrap_or_else(PoisonError::into_inner).take();
        probe.into_iter().for_each(Probe::answer);
    }
}

/// What the loop calls.
#[pyclass(frozen, module = "bridgehead._native")]
struct Answers(Arc<Question>);

#[pymethods]
impl Answers {
    fn __call__(&self) {
        self.0.answer();
    }
}
