//! Memory as bytes at addresses.
//!
//! Not what they mean (`objects`, `layout`).
//!
//! Invariant: an address that is none is refused.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What a word is here.
pub(crate) const WORD: usize = size_of::<usize>();

/// Gives what is at an address.
pub trait Memory {
    /// Fills all of it, or gives nothing.
    fn fill(&self, address: usize, bytes: &mut [u8]) -> Option<()>;
}

/// That of this process, as the system shows it.
#[derive(Debug)]
pub struct OwnMemory(File);

impl OwnMemory {
    /// # Errors
    /// Where the system does not show it.
    pub fn open() -> io::Result<Self> {
        Ok(Self(File::open("/proc/self/mem")?))
    }
}

impl Memory for OwnMemory {
    fn fill(&self, address: usize, bytes: &mut [u8]) -> Option<()> {
        self.0.read_exact_at(bytes, u64::try_from(address).ok()?).ok()
    }
}

/// So many bytes.
pub(crate) fn bytes(memory: &impl Memory, address: usize, count: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; count];
    memory.fill(address, &mut bytes)?;
    Some(bytes)
}

/// The word that is there.
pub(crate) fn word(memory: &impl Memory, address: usize) -> Option<usize> {
    let mut bytes = [0; WORD];
    memory.fill(address, &mut bytes)?;
    Some(usize::from_ne_bytes(bytes))
}

/// The words of these bytes.
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = usize> {
    bytes.chunks_exact(WORD).map(|word| usize::from_ne_bytes(word.try_into().expect("a chunk is a word")))
}

/// One of them, by its offset.
pub(crate) fn word_of(bytes: &[u8], offset: usize) -> Option<usize> {
    words(bytes.get(offset..)?).next()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read_and_what_is_not_is_refused() {
        let memory = OwnMemory::open().expect("the system shows it");
        let value = 0x1234_5678_usize;
        assert_eq!(word(&memory, std::ptr::from_ref(&value).addr()), Some(value));
        for nowhere in [0, 8, usize::MAX - 7, usize::MAX / 2] {
            assert_eq!(word(&memory, nowhere), None);
        }
    }
}
