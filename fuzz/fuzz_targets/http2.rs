//! A whole connection of HTTP/2: frames as a script of types, flags, streams and payloads, behind a sound beginning.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bridgehead_net::fuzzing::http2(bytes));
