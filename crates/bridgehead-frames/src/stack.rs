//! The frames of a thread, from the innermost on.
//!
//! Not where what they have is kept (`layout`).
//!
//! Invariant: a stack that was another when it had been read is not given.

use crate::layout::{FRAME_SIZE, Known, Layout, Unlike};
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

/// That of one thread.
#[derive(Debug)]
pub struct Stack<M> {
    memory: M,
    layout: Layout,
    thread_state: usize,
    /// Code of frames that Python does not show: C has them where it calls Python.
    hidden: Vec<usize>,
}

/// Where a frame is, as far as it can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    frame: usize,
    code: usize,
    instruction: usize,
}

impl<M: Memory> Stack<M> {
    /// Learns how to read it, from itself.
    ///
    /// # Errors
    /// When something is not found, or not where it should be.
    pub fn learn(memory: M, known: &Known) -> Result<Self, Unlike> {
        let layout = Layout::learn(&memory, known)?;
        let mut stack = Self { memory, layout, thread_state: known.thread_state, hidden: Vec::new() };
        let codes = |stack: &Self| Some(stack.standing()?.iter().map(|each| each.code).collect::<Vec<_>>());
        let shown: Vec<usize> = known.frames.iter().map(|frame| frame.code).take(DEEPEST).collect();
        stack.hidden = codes(&stack).ok_or(Unlike("a stack"))?;
        stack.hidden.retain(|code| !shown.contains(code));
        stack.hidden.dedup();
        if codes(&stack) == Some(shown) { Ok(stack) } else { Err(Unlike("a stack")) }
    }

    /// Its frames, if it stood still while they were read.
    pub fn frames(&self) -> Option<Vec<Frame>> {
        let before = self.standing()?;
        let frames: Option<Vec<Frame>> = before.iter().map(|each| self.read(*each)).collect();
        frames.filter(|_| self.standing().is_some_and(|after| after == before))
    }

    fn standing(&self) -> Option<Vec<Standing>> {
        let (mut all, mut next) = (Vec::new(), self.layout.current(&self.memory, self.thread_state)?);
        // Those of C's count as well, so that a circle has an end.
        for _ in 0..2 * DEEPEST {
            if next == 0 || all.len() == DEEPEST {
                break;
            }
            let frame = bytes(&self.memory, next, FRAME_SIZE)?;
            let code = self.layout.code_of(&frame)?;
            if self.is_code(code) && !self.hidden.contains(&code) {
                let instruction = word_of(&frame, self.layout.instruction)?;
                all.push(Standing { frame: next, code, instruction });
            }
            next = word_of(&frame, self.layout.previous)?;
        }
        Some(all)
    }

    fn is_code(&self, address: usize) -> bool {
        address.checked_add(TYPE).and_then(|at| word(&self.memory, at)) == Some(self.layout.code_type)
    }

    fn read(&self, standing: Standing) -> Option<Frame> {
        let (memory, layout) = (&self.memory, &self.layout);
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
