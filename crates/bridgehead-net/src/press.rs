//! An answer's body, encoded as it comes.
//!
//! Which answers are is `compression`'s. What waits of a body is the exchange's; this stands between it and whoever writes.
//!
//! Invariant: what the application has sent leaves when it pauses, whatever the encoder would rather keep; no more than a
//! slice is encoded before others have their turn; and an end is written only behind an end.

use std::task::{Context, Poll};

use bridgehead_coding::{Encoder, SLICE, Spoiled};
use bridgehead_websocket::Loan;
use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;

use crate::client_half::{Before, BrokenOff};
use crate::exchange::Shared;

/// Bytes that are given on before there are more.
const PIECE: usize = 16 * 1024;

/// Between an exchange and whoever writes.
#[derive(Debug)]
pub(crate) struct Press {
    encoder: Encoder,
    /// What was taken and is not encoded.
    rest: Bytes,
    output: Vec<u8>,
    /// Bytes since others had their turn.
    spent: usize,
    state: State,
    trailers: Option<HeaderMap>,
    _loan: Loan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// All that was taken has been given.
    Flushed,
    /// The encoder has some of it.
    Filled,
    Finished,
}

type Polled = Poll<Option<Result<Frame<Bytes>, BrokenOff>>>;

impl Press {
    /// With what may be kept for it.
    pub(crate) fn new(encoder: Encoder, loan: Loan) -> Self {
        Self {
            encoder,
            rest: Bytes::new(),
            output: Vec::new(),
            spent: 0,
            state: State::Flushed,
            trailers: None,
            _loan: loan,
        }
    }

    /// Whether the end has been given.
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Finished && self.output.is_empty() && self.trailers.is_none()
    }

    pub(crate) fn poll_frame(&mut self, shared: &Shared, cx: &mut Context<'_>) -> Polled {
        self.poll_step(shared, cx).map_err(|Spoiled| BrokenOff)?
    }

    fn poll_step(&mut self, shared: &Shared, cx: &mut Context<'_>) -> Result<Polled, Spoiled> {
        loop {
            if self.state == State::Finished {
                return Ok(Poll::Ready(self.last()));
            }
            if self.spent >= SLICE {
                self.spent = 0;
                cx.waker().wake_by_ref();
                return Ok(Poll::Pending);
            }
            if !self.rest.is_empty() {
                self.encode_slice()?;
                if self.output.len() >= PIECE {
                    return Ok(Poll::Ready(Some(Ok(self.given()))));
                }
                continue;
            }
            // What it keeps of them is its own.
            match shared.poll_plain(cx, Before::HasLeft) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(frame) => {
                        self.trailers = frame.into_trailers().ok();
                        self.finish()?;
                    }
                },
                Poll::Ready(Some(Err(broken))) => return Ok(Poll::Ready(Some(Err(broken)))),
                Poll::Ready(None) => self.finish()?,
                Poll::Pending => {
                    if self.state == State::Filled {
                        self.encoder.flush(&mut self.output)?;
                        self.state = State::Flushed;
                    }
                    self.spent = 0;
                    let nothing = self.output.is_empty();
                    return Ok(if nothing { Poll::Pending } else { Poll::Ready(Some(Ok(self.given()))) });
                }
            }
        }
    }

    fn encode_slice(&mut self) -> Result<(), Spoiled> {
        let slice = self.rest.split_to(self.rest.len().min(SLICE));
        self.encoder.encode(&slice, &mut self.output)?;
        self.spent += slice.len();
        self.state = State::Filled;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Spoiled> {
        self.encoder.finish(&mut self.output)?;
        self.state = State::Finished;
        Ok(())
    }

    fn given(&mut self) -> Frame<Bytes> {
        Frame::data(std::mem::take(&mut self.output).into())
    }

    /// What is left behind the end.
    fn last(&mut self) -> Option<Result<Frame<Bytes>, BrokenOff>> {
        if self.output.is_empty() {
            return self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers)));
        }
        Some(Ok(self.given()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{App, Arrival, Token};
    use crate::app_half::AppHalf;
    use crate::client_half::ClientHalf;
    use crate::exchange::{self, Flow};
    use bridgehead_asgi::More;
    use bridgehead_coding::Coding;
    use bridgehead_websocket::Memory;
    use std::sync::Arc;
    use std::task::Waker;

    struct Nobody;

    impl App for Nobody {
        fn dispatch(&self, arrival: Box<Arrival>) -> Result<(), Box<Arrival>> {
            Err(arrival)
        }

        fn progress(&self, _: Token) {}
    }

    fn pressed() -> (ClientHalf, AppHalf) {
        let (mut client, _, half, _) = exchange::open(Arc::new(Nobody), Flow::Complete);
        let loan = Memory::new(1).lend(1).expect("there is enough");
        client.encode(Press::new(Encoder::new(Coding::Gzip, None), loan));
        (client, half)
    }

    fn poll(client: &mut ClientHalf) -> Polled {
        client.poll_frame(&mut Context::from_waker(Waker::noop()), Before::HasLeft)
    }

    fn data(polled: Polled) -> usize {
        match polled {
            Poll::Ready(Some(Ok(frame))) => frame.data_ref().map_or(0, Bytes::len),
            other => panic!("data was due, not {other:?}"),
        }
    }

    #[test]
    fn what_was_sent_leaves_at_a_pause_and_an_end_is_the_last() {
        let (mut client, half) = pressed();
        for _ in 0..3 {
            assert!(poll(&mut client).is_pending());
            let _ = half.write(Bytes::from_static(b"data: 1\n\n"), More::Follows);
            assert!(data(poll(&mut client)) > 0);
        }
        assert!(poll(&mut client).is_pending() && !client.is_complete());
        let _ = half.write(Bytes::new(), More::Ends);
        assert!(!client.is_complete(), "the encoder's own end is still to come");
        assert!(data(poll(&mut client)) > 0);
        assert!(client.is_complete());
        assert!(matches!(poll(&mut client), Poll::Ready(None)));
    }

    #[test]
    fn a_large_body_is_encoded_slice_by_slice_with_pauses_for_others() {
        let (mut client, _half) = pressed();
        client.refill(Bytes::from(vec![b'x'; 10 * SLICE]));
        let pauses = (0..10).filter(|_| poll(&mut client).is_pending()).count();
        assert_eq!(pauses, 10, "hardly anything comes out of it, and each slice is a turn");
        assert!(data(poll(&mut client)) < SLICE);
    }

    #[test]
    fn what_breaks_off_has_no_end() {
        let (mut client, half) = pressed();
        let _ = half.write(Bytes::from_static(b"some of it"), More::Follows);
        drop(half);
        assert!(matches!(poll(&mut client), Poll::Ready(Some(Err(BrokenOff)))));
        assert!(!client.is_complete());
    }
}
