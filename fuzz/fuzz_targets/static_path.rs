//! Paths of requests: whatever is asked for, a file's name stays below its directory.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bridgehead_static::fuzzed(bytes));
