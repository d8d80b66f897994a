//! Bodies, trailers and what is said over WebSockets, as applications send them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bridgehead_net::fuzzing::messages(bytes));
