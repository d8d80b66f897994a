//! Texts of clients in lines of a log.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bridgehead_net::fuzzing::log_text(bytes));
