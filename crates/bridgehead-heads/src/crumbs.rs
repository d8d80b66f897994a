//! A body that comes in crumbs: many chunks of a few bytes each, that arrived together.
//!
//! hyper hands on each chunk by itself, which costs far more than it costs to send one. So those that lie side by side are
//! made one chunk before hyper sees them: their bytes are the body's all the same.
//!
//! Invariant: the body is the same, byte for byte, and framed in no more than it was; what is not whole stays as it came.

use memchr::memchr;

/// A chunk of no more than this is a crumb.
const CRUMB: usize = 256;

/// So many of them in what came together make it worth a look.
const MANY: usize = 16;

/// Bytes of one chunk that is made of crumbs.
const LOAF: usize = 4096;

/// The crumbs in what came last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Crumbs {
    first: usize,
    count: usize,
}

impl Crumbs {
    /// A chunk of this size begins there, and its first line is whole.
    pub(crate) fn see(&mut self, at: usize, size: u64) {
        if size <= CRUMB as u64 {
            if self.count == 0 {
                self.first = at;
            }
            self.count += 1;
        }
    }

    /// Where the first of them begins, if there are many.
    pub(crate) fn first_of_many(self) -> Option<usize> {
        (self.count >= MANY).then_some(self.first)
    }
}

/// A chunk's first line and what follows it.
struct Chunk {
    /// Bytes before its data.
    line: usize,
    size: usize,
    /// Bytes in all.
    whole: usize,
}

/// Makes the crumbs that lie side by side one chunk each; a size begins at `first`, and each one has been judged. Gives how
/// many bytes are left.
#[must_use]
pub fn join_crumbs(bytes: &mut [u8], first: usize) -> usize {
    let mut loaf = [0; LOAF];
    let (mut read, mut written, mut held) = (first, first, 0);
    loop {
        let next = chunk(&bytes[read..]);
        if let Some(Chunk { line, size, whole }) = next
            && size <= CRUMB
            && held + size <= LOAF
        {
            loaf[held..held + size].copy_from_slice(&bytes[read + line..read + line + size]);
            held += size;
            read += whole;
            continue;
        }
        if held > 0 {
            written += put(&mut bytes[written..read], &loaf[..std::mem::take(&mut held)]);
        }
        match next {
            Some(Chunk { size, .. }) if size <= CRUMB => {}
            Some(Chunk { whole, .. }) => {
                bytes.copy_within(read..read + whole, written);
                read += whole;
                written += whole;
            }
            None => {
                bytes.copy_within(read.., written);
                return written + bytes.len() - read;
            }
        }
    }
}

/// The chunk that begins here. `None` for the last one, and for one that is not whole.
fn chunk(bytes: &[u8]) -> Option<Chunk> {
    let line = memchr(b'\n', bytes)? + 1;
    let digits = bytes.iter().map_while(|byte| char::from(*byte).to_digit(16));
    let mut size: usize = 0;
    for digit in digits {
        size = size.checked_mul(16)? | digit as usize;
    }
    let whole = size.checked_add(line + 2)?;
    (size > 0 && whole <= bytes.len()).then_some(Chunk { line, size, whole })
}

/// Writes this as one chunk; how many bytes that takes.
fn put(place: &mut [u8], body: &[u8]) -> usize {
    let digits = (usize::BITS - body.len().leading_zeros()).div_ceil(4) as usize;
    for (at, digit) in place[..digits].iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[body.len() >> (4 * (digits - 1 - at)) & 15];
    }
    let (line, end) = (digits + 2, digits + 2 + body.len());
    place[digits..line].copy_from_slice(b"\r\n");
    place[line..end].copy_from_slice(body);
    place[end..end + 2].copy_from_slice(b"\r\n");
    end + 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn joined(bytes: &[u8], first: usize) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        let left = join_crumbs(&mut bytes, first);
        bytes.truncate(left);
        bytes
    }

    #[test]
    fn crumbs_become_one_chunk_and_what_is_not_whole_stays() {
        let last = b"0\r\nA: b\r\n\r\nGET / HTTP/1.1\r\n";
        for rest in [&b""[..], b"1", b"1\r", b"1\r\n", b"1\r\nc", b"1\r\nc\r", last, b"5\r\nabc", b"ff"] {
            let came = [b"b\r\n1\r\na\r\n002;x=y\r\nbc\r\n", rest].concat();
            assert_eq!(joined(&came, 3), [b"b\r\n3\r\nabc\r\n", rest].concat());
        }
    }

    #[test]
    fn a_loaf_that_is_full_is_followed_by_another_and_large_chunks_stay() {
        let crumbs = b"64\r\n".iter().chain(&[b'a'; 100]).chain(b"\r\n").copied().collect::<Vec<_>>();
        let large = [&b"101\r\n"[..], &[b'b'; 257], b"\r\n"].concat();
        let came = [&crumbs.repeat(50)[..], &large, &large, b"1\r\nc\r\n0\r\n\r\n"].concat();
        let due = [
            &b"fa0\r\n"[..],
            &[b'a'; 4000],
            b"\r\n3e8\r\n",
            &[b'a'; 1000],
            b"\r\n",
            &large,
            &large,
            b"1\r\nc\r\n0\r\n\r\n",
        ]
        .concat();
        assert_eq!(joined(&came, 0), due);
    }

    /// The data of whole chunks, and what follows them.
    fn read(mut bytes: &[u8]) -> (Vec<u8>, &[u8]) {
        let mut body = Vec::new();
        while let Some(Chunk { line, size, whole }) = chunk(bytes) {
            body.extend_from_slice(&bytes[line..line + size]);
            bytes = &bytes[whole..];
        }
        (body, bytes)
    }

    #[test]
    fn many_small_chunks_are_worth_a_look_and_large_ones_are_not() {
        for (size, due) in [(CRUMB as u64, Some(7)), (CRUMB as u64 + 1, None)] {
            let mut crumbs = Crumbs::default();
            crumbs.see(0, 4096);
            for at in 0..MANY {
                assert_eq!(crumbs.first_of_many(), None);
                crumbs.see(7 + at, size);
            }
            assert_eq!(crumbs.first_of_many(), due);
        }
    }

    proptest! {
        #[test]
        fn the_body_is_the_same_and_its_framing_no_longer(
            sizes in proptest::collection::vec(prop_oneof![1..4usize, 1..300usize, 1..5000usize], 0..60),
            zeros in 0..4usize,
            cut in 0..20usize,
        ) {
            let mut came = Vec::new();
            for (number, size) in sizes.iter().enumerate() {
                came.extend_from_slice(format!("{}{size:X}\r\n", "0".repeat(zeros)).as_bytes());
                came.extend((0..*size).map(|at| (at + number) as u8));
                came.extend_from_slice(b"\r\n");
            }
            came.truncate(came.len() - cut.min(came.len()));
            let made = joined(&came, 0);
            prop_assert!(made.len() <= came.len());
            prop_assert_eq!(read(&made), read(&came));
        }
    }
}
