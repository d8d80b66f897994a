//! The two halves of a request, the client's and the application's, and all backpressure between them.
//!
//! The network holds a [`ClientHalf`] (answers come out) and an `Uploader` (bodies go in), the application an
//! [`AppHalf`]. Not the rules of ASGI: `bridgehead-asgi` has judged a message before it comes here.
//!
//! | who | does | the other side |
//! |---|---|---|
//! | application | `finish`, or a `write` that ends or fills | the connection's task is woken if it waits for that |
//! | application | `start`, another `write` | nothing yet: `push_out` wakes it for all of them at once |
//! | application | finds `Room::Full` | waits for `room()`: woken below the low-water mark, or when the client is gone |
//! | application | `receive` → `Nothing` | its token gets `App::progress` when there is something |
//! | network | feeds at most [`HIGH_WATER`] bytes ahead | the uploader is woken when the application has taken some |
//!
//! Invariant: whoever drops its half ends the other's wait: a client half dropped early is a client that has gone, an
//! application half dropped early is an answer that breaks off.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bridgehead_asgi::{Acceptance, More, ResponseParts};
use bytes::Bytes;
use http::HeaderMap;

use crate::app::{App, Token};
use crate::app_half::{AppHalf, Outbox, Reception, Room};
use crate::client_half::{ClientHalf, Witness};
use crate::overseer::Oversight;
use crate::piece::Piece;
use crate::refusal::Refusal;
use crate::unsent::Unsent;
use crate::upload::{Begin, Uploader};

/// Bytes in one direction beyond which nothing waits, unless it is one piece; Kestrel's and asyncio's figure too.
pub(crate) const HIGH_WATER: usize = 64 * 1024;

/// A sender that had to wait goes on below this, so that it is not woken for every chunk.
pub(crate) const LOW_WATER: usize = HIGH_WATER / 4;

/// A chunk of an answer this large leaves alone: copying it would cost more than a write.
pub(crate) const JOINED: usize = HIGH_WATER / 4;

/// Chunks waiting in one direction above which the sender has to wait, however small they are.
pub const CHUNKS: usize = 256;

/// Bytes that are read and thrown away of a body that nobody reads, so that its connection can be kept. Above it, it is
/// closed.
pub(crate) const DISCARDED: usize = 256 * 1024;

/// A head that is ready to leave, and the way its body comes.
#[derive(Debug)]
pub(crate) enum Answer {
    Whole(ResponseParts, Bytes),
    /// There is no body, though the application goes on as if there were.
    HeadOnly(ResponseParts),
    Stream(ResponseParts),
    /// A WebSocket takes the connection over.
    Accepted(Acceptance),
    /// The application ended without an answer.
    Failed,
    /// The application was told that the client has gone, and nothing is to be said.
    Abandoned,
    /// The request did not reach the application, or that ended without an answer since the client was refused in the
    /// middle of its body.
    Refused(Refusal),
}

pub(crate) struct Shared {
    app: Arc<dyn App>,
    // The loop's thread and the network's both come here, each for a few instructions; a channel per direction would
    // be two locks of the same kind and could not be looked at.
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) client: Client,
    pub(crate) sending: Sending,
    pub(crate) upload: Upload,
    pub(crate) download: Download,
    pub(crate) parked: Option<Token>,
    pub(crate) oversight: Oversight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    Present,
    /// Has every byte that was declared; the application has not said yet that it is through.
    Served,
    /// The same, and has left with it.
    Sated,
    Gone,
}

/// What is known of the client's own direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    Open,
    /// It sends no more. Whether it still reads shows only when it is written to.
    Ended,
    /// The same, and the application was told that the client has left.
    EndedAsTold,
}

/// How far one direction has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Open,
    Complete,
    Broken,
    /// An upload that is not taken any further.
    Refused(Refusal),
}

/// What becomes of the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    KeepAlive,
    Close,
}

