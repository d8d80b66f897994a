//! The guard of heads and its own tests, without the sockets beside it: `make miri`.
//!
//! `guard.rs` itself is compiled here; what it needs of other files is modelled below.

#![cfg(test)]
#![allow(dead_code)]

#[path = "../../../src/chunks.rs"]
mod chunks;
#[path = "../../../src/guard.rs"]
mod guard;
#[path = "../../../src/letters.rs"]
mod letters;
#[path = "../../../src/refusal.rs"]
mod refusal;
#[path = "../../../src/request_line.rs"]
mod request_line;

mod config {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct HeadLimits {
        pub target: usize,
        pub bytes: usize,
        pub fields: usize,
    }
}
