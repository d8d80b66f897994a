//! Requests to files: whether a path is a file's, what of a directory answers it, and with what head.
//!
//! A request's way: `mount` (whose path is it) → `name` (is it one that can be a file's) → `beneath` (opened, and where)
//! → `precondition` and `range` (how much of it is wanted) → `reply` (the head) → `reading` (the bytes).
//!
//! Not who waits: what opens and reads may block, and is called where blocking harms nobody. No sockets, no runtime, no
//! Python.
//!
//! Invariant: nothing outside a mount's directory is ever opened, whatever is asked for and whoever moves files meanwhile.

#![forbid(unsafe_code)]

mod beneath;
mod media_type;
mod mount;
mod name;
mod precondition;
mod range;
mod reading;
mod reply;
mod version;

pub use mount::{Asked, Mount, Mounts};
pub use name::fuzzed;
pub use reading::Reading;
pub use reply::{Content, Outcome, Reply};
