//! What a TLS handshake is made with: certificates, keys, whom to ask for a certificate, versions and ciphers.
//!
//! Not the handshake, nor a byte on a socket (`bridgehead-net`), nor when files are read again (Python).
//!
//! Invariant: what a [`Credentials`] holds was read, understood and fits together; what does not leaves it as it was.

#![forbid(unsafe_code)]

mod clients;
mod credentials;
mod facts;
mod identity;
mod key;
mod legacy_key;
mod outgoing;
mod policy;
mod problem;
mod self_signed;
mod subject;

pub use clients::{Clients, Demand};
pub use credentials::{Credentials, Served, Set, Settings};
pub use facts::Facts;
pub use identity::{Files, Source};
pub use outgoing::Outgoing;
pub use policy::{Policy, Version};
pub use problem::Problem;
pub use self_signed::{SelfSigned, self_signed};
