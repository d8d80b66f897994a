//! Where a thread of Python's is, read from memory by who has not got the GIL.
//!
//! A call of C's that keeps the GIL keeps everybody from asking Python where that is. Its frames stand still meanwhile, so
//! they can be read as bytes: through the system (`memory`), which refuses an address that is none, where a pointer would
//! end the process. What is where differs from Python to Python: it is learned (`layout`) from a stack that is known, and
//! nothing is read by who has not found it all, and all of it right.
//!
//! Not whose the frames are, nor when they are looked at. Pure but for the memory: no Python, no threads, no clock.
//!
//! Invariant: what is read may be refused, and is never followed without a bound.

#![forbid(unsafe_code)]

mod layout;
mod lines;
mod memory;
mod objects;
mod stack;

pub use layout::{Known, KnownFrame, KnownText, Unlike};
pub use memory::{Memory, OwnMemory};
pub use stack::{Frame, Layout, Stack};
