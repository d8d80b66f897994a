//! A file's bytes, piece by piece.
//!
//! Not when the next one is wanted: that is a client's pace, which whoever calls knows.
//!
//! Invariant: as many bytes come as were promised, or an error; a file that is cut off meanwhile never looks complete, and
//! one that grows gives no more.

use std::fs::File;
use std::io::{self, ErrorKind};

use bytes::Bytes;
use rustix::io::Errno;

/// What is read at once: as much as an answer may have waiting.
pub(crate) const PIECE: usize = 64 * 1024;

/// What is left of a file.
#[derive(Debug)]
pub struct Reading {
    file: File,
    at: u64,
    left: u64,
}

impl Reading {
    pub(crate) fn new(file: File, at: u64, left: u64) -> Self {
        Self { file, at, left }
    }

    /// How many bytes are still to come.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The next piece; may block.
    ///
    /// # Errors
    /// When the file cannot be read, or has become shorter than it was.
    pub fn read(&mut self) -> io::Result<Bytes> {
        let mut piece = Vec::with_capacity(self.length());
        loop {
            match rustix::io::pread(&self.file, rustix::buffer::spare_capacity(&mut piece), self.at) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => return Ok(self.passed(piece)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next piece, or some of it, if it is in memory already; never blocks.
    #[cfg(target_os = "linux")]
    pub fn read_at_once(&mut self) -> Option<Bytes> {
        let mut piece = vec![0; self.length()];
        let mut into = [io::IoSliceMut::new(&mut piece)];
        let flags = rustix::io::ReadWriteFlags::NOWAIT;
        // Whatever is wrong, reading it in earnest says it.
        let read =
            rustix::io::preadv2(&self.file, &mut into, self.at, flags).ok().filter(|read| *read > 0)?;
        piece.truncate(read);
        Some(self.passed(piece))
    }

    /// Nothing says here what is in memory.
    #[cfg(not(target_os = "linux"))]
    pub fn read_at_once(&mut self) -> Option<Bytes> {
        None
    }

    fn length(&self) -> usize {
        usize::try_from(self.left).map_or(PIECE, |left| left.min(PIECE))
    }

    fn passed(&mut self, piece: Vec<u8>) -> Bytes {
        self.at += piece.len() as u64;
        self.left -= piece.len() as u64;
        Bytes::from(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beneath::tests::Folder;

    fn open(folder: &Folder, content: &[u8]) -> File {
        let path = folder.public().join("file");
        std::fs::write(&path, content).expect("a file");
        File::open(path).expect("it is there")
    }

    #[test]
    fn a_part_comes_in_pieces_and_no_more_than_was_promised() {
        let folder = Folder::new();
        let content: Vec<u8> = (0..200_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        let mut reading = Reading::new(open(&folder, &content), 10, 150_000);
        let mut came = Vec::new();
        while reading.left() > 0 {
            came.extend(reading.read().expect("it is there"));
        }
        assert_eq!(came, content[10..150_010]);
    }

    #[test]
    fn a_file_that_is_cut_off_is_an_error_and_not_an_end() {
        let folder = Folder::new();
        let mut reading = Reading::new(open(&folder, b"0123456789"), 0, 20);
        assert_eq!(reading.read().expect("the beginning"), "0123456789");
        assert!(reading.read_at_once().is_none());
        assert_eq!(reading.read().expect_err("there is no more").kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_is_in_memory_can_be_had_at_once() {
        let folder = Folder::new();
        let mut reading = Reading::new(open(&folder, b"0123456789"), 2, 5);
        // Not every file system says so.
        if let Some(piece) = reading.read_at_once() {
            assert_eq!(piece, "23456");
            assert_eq!(reading.left(), 0);
        }
    }
}
