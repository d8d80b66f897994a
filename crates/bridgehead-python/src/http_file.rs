//! What a `send()` of a file does on the loop's thread: has it opened and read elsewhere, and passes its pieces on.
//!
//! Invariant: each piece is judged as a body of its own, and no more is read than the client has room for.

use std::io;

use bridgehead_asgi::{Excerpt, HttpMessage, Misuse, Response};
use bridgehead_net::{Reception, Room};
use bytes::Bytes;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::file_send::{Errand, FileSend, Found, Going};
use crate::http::Http;
use crate::http_state::HeldFor;
use crate::inbox::Event;
use crate::outcome::Outcome;
use crate::{raise, runtime_handle};

impl Http {
    /// Begins to send a file, if one may come.
    pub(crate) fn begin_file(
        slf: &Bound<'_, Self>,
        message: HttpMessage,
        file: &mut FileSend,
    ) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        if message == HttpMessage::PathSend && !this.bridge().offers_paths() {
            let due = "a server started with `--pathsend` was due";
            return Err(raise::misuse(Misuse::NotOffered { came: message.name(), due }));
        }
        let mut state = this.lock(py);
        match state.response.expects_body(message) {
            // Its start was refused for that.
            Err(_) if !state.response.has_started() && state.is_gone() => return Err(state.gone()),
            judged => judged.map_err(raise::misuse)?,
        }
        state.held_for = HeldFor::Body;
        if message == HttpMessage::PathSend {
            drop(state);
        } else {
            // A piece of body has come, and nobody knows when there will be something to read of it.
            state.release();
            drop(state);
            Self::keep_back(slf)?;
        }
        this.run(file.begin())
    }

    /// One attempt to go on with a file.
    pub(crate) fn file_now(slf: &Bound<'_, Self>, file: &mut FileSend) -> PyResult<Outcome> {
        let (py, this) = (slf.py(), slf.get());
        loop {
            match this.room_now(py) {
                Room::Free => {}
                // Nothing is written of what follows: whether anybody is there makes no difference.
                _ if file.is_skipped() => {}
                Room::Full => return this.wait_for_room(py),
                Room::Gone => return Err(this.lock(py).gone()),
            }
            let piece = match file.take() {
                None => {
                    if file.waits_for_a_writer() && this.client_sends_no_more(py) {
                        return Err(raise::disconnected());
                    }
                    if let Some(errand) = file.ask() {
                        this.run(errand)?;
                    }
                    return this.wait(py);
                }
                Some(Ok(Found::Nothing)) => {
                    this.run_until_readable(file)?;
                    continue;
                }
                Some(Ok(Found::Readable)) => continue,
                Some(Err(error)) => {
                    if file.path.is_some() {
                        this.lock(py).held_for = HeldFor::SecondThoughts;
                    }
                    return Err(os_error(&error, file));
                }
                Some(Ok(Found::Piece(piece))) => piece,
                Some(Ok(Found::Skipped)) => Bytes::new(),
                Some(Ok(Found::Opened(size))) => {
                    file.measured(size);
                    let mut state = this.lock(py);
                    if file.path.is_some() {
                        state.opened(file.left())?;
                    }
                    let unread = !matches!(state.response, Response::Streaming { .. });
                    drop(state);
                    match file.left() {
                        _ if unread => {
                            this.skip(file)?;
                            continue;
                        }
                        Some(0) => Bytes::new(),
                        _ => continue,
                    }
                }
            };
            if Self::pass_piece(slf, file, piece)? == Going::Over {
                file.settle(py);
                return Ok(Outcome::Done(None));
            }
            if this.lock(py).response == Response::Discarding {
                this.skip(file)?;
            }
        }
    }

    /// Passes on what was read of a file. One that is longer than its answer is over where that was cut: what follows
    /// would be swallowed, and nobody has left.
    fn pass_piece(slf: &Bound<'_, Self>, file: &mut FileSend, piece: Bytes) -> PyResult<Going> {
        let was_cut = file.is_skipped() && slf.get().lock(slf.py()).response == Response::Discarding;
        let (more, going) = file.passed(piece.len());
        if Self::pass_body(slf, piece, more)? == Room::Gone && !was_cut {
            return Err(raise::disconnected());
        }
        Ok(going)
    }

    /// What is not written need not be read, but it counts as sent: who sends a file in parts comes to its end.
    fn skip(&self, file: &mut FileSend) -> PyResult<()> {
        file.skip().map_or(Ok(()), |errand| self.run(errand))
    }

    /// Whether the client has left, as far as that can be seen while nothing is sent to it. Whoever waits in this request
    /// looks again when it does.
    fn client_sends_no_more(&self, py: Python<'_>) -> bool {
        let state = self.lock(py);
        let Some(half) = &state.half else { return true };
        let left = half.watch(self.token) == Reception::Gone;
        if left {
            // Nothing may ever be written to it, which alone would show that it reads.
            half.abandon();
        }
        left
    }

    /// Has the network wait for something to read; whoever waits in this request looks again then.
    fn run_until_readable(&self, file: &mut FileSend) -> PyResult<()> {
        let (inbox, token, waiting) = (self.bridge().inbox(), self.token, file.until_readable());
        runtime_handle::spawn(self.bridge().executor(), async move {
            waiting.await;
            inbox.push(Event::Progress(token));
        })
    }

    /// Has an errand run where it may block; whoever waits in this request looks again afterwards.
    fn run(&self, errand: Errand) -> PyResult<()> {
        let (inbox, token) = (self.bridge().inbox(), self.token);
        runtime_handle::spawn_blocking(self.bridge().executor(), move || {
            errand.run();
            inbox.push(Event::Progress(token));
        })
    }
}

/// The system's error as Python would have raised it, with the file's name.
fn os_error(error: &io::Error, file: &FileSend) -> PyErr {
    let text = error.to_string();
    // Rust adds the number, which Python adds too.
    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
    match (error.raw_os_error(), &file.path) {
        // Looking at a path has no other reason for this one (`file_send.rs`).
        (Some(number), Some(path)) if error.kind() == io::ErrorKind::InvalidInput => {
            let text = "not a regular file, as `http.response.pathsend` sends them: \
                        open it, and send it by `http.response.zerocopysend`";
            PyOSError::new_err((number, text, path.clone().into_os_string()))
        }
        (None, Some(path)) if error.kind() == io::ErrorKind::InvalidInput => {
            PyValueError::new_err(format!("{path:?} has a NUL byte in it: no file has such a name"))
        }
        // As it came: a `str`.
        (Some(number), Some(path)) => PyOSError::new_err((number, text, path.clone().into_os_string())),
        // Neither is the file's own failure: it is of a kind that gives no bytes, or open for writing alone.
        (Some(libc::EINVAL | libc::EBADF), None) => {
            raise::misuse(Misuse::UnreadableDescriptor { reason: Excerpt::of(text) })
        }
        (Some(number), None) => PyOSError::new_err((number, text)),
        (None, _) => PyOSError::new_err(text),
    }
}
