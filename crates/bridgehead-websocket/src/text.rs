//! Text as it comes: whether it is UTF-8, looked at once, byte for byte, in whatever pieces it comes.

/// Whether `data` can still become text. `sound` is how many of its bytes are known to be: it moves on, and what is
/// behind it is not looked at again. All of them are, once it is the length.
pub(crate) fn is_sound_so_far(data: &[u8], sound: &mut usize) -> bool {
    match std::str::from_utf8(&data[*sound..]) {
        Ok(rest) => {
            *sound += rest.len();
            true
        }
        Err(error) => {
            *sound += error.valid_up_to();
            // A letter that may be completed has no length of its own.
            error.error_len().is_none()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_pieces_is_text() {
        let words = "aé€😀".as_bytes();
        for cut in 0..=words.len() {
            let mut sound = 0;
            assert!(is_sound_so_far(&words[..cut], &mut sound) && sound <= cut);
            assert!(is_sound_so_far(words, &mut sound));
            assert_eq!(sound, words.len());
        }
    }

    #[test]
    fn what_no_piece_can_mend_is_no_text() {
        for words in [&b"a\xff"[..], b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90", b"a\x80"] {
            assert!(!is_sound_so_far(words, &mut 0), "{words:x?}");
        }
    }
}
