//! Where Python keeps what says where a thread is: learned from a stack of which all is known.
//!
//! Each of these offsets is one that holds for every frame that was shown, and the only one that does: a Python that keeps
//! things otherwise is not read at all, rather than wrongly.
//!
//! Not the reading (`stack`).
//!
//! Invariant: an offset is not larger than what was looked at to find it.

use crate::memory::{Memory, WORD, bytes, word, word_of, words};
use crate::objects::{TYPE, Texts};

/// Words of a frame, and of a thread's state, among which something is looked for.
const FRAME_WORDS: usize = 12;
const STATE_WORDS: usize = 64;

/// Words of what C keeps on its stack for the frames of one call, where Python does that.
const CALL_WORDS: usize = 3;

/// Where a frame's object says which it is: behind its head, and the one that called it.
const FRAME: usize = 24;

/// Frames of C's own, between two of Python's.
const BETWEEN: usize = 2;

/// Python marks what is not counted by its last bits.
const MARKS: usize = 7;

/// What is told of a Python that runs, by who has the GIL.
#[derive(Clone, Debug)]
pub struct Known {
    /// The state of the thread whose frames these are.
    pub thread_state: usize,
    /// Whether that has its frame by what C keeps on its stack: until 3.12.
    pub by_calls: bool,
    /// The type of code.
    pub code_type: usize,
    /// How large it is without its instructions, which are behind it.
    pub code_size: usize,
    /// Where the characters begin of a text that is ASCII.
    pub ascii: usize,
    /// The same of any other.
    pub other: usize,
    /// Where bytes begin.
    pub bytes: usize,
    /// Texts of each form.
    pub texts: Vec<KnownText>,
    /// From the innermost on, all that there are.
    pub frames: Vec<KnownFrame>,
}

/// A text, and where it is.
#[derive(Clone, Debug)]
pub struct KnownText {
    /// Where it is.
    pub address: usize,
    /// What it says.
    pub text: String,
}

/// A frame, and where what it has is.
#[derive(Clone, Debug)]
pub struct KnownFrame {
    /// Its object.
    pub object: usize,
    /// Its code.
    pub code: usize,
    /// `co_qualname` of that.
    pub name: usize,
    /// `co_filename`.
    pub file: usize,
    /// `co_linetable`.
    pub lines: usize,
    /// `co_firstlineno`.
    pub first_line: i32,
    /// How far it is in the code's instructions, in bytes.
    pub at: usize,
}

/// This Python keeps something otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this Python does not keep {0} as others do")]
pub struct Unlike(pub &'static str);

/// Where it is kept, in this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offsets {
    /// In the thread's state: the current frame, or the call that has it.
    state: usize,
    /// In a call.
    call: Option<usize>,
    pub(crate) code: usize,
    pub(crate) previous: usize,
    pub(crate) instruction: usize,
    pub(crate) code_type: usize,
    pub(crate) code_size: usize,
    pub(crate) name: usize,
    pub(crate) file: usize,
    pub(crate) lines: usize,
    pub(crate) first_line: usize,
    pub(crate) texts: Texts,
    pub(crate) bytes: usize,
}

/// Bytes of a frame in which all is.
pub(crate) const FRAME_SIZE: usize = FRAME_WORDS * WORD;

impl Offsets {
    pub(crate) fn learn(memory: &impl Memory, known: &Known) -> Result<Self, Unlike> {
        let shown = Shown::read(memory, known).ok_or(Unlike("frames"))?;
        if shown.codes.iter().any(|code| word_of(code, TYPE) != Some(known.code_type)) {
            return Err(Unlike("types"));
        }
        let code = |frame: &KnownFrame, word: usize| word & !MARKS == frame.code;
        let instruction = |frame: &KnownFrame, word: usize| {
            word.checked_sub(frame.code + known.code_size) == Some(frame.at)
        };
        let texts = Texts::learn(memory, &known.texts, (known.ascii, known.other));
        let current = current(memory, known, shown.frames[0]);
        let (state, call) = current.ok_or(Unlike("the current frame of a thread"))?;
        Ok(Self {
            state,
            call,
            code: shown.of_frame(code).ok_or(Unlike("the code of a frame"))?,
            previous: shown.previous(memory).ok_or(Unlike("who called a frame"))?,
            instruction: shown.of_frame(instruction).ok_or(Unlike("the instruction of a frame"))?,
            code_type: known.code_type,
            code_size: known.code_size,
            name: shown.of_code(|frame| frame.name).ok_or(Unlike("the name of code"))?,
            file: shown.of_code(|frame| frame.file).ok_or(Unlike("the file of code"))?,
            lines: shown.of_code(|frame| frame.lines).ok_or(Unlike("the lines of code"))?,
            first_line: shown.first_line().ok_or(Unlike("the first line of code"))?,
            texts: texts.ok_or(Unlike("texts"))?,
            bytes: known.bytes,
        })
    }

