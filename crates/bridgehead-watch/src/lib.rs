//! Which files change: the watching behind `--reload`.
//!
//! Not what is done about it: who watches is told on a thread of this crate's, and decides. No Python, no Tokio.
//!
//! Invariant: each change of a file that counts is reported at least once, whether the system tells of it or it has to
//! be looked for.
#![forbid(unsafe_code)]

mod native;
mod pattern;
mod selection;
mod snapshot;
mod walk;
mod watch;

pub use self::pattern::Pattern;
pub use self::selection::Selection;
pub use self::watch::{Method, Report, Watch};
