//! What trusted proxies say in headers: one of them in each line, by its first letter.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bridgehead_net::fuzzing::forwarded(bytes));
