//! What a server counts and measures, in words that another process can read without Python, and after their writer has
//! died.
//!
//! Knows no sockets, no clock and no Python: whoever counts brings the figures, and the bridge brings the memory. A [`Sheet`]
//! is one worker's, [`Sheets`] are all of a server's.
//!
//! Invariant: each word is whole in itself, and a counter never goes back while its server lives.

#![forbid(unsafe_code)]

mod cause;
mod cells;
mod figures;
mod gate_cells;
mod gates;
mod held;
mod histogram;
mod longest;
mod places;
mod record;
mod series;
mod sheet;
mod sheets;
mod slowest;
mod system_call;

pub use cause::Cause;
pub use cells::{Closing, Condition, Counter, Gauge, REASONS, Timing};
pub use figures::Figures;
pub use gate_cells::GateCells;
pub use gates::{GateFigures, GateGauge, GateOutcome};
pub use histogram::{BOUNDS, Distribution};
pub use places::BlockingPlace;
pub use series::{Protocol, Scheme, Series};
pub use sheet::Sheet;
pub use sheets::{End, Sheets, Snapshot, Start};
pub use slowest::SlowRequest;
pub use system_call::SystemCall;
