//! A whole connection of HTTP/1.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bridgehead_net::fuzzing::http1(bytes));
