//! Server spans of OpenTelemetry: whose part a request is, whether it is sampled, and the way to a collector.
//!
//! Knows no requests' bytes and no Python: the network says what a span is to have.
//!
//! Invariant: whoever ends a span never waits. Spans that find no room are dropped, and counted.

#![forbid(unsafe_code)]

mod context;
mod export;
mod fate;
mod message;
mod post;
mod sampler;
mod span;
mod tracer;

pub use context::{SpanContext, TraceId};
pub use export::{Coding, Destination};
pub use fate::{Collector, Listener, Loss};
pub use sampler::{Root, Sampler};
pub use span::{Attribute, Span};
pub use tracer::Tracer;