#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) chunks: VecDeque<Bytes>,
    pub(crate) size: usize,
    /// What came so far, taken or not.
    pub(crate) received: u64,
    pub(crate) flow: Flow,
    /// How much of it is allowed.
    pub(crate) limit: Option<u64>,
    /// How much hyper has not given yet, where that was declared.
    pub(crate) left: Option<u64>,
    /// Whether the application has asked for the body yet.
    pub(crate) wanted: bool,
    pub(crate) begin: Begin,
    /// Whether another request may follow, so that the rest is worth reading.
    pub(crate) keeps: bool,
    pub(crate) uploader: Option<Waker>,
}

#[derive(Debug)]
pub(crate) struct Download {
    pub(crate) answer: Option<Answer>,
    /// Links that go before it; `None` where they are not offered.
    pub(crate) hints: Option<Vec<HeaderMap>>,
    /// Whether the answer was taken, so that its head has left.
    pub(crate) begun: bool,
    pub(crate) unsent: Unsent,
    /// Bytes of the last piece, which the next is taken to be like.
    pub(crate) last: usize,
    /// Bytes that whoever writes has taken, and that have not left as far as is known.
    pub(crate) laden: usize,
    pub(crate) flow: Flow,
    /// What the client cannot be told any more, since its answer has begun.
    pub(crate) late: Option<Refusal>,
    /// What follows the last chunk.
    pub(crate) trailers: Option<HeaderMap>,
    pub(crate) after: After,
    pub(crate) client: Option<Waker>,
    pub(crate) room: Vec<Waker>,
}

/// A new exchange: for the connection, for whoever reads the body, for the application, and one that only looks.
///
/// `body` says whether one is to come (`Open`) or the request ends with its head (`Complete`).
pub(crate) fn open(app: Arc<dyn App>, body: Flow) -> (ClientHalf, Uploader, AppHalf, Witness) {
    let shared = Arc::new(Shared {
        app,
        state: Mutex::new(State {
            client: Client::Present,
            sending: Sending::Open,
            upload: Upload {
                chunks: VecDeque::new(),
                size: 0,
                received: 0,
                flow: body,
                limit: None,
                left: None,
                wanted: false,
                begin: Begin::AtOnce,
                keeps: true,
                uploader: None,
            },
            download: Download {
                answer: None,
                hints: None,
                begun: false,
                unsent: Unsent::default(),
                last: 0,
                laden: 0,
                flow: Flow::Open,
                late: None,
                trailers: None,
                after: After::KeepAlive,
                client: None,
                room: Vec::new(),
            },
            parked: None,
            oversight: Oversight::default(),
        }),
    });
    let uploader = Uploader(Arc::clone(&shared));
    (ClientHalf::of(Arc::clone(&shared)), uploader, AppHalf(Arc::clone(&shared)), Witness(shared))
}

impl Shared {
    /// A thread that panicked while it held the state has left it whole: every change is one assignment or push.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody reads any more, and nothing more comes.
    pub(crate) fn client_left(&self) {
        self.leave(self.lock());
    }

    /// The same of one who had not been served: whoever has been leaves with what comes behind its answer.
    pub(crate) fn client_left_unserved(&self) {
        let state = self.lock();
        if state.client != Client::Served {
            self.leave(state);
        }
    }

    fn leave(&self, mut state: MutexGuard<'_, State>) {
        state.client = if state.client == Client::Served { Client::Sated } else { Client::Gone };
        let cancelled = state.cancel_with_client();
        state.download.unsent.clear();
        state.upload.chunks.clear();
        let (parked, room, uploader) =
            (state.unpark(), std::mem::take(&mut state.download.room), state.upload.uploader.take());
        drop(state);
        self.tell(parked);
        self.cancel(cancelled);
        room.into_iter().chain(uploader).for_each(Waker::wake);
    }

