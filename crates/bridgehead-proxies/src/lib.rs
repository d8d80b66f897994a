//! Who a client is: by its socket (`peer`), by what proxies in front say of it (`forwarded`, `proxy_protocol`) if they are
//! believed (`proxies`), and in a line of a log (`escape`).
//!
//! Not when any of it is read, nor what follows: the network knows. No sockets, no runtime, no clock, no Python.
//!
//! Invariant: what a client says of itself changes nothing, unless it is a proxy that somebody trusts.

#![forbid(unsafe_code)]

pub mod escape;
mod forwarded;
mod forwarded_list;
mod peer;
mod proxies;
pub mod proxy_protocol;

pub use forwarded::{Forwarding, Taken};
pub use peer::{Address, Facade, Peer, Scheme};
pub use proxies::{Known, Network, Proxies};
