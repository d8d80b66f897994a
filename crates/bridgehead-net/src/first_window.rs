//! Whether a client's settings give its streams a first window larger than a window may be.
//!
//! `h2` refuses that as any other wrong setting; RFC 9113 section 6.5.2 has a word for it. Pure, and sees the payload as
//! it comes, however it is cut.
//!
//! Invariant: the settings that are seen are those of whole entries.

/// An identifier and a value.
const ENTRY: usize = 6;

const INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];

/// Follows the entries of one frame of settings.
#[derive(Debug, Default)]
pub(crate) struct FirstWindow {
    entry: [u8; ENTRY],
    /// How much of an entry has come.
    came: usize,
}

/// It is larger than 2^31 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl FirstWindow {
    /// More of the payload.
    pub(crate) fn see(&mut self, payload: &[u8]) -> Result<(), TooLarge> {
        payload.iter().try_for_each(|byte| {
            self.entry[self.came] = *byte;
            self.came = (self.came + 1) % ENTRY;
            if self.came == 0 { self.judge() } else { Ok(()) }
        })
    }

    fn judge(&self) -> Result<(), TooLarge> {
        let [kind @ .., highest, _, _, _] = self.entry;
        if kind == INITIAL_WINDOW_SIZE && highest >= 0x80 { Err(TooLarge) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_judged_however_its_entry_is_cut() {
        let fine = [0, 3, 0xff, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff];
        let large = [fine, [0, 4, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0]].concat();
        for size in 1..=large.len() {
            let mut window = FirstWindow::default();
            assert_eq!(fine.chunks(size).try_for_each(|part| window.see(part)), Ok(()));
            let mut window = FirstWindow::default();
            assert_eq!(large.chunks(size).try_for_each(|part| window.see(part)), Err(TooLarge), "{size}");
        }
    }
}
