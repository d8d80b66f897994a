//! Frames of WebSockets, compressed and not, whole and in pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bridgehead_net::fuzzing::websocket_frames(bytes));
