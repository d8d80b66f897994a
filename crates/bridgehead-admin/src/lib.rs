//! Tells operators how a server fares: whether it lives and is ready, its figures, its status. Off the public port.
//!
//! Reads the memory that workers write (`bridgehead_metrics`) and asks nobody, so it answers the same while a loop is
//! blocked, a worker is dead or the server drains. Knows no Python.
//!
//! Invariant: nothing in here can hold up a worker, and what a client of this port does is bounded.

#![forbid(unsafe_code)]

mod accept;
mod document;
mod exposition;
mod families;
mod history;
mod judgement;
mod seats;
mod serve;
mod status;

pub use judgement::Rules;
pub use serve::{Admin, Listener, serve};

/// What is the same for as long as the server runs.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Of Bridgehead.
    pub version: String,
    /// Of Python.
    pub python: String,
    /// What is served, as it was named.
    pub target: String,
}
