//! Runs the network's tasks wherever it is polled (`executor`), and keeps their deadlines (`timers`) and their date
//! (`http_date`): what both runtimes turn.
//!
//! Not a driver of sockets, which is Tokio's, and not what the tasks do. No hyper, no Python.
//!
//! Invariant: whoever turns it knows when no task is ready, and when the next one will be.

#![forbid(unsafe_code)]

mod executor;
pub mod http_date;
mod summons;
mod timers;

pub use executor::{Alarm, Executor, Round, Share};
pub use timers::{Sleep, poll_deadline};
