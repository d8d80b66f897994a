//! The PROXY protocol's headers.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bridgehead_net::fuzzing::proxy_header(bytes));
