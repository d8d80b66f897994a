//! Stacks of a Python that is made up, in memory that is: what is learned of it, and what is read then.
//!
//! Those of real ones are read by `tests/bridge/test_held_lock.py`.

mod python;

use bridgehead_frames::{Frame, Layout, Stack, Unlike};
use python::{Kept, Made};

fn frame(name: &str, file: &str, line: u32) -> Frame {
    Frame { name: name.to_owned(), file: file.to_owned(), line: Some(line) }
}

#[test]
fn what_was_learned_from_one_stack_reads_another() {
    for kept in [Kept::BY_THREADS, Kept::BY_CALLS] {
        let mut made = Made::new(kept);
        made.call("main", "/srv/main.py", 10, 2);
        made.call("Shop.load", "/srv/shop.py", 30, 4);
        made.call("read", "/lib/csv.py", 700, 0);
        let layout = made.learn().expect("all is told");
        made.returns();
        made.enters_through_c();
        made.call("Größe.<locals>.ść", "/srv/räksmörgås 🧭.py", 90, 6);
        let stack = Stack::new(made.memory.clone(), layout, made.thread_state);
        let read = stack.frames().expect("it stands still");
        assert_eq!(
            read,
            [
                frame("Größe.<locals>.ść", "/srv/räksmörgås 🧭.py", 93),
                frame("Shop.load", "/srv/shop.py", 32),
                frame("main", "/srv/main.py", 11),
            ]
        );
    }
}

#[test]
fn a_stack_that_moves_while_it_is_read_is_not_given() {
    let mut made = Made::new(Kept::BY_THREADS);
    made.call("main", "/srv/main.py", 10, 2);
    made.call("load", "/srv/shop.py", 30, 4);
    let layout = made.learn().expect("all is told");
    let reads = made.memory.reads();
    let stack = Stack::new(made.memory.clone(), layout, made.thread_state);
    let before = stack.frames();
    let taken = made.memory.reads() - reads;
    let mut refused = 0;
    for read in 1..taken {
        let still = stack.frames();
        made.moves_after(read);
        match stack.frames() {
            None => refused += 1,
            // It moved before it was looked at, or behind the last look.
            moved => assert!(moved == still || moved == stack.frames(), "after {read} reads of {taken}"),
        }
    }
    assert!(before.is_some());
    assert!(refused > taken / 2, "{refused} of {taken}");
}

#[test]
fn memory_that_is_gone_and_stacks_without_an_end_are_put_up_with() {
    let mut made = Made::new(Kept::BY_THREADS);
    made.call("main", "/srv/main.py", 10, 2);
    made.call("load", "/srv/shop.py", 30, 4);
    let layout = made.learn().expect("all is told");
    let stack = Stack::new(made.memory.clone(), layout.clone(), made.thread_state);
    made.bites_its_tail();
    assert_eq!(stack.frames().map(|frames| frames.len()), Some(200));
    for place in made.places() {
        let stack = Stack::new(made.memory.without(place), layout.clone(), made.thread_state);
        // Whatever is not there: a part of a stack is none.
        let read = stack.frames();
        assert!(read.is_none_or(|frames| frames.len() == 200), "{place:x}");
    }
}

#[test]
fn a_python_that_keeps_something_otherwise_is_not_read() {
    let mut made = Made::new(Kept::BY_THREADS);
    made.call("main", "/srv/main.py", 10, 2);
    assert_eq!(made.learn().err(), Some(Unlike("frames")), "one frame says too little");
    made.call("load", "/srv/shop.py", 30, 4);
    let known = made.known();
    assert!(Layout::learn(&made.memory, &known).is_ok());
    let mut other = known.clone();
    other.code_type += 8;
    assert_eq!(Layout::learn(&made.memory, &other).err(), Some(Unlike("types")));
    let mut other = known.clone();
    other.frames[1].at += 2;
    assert_eq!(Layout::learn(&made.memory, &other).err(), Some(Unlike("the instruction of a frame")));
    let mut other = known.clone();
    other.texts[0].text.push('?');
    assert_eq!(Layout::learn(&made.memory, &other).err(), Some(Unlike("texts")));
    let mut other = known.clone();
    other.frames[0].first_line += 1;
    assert_eq!(Layout::learn(&made.memory, &other).err(), Some(Unlike("the first line of code")));
    let mut other = known;
    other.frames.pop();
    assert!(Layout::learn(&made.memory, &other).is_err(), "there is one that nobody has told of");
}
