//! Runs against servers of a few bytes.

mod counts;
mod faults;
mod pacing;
mod requests;
mod server;
