//! What a coroutine has yielded, looked at as asyncio's own task does.
//!
//! Invariant: called while the task is current, since looking at an attribute may run Python; and what cannot be waited
//! for is left as it came, for the task to judge.

use pyo3::intern;
use pyo3::prelude::*;

use crate::ffi;
use crate::parked::{Parked, Stage};
use crate::resume::Wakeup;
use crate::wait::Wait;

/// What it was.
pub(crate) enum Yielded<'py> {
    /// A turn of the loop.
    Nothing,
    /// A future that is done, with this.
    Done(PyResult<()>),
    /// A future that will call.
    Taken,
    /// Something that is the task's to judge.
    Odd(Bound<'py, PyAny>),
}

/// Takes what was yielded. `task` is there once it has been parked. An error is what a future-like has raised: asyncio's
/// task would never be stepped again.
pub(crate) fn take<'py>(
    parked: &Bound<'py, Parked>,
    task: Option<&Bound<'py, PyAny>>,
    value: Bound<'py, PyAny>,
) -> PyResult<Yielded<'py>> {
    let py = value.py();
    if value.is_none() {
        return Ok(Yielded::Nothing);
    }
    if let Ok(wait) = value.cast_exact::<Wait>() {
        return take_wait(parked, wait);
    }
    let driver = parked.get().driver.get();
    let plain = driver.is_plain_future(&value);
    if !can_be_waited_for(parked, task, &value, plain)? {
        return Ok(Yielded::Odd(value));
    }
    value.setattr(driver.blocking(py), false)?;
    // Asyncio's task asks nobody whether he is done. Of its own futures the answer is known to be nothing else.
    if plain && value.call_method0(intern!(py, "done"))?.is_truthy()? {
        return Ok(Yielded::Done(value.call_method0(intern!(py, "result")).map(drop)));
    }
    let this = parked.get();
    let wakeup = Wakeup::of(parked)?;
    this.set(py, Stage::Waits(value.clone().unbind()));
    if let Err(error) = ffi::call_in(&value, intern!(py, "add_done_callback"), &wakeup, this.context.bind(py))
    {
        this.set(py, Stage::Stepping);
        return Err(error);
    }
    this.pass_on(&value);
    Ok(Yielded::Taken)
}

/// Ours: no attribute needs to be looked up, and it calls without Python between.
fn take_wait<'py>(parked: &Bound<'py, Parked>, wait: &Bound<'py, Wait>) -> PyResult<Yielded<'py>> {
    let (py, this) = (wait.py(), parked.get());
    if !wait.borrow_mut().be_awaited(this.driver.get().event_loop(py)) {
        return Ok(Yielded::Odd(wait.as_any().clone()));
    }
    if wait.borrow().done(wait.py()) {
        return Ok(Yielded::Done(wait.borrow().result(py)));
    }
    this.set(py, Stage::Waits(wait.as_any().clone().unbind()));
    wait.borrow().call_back(wait.py(), parked.clone().unbind());
    this.pass_on(wait.as_any());
    Ok(Yielded::Taken)
}

/// A future of this loop, yielded to be waited for, and not the task itself.
fn can_be_waited_for<'py>(
    parked: &Bound<'py, Parked>,
    task: Option<&Bound<'py, PyAny>>,
    value: &Bound<'py, PyAny>,
    plain: bool,
) -> PyResult<bool> {
    let (py, driver) = (value.py(), parked.get().driver.get());
    let is_task = match task {
        Some(task) => value.is(task),
        // A plain future cannot be the task.
        None => !plain && driver.current_task(py)?.is(value),
    };
    if is_task {
        return Ok(false);
    }
    match value.getattr_opt(driver.blocking(py))? {
        Some(blocking) if blocking.is_truthy()? => {}
        _ => return Ok(false),
    }
    let event_loop = match value.getattr_opt(intern!(py, "get_loop"))? {
        Some(get_loop) => get_loop.call0()?,
        None => value.getattr(driver.loop_of_future(py))?,
    };
    Ok(event_loop.is(driver.event_loop(py)))
}
