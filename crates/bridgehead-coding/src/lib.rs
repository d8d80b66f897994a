//! Codings of bodies: which a client takes (`coding`), which answers get one (`policy`), and how it is made (`encoder`).
//!
//! Not when a body leaves, nor what it may cost in all: the network knows. No sockets, no runtime, no Python.
//!
//! Invariant: an answer that has a coding says so, and says that another client may get another.

#![forbid(unsafe_code)]

mod coding;
mod encoder;
mod policy;

pub use coding::{Accepted, Coding};
pub use encoder::{Encoder, SLICE, Spoiled};
pub use policy::{Kinds, Policy};