    /// The application's thread has a task of the network go on, outside the lock.
    pub(crate) fn wake_if(&self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Says to the application, outside the lock, that what it parked for may have come.
    pub(crate) fn tell(&self, parked: Option<Token>) {
        if let Some(token) = parked {
            self.app.progress(token);
        }
    }

    /// Has a handler cancelled, outside the lock.
    pub(crate) fn cancel(&self, token: Option<Token>) {
        if let Some(token) = token {
            self.app.cancel(token);
        }
    }
}

impl Outbox for Shared {
    /// What was started and written so far.
    fn push_out(&self) {
        let mut state = self.lock();
        let ready = state.download.answer.is_some() || !state.download.unsent.is_empty();
        let waker = if ready { state.download.client.take() } else { None };
        drop(state);
        self.wake_if(waker);
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Exchange").field("state", &self.state).finish_non_exhaustive()
    }
}

impl State {
    pub(crate) fn unpark(&mut self) -> Option<Token> {
        self.parked.take()
    }

    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.client, Client::Sated | Client::Gone)
    }

    /// Whether whoever listens is to hear that the client has left, as far as can be seen.
    pub(crate) fn seems_gone(&self) -> bool {
        self.is_gone() || self.sending != Sending::Open
    }

    /// Whether an answer can be completed: nothing is missed of one that the client has in full.
    pub(crate) fn can_end(&self) -> bool {
        self.client != Client::Gone
    }

    fn take_piece(&mut self) -> Piece {
        self.upload.size = 0;
        Piece::of(std::mem::take(&mut self.upload.chunks))
    }
}

impl Upload {
    /// Whether the connection will be closed over what nobody reads. A client that waits for a word sends nothing; what a
    /// chunked body still holds cannot be known.
    fn is_too_much_to_skip(&self) -> bool {
        match self.begin {
            _ if self.flow != Flow::Open => false,
            Begin::WhenWanted if !self.wanted => true,
            _ => self.left.is_some_and(|left| left > DISCARDED as u64),
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.size < HIGH_WATER && self.chunks.len() < CHUNKS
    }
}

impl State {
    pub(crate) fn receive(&mut self, token: Token) -> (Reception, Option<Waker>) {
        if matches!(self.upload.flow, Flow::Broken | Flow::Refused(_)) || self.is_gone() {
            return (Reception::Gone, None);
        }
        self.upload.wanted = true;
        let ended = self.upload.flow == Flow::Complete;
        if self.upload.chunks.is_empty() && !ended {
            self.parked = Some(token);
            return (Reception::Nothing, self.upload.uploader.take());
        }
        let more = if ended { More::Ends } else { More::Follows };
        (Reception::Chunk(self.take_piece(), more), self.upload.uploader.take())
    }

    /// Whether the connection will be closed since the application, which is through, has left too much unread.
    pub(crate) fn leaves_unread(&self) -> bool {
        self.download.flow != Flow::Open && self.upload.is_too_much_to_skip()
    }

    /// For one more piece like the last, beside what waits and what the client has not taken. Where nothing does, there
    /// is room for any.
    pub(crate) fn room(&self) -> Room {
        let Download { last, laden, ref unsent, .. } = self.download;
        let size = unsent.bytes();
        // Whoever has to wait keeps what it has just sent, beside the copy that is here.
        let fits = size + laden == 0 || size + laden + 2 * last <= HIGH_WATER;
        if fits && unsent.pieces() < CHUNKS { Room::Free } else { Room::Full }
    }

    /// Whether who had to wait may go on.
    pub(crate) fn has_room_again(&self) -> bool {
        let download = &self.download;
        download.laden + download.unsent.bytes() <= LOW_WATER && download.unsent.pieces() <= CHUNKS / 4
    }

    /// The client is told that its body is refused, unless an answer has begun: then the application hears of it alone.
    /// Gives whom to wake.
    pub(crate) fn refuse(&mut self, refusal: Refusal) -> Vec<Waker> {
        if self.download.begun || self.download.answer.is_some() || self.download.flow != Flow::Open {
            // What follows in the stream of bytes is not known to be a request.
            (self.download.late, self.download.after) = (Some(refusal), After::Close);
            return Vec::new();
        }
        self.download.answer = Some(Answer::Refused(refusal));
        self.abandon()
    }

    /// The application knows that the client has left: nothing more is said to it. Gives whom to wake.
    pub(crate) fn abandon(&mut self) -> Vec<Waker> {
        self.client = Client::Gone;
        let mut wakers = std::mem::take(&mut self.download.room);
        if self.download.flow != Flow::Open {
            return wakers;
        }
        if self.download.answer.is_none() {
            self.download.answer = Some(Answer::Abandoned);
        }
        self.download.flow = Flow::Broken;
        wakers.extend(self.download.client.take());
        wakers
    }
}
