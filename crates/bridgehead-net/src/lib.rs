//! Sockets to requests: listen, accept, HTTP/1, backpressure, drain, access records.
//!
//! Knows Tokio, hyper and rustls, and nothing of Python: whoever answers implements [`App`]. What is judged without a socket
//! has crates of its own below: heads, frames, proxies, admission. One request's way through this crate is `accept` →
//! `connection` → `service` → `exchange` → `body`; a WebSocket's then goes on in `websocket_session`.
//!
//! Invariant: nothing in here blocks its thread, and no wait is without an end: a client that goes, an application
//! that answers, or the shutdown's deadline ends it.

#![forbid(unsafe_code)]

mod accept;
mod access;
mod access_layout;
mod app;
mod app_half;
mod board;
mod body;
mod broken_off;
mod client;
mod client_half;
mod compression;
mod config;
mod connection;
mod course;
mod crowd;
mod departure;
mod dormant;
mod exchange;
mod family;
mod farewell;
mod file_body;
mod first_window;
mod flood;
mod forked;
mod frame_writer;
#[cfg(any(fuzzing, test))]
mod fuzzed_connection;
#[cfg(any(fuzzing, test))]
mod fuzzed_messages;
#[cfg(any(fuzzing, test))]
mod fuzzed_site;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod gate;
mod handshake;
mod header_line;
mod health_path;
mod heart;
mod http1;
mod http2;
mod http2_handshake;
mod inspected;
mod inspector;
mod interim;
mod lifetime;
mod line;
mod listen;
mod log_pipe;
mod loop_life;
mod meters;
mod outlet;
mod overheard;
mod overseer;
mod pace;
mod piece;
#[cfg(any(fuzzing, test))]
mod pipe;
mod places;
mod preamble;
mod press;
mod pulse;
mod reading;
mod reason;
mod reclaim;
mod record_ends;
mod redirect;
mod refusal;
mod relief;
mod request_id;
mod rota;
mod service;
mod session;
mod session_end;
mod shutdown;
mod socket;
mod static_answer;
mod static_files;
mod story;
mod stream;
mod stream_answer;
mod stream_head;
mod stream_socket;
mod stream_static;
mod stream_upload;
mod stream_websocket;
mod tally;
mod timestamp;
mod told;
mod traced;
mod traffic;
mod trailer_section;
mod turn;
mod unsent;
mod upload;
mod verdict;
mod websocket;
mod websocket_half;
mod websocket_handshake;
mod websocket_outgoing;
mod websocket_session;

pub use accept::serve;
pub use access::AccessLog;
pub use access_layout::{Colours, Layout, UnknownField};
pub use app::{AccessRecord, App, Arrival, Report, RequestHead, Token, WebSocketRequest};
pub use app_half::{AppHalf, Kept, Reception, Room};
pub use board::{Board, Condition};
pub use bridgehead_static::{Mount, Mounts};
pub use compression::Compression;
pub use config::{
    Config, Connections, Departures, Http2, Lifetimes, Limits, Pings, Refusals, Unconfirmed, WebSockets,
};
pub use exchange::CHUNKS;
pub use forked::{Claim, descriptors as open_descriptors, disown as disown_descriptors};
pub use gate::shut_gates;
pub use health_path::HealthPath;
pub use listen::{ListenError, Listener, Ownership, Shutter};
pub use log_pipe::LogPipe;
pub use meters::Meters;
pub use outlet::{Outlet, Sink};
pub use pace::PaceLimits;
pub use piece::Piece;
pub use reason::Reasons;
pub use request_id::{RequestIds, Trace};
pub use rota::{Beat, Rota};
pub use shutdown::{Signal, Stage, channel as shutdown_channel};
pub use static_files::StaticFiles;
pub use story::{Handed, Story};
pub use tally::Tally;
pub use websocket::Ending;
pub use websocket_half::{Heard, WebSocketHalf};
