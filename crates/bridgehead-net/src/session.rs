//! TLS between a socket and who reads and writes it.
//!
//! rustls turns bytes into bytes; here they are carried. Not how a session begins (`handshake`).
//!
//! Invariant: of what is to leave, no more than one write's worth waits here; of what came, no more than one read's.
//! An end without the word for it is an end as TCP's is: HTTP's framing tells whether something was cut off.

use std::io::{self, BufRead, IoSlice, Read, Write};
use std::task::{Context, Poll, ready};

use rustls::ServerConnection;
use tokio::io::ReadBuf;

use crate::record_ends::RecordEnds;
use crate::socket::{Sight, Socket};

/// Bytes that are encrypted before the socket has to take some.
const WRITE_BEHIND: usize = 64 * 1024;

/// What a read takes of a handshake: as much as rustls would take.
const FLIGHT: usize = 4096;

/// Records without a byte for anybody, before others have their turn.
const IDLE_RECORDS: u32 = 32;

/// One connection's encryption.
#[derive(Debug)]
pub(crate) struct Session {
    connection: ServerConnection,
    /// Bytes of records that came behind the handshake, and were read with it.
    behind_handshake: usize,
    end: End,
}

/// Who has said that nothing more comes from us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Unsaid,
    Said,
}

/// The socket's own bytes, as rustls reads and writes them.
pub(crate) struct Wire<'a, 'b> {
    pub(crate) socket: &'a Socket,
    pub(crate) cx: &'a mut Context<'b>,
}

impl Read for Wire<'_, '_> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(space);
        match self.socket.poll_read_wire(self.cx, &mut buffer) {
            Poll::Ready(read) => read.map(|()| buffer.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Write for Wire<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.socket.poll_write_wire(self.cx, slices) {
            Poll::Ready(written) => written,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A read or write that would wait has had its waker kept.
pub(crate) fn polled<T>(done: io::Result<T>) -> Poll<io::Result<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        done => Poll::Ready(done),
    }
}

impl Session {
    pub(crate) fn new(mut connection: ServerConnection) -> Self {
        connection.set_buffer_limit(Some(WRITE_BEHIND));
        Self { connection, behind_handshake: 0, end: End::Unsaid }
    }

    pub(crate) fn connection(&self) -> &ServerConnection {
        &self.connection
    }

    /// How many bytes were read before the handshake was known to be over, and do not belong to it.
    pub(crate) fn behind_handshake(&self) -> usize {
        self.behind_handshake
    }

    /// Goes on until both sides have what they need.
    pub(crate) fn poll_handshake(
        &mut self,
        wire: &mut Wire<'_, '_>,
        ends: &mut RecordEnds,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_flush(wire))?;
            if !self.connection.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            if ready!(self.poll_flight(wire, ends))? == Records::Ended {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    pub(crate) fn poll_read(
        &mut self,
        wire: &mut Wire<'_, '_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !ready!(self.poll_plaintext(wire))? {
            return Poll::Ready(Ok(()));
        }
        let mut reader = self.connection.reader();
        while buffer.remaining() > 0 {
            let Ok(chunk) = reader.fill_buf() else { break };
            let count = chunk.len().min(buffer.remaining());
            if count == 0 {
                break;
            }
            buffer.put_slice(&chunk[..count]);
            reader.consume(count);
        }
        Poll::Ready(Ok(()))
    }

    /// Looks whether the client has left. What it sent instead waits here.
    pub(crate) fn poll_sight(&mut self, wire: &mut Wire<'_, '_>) -> Poll<Sight> {
        let waited = self.has_plaintext();
        match ready!(self.poll_plaintext(wire)) {
            Ok(true) => {
                if !waited {
                    // The socket will not tell again of what was taken out of it.
                    wire.cx.waker().wake_by_ref();
                }
                Poll::Ready(Sight::Bytes)
            }
            Ok(false) => Poll::Ready(Sight::Closed),
            Err(_) => Poll::Ready(Sight::Broken),
        }
    }

    pub(crate) fn poll_write(
        &mut self,
        wire: &mut Wire<'_, '_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_flush(wire))?;
        let count = self.connection.writer().write_vectored(slices)?;
        if let Poll::Ready(Err(error)) = self.poll_flush(wire) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(count))
    }

    /// Until the socket has all that was written.
    pub(crate) fn poll_flush(&mut self, wire: &mut Wire<'_, '_>) -> Poll<io::Result<()>> {
        while self.connection.wants_write() {
            ready!(polled(self.connection.write_tls(wire)))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Until the client can know that nothing more comes.
    pub(crate) fn poll_end(&mut self, wire: &mut Wire<'_, '_>) -> Poll<io::Result<()>> {
        if self.end == End::Unsaid {
            self.end = End::Said;
            self.connection.send_close_notify();
        }
        self.poll_flush(wire)
    }

    /// What was written is not the whole, and the client must not take it for that.
    pub(crate) fn will_not_end(&mut self) {
        self.end = End::Said;
    }

    /// Whether there is something to read; not when nothing more will come.
    fn poll_plaintext(&mut self, wire: &mut Wire<'_, '_>) -> Poll<io::Result<bool>> {
        for _ in 0..IDLE_RECORDS {
            match self.connection.reader().fill_buf() {
                Ok(chunk) => return Poll::Ready(Ok(!chunk.is_empty())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Poll::Ready(Ok(false)),
                Err(error) => return Poll::Ready(Err(error)),
            }
            // An end is told of by the reader.
            ready!(self.poll_records(wire))?;
        }
        wire.cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn has_plaintext(&mut self) -> bool {
        self.connection.reader().fill_buf().is_ok_and(|chunk| !chunk.is_empty())
    }

    /// Takes in what has come, in one read. Record by record: a client may ask in the bytes that end its handshake.
    fn poll_flight(&mut self, wire: &mut Wire<'_, '_>, ends: &mut RecordEnds) -> Poll<io::Result<Records>> {
        let mut space = [0; FLIGHT];
        let count = ready!(polled(wire.read(&mut space)))?;
        let mut left = &space[..count];
        while !left.is_empty() {
            let mut record;
            (record, left) = ends.split(left);
            if !self.connection.is_handshaking() {
                self.behind_handshake += record.len();
            }
            while !record.is_empty() {
                self.connection.read_tls(&mut record)?;
                self.understand(wire)?;
            }
        }
        Poll::Ready(Ok(if count == 0 { Records::Ended } else { Records::Some }))
    }

    /// Takes in what has come, in one read.
    fn poll_records(&mut self, wire: &mut Wire<'_, '_>) -> Poll<io::Result<Records>> {
        let count = ready!(polled(self.connection.read_tls(wire)))?;
        self.understand(wire)?;
        Poll::Ready(Ok(if count == 0 { Records::Ended } else { Records::Some }))
    }

    fn understand(&mut self, wire: &mut Wire<'_, '_>) -> io::Result<()> {
        let understood = self.connection.process_new_packets();
        if self.connection.wants_write() {
            // What waits is written before the next bytes are, and what went wrong is told then. An alert is sent if it
            // can be.
            let _ = self.poll_flush(wire);
        }
        understood.map(drop).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// What a read came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Records {
    Some,
    Ended,
}
