//! Where the records of TLS end, in bytes that come in pieces.
//!
//! Reads their length (RFC 8446, section 5.1) and nothing else: what they hold is the session's business.
//!
//! Invariant: pieces that are taken one after the other are the bytes that came, and none reaches over an end.

/// Type, version and length.
const HEAD: usize = 5;
/// Where in it the length begins.
const LENGTH: usize = 3;

/// How far the record that is being read has come.
#[derive(Debug, Default)]
pub(crate) struct RecordEnds {
    head: usize,
    left: usize,
}

impl RecordEnds {
    /// What of the bytes belongs to the record that is being read, and what comes behind it.
    pub(crate) fn split<'a>(&mut self, bytes: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let mut taken = 0;
        while self.head < HEAD {
            let Some(byte) = bytes.get(taken) else { return (bytes, &[]) };
            if self.head >= LENGTH {
                self.left = self.left << 8 | usize::from(*byte);
            }
            self.head += 1;
            taken += 1;
        }
        let rest = self.left.min(bytes.len() - taken);
        self.left -= rest;
        if self.left == 0 {
            self.head = 0;
        }
        bytes.split_at(taken + rest)
    }

    /// They were read by somebody else.
    pub(crate) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            (_, bytes) = self.split(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_end_where_their_length_says_however_their_bytes_come() {
        let records: [&[u8]; 4] = [
            b"\x16\x03\x03\0\x02ab",
            b"\x14\x03\x03\0\0",
            &[&b"\x17\x03\x03\x01\x01"[..], &[7; 257]].concat(),
            b"\x17\x03",
        ];
        let bytes = records.concat();
        for size in 1..=bytes.len() {
            let (mut ends, mut seen) = (RecordEnds::default(), vec![Vec::new()]);
            for mut piece in bytes.chunks(size) {
                while !piece.is_empty() {
                    let (record, rest) = ends.split(piece);
                    seen.last_mut().expect("there is one").extend_from_slice(record);
                    if ends.head == 0 {
                        seen.push(Vec::new());
                    }
                    piece = rest;
                }
            }
            assert_eq!(seen, records, "in pieces of {size}");
        }
    }
}
