//! Drives parked coroutines: steps in a loop, until one waits or the drive has had its share.
//!
//! A coroutine's first step is a step of its task's, whatever asyncio has that do. What comes after is driven here. Two
//! things are handed back to the task, which does with them what the running Python's tasks do: an end by an exception,
//! and a yield of what no task can wait for.
//!
//! Invariant: between two steps no task is current; within one, and while what it yielded is looked at, this task is.

use std::time::{Duration, Instant};

use pyo3::exceptions::PyStopIteration;
use pyo3::intern;
use pyo3::prelude::*;

use crate::driver::Current;
use crate::ffi::{self, Entered, Stepped};
use crate::parked::{Due, Last, Parked, Stage};
use crate::resume::Step;
use crate::trace::Account;
use crate::wait::Wait;
use crate::yielded::{Yielded, take};

/// Steps of one drive, and the time for them, until the loop comes first.
const STEPS: u32 = 128;
const SHARE: Duration = Duration::from_millis(5);

/// What a drive comes to.
enum Came<'py> {
    /// What it waits for will call.
    Waits,
    /// The loop comes first, then this.
    Pauses(PyResult<()>, Pause),
    Returned(Bound<'py, PyAny>),
    Raised(PyErr),
    /// What only the task itself can judge.
    Odd(Bound<'py, PyAny>),
}

#[derive(Clone, Copy)]
enum Pause {
    Asked,
    ShareSpent,
    AnotherTaskIsCurrent,
}

impl Came<'_> {
    /// In the words of the trace.
    fn why(&self) -> &'static str {
        match self {
            Self::Waits => "waits",
            Self::Pauses(_, Pause::Asked) => "lets the loop turn",
            Self::Pauses(_, Pause::ShareSpent) => "has had its share",
            Self::Pauses(_, Pause::AnotherTaskIsCurrent) => "another task is current",
            Self::Returned(_) => "returned",
            Self::Raised(_) => "raised",
            Self::Odd(_) => "yielded what cannot be awaited",
        }
    }
}

/// What is left of a drive's share. The clock is looked at from the second step on: most drives have one.
#[derive(Default)]
struct Share {
    since: Option<Instant>,
    steps: u32,
}

impl Share {
    fn is_spent(&mut self) -> bool {
        self.steps += 1;
        let since = *self.since.get_or_insert_with(Instant::now);
        self.steps >= STEPS || since.elapsed() >= SHARE
    }
}

fn step<'py>(coroutine: &Bound<'py, PyAny>, input: PyResult<()>) -> Stepped<'py> {
    let py = coroutine.py();
    let Err(error) = input else { return ffi::step(coroutine) };
    match coroutine.call_method1(intern!(py, "throw"), (error.into_value(py),)) {
        Ok(yielded) => Stepped::Yielded(yielded),
        Err(error) if error.is_instance_of::<PyStopIteration>(py) => {
            match error.value(py).getattr(intern!(py, "value")) {
                Ok(value) => Stepped::Returned(value),
                Err(error) => Stepped::Raised(error),
            }
        }
        Err(error) => Stepped::Raised(error),
    }
}

impl Parked {
    /// The future that was waited for is resolved, and no task is current.
    pub(crate) fn wake(slf: &Bound<'_, Self>, wait: &Bound<'_, Wait>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        if this.is_over(py) {
            return Ok(());
        }
        let _entered = Entered::new(this.context.bind(py))?;
        let outcome = wait.borrow().result(py);
        Self::go_on(slf, outcome)
    }

    /// Drives on, in the coroutine's context.
    pub(crate) fn go_on(slf: &Bound<'_, Self>, outcome: PyResult<()>) -> PyResult<()> {
        let this = slf.get();
        this.begin(slf.py())?;
        // Called back at once, in its first step: the task is not parked yet.
        let Some(task) = this.task(slf.py()) else { return Self::schedule(slf, outcome) };
        match Self::drive_on(slf, Some(&task), outcome) {
            Came::Waits | Came::Pauses(..) => Ok(()),
            Came::Returned(result) => this.finish(&task, &result),
            Came::Raised(error) => Self::hand_over(slf, Last::Raised(error)),
            Came::Odd(value) => Self::hand_over(slf, Last::Yielded(value.unbind())),
        }
    }

