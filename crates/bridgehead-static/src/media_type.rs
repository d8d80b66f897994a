//! What a file is called to clients, by its name.
//!
//! Invariant: what no table knows is bytes, which no browser runs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use http::HeaderValue;

const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// Text is said to be UTF-8, as nearly all of it is.
pub(crate) fn of(name: &[u8]) -> HeaderValue {
    let guess = mime_guess::from_path(Path::new(OsStr::from_bytes(name)));
    // Its other names are those of the past (RFC 9239).
    let Some(kind) =
        guess.first_raw().map(|kind| if kind == "application/javascript" { "text/javascript" } else { kind })
    else {
        return BYTES;
    };
    if !kind.starts_with("text/") {
        return HeaderValue::from_static(kind);
    }
    HeaderValue::try_from(format!("{kind}; charset=utf-8")).unwrap_or(BYTES)
}

/// Whether it is a page: what leads to other files, and has no name of its own for each version.
pub(crate) fn is_page(kind: &HeaderValue) -> bool {
    kind.as_bytes().starts_with(b"text/html")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_type_and_text_a_charset() {
        for (name, kind) in [
            ("index.html", "text/html; charset=utf-8"),
            ("a/b.CSS", "text/css; charset=utf-8"),
            ("app.js", "text/javascript; charset=utf-8"),
            ("app.mjs", "text/javascript; charset=utf-8"),
            ("data.json", "application/json"),
            ("picture.svg", "image/svg+xml"),
            ("picture.webp", "image/webp"),
            ("font.woff2", "font/woff2"),
            ("module.wasm", "application/wasm"),
            ("archive.tar.gz", "application/gzip"),
            ("film.mp4", "video/mp4"),
            ("LICENSE", "application/octet-stream"),
            ("a.unheard-of", "application/octet-stream"),
        ] {
            assert_eq!(of(name.as_bytes()), kind, "{name}");
        }
        assert_eq!(of(b"\xff.txt"), "text/plain; charset=utf-8");
        assert!(is_page(&of(b"index.html")) && !is_page(&of(b"app.js")));
    }
}
