//! A whole connection of HTTP/2: frames as a script of types, flags, streams and payloads, behind a sound beginning.
#![no_main]

#[path = "../site.rs"]
mod site;

const BEGINNING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

libfuzzer_sys::fuzz_target!(|script: &[u8]| {
    let mut sent = BEGINNING.to_vec();
    let mut rest = script;
    while let Some((&[kind, flags, stream, length], behind)) = rest.split_first_chunk::<4>() {
        let (payload, next) = behind.split_at(usize::from(length).min(behind.len()));
        let size = u32::try_from(payload.len()).unwrap_or_default().to_be_bytes();
        sent.extend_from_slice(&[size[1], size[2], size[3], kind, flags, 0, 0, 0, stream]);
        sent.extend_from_slice(payload);
        rest = next;
    }
    let said = site::ask(&sent);
    // A server's first frame says its settings.
    assert!(said.is_empty() || said.get(3) == Some(&4), "{said:x?}");
});