    /// A step that the task takes itself, with the task current: its first, or one that was handed over.
    pub(crate) fn step_within(slf: &Bound<'_, Self>, outcome: PyResult<()>) -> PyResult<Option<Py<PyAny>>> {
        let (py, this) = (slf.py(), slf.get());
        let came = match this.take_last(py) {
            Some(Last::Yielded(value)) => return Ok(Some(value)),
            Some(Last::Raised(error)) => Came::Raised(error),
            None => Self::drive_on(slf, None, outcome),
        };
        match came {
            Came::Waits | Came::Pauses(..) => {}
            Came::Odd(value) => return Ok(Some(value.unbind())),
            Came::Returned(result) => {
                this.end(py);
                return if result.is_none() {
                    Ok(None)
                } else {
                    Err(PyStopIteration::new_err((result.unbind(),)))
                };
            }
            Came::Raised(error) => {
                this.end(py);
                return Err(error);
            }
        }
        // The task waits for us.
        Ok(Some(slf.clone().into_any().unbind()))
    }

    /// Drives, and has the loop go on with what pauses. Where that cannot be, the coroutine is closed: nobody would step
    /// it again.
    fn drive_on<'py>(
        slf: &Bound<'py, Self>,
        task: Option<&Bound<'py, PyAny>>,
        outcome: PyResult<()>,
    ) -> Came<'py> {
        let came = Self::drive(slf, task, outcome).and_then(|came| match came {
            Came::Pauses(outcome, pause) => {
                Self::schedule(slf, outcome)?;
                Ok(Came::Pauses(Ok(()), pause))
            }
            came => Ok(came),
        });
        came.unwrap_or_else(|error| {
            let this = slf.get();
            this.set(slf.py(), Stage::Stepping);
            if let Err(also) = Self::close(slf) {
                this.driver.get().report(slf.py(), also);
            }
            Came::Raised(error)
        })
    }

    /// Takes steps, each within a bracket of its own; without `task`, the caller's bracket is around all of them.
    fn drive<'py>(
        slf: &Bound<'py, Self>,
        task: Option<&Bound<'py, PyAny>>,
        mut outcome: PyResult<()>,
    ) -> PyResult<Came<'py>> {
        let (py, this) = (slf.py(), slf.get());
        let mut account = Account::new(this.trace.as_deref());
        let mut share = Share::default();
        let came = loop {
            let current = match this.enter(task) {
                Ok(current) => current,
                // Resolved by another task, in the middle of its step.
                Err(_) if !this.driver.get().current_task(py)?.is_none() => {
                    break Came::Pauses(outcome, Pause::AnotherTaskIsCurrent);
                }
                Err(error) => return Err(error),
            };
            account.step();
            let value = match step(this.coroutine.bind(py), this.input(py, outcome)) {
                Stepped::Yielded(value) => value,
                Stepped::Returned(result) => break Came::Returned(result),
                Stepped::Raised(error) => break Came::Raised(error),
            };
            account.yielded(&value);
            let yielded = take(slf, task, value);
            drop(current);
            outcome = match yielded {
                Ok(Yielded::Done(next)) => next,
                Ok(Yielded::Nothing) => break Came::Pauses(Ok(()), Pause::Asked),
                Ok(Yielded::Taken) => break Came::Waits,
                Ok(Yielded::Odd(value)) => break Came::Odd(value),
                // Of what was awaited: the coroutine hears of it there.
                Err(error) => Err(error),
            };
            if share.is_spent() {
                break Came::Pauses(outcome, Pause::ShareSpent);
            }
        };
        account.ends(py, came.why());
        Ok(came)
    }

    fn enter<'a, 'py>(&'a self, task: Option<&'a Bound<'py, PyAny>>) -> PyResult<Option<Current<'a, 'py>>> {
        task.map(|task| Current::enter(self.driver.get(), task)).transpose()
    }

    /// Goes on in the loop's next turn, with this.
    fn schedule(slf: &Bound<'_, Self>, outcome: PyResult<()>) -> PyResult<()> {
        slf.get().set(slf.py(), Stage::Scheduled);
        Step::schedule(slf, outcome)
    }

    fn finish(&self, task: &Bound<'_, PyAny>, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = task.py();
        self.end(py);
        match self.take_due(py) {
            Some(Due(message)) => self.driver.get().cancel(task, message),
            None => self.driver.get().set_result(task, result),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_yields_after_its_steps() {
        let mut share = Share::default();
        let mut steps = 1;
        while !share.is_spent() {
            steps += 1;
        }
        assert!(steps <= STEPS);
    }

    #[test]
    fn a_drive_that_took_too_long_yields() {
        let mut share = Share { since: Instant::now().checked_sub(SHARE), steps: 0 };
        assert!(share.is_spent());
    }
}
