//! Files of certificates and keys.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bridgehead_net::fuzzing::pem(bytes));
