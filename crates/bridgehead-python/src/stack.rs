//! Where the loop's thread is, by its frames, for who has not got the GIL.
//!
//! Not how frames are read (`bridgehead-frames`), nor when (`lookout.rs`). Whose a file is, `slow_steps.py` says.
//!
//! Invariant: a place is given only if the thread stood still while it was read.

use std::env;
use std::path::MAIN_SEPARATOR;

use bridgehead_frames::{Frame, Known, KnownFrame, KnownText, Layout, OwnMemory};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString};

use crate::ffi;

/// Of each width in which characters are kept, and of none that Python has ready.
const TEXTS: [&str; 4] = ["where it is", "où c'est", "gdzie jest, ść", "where 🧭 is"];

/// `bridgehead.slow_steps.Files`: whose a file is, by how its path begins or ends.
#[derive(FromPyObject)]
pub(crate) struct Files {
    /// Libraries' begin so, and the application's, wherever they are.
    libraries: Vec<String>,
    theirs: Vec<String>,
    /// Who runs the loop: outside of it is nothing of the application's.
    loops: Vec<String>,
    /// Who is through with a step, or has not begun it.
    through: Vec<String>,
}

/// That of the thread on which it was made.
pub(crate) struct Stack {
    frames: bridgehead_frames::Stack<OwnMemory>,
    files: Files,
}

impl Stack {
    /// Nothing if the system does not show memory, or this Python keeps its frames as no other does.
    pub(crate) fn of_this_thread(py: Python<'_>, files: Files) -> PyResult<Option<Self>> {
        // Each thread may find it out, at the same time too, and finds the same.
        static LAYOUT: PyOnceLock<Option<Layout>> = PyOnceLock::new();
        let Ok(memory) = OwnMemory::open() else { return Ok(None) };
        let layout = LAYOUT.get_or_try_init(py, || layout(py, &memory))?.clone();
        let stack = |layout| bridgehead_frames::Stack::new(memory, layout, ffi::thread_state(py));
        Ok(layout.map(|layout| Self { frames: stack(layout), files }))
    }

    /// The innermost line of the application's own; of whatever is called, if there is none.
    pub(crate) fn place(&self) -> Option<String> {
        let frames = self.frames.frames()?;
        let inside = frames.iter().take_while(|frame| !ends(frame, &self.files.loops));
        let mut theirs = inside.filter(|frame| self.files.is_theirs(frame));
        let innermost = || frames.first().filter(|frame| !ends(frame, &self.files.through));
        theirs.next().or_else(innermost).map(in_words)
    }
}

impl Files {
    fn is_theirs(&self, frame: &Frame) -> bool {
        let begins = |with: &[String]| with.iter().any(|folder| frame.file.starts_with(folder));
        begins(&self.theirs) || !begins(&self.libraries)
    }
}

fn ends(frame: &Frame, with: &[String]) -> bool {
    with.iter().any(|end| frame.file.ends_with(end))
}

/// As `whereabouts.py` has it.
fn in_words(frame: &Frame) -> String {
    let here = env::current_dir().ok();
    let here = here.and_then(|here| Some(format!("{}{MAIN_SEPARATOR}", here.to_str()?)));
    let file = here.and_then(|here| frame.file.strip_prefix(&here)).unwrap_or(&frame.file);
    match frame.line {
        Some(line) => format!("{}() at {file}:{line}", frame.name),
        None => format!("{}() in {file}", frame.name),
    }
}

/// Learned from the stack on which this is called.
fn layout(py: Python<'_>, memory: &OwnMemory) -> PyResult<Option<Layout>> {
    // Alive until all is learned.
    let texts = TEXTS.map(|text| PyString::new(py, text));
    let frames = frames(py)?;
    Ok(Layout::learn(memory, &known(py, &texts, &frames)?).ok())
}

/// From the innermost on.
fn frames(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyAny>>> {
    let mut frames = Vec::new();
    let mut next = py.import("sys")?.call_method0("_getframe")?;
    while !next.is_none() {
        let frame = next;
        next = frame.getattr("f_back")?;
        frames.push(frame);
    }
    Ok(frames)
}

fn known(py: Python<'_>, texts: &[Bound<'_, PyString>], frames: &[Bound<'_, PyAny>]) -> PyResult<Known> {
    let address = |of: &Bound<'_, PyAny>| of.as_ptr().addr();
    let size = |of: &Bound<'_, PyAny>| of.call_method0("__sizeof__")?.extract::<usize>();
    let code_type = py.import("types")?.getattr("CodeType")?;
    let texts: PyResult<Vec<KnownText>> = texts
        .iter()
        .map(|text| Ok(KnownText { address: address(text.as_any()), text: text.extract()? }))
        .collect();
    let frames: PyResult<Vec<KnownFrame>> = frames
        .iter()
        .map(|frame| {
            let code = frame.getattr("f_code")?;
            let of_code = |name| code.getattr(name).map(|kept| address(&kept));
            Ok(KnownFrame {
                object: address(frame),
                code: address(&code),
                name: of_code("co_qualname")?,
                file: of_code("co_filename")?,
                lines: of_code("co_linetable")?,
                first_line: code.getattr("co_firstlineno")?.extract()?,
                at: frame.getattr("f_lasti")?.extract()?,
            })
        })
        .collect();
    Ok(Known {
        thread_state: ffi::thread_state(py),
        by_calls: py.version_info() < (3, 13),
        code_size: code_type.getattr("__basicsize__")?.extract()?,
        code_type: address(&code_type),
        // A character, and what ends it: of one byte each, or of two.
        ascii: size(PyString::new(py, "a").as_any())? - 2,
        other: size(PyString::new(py, "\u{100}").as_any())? - 4,
        bytes: size(PyBytes::new(py, b"").as_any())? - 1,
        texts: texts?,
        frames: frames?,
    })
}
