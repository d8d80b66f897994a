//! Which line an instruction is of, by the table that a code object has of that (CPython's `Objects/locations.md`).
//!
//! Invariant: whatever the bytes are, reading them comes to an end.

/// Bytes that an instruction is long.
const UNIT: usize = 2;

/// The first byte of an entry, and no other, has it.
const BEGINS: u8 = 0x80;

/// Entries of these kinds have no line, one with a signed number, and the same with nothing else.
const NO_LINE: u8 = 15;
const LONG: u8 = 14;
const NO_COLUMNS: u8 = 13;
/// From here on the kind says how many lines are gone down.
const DOWN: u8 = 10;

/// The line of the instruction that begins so many bytes behind the first; `None` if it is of none.
pub(crate) fn line_at(table: &[u8], first: i64, offset: usize) -> Option<u32> {
    let (mut line, mut until, mut rest) = (first, 0, table);
    while let [begin, behind @ ..] = rest {
        let (kind, units) = (begin >> 3 & 15, usize::from(begin & 7) + 1);
        line = line.saturating_add(match kind {
            LONG | NO_COLUMNS => signed(behind),
            DOWN..NO_COLUMNS => i64::from(kind - DOWN),
            _ => 0,
        });
        until += UNIT * units;
        if offset < until {
            return if kind == NO_LINE { None } else { u32::try_from(line).ok() };
        }
        let next = behind.iter().position(|byte| byte & BEGINS != 0)?;
        rest = &behind[next..];
    }
    None
}

/// Six bits a byte, the lowest first; the lowest of all is the sign.
fn signed(bytes: &[u8]) -> i64 {
    const BITS: u32 = 6;
    const MORE: u8 = 0x40;
    let mut number = 0_i64;
    for (place, byte) in (0..).zip(bytes) {
        if place * BITS >= i64::BITS - BITS {
            break;
        }
        number |= i64::from(byte & (MORE - 1)) << (place * BITS);
        if byte & MORE == 0 {
            break;
        }
    }
    if number & 1 == 0 { number >> 1 } else { -(number >> 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_each_kind_are_followed() {
        // Two units of the first line, one of none, one three lines up, one two down, one 40 down.
        let table = [0x81, 0, 0xf8, 0xe8, 0x07, 0xe0, 1, 2, 0xf0, 0x50, 0x01, 0, 0, 0];
        let lines: Vec<_> = (0..7).map(|unit| line_at(&table, 10, UNIT * unit)).collect();
        assert_eq!(lines, [Some(10), Some(10), None, Some(7), Some(9), Some(49), None]);
    }

    #[test]
    fn a_number_without_an_end_is_one_all_the_same() {
        assert_eq!(line_at(&[&[0xe8][..], &[0x7f; 100]].concat(), 1, 2), None);
        assert_eq!(line_at(&[], 1, 0), None);
    }
}
