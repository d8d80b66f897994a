//! Bytes in, bytes out: the network crate over real sockets, with the application's half in the test's own hands.
//!
//! Not the rules of messages (`bridgehead-asgi`) and not the bridge. EMFILE is left out: the limit is the process's, and
//! these tests share one.

mod access;
mod admission;
mod body;
mod connection;
mod descriptors;
mod early_hints;
mod exchange;
mod harness;
mod http2;
mod oversight;
mod refusals;
mod shutdown;
mod tls;
mod upload;
