//! Puts load on a server of HTTP/1.1, HTTP/2 or WebSockets and measures what comes back; and an upstream with faults, for tests.
//!
//! Not a command and not a page: words, plots and files are Python's (`python/bridgehead/load`).
//!
//! Invariant: a request that was begun within the measured time is counted once, as an answer or as an error, or is
//! told as unfinished.

#![forbid(unsafe_code)]

mod channel;
mod deadline;
mod desk;
mod expect;
mod fault;
mod http1;
mod http2;
mod pace;
mod payload;
mod plan;
mod random;
mod recipe;
mod record;
mod report;
mod run;
mod secure;
mod stream;
mod template;
mod timeline;
mod upstream;
mod websocket;
mod worker;

pub use expect::Expect;
pub use fault::Kind;
pub use plan::{Address, Limits, Plan, PlanError, Protocol, Scenario, Think, Upload};
pub use report::{Latency, Portion, QUANTILES, Report};
pub use run::{Handle, Progress, Run};
pub use timeline::Row;
pub use upstream::{Counts, Faults, Upstream};