    /// The innermost frame of a thread; nothing if it runs no Python.
    pub(crate) fn current(&self, memory: &impl Memory, state: usize) -> Option<usize> {
        let current = word(memory, state.checked_add(self.state)?)?;
        let current = match self.call {
            Some(call) => word(memory, current.checked_add(call)?)?,
            None => current,
        };
        (current != 0).then_some(current)
    }

    /// Of a frame's bytes.
    pub(crate) fn code_of(&self, frame: &[u8]) -> Option<usize> {
        Some(word_of(frame, self.code)? & !MARKS)
    }
}

/// In which of a thread's words its current frame is, and in which of a call's. The first: what else remembers it comes
/// behind.
fn current(memory: &impl Memory, known: &Known, frame: usize) -> Option<(usize, Option<usize>)> {
    let state = bytes(memory, known.thread_state, STATE_WORDS * WORD)?;
    let mut kept = (0..).step_by(WORD).zip(words(&state));
    if !known.by_calls {
        return kept.find(|(_, word)| *word == frame).map(|(at, _)| (at, None));
    }
    kept.find_map(|(at, call)| {
        let call = bytes(memory, call, CALL_WORDS * WORD)?;
        let found = offsets(words(&call), |word| word == frame).first().copied()?;
        Some((at, Some(found)))
    })
}

/// What is known, and what memory has of it.
struct Shown<'a> {
    known: &'a [KnownFrame],
    /// The code of each frame, where the frame itself is, and what it holds.
    codes: Vec<Vec<u8>>,
    frames: Vec<usize>,
    held: Vec<Vec<u8>>,
}

impl<'a> Shown<'a> {
    /// Two frames at least: one does not say who called it.
    fn read(memory: &impl Memory, known: &'a Known) -> Option<Self> {
        let (size, known) = (known.code_size, &known.frames[..]);
        let codes = known.iter().map(|frame| bytes(memory, frame.code, size)).collect::<Option<_>>()?;
        let frames = known.iter().map(|frame| word(memory, frame.object.checked_add(FRAME)?));
        let frames = frames.collect::<Option<Vec<_>>>()?;
        let held = frames.iter().map(|frame| bytes(memory, *frame, FRAME_SIZE)).collect::<Option<_>>()?;
        (known.len() > 1).then_some(Self { known, codes, frames, held })
    }

    fn of_code(&self, kept: impl Fn(&KnownFrame) -> usize) -> Option<usize> {
        let all = self.known.iter().zip(&self.codes);
        only(all.map(|(frame, code)| offsets(words(code), |word| word == kept(frame))))
    }

    fn of_frame(&self, is: impl Fn(&KnownFrame, usize) -> bool) -> Option<usize> {
        let all = self.known.iter().zip(&self.held);
        only(all.map(|(frame, held)| offsets(words(held), |word| is(frame, word))))
    }

    /// A number of C's, of four bytes.
    fn first_line(&self) -> Option<usize> {
        let all = self.known.iter().zip(&self.codes);
        only(all.map(|(frame, code)| {
            let numbers = code.chunks_exact(4).map(|four| i32::from_ne_bytes(four.try_into().expect("four")));
            let is = |(_, number): &(usize, i32)| *number == frame.first_line;
            (0..).step_by(4).zip(numbers).filter(is).map(|(at, _)| at).collect()
        }))
    }

    /// Where some have the one that called them, and all of them, if C has frames of its own in between.
    fn previous(&self, memory: &impl Memory) -> Option<usize> {
        let pairs = || self.held.iter().zip(&self.frames[1..]);
        let mut places: Vec<_> =
            pairs().flat_map(|(held, to)| offsets(words(held), |word| word == *to)).collect();
        places.sort_unstable();
        places.dedup();
        places
            .retain(|place| pairs().all(|(held, to)| steps(memory, held, *place).any(|frame| frame == *to)));
        only([places].into_iter())
    }
}

/// The frames that are behind one, if each has the next there.
fn steps(memory: &impl Memory, held: &[u8], offset: usize) -> impl Iterator<Item = usize> {
    let next = move |frame: &usize| word(memory, frame.checked_add(offset)?);
    std::iter::successors(word_of(held, offset), next).take(1 + BETWEEN)
}

fn offsets(words: impl Iterator<Item = usize>, is: impl Fn(usize) -> bool) -> Vec<usize> {
    (0..).step_by(WORD).zip(words).filter(|(_, word)| is(*word)).map(|(at, _)| at).collect()
}

/// The one place that all of them have.
fn only(places: impl Iterator<Item = Vec<usize>>) -> Option<usize> {
    let common = places.reduce(|mut all, each| {
        all.retain(|place| each.contains(place));
        all
    })?;
    match common[..] {
        [place] => Some(place),
        _ => None,
    }
}
