//! Writes the body of an answer as its client makes room for it.
//!
//! Not the head, which is `stream`'s, nor the windows, which are `h2`'s.
//!
//! Invariant: no more is given to `h2` than the client's windows and our buffer have room for, and a client that makes
//! none for too long loses its stream.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use bridgehead_executor::{Sleep, poll_deadline};
use bytes::Bytes;
use h2::{Reason, SendStream};
use http_body::Frame;

use crate::client_half::{Before, ClientHalf, Encore};
use crate::file_body::FileBody;
use crate::pace::Pace;
use crate::stream::{Left, Stream};
use crate::turn::Turn;

/// The largest frame that is written: what a client takes that has not said otherwise.
const FRAME: usize = 16 * 1024;

/// A part of a piece that a window cut off earns its client less if it is smaller, or costs something: windows that are opened
/// byte by byte would be paid for by the bytes that they let out.
const FAIR: usize = 1024;

/// An answer whose head has left.
pub(crate) struct Writing<'a> {
    stream: &'a Stream,
    send: SendStream<Bytes>,
    turn: Turn,
    pace: Pace,
}

impl<'a> Writing<'a> {
    pub(crate) fn new(stream: &'a Stream, send: SendStream<Bytes>, turn: Turn) -> Self {
        Self { pace: Pace::new(stream.line.config.bounds.download), stream, send, turn }
    }

    /// A body that is all there.
    pub(crate) async fn write_whole(mut self, body: Bytes) -> Result<(), Left> {
        self.write(body, true).await
    }

    /// A body that comes in pieces. Where its length is declared, its end needs no word from the application; that may
    /// have more to do, and is given to be waited for.
    pub(crate) async fn stream_out(
        mut self,
        mut client: ClientHalf,
        mut due: Option<u64>,
    ) -> Result<Option<Encore>, Left> {
        loop {
            let frame = poll_fn(|cx| {
                if self.send.poll_reset(cx).is_ready() {
                    return Poll::Ready(Err(Left::Midway));
                }
                client.poll_frame(cx, Before::HasLeft).map(Ok)
            });
            match frame.await? {
                Some(Ok(frame)) => {
                    let Some(piece) = self.end_with_trailers(frame)? else { return Ok(None) };
                    due = due.map(|due| due.saturating_sub(piece.len() as u64));
                    let served = due == Some(0);
                    if served {
                        client.has_all();
                    }
                    let ends = served || client.is_complete();
                    self.write(piece, ends).await?;
                    if ends {
                        return Ok(served.then(|| client.served()));
                    }
                }
                Some(Err(_)) => {
                    // `h2` throws away what it has not written of a stream that is reset: it is given a chance first.
                    connections_turn().await;
                    self.send.send_reset(Reason::INTERNAL_ERROR);
                    return Ok(None);
                }
                None => {
                    self.send.send_data(Bytes::new(), true).map_err(|_| Left::Midway)?;
                    return Ok(None);
                }
            }
        }
    }

    /// A file, read as there is room for it.
    pub(crate) async fn write_file(mut self, mut file: FileBody) -> Result<(), Left> {
        while file.left() > 0 {
            let piece = poll_fn(|cx| {
                if self.send.poll_reset(cx).is_ready() {
                    return Poll::Ready(Err(Left::Midway));
                }
                file.poll_piece(cx).map(Ok)
            });
            let Ok(piece) = piece.await? else {
                self.send.send_reset(Reason::INTERNAL_ERROR);
                return Ok(());
            };
            self.write(piece, file.left() == 0).await?;
        }
        Ok(())
    }

    /// Gives the data of a frame; one of trailers ends the answer.
    fn end_with_trailers(&mut self, frame: Frame<Bytes>) -> Result<Option<Bytes>, Left> {
        match frame.into_data() {
            Ok(data) => Ok(Some(data)),
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                self.send.send_trailers(trailers).map_err(|_| Left::Midway)?;
                Ok(None)
            }
        }
    }

    async fn write(&mut self, mut piece: Bytes, ends: bool) -> Result<(), Left> {
        while !piece.is_empty() {
            self.send.reserve_capacity(piece.len());
            let granted = self.capacity().await?.min(piece.len());
            let part = piece.split_to(granted);
            self.turn.wrote(granted);
            self.pace.progress(granted);
            if piece.is_empty() || granted >= FAIR {
                self.stream.running.sent(1 + granted / FRAME);
            } else {
                self.stream.running.sent_a_part(granted);
            }
            self.send.send_data(part, ends && piece.is_empty()).map_err(|_| Left::Midway)?;
        }
        Ok(())
    }

    /// Waits for room.
    async fn capacity(&mut self) -> Result<usize, Left> {
        let (send, pace) = (&mut self.send, &mut self.pace);
        let executor = &self.stream.worker.executor;
        let mut timer: Option<Pin<Box<Sleep>>> = None;
        let granted = poll_fn(|cx| {
            loop {
                if send.capacity() > 0 {
                    return Poll::Ready(Ok(send.capacity()));
                }
                match send.poll_capacity(cx) {
                    Poll::Ready(Some(Ok(_))) => {}
                    Poll::Ready(_) => return Poll::Ready(Err(Left::Midway)),
                    Poll::Pending => break,
                }
            }
            pace.wait();
            let Some(deadline) = pace.deadline() else { return Poll::Pending };
            let timer = timer.get_or_insert_with(|| Box::pin(executor.sleep_until(deadline)));
            poll_deadline(timer.as_mut(), Some(deadline), cx).map(|()| {
                send.send_reset(Reason::CANCEL);
                Err(Left::Unread)
            })
        })
        .await;
        pace.rest();
        granted
    }
}

/// Until the connection's task, which has been woken, has had a turn.
async fn connections_turn() {
    let mut had = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut had, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
