//! Proves ASGI's rules from outside: every table in full, then what must hold for any sequence and any bytes.
//!
//! Not the bridge's conversions, which need Python.

mod headers;
mod messages;
mod properties;
mod scope;
mod transitions;
mod websocket;
