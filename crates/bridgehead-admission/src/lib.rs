//! Who may run now, who waits for it and how long (`admission`), and how many that are to be where nobody says it
//! (`gradient`).
//!
//! Not what runs, nor what those are told who may not: the network and the bridge know. No sockets, no runtime, no Python;
//! what ends a wait is its caller's.
//!
//! Invariant: whoever waits comes in turn, and a permit is somebody's or is there.

#![forbid(unsafe_code)]

mod admission;
mod climb;
mod gradient;
mod look;

pub use admission::{Admission, AdmissionLimits, Capacity, Permit, TurnedAway};
