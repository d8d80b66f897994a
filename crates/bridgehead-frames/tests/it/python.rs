//! A Python that is made up: it keeps things as CPython might.
//!
//! Not CPython: nothing runs here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use bridgehead_frames::{Known, KnownFrame, KnownText, Layout, Memory, Unlike};

const CODE_TYPE: usize = 0x1000;
const CODE_SIZE: usize = 160;
const INSTRUCTIONS: usize = 64;
const ASCII: usize = 40;
const OTHER: usize = 56;
const BYTES: usize = 32;

/// Where it keeps what is not the same in each CPython.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    by_calls: bool,
    code: usize,
    previous: usize,
    instruction: usize,
}

impl Kept {
    pub(crate) const BY_CALLS: Self = Self { by_calls: true, code: 32, previous: 48, instruction: 56 };
    pub(crate) const BY_THREADS: Self = Self { by_calls: false, code: 0, previous: 8, instruction: 56 };
}

/// Memory in which some addresses are something.
#[derive(Clone, Default)]
pub(crate) struct Somewhere(Rc<State>);

#[derive(Default)]
struct State {
    places: RefCell<BTreeMap<usize, Vec<u8>>>,
    reads: Cell<usize>,
    /// What is written after so many reads more.
    moves: Cell<Option<(usize, usize, usize)>>,
}

impl Memory for Somewhere {
    fn fill(&self, address: usize, bytes: &mut [u8]) -> Option<()> {
        self.0.reads.set(self.0.reads.get() + 1);
        {
            let places = self.0.places.borrow();
            let (begin, place) = places.range(..=address).next_back()?;
            bytes.copy_from_slice(place.get(address - begin..)?.get(..bytes.len())?);
        }
        if let Some((left, at, word)) = self.0.moves.take() {
            match left {
                1 => self.write(at, word),
                _ => self.0.moves.set(Some((left - 1, at, word))),
            }
        }
        Some(())
    }
}

impl Somewhere {
    pub(crate) fn reads(&self) -> usize {
        self.0.reads.get()
    }

    /// The same, but for one place.
    pub(crate) fn without(&self, place: usize) -> Self {
        let other = Self::default();
        *other.0.places.borrow_mut() = self.0.places.borrow().clone();
        other.0.places.borrow_mut().remove(&place);
        other
    }

    fn write(&self, address: usize, word: usize) {
        let mut places = self.0.places.borrow_mut();
        let (begin, place) = places.range_mut(..=address).next_back().expect("a place");
        place[address - begin..][..8].copy_from_slice(&word.to_ne_bytes());
    }

    fn read(&self, address: usize) -> usize {
        let places = self.0.places.borrow();
        let (begin, place) = places.range(..=address).next_back().expect("a place");
        usize::from_ne_bytes(place[address - begin..][..8].try_into().expect("a word"))
    }
}

/// One thread of it.
pub(crate) struct Made {
    pub(crate) memory: Somewhere,
    pub(crate) thread_state: usize,
    kept: Kept,
    next: usize,
    /// From the outermost on: those of Python's, and of C's.
    stack: Vec<(usize, Option<KnownFrame>)>,
    call: usize,
}

impl Made {
    pub(crate) fn new(kept: Kept) -> Self {
        let mut made = Self {
            memory: Somewhere::default(),
            thread_state: 0,
            kept,
            next: 0x10_0000,
            stack: Vec::new(),
            call: 0,
        };
        made.call = made.place(vec![0; 24]);
        made.thread_state = made.place(vec![0; 512]);
        if kept.by_calls {
            made.memory.write(made.thread_state + 56, made.call);
        }
        made
    }

    /// A function is called, whose code begins at that line, and is at its instruction at so many bytes: a line further for
    /// each two.
    pub(crate) fn call(&mut self, name: &str, file: &str, first_line: i32, at: usize) {
        let (name, file) = (self.text(name), self.text(file));
        // A unit of the first line, and then of one more each.
        let table: Vec<u8> = [0x80, 0].into_iter().chain([0xd8, 0, 0].repeat(20)).collect();
        let lines = self.bytes(&table);
        let mut code = vec![0; CODE_SIZE + INSTRUCTIONS];
        for (offset, word) in [(8, CODE_TYPE), (112, file), (128, name), (136, lines)] {
            code[offset..offset + 8].copy_from_slice(&word.to_ne_bytes());
        }
        code[72..76].copy_from_slice(&first_line.to_ne_bytes());
        let code = self.place(code);
        let frame = self.frame(code, at);
        let object = self.place(vec![0; 64]);
        self.memory.write(object + 24, frame);
        self.stack.push((frame, Some(KnownFrame { object, code, name, file, lines, first_line, at })));
        self.enters(frame);
    }

