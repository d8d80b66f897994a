//! A whole connection of HTTP/1: what comes back is answers, and an end.
#![no_main]

#[path = "../site.rs"]
mod site;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let said = site::ask(bytes);
    assert!(said.is_empty() || said.starts_with(b"HTTP/1."), "{:?}", String::from_utf8_lossy(&said));
});
