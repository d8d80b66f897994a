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
use crate::resume::Resume;
use crate::wait::Wait;
use crate::yielded::{Yielded, take};

/// Steps of one drive, and the time for them, until the loop comes first.
const STEPS: u32 = 128;
const SHARE: Duration = Duration::from_millis(5);

/// What a step of the task's own comes to.
enum Within {
    Parks,
    Returns(Py<PyAny>),
    Odd(Py<PyAny>),
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
        let this = slf.get();
        let _entered = Entered::new(this.context.bind(slf.py()))?;
        if this.begin(Some(wait.as_any())).is_none() {
            return Ok(());
        }
        let outcome = wait.borrow().result(slf.py());
        Self::go_on(slf, outcome)
    }

    /// Drives on, in the coroutine's context.
    pub(crate) fn go_on(slf: &Bound<'_, Self>, mut outcome: PyResult<()>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let Some(task) = this.task(py) else { return Ok(()) };
        let (driver, coroutine) = (this.driver.get(), this.coroutine.bind(py));
        let mut share = Share::default();
        loop {
            let current = match Current::enter(driver, &task) {
                Ok(current) => current,
                // Resolved by another task, in the middle of its step.
                Err(_) if !driver.current_task(py)?.is_none() => return Self::schedule(slf, outcome),
                Err(error) => return Err(error),
            };
            let stepped = step(coroutine, this.input(py, outcome));
            let yielded = match stepped {
                Stepped::Yielded(value) => take(slf, Some(&task), value),
                Stepped::Returned(result) => {
                    drop(current);
                    return this.finish(&task, &result);
                }
                Stepped::Raised(error) => {
                    drop(current);
                    return Self::hand_over(slf, Last::Raised(error));
                }
            };
            drop(current);
            match yielded {
                Err(error) => return Self::hand_over(slf, Last::Raised(error)),
                Ok(Yielded::Taken) => return Ok(()),
                Ok(Yielded::Nothing) => return Self::schedule(slf, Ok(())),
                Ok(Yielded::Odd(value)) => return Self::hand_over(slf, Last::Yielded(value.unbind())),
                Ok(Yielded::Done(next)) => outcome = next,
            }
            if share.is_spent() {
                return Self::schedule(slf, outcome);
            }
        }
    }

    /// A step that the task takes itself, with the task current: its first, or one that was handed over.
    pub(crate) fn step_within(slf: &Bound<'_, Self>, outcome: PyResult<()>) -> PyResult<Option<Py<PyAny>>> {
        let this = slf.get();
        let came = match this.take_last() {
            Some(Last::Yielded(value)) => return Ok(Some(value)),
            Some(Last::Raised(error)) => Err(error),
            None => Self::go_on_within(slf, outcome),
        };
        match came {
            // The task waits for us.
            Ok(Within::Parks) => Ok(Some(slf.clone().into_any().unbind())),
            Ok(Within::Odd(value)) => Ok(Some(value)),
            Ok(Within::Returns(result)) => {
                drop(this.end());
                if result.is_none(slf.py()) { Ok(None) } else { Err(PyStopIteration::new_err((result,))) }
            }
            Err(error) => {
                drop(this.end());
                Err(error)
            }
        }
    }

    fn go_on_within(slf: &Bound<'_, Self>, mut outcome: PyResult<()>) -> PyResult<Within> {
        let (py, this) = (slf.py(), slf.get());
        let mut share = Share::default();
        loop {
            let value = match step(this.coroutine.bind(py), this.input(py, outcome)) {
                Stepped::Yielded(value) => value,
                Stepped::Returned(result) => return Ok(Within::Returns(result.unbind())),
                Stepped::Raised(error) => return Err(error),
            };
            outcome = match take(slf, None, value)? {
                Yielded::Taken => return Ok(Within::Parks),
                Yielded::Odd(value) => return Ok(Within::Odd(value.unbind())),
                Yielded::Done(next) if !share.is_spent() => next,
                Yielded::Done(next) => return Self::schedule(slf, next).map(|()| Within::Parks),
                Yielded::Nothing => return Self::schedule(slf, Ok(())).map(|()| Within::Parks),
            };
        }
    }

    /// Goes on in the loop's next turn, with this.
    fn schedule(slf: &Bound<'_, Self>, outcome: PyResult<()>) -> PyResult<()> {
        let this = slf.get();
        this.set(Stage::Scheduled(outcome));
        this.driver.get().call_soon(&Resume::of(slf)?, this.context.bind(slf.py()))
    }

    fn finish(&self, task: &Bound<'_, PyAny>, result: &Bound<'_, PyAny>) -> PyResult<()> {
        match self.end() {
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
