//! Texts of clients inside lines of a log.
//!
//! Invariant: what comes out is printable ASCII, in one line, and at most `LONGEST` bytes of each text are in it.

use std::io::Write;

/// A text is cut here: a log is not a place for a client to store things.
const LONGEST: usize = 1024;

/// Nothing that a terminal or a log reader would take for its own.
#[inline]
pub fn plain(text: &[u8], line: &mut Vec<u8>) {
    for &byte in text.iter().take(LONGEST) {
        match byte {
            b'"' | b'\\' | 0..0x20 | 0x7f.. => {
                // Writing to a Vec cannot fail.
                let _ = write!(line, "\\x{byte:02x}");
            }
            _ => line.push(byte),
        }
    }
    if text.len() > LONGEST {
        line.extend_from_slice(b"...");
    }
}

/// A text as a string of JSON. Bytes that are no UTF-8 are taken for Latin-1, as headers were once.
#[inline]
pub fn json(text: &[u8], line: &mut Vec<u8>) {
    line.push(b'"');
    let cut = &text[..text.len().min(LONGEST)];
    match std::str::from_utf8(cut) {
        Ok(cut) => cut.chars().for_each(|letter| json_letter(letter, line)),
        // The cut has gone through a letter.
        Err(error) if error.error_len().is_none() && text.len() > LONGEST => {
            let whole = std::str::from_utf8(&cut[..error.valid_up_to()]).unwrap_or_default();
            whole.chars().for_each(|letter| json_letter(letter, line));
        }
        Err(_) => cut.iter().for_each(|&byte| json_letter(char::from(byte), line)),
    }
    if text.len() > LONGEST {
        line.extend_from_slice(b"...");
    }
    line.push(b'"');
}

fn json_letter(letter: char, line: &mut Vec<u8>) {
    match letter {
        '"' | '\\' => line.extend_from_slice(&[b'\\', letter as u8]),
        ' '..='~' => line.push(letter as u8),
        _ => {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                // Writing to a Vec cannot fail.
                let _ = write!(line, "\\u{unit:04x}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(how: fn(&[u8], &mut Vec<u8>), text: &[u8]) -> String {
        let mut line = Vec::new();
        how(text, &mut line);
        String::from_utf8(line).expect("lines are ASCII")
    }

    #[test]
    fn control_characters_and_quotes_are_escaped() {
        assert_eq!(written(plain, b"/\"\\\n\x1b[31m\xff"), "/\\x22\\x5c\\x0a\\x1b[31m\\xff");
    }

    #[test]
    fn a_string_of_json_is_ascii_whatever_is_in_it() {
        assert_eq!(written(json, b"/\"\\\n\x7f"), r#""/\"\\\u000a\u007f""#);
        assert_eq!(written(json, "é\u{2028}😀".as_bytes()), r#""\u00e9\u2028\ud83d\ude00""#);
        assert_eq!(written(json, b"caf\xe9!"), r#""caf\u00e9!""#);
        assert_eq!(written(json, b"caf\xe9"), r#""caf\u00e9""#);
    }

    #[test]
    fn a_long_text_is_cut() {
        assert_eq!(written(plain, &[b'x'; 5000]).len(), LONGEST + 3);
        let long = [&[b'x'; LONGEST - 1][..], "éé".as_bytes()].concat();
        assert_eq!(written(json, &long), format!("\"{}...\"", "x".repeat(LONGEST - 1)));
    }
}
