//! ASGI's rules, as types and state machines.
//!
//! Pure: no tokio, no Python, no clock, no sockets. `bridgehead-net` owns the wire, `bridgehead-python` the
//! interpreter; both ask here what a message means, and do what they are told.
//!
//! Invariant: nothing in this crate panics, blocks or remembers. A transition takes the state by value and gives
//! the next one, and all states are `Copy`, so a refused message leaves its caller where it was.
#![forbid(unsafe_code)]

mod headers;
mod http;
mod length;
mod lifespan;
mod message;
mod misuse;
mod request;
mod scope;
mod trailers;
mod websocket;

pub use self::headers::{HeaderCount, ResponseHead, ResponseParts, add_link};
pub use self::http::{Reply, Response, Then, Write};
pub use self::length::{Excess, Length, Missing};
pub use self::lifespan::{Lifespan, LifespanReceipt};
pub use self::message::{HttpMessage, LifespanMessage, More, WebSocketMessage};
pub use self::misuse::{Excerpt, Misuse};
pub use self::request::{Request, RequestEvent, RequestReceipt};
pub use self::scope::{
    ASGI_VERSION, LIFESPAN_SPEC_VERSION, SPEC_VERSION, decode_path, encode_path, http_version, is_valid_host,
    without_port,
};
pub use self::trailers::{Fate, Trailers, add_trailer};
pub use self::websocket::{Acceptance, Closing, Hearing, NotTaken, WebSocket, is_close_code, is_token};
