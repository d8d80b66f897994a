//! Strict judgement of HTTP/1's heads and framing: before hyper reads them (`guard`), and of what it has read (`judge`,
//! `persistence`).
//!
//! Not what follows for the connection, nor the answer to what is refused: the network knows. No sockets, no runtime, no
//! clock, no Python.
//!
//! Invariant: what passes has one meaning, to hyper and to whatever stricter parser stands in front.

#![forbid(unsafe_code)]

mod chunks;
mod crumbs;
mod fault;
mod guard;
mod judge;
mod letters;
mod limits;
mod persistence;
mod request_line;

pub use chunks::Trailers;
pub use crumbs::join_crumbs;
pub use fault::Fault;
pub use guard::{Breach, Guard, asks_head};
pub use judge::{judge, judge_method, judge_target};
pub use letters::are_of_urls;
pub use limits::HeadLimits;
pub use persistence::{asks_unheard_to_close, keeps_connection, say_close};
