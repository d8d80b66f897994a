//! Runs against servers of a few bytes.

mod counts;
mod faults;
mod http2;
mod messages;
mod pacing;
mod requests;
mod server;
