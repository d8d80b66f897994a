//! The frames of a thread, from the innermost on.
//!
//! Not where what they have is kept (`layout`).
//!
//! Invariant: a stack that was another when it had been read is not given.

use crate::layout::{FRAME_SIZE, Known, Offsets, Unlike};
use crate::lines::line_at;
use crate::memory::{Memory, bytes, word, word_of};
use crate::objects::{TYPE, read_bytes};

/// More of them are a recursion, of which the innermost will do.
const DEEPEST: usize = 200;

/// One, of Python's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Of its function, as `__qualname__` has it.
    pub name: String,
    /// Where that is written.
    pub file: String,
    /// Where it is in there; nothing if it is at no line.
    pub line: Option<u32>,
}

/// Where a process's Python keeps what is read here.
#[derive(Clone, Debug)]
pub struct Layout {
    offsets: Offsets,
    /// Code of frames that Python does not show: C has them where it calls Python.
    hidden: Vec<usize>,
}

/// That of one thread.
#[derive(Debug)]
pub struct Stack<M> {
    memory: M,
    layout: Layout,
    thread_state: usize,
}

/// Where a frame is, as far as it can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    frame: usize,
    code: usize,
    instruction: usize,
}

impl Layout {
    /// Learns it from a stack of which all is known.
    ///
    /// # Errors
    /// When something is not found, or not where it should be.
    pub fn learn(memory: &impl Memory, known: &Known) -> Result<Self, Unlike> {
        let mut layout = Self { offsets: Offsets::learn(memory, known)?, hidden: Vec::new() };
        let shown: Vec<usize> = known.frames.iter().map(|frame| frame.code).take(DEEPEST).collect();
        layout.hidden = layout.codes(memory, known.thread_state).ok_or(Unlike("a stack"))?;
        layout.hidden.retain(|code| !shown.contains(code));
        layout.hidden.dedup();
        let read = layout.codes(memory, known.thread_state);
        if read == Some(shown) { Ok(layout) } else { Err(Unlike("a stack")) }
    }

    fn codes(&self, memory: &impl Memory, thread_state: usize) -> Option<Vec<usize>> {
        Some(self.standing(memory, thread_state)?.iter().map(|each| each.code).collect())
    }

    fn standing(&self, memory: &impl Memory, thread_state: usize) -> Option<Vec<Standing>> {
        let (mut all, mut next) = (Vec::new(), self.offsets.current(memory, thread_state)?);
        // Those of C's count as well, so that a circle has an end.
        for _ in 0..2 * DEEPEST {
            if next == 0 || all.len() == DEEPEST {
                break;
            }
            let frame = bytes(memory, next, FRAME_SIZE)?;
            let code = self.offsets.code_of(&frame)?;
            if self.is_code(memory, code) && !self.hidden.contains(&code) {
                let instruction = word_of(&frame, self.offsets.instruction)?;
                all.push(Standing { frame: next, code, instruction });
            }
            next = word_of(&frame, self.offsets.previous)?;
        }
        Some(all)
    }

    fn is_code(&self, memory: &impl Memory, address: usize) -> bool {
        address.checked_add(TYPE).and_then(|at| word(memory, at)) == Some(self.offsets.code_type)
    }
}

impl<M: Memory> Stack<M> {
    /// Of the thread that has this state.
    pub fn new(memory: M, layout: Layout, thread_state: usize) -> Self {
        Self { memory, layout, thread_state }
    }

    /// Its frames, if it stood still while they were read.
    pub fn frames(&self) -> Option<Vec<Frame>> {
        let before = self.standing()?;
        let frames: Option<Vec<Frame>> = before.iter().map(|each| self.read(*each)).collect();
        frames.filter(|_| self.standing().is_some_and(|after| after == before))
    }

    fn standing(&self) -> Option<Vec<Standing>> {
        self.layout.standing(&self.memory, self.thread_state)
    }

    fn read(&self, standing: Standing) -> Option<Frame> {
        let (memory, layout) = (&self.memory, &self.layout.offsets);
        let code = bytes(memory, standing.code, layout.code_size)?;
        let text = |offset| layout.texts.read(memory, word_of(&code, offset)?);
        let first = code.get(layout.first_line..)?.first_chunk().map(|four| i32::from_ne_bytes(*four))?;
        let lines = read_bytes(memory, word_of(&code, layout.lines)?, layout.bytes)?;
        // One that is about to begin is before its first instruction.
        let offset = standing.instruction.checked_sub(standing.code.checked_add(layout.code_size)?);
        Some(Frame {
            name: text(layout.name)?,
            file: text(layout.file)?,
            line: offset.and_then(|offset| line_at(&lines, i64::from(first), offset)),
        })
    }
}