    /// C calls Python: with a frame of its own, which has no code.
    pub(crate) fn enters_through_c(&mut self) {
        let none = self.place(vec![0; 32]);
        let frame = self.frame(none, 0);
        self.stack.push((frame, None));
        self.enters(frame);
    }

    pub(crate) fn returns(&mut self) {
        self.stack.pop();
        let (frame, _) = self.stack.last().expect("somebody has called");
        self.enters(*frame);
    }

    /// The innermost goes on by an instruction when memory has been read so often.
    pub(crate) fn moves_after(&self, reads: usize) {
        let at = self.innermost() + self.kept.instruction;
        // There and back, time after time.
        self.memory.0.moves.set(Some((reads, at, self.memory.read(at) ^ 2)));
    }

    /// The outermost was called by the innermost.
    pub(crate) fn bites_its_tail(&self) {
        self.memory.write(self.stack[0].0 + self.kept.previous, self.innermost());
    }

    pub(crate) fn places(&self) -> Vec<usize> {
        self.memory.0.places.borrow().keys().copied().collect()
    }

    pub(crate) fn learn(&mut self) -> Result<Layout, Unlike> {
        let known = self.known();
        Layout::learn(&self.memory, &known)
    }

    pub(crate) fn known(&mut self) -> Known {
        let texts = ["where", "où", "ść", "🧭"];
        let texts = texts.map(|text| KnownText { address: self.text(text), text: text.to_owned() });
        Known {
            thread_state: self.thread_state,
            by_calls: self.kept.by_calls,
            code_type: CODE_TYPE,
            code_size: CODE_SIZE,
            ascii: ASCII,
            other: OTHER,
            bytes: BYTES,
            texts: texts.into(),
            frames: self.stack.iter().rev().filter_map(|(_, known)| known.clone()).collect(),
        }
    }

    fn innermost(&self) -> usize {
        self.stack.last().expect("somebody was called").0
    }

    fn enters(&self, frame: usize) {
        let at = if self.kept.by_calls { self.call + 8 } else { self.thread_state + 72 };
        self.memory.write(at, frame);
    }

    fn frame(&mut self, code: usize, at: usize) -> usize {
        let previous = self.stack.last().map_or(0, |(frame, _)| *frame);
        let frame = self.place(vec![0; 96]);
        self.memory.write(frame + self.kept.code, code | 1);
        self.memory.write(frame + self.kept.previous, previous);
        self.memory.write(frame + self.kept.instruction, code + CODE_SIZE + at);
        frame
    }

    fn text(&mut self, text: &str) -> usize {
        let largest = text.chars().map(u32::from).max().unwrap_or_default();
        let (form, begins, width) = match largest {
            ..0x80 => (0b110_0100, ASCII, 1),
            0x80..0x100 => (0b010_0100, OTHER, 1),
            0x100..0x1_0000 => (0b010_1000, OTHER, 2),
            _ => (0b011_0000, OTHER, 4),
        };
        let mut kept = vec![0; begins];
        kept[16..24].copy_from_slice(&text.chars().count().to_ne_bytes());
        kept[32] = form;
        text.chars().for_each(|each| kept.extend(&u32::from(each).to_ne_bytes()[..width]));
        kept.push(0);
        self.place(kept)
    }

    fn bytes(&mut self, bytes: &[u8]) -> usize {
        let mut kept = vec![0; BYTES];
        kept[16..24].copy_from_slice(&bytes.len().to_ne_bytes());
        kept.extend(bytes);
        self.place(kept)
    }

    fn place(&mut self, bytes: Vec<u8>) -> usize {
        let at = self.next;
        self.next += 0x1000;
        self.memory.0.places.borrow_mut().insert(at, bytes);
        at
    }
}
