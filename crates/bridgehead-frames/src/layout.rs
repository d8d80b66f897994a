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

/// Where it is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
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

impl Layout {
    pub(crate) fn learn(memory: &impl Memory, known: &Known) -> Result<Self, Unlike> {
        let frames = &known.frames;
        let inner = |frame: &KnownFrame| word(memory, frame.object.checked_add(FRAME)?);
        let inner: Option<Vec<usize>> = frames.iter().map(inner).collect();
        let inner = inner.filter(|inner| inner.len() > 1).ok_or(Unlike("frames"))?;
        let of_code = |what, kept: fn(&KnownFrame) -> usize| {
            let places = frames.iter().map(|frame| {
                let code = bytes(memory, frame.code, known.code_size)?;
                Some(offsets(words(&code), |word| word == kept(frame)))
            });
            only(places).ok_or(Unlike(what))
        };
        let of_frame = |what, is: &dyn Fn(&KnownFrame, usize) -> bool| {
            let places = frames.iter().zip(&inner).map(|(frame, inner)| {
                let inner = bytes(memory, *inner, FRAME_SIZE)?;
                Some(offsets(words(&inner), |word| is(frame, word)))
            });
            only(places).ok_or(Unlike(what))
        };
        let type_of = |frame: &KnownFrame| word(memory, frame.code.checked_add(TYPE)?);
        let typed = |frame: &KnownFrame| type_of(frame) == Some(known.code_type);
        if !frames.iter().all(typed) {
            return Err(Unlike("types"));
        }
        let first_line = only(frames.iter().map(|frame| {
            let code = bytes(memory, frame.code, known.code_size)?;
            let numbers = code.chunks_exact(4).map(|four| i32::from_ne_bytes(four.try_into().expect("four")));
            Some(
                (0..)
                    .step_by(4)
                    .zip(numbers)
                    .filter(|(_, is)| *is == frame.first_line)
                    .map(|(at, _)| at)
                    .collect(),
            )
        }));
        let previous = only(inner.iter().zip(&inner[1..]).map(|(from, to)| {
            let reaches = |offset: &usize| steps(memory, *from, *offset).any(|frame| frame == *to);
            Some((0..FRAME_SIZE).step_by(WORD).filter(reaches).collect())
        }));
        let texts = Texts::learn(memory, &known.texts, (known.ascii, known.other));
        let (state, call) =
            current(memory, known, inner[0]).ok_or(Unlike("the current frame of a thread"))?;
        Ok(Self {
            state,
            call,
            code: of_frame("the code of a frame", &|frame, word| word & !MARKS == frame.code)?,
            previous: previous.ok_or(Unlike("who called a frame"))?,
            instruction: of_frame("the instruction of a frame", &|frame, word| {
                word.checked_sub(frame.code + known.code_size) == Some(frame.at)
            })?,
            code_type: known.code_type,
            code_size: known.code_size,
            name: of_code("the name of code", |frame| frame.name)?,
            file: of_code("the file of code", |frame| frame.file)?,
            lines: of_code("the lines of code", |frame| frame.lines)?,
            first_line: first_line.ok_or(Unlike("the first line of code"))?,
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

/// The frames that are behind one, if each has the next there, as far as C may have some of its own in between.
fn steps(memory: &impl Memory, from: usize, offset: usize) -> impl Iterator<Item = usize> {
    let next = move |frame: &usize| word(memory, frame.checked_add(offset)?);
    std::iter::successors(next(&from), next).take(1 + BETWEEN)
}

fn offsets(words: impl Iterator<Item = usize>, is: impl Fn(usize) -> bool) -> Vec<usize> {
    (0..).step_by(WORD).zip(words).filter(|(_, word)| is(*word)).map(|(at, _)| at).collect()
}

/// The one place that all of them have.
fn only(places: impl Iterator<Item = Option<Vec<usize>>>) -> Option<usize> {
    let all: Option<Vec<Vec<usize>>> = places.collect();
    let common = all?.into_iter().reduce(|mut all, each| {
        all.retain(|place| each.contains(place));
        all
    })?;
    match common[..] {
        [place] => Some(place),
        _ => None,
    }
}
