//! A whole WebSocket: frames as a script, behind a handshake that may offer compression.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bridgehead_net::fuzzing::websocket(bytes));
