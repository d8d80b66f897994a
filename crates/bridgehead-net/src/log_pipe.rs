//! Lines to a descriptor, without ever making a request wait for its reader.
//!
//! Lines gather in a bounded buffer; a thread of its own writes them, many at a time under load. A reader that stalls
//! costs lines, which are counted, and nothing else.
//!
//! Invariant: [`LogPipe::write`] never blocks on the descriptor, and a line is written whole or dropped whole.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::access_layout::Layout;
use crate::forked::Claim;

/// What waits for a stalled reader at most: some ten thousand lines.
const LIMIT: usize = 1024 * 1024;

/// Under load lines are gathered for this long, so that a wake and a write serve many.
const GATHER: Duration = Duration::from_millis(10);

/// Writes lines from a thread of its own.
#[derive(Debug)]
pub struct LogPipe {
    // Between whoever logs and the writing thread; held while one line is formatted, never while it is written.
    pending: Mutex<Pending>,
    changed: Condvar,
}

#[derive(Debug)]
struct Pending {
    lines: Vec<u8>,
    /// Lines that were added and are not written yet.
    unwritten: u64,
    dropped: u64,
    /// How many of the dropped ones the reader was told of.
    told: u64,
    writer: Writer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    /// Waits to be woken.
    Asleep,
    /// Looks again by itself.
    Busy,
    /// Writes what is left and ends.
    Closing,
    /// Has ended: nobody reads, or all is said.
    Gone,
}

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It waits for its reader.
    Kept,
    /// There was no room for it.
    Dropped,
}

