//! WebSocket frames as bytes: how they are read (`frame`) and written (`head`), what their messages are compressed with
//! (`deflate`), and what all of that may take (`memory`).
//!
//! Not what follows from them: answers to pings, the close handshake and all deadlines are the network's. No sockets, no
//! runtime, no clock, no Python.
//!
//! Invariant: memory is taken for bytes that came, never for bytes that were announced, and never beyond what was lent.

#![forbid(unsafe_code)]

mod deflate;
mod deflate_offer;
mod failure;
mod frame;
mod head;
mod mask;
mod memory;
mod message;
mod partial;
mod text;

pub use deflate::{Deflater, Deflation, Inflater, SLICE};
pub use deflate_offer::{Agreement, agree};
pub use failure::{Failure, NO_MEMORY, TOO_BIG};
pub use frame::{Decoder, Event};
pub use head::{Opcode, write_close, write_compressed_head, write_control, write_head};
pub use memory::{Loan, Memory};
pub use message::Message;
