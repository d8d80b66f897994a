//! Heads of answers as applications send them: none that is taken can be two.
#![no_main]

use bridgehead_asgi::ResponseHead;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut lines = bytes.split(|byte| *byte == 0xff);
    let status = lines.next().and_then(|word| std::str::from_utf8(word).ok()?.parse().ok()).unwrap_or(200);
    let Ok(mut head) = ResponseHead::new(status) else { return };
    for line in lines {
        let cut = line.iter().position(|byte| *byte == 0xfe).unwrap_or(line.len());
        let (name, value) = (&line[..cut], line.get(cut + 1..).unwrap_or_default());
        if head.header(name, value).is_ok() {
            assert!(!name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic() && *byte != b':'));
            assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        }
    }
    let parts = head.into_parts();
    assert!(!parts.headers.contains_key("transfer-encoding"));
});