impl LogPipe {
    /// Starts the writing thread. What it says of lost lines looks as `layout` has it.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(descriptor: OwnedFd, layout: Layout) -> std::io::Result<Arc<Self>> {
        let pipe = Arc::new(Self::with(Writer::Busy));
        let writer = Arc::clone(&pipe);
        // Before the thread, which may take a while to begin: a fork until then finds it claimed.
        let claim = Claim::on(&descriptor);
        thread::Builder::new().name("bridgehead-log".to_owned()).spawn(move || {
            let _owned = claim;
            writer.run(File::from(descriptor), &layout);
        })?;
        Ok(pipe)
    }

    fn with(writer: Writer) -> Self {
        let pending = Pending { lines: Vec::new(), unwritten: 0, dropped: 0, told: 0, writer };
        Self { pending: Mutex::new(pending), changed: Condvar::new() }
    }

    /// Adds one line with its end, or counts it as dropped when the reader is too far behind.
    pub fn write(&self, format: impl FnOnce(&mut Vec<u8>)) -> Written {
        let mut pending = self.lock();
        if pending.lines.len() >= LIMIT || pending.writer == Writer::Gone {
            pending.dropped += 1;
            return Written::Dropped;
        }
        format(&mut pending.lines);
        pending.unwritten += 1;
        if pending.writer == Writer::Asleep {
            pending.writer = Writer::Busy;
            drop(pending);
            self.changed.notify_all();
        }
        Written::Kept
    }

    /// Lines that were not written because their reader stalled or left.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Writes what is left, for at most `patience`. Gives how many lines its reader neither got nor was told of.
    pub fn close(&self, patience: Duration) -> u64 {
        let deadline = Instant::now() + patience;
        let mut pending = self.lock();
        if pending.writer != Writer::Gone {
            pending.writer = Writer::Closing;
        }
        self.changed.notify_all();
        while pending.writer != Writer::Gone {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { break };
            pending = self.changed.wait_timeout(pending, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        pending.unwritten + pending.dropped - pending.told
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, mut file: File, layout: &Layout) {
        let mut lines = Vec::new();
        while self.take(&mut lines) {
            if self.write_out(&mut file, &lines).and_then(|()| self.tell(&mut file, layout)).is_err() {
                break;
            }
            lines.clear();
            self.gather();
        }
        self.lock().writer = Writer::Gone;
        self.changed.notify_all();
    }

    /// Says how many lines are missing that the reader does not know of.
    fn tell(&self, file: &mut File, layout: &Layout) -> io::Result<()> {
        let (dropped, told) = {
            let pending = self.lock();
            (pending.dropped, pending.told)
        };
        if dropped == told {
            return Ok(());
        }
        let mut notice = Vec::new();
        layout.write_notice(
            &format!("{} lines were dropped: their reader was too slow", dropped - told),
            &mut notice,
        );
        notice.push(b'\n');
        write_all(file, &notice, |_| {})?;
        self.lock().told = dropped;
        Ok(())
    }

    fn write_out(&self, file: &mut File, lines: &[u8]) -> io::Result<()> {
        write_all(file, lines, |written| {
            let ended = written.iter().filter(|byte| **byte == b'\n').count();
            self.lock().unwritten -= ended as u64;
        })
    }

    /// Waits for lines and takes them; false when there are none and there will be none.
    fn take(&self, lines: &mut Vec<u8>) -> bool {
        let mut pending = self.lock();
        while pending.lines.is_empty() {
            match pending.writer {
                Writer::Closing | Writer::Gone => return false,
                Writer::Busy => pending.writer = Writer::Asleep,
                Writer::Asleep => {}
            }
            pending = self.changed.wait(pending).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut pending.lines, lines);
        true
    }

    fn gather(&self) {
        let pending = self.lock();
        if pending.writer == Writer::Busy {
            // Whatever ends the wait, the lines are looked at next.
            let _ = self.changed.wait_timeout(pending, GATHER);
        }
    }
}

/// Writes all of it, also to a descriptor that somebody has made non-blocking: that is then waited for as any other.
fn write_all(file: &mut File, mut bytes: &[u8], mut written: impl FnMut(&[u8])) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                let (done, left) = bytes.split_at(count);
                written(done);
                bytes = left;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(GATHER),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_layout::Colours;
    use std::io::{BufRead, BufReader};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    fn pipe() -> (Arc<LogPipe>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        (LogPipe::start(OwnedFd::from(ours), Layout::usual(Colours::Off)).expect("a thread"), theirs)
    }

    #[test]
    fn lines_arrive_in_order() {
        let (pipe, reader) = pipe();
        for number in 0..1000 {
            pipe.write(|line| writeln!(line, "{number}").expect("a Vec takes all"));
        }
        pipe.close(Duration::from_secs(10));
        drop(pipe);
        let lines: Vec<_> = BufReader::new(reader).lines().map_while(Result::ok).take(1000).collect();
        assert_eq!(lines, (0..1000).map(|number| number.to_string()).collect::<Vec<_>>());
    }

    #[test]
    fn a_stalled_reader_costs_lines_and_is_told_how_many() {
        let (pipe, reader) = pipe();
        let line = "x".repeat(1023);
        for _ in 0..4096 {
            pipe.write(|out| writeln!(out, "{line}").expect("a Vec takes all"));
        }
        let dropped = pipe.dropped();
        assert!(dropped > 0);
        let reader = thread::spawn(move || {
            // To the end: who leaves at the warning takes lines with it that are being written.
            let lines: Vec<_> = BufReader::new(reader).lines().map_while(Result::ok).collect();
            lines.into_iter().find(|line| line.starts_with("WARNING"))
        });
        assert_eq!(pipe.close(Duration::from_secs(10)), 0);
        drop(pipe);
        let warning = reader.join().expect("the reader ends").expect("a warning was written");
        assert_eq!(warning, format!("WARNING:  {dropped} lines were dropped: their reader was too slow"));
    }

    #[test]
    fn a_descriptor_that_does_not_block_loses_no_line() {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        ours.set_nonblocking(true).expect("an option of every socket");
        let pipe = LogPipe::start(OwnedFd::from(ours), Layout::usual(Colours::Off)).expect("a thread");
        let line = "x".repeat(1023);
        for _ in 0..1000 {
            pipe.write(|out| writeln!(out, "{line}").expect("a Vec takes all"));
        }
        let reader = thread::spawn(move || BufReader::new(theirs).lines().map_while(Result::ok).count());
        pipe.close(Duration::from_secs(10));
        drop(pipe);
        assert_eq!(reader.join().expect("the reader ends"), 1000);
    }

    #[test]
    fn a_reader_that_never_reads_does_not_hold_the_end_and_what_it_has_not_got_is_counted() {
        let (pipe, reader) = pipe();
        let line = "x".repeat(1023);
        for _ in 0..2048 {
            pipe.write(|out| writeln!(out, "{line}").expect("a Vec takes all"));
        }
        let unread = pipe.close(Duration::from_millis(50));
        reader.set_nonblocking(true).expect("an option of every socket");
        let got = BufReader::new(reader).lines().map_while(Result::ok).count() as u64;
        // The system may take more, once there is room.
        assert!(unread > 0 && got + unread >= 2048, "{got} + {unread}");
    }

    #[test]
    fn a_reader_that_left_is_not_written_to() {
        let (pipe, reader) = pipe();
        drop(reader);
        pipe.write(|out| out.extend_from_slice(b"one\n"));
        assert_eq!(pipe.close(Duration::from_secs(10)), 1);
        pipe.write(|out| out.extend_from_slice(b"two\n"));
        assert_eq!(pipe.dropped(), 1);
    }
}
