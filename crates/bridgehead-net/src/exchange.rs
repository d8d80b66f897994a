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
use std::collections::vec_deque::Drain;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bridgehead_asgi::{More, ResponseParts};
use bytes::{Bytes, BytesMut};

use crate::app::{App, Token};
use crate::upload::Uploader;

/// Bytes waiting in one direction above which the sender has to wait; Kestrel's and asyncio's figure too.
pub(crate) const HIGH_WATER: usize = 64 * 1024;

/// A sender that had to wait goes on below this, so that it is not woken for every chunk.
const LOW_WATER: usize = HIGH_WATER / 4;

/// A chunk of an answer this large leaves alone: copying it would cost more than a write.
const JOINED: usize = HIGH_WATER / 4;

/// Chunks waiting for the client above which the application has to wait, however small they are.
pub const CHUNKS: usize = 256;

/// The application's half. Dropping it unanswered is a failure of the application.
#[derive(Debug)]
pub struct AppHalf(Arc<Shared>);

/// The network's half of the answer. Dropping it before the answer's end means that the client has gone.
#[derive(Debug)]
pub(crate) struct ClientHalf(Arc<Shared>);

/// Sees a client leave, beside the half that serves it.
#[derive(Clone, Debug)]
pub(crate) struct Witness(Arc<Shared>);

/// What `receive` found.
#[derive(Debug, PartialEq, Eq)]
pub enum Reception {
    /// A piece of the body, or its empty end.
    Chunk(Bytes, More),
    /// The client has gone, or broke off its upload.
    Gone,
    /// Nothing yet: the token is told when there is.
    Nothing,
}

/// Whether the application may send more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Yes.
    Free,
    /// What was given is taken; wait for [`AppHalf::room`] before more.
    Full,
    /// Nobody reads any more.
    Gone,
}

/// A head that is ready to leave, and the way its body comes.
#[derive(Debug)]
pub(crate) enum Answer {
    Whole(ResponseParts, Bytes),
    Stream(ResponseParts),
    /// The application ended without an answer.
    Failed,
    /// The application was told that the client has gone, and nothing is to be said.
    Abandoned,
}

/// An answer's end that must not look like one.
#[derive(Debug, thiserror::Error)]
#[error("the application broke off its answer")]
pub(crate) struct BrokenOff;

pub(crate) struct Shared {
    app: Arc<dyn App>,
    // The loop's thread and the network's both come here, each for a few instructions; a channel per direction would
    // be two locks of the same kind and could not be looked at.
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    client: Client,
    pub(crate) upload: Upload,
    download: Download,
    parked: Option<Token>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Present,
    /// Sends no more, may read on.
    HalfClosed,
    /// Has every byte that was declared; the application has not said yet that it is through.
    Served,
    Gone,
}

/// How far one direction has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Open,
    Complete,
    Broken,
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
    pub(crate) flow: Flow,
    /// Whether the application has asked for the body yet.
    pub(crate) wanted: bool,
    pub(crate) uploader: Option<Waker>,
}

#[derive(Debug)]
struct Download {
    answer: Option<Answer>,
    chunks: VecDeque<Bytes>,
    size: usize,
    flow: Flow,
    after: After,
    client: Option<Waker>,
    room: Option<Waker>,
}

/// A new exchange: for the connection, for whoever reads the body, for the application, and one that only looks.
///
/// `body` says whether one is to come (`Open`) or the request ends with its head (`Complete`).
pub(crate) fn open(app: Arc<dyn App>, body: Flow) -> (ClientHalf, Uploader, AppHalf, Witness) {
    let shared = Arc::new(Shared {
        app,
        state: Mutex::new(State {
            client: Client::Present,
            upload: Upload { chunks: VecDeque::new(), size: 0, flow: body, wanted: false, uploader: None },
            download: Download {
                answer: None,
                chunks: VecDeque::new(),
                size: 0,
                flow: Flow::Open,
                after: After::KeepAlive,
                client: None,
                room: None,
            },
            parked: None,
        }),
    });
    let uploader = Uploader(Arc::clone(&shared));
    (ClientHalf(Arc::clone(&shared)), uploader, AppHalf(Arc::clone(&shared)), Witness(shared))
}

impl Shared {
    /// A thread that panicked while it held the state has left it whole: every change is one assignment or push.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody reads any more, and nothing more comes.
    fn client_left(&self) {
        let mut state = self.lock();
        state.client = Client::Gone;
        state.download.chunks.clear();
        state.download.size = 0;
        state.upload.chunks.clear();
        let (parked, room, uploader) =
            (state.unpark(), state.download.room.take(), state.upload.uploader.take());
        drop(state);
        self.tell(parked);
        room.into_iter().chain(uploader).for_each(Waker::wake);
    }

    /// Says to the application, outside the lock, that what it parked for may have come.
    pub(crate) fn tell(&self, parked: Option<Token>) {
        if let Some(token) = parked {
            self.app.progress(token);
        }
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
        self.client == Client::Gone
    }

    fn take_chunk(&mut self) -> Bytes {
        self.upload.size = 0;
        match self.upload.chunks.len() {
            0 | 1 => self.upload.chunks.pop_front().unwrap_or_default(),
            _ => join(self.upload.chunks.drain(..)),
        }
    }
}

/// Many small chunks as one piece: whoever takes them pays once.
fn join(chunks: Drain<'_, Bytes>) -> Bytes {
    let mut joined = BytesMut::with_capacity(HIGH_WATER);
    chunks.for_each(|chunk| joined.extend_from_slice(&chunk));
    joined.freeze()
}

impl AppHalf {
    /// The next piece of the body. When there is nothing, `token` hears of it once something is there.
    #[must_use]
    pub fn receive(&self, token: Token) -> Reception {
        let mut state = self.0.lock();
        let (found, uploader) = state.receive(token);
        drop(state);
        if let Some(uploader) = uploader {
            uploader.wake();
        }
        found
    }

    /// Waits for the client to leave, once the body was read: `Gone` or `Nothing`.
    #[must_use]
    pub fn watch(&self, token: Token) -> Reception {
        let mut state = self.0.lock();
        match state.client {
            Client::Present | Client::Served => {
                state.parked = Some(token);
                Reception::Nothing
            }
            Client::HalfClosed | Client::Gone => {
                let waker = state.abandon();
                drop(state);
                if let Some(waker) = waker {
                    waker.wake();
                }
                Reception::Gone
            }
        }
    }

    /// Sends a head alone: its body comes by [`Self::write`].
    #[must_use]
    pub fn start(&self, parts: ResponseParts) -> Room {
        let mut state = self.0.lock();
        if state.is_gone() {
            return Room::Gone;
        }
        state.download.answer = Some(Answer::Stream(parts));
        Room::Free
    }

    /// Sends a complete answer.
    #[must_use]
    pub fn finish(&self, parts: ResponseParts, body: Bytes) -> Room {
        let mut state = self.0.lock();
        if state.is_gone() {
            return Room::Gone;
        }
        state.download.answer = Some(Answer::Whole(parts, body));
        state.download.flow = Flow::Complete;
        let waker = state.download.client.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Room::Free
    }

    /// Has what was started and written so far leave.
    pub fn push_out(&self) {
        let mut state = self.0.lock();
        let ready = state.download.answer.is_some() || !state.download.chunks.is_empty();
        let waker = if ready { state.download.client.take() } else { None };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Sends a piece of a started answer; it is taken whatever is returned, unless the client has gone. One that
    /// leaves room for more waits for [`Self::push_out`].
    #[must_use]
    pub fn write(&self, chunk: Bytes, more: More) -> Room {
        let mut state = self.0.lock();
        if state.is_gone() {
            return Room::Gone;
        }
        if !chunk.is_empty() && state.client != Client::Served {
            state.download.size += chunk.len();
            state.download.chunks.push_back(chunk);
        }
        if more == More::Ends {
            state.download.flow = Flow::Complete;
        }
        let room = state.room();
        let leaves = more == More::Ends || room == Room::Full;
        let waker = if leaves { state.download.client.take() } else { None };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        room
    }

    /// Whether there is room.
    #[must_use]
    pub fn room_now(&self) -> Room {
        let state = self.0.lock();
        if state.is_gone() { Room::Gone } else { state.room() }
    }

    /// Waits until there is room again, or nobody reads.
    pub fn room(&self) -> impl Future<Output = ()> + Send + 'static {
        let shared = Arc::clone(&self.0);
        poll_fn(move |cx| {
            let mut state = shared.lock();
            if state.is_gone()
                || state.download.size <= LOW_WATER && state.download.chunks.len() <= CHUNKS / 4
            {
                return Poll::Ready(());
            }
            state.download.room = Some(cx.waker().clone());
            Poll::Pending
        })
    }

    /// Has the connection closed after this answer: its application does not keep to what it declares.
    pub fn close_after(&self) {
        self.0.lock().download.after = After::Close;
    }

    /// Whether nobody reads any more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.0.lock().is_gone()
    }
}

impl State {
    fn receive(&mut self, token: Token) -> (Reception, Option<Waker>) {
        if self.upload.flow == Flow::Broken || self.is_gone() {
            return (Reception::Gone, None);
        }
        self.upload.wanted = true;
        let ended = self.upload.flow == Flow::Complete;
        if self.upload.chunks.is_empty() && !ended {
            self.parked = Some(token);
            return (Reception::Nothing, self.upload.uploader.take());
        }
        let more = if ended { More::Ends } else { More::Follows };
        (Reception::Chunk(self.take_chunk(), more), self.upload.uploader.take())
    }

    fn room(&self) -> Room {
        if self.download.size < HIGH_WATER && self.download.chunks.len() < CHUNKS {
            Room::Free
        } else {
            Room::Full
        }
    }

    /// The application knows that the client has left: nothing more is said to it.
    fn abandon(&mut self) -> Option<Waker> {
        self.client = Client::Gone;
        if self.download.flow != Flow::Open {
            return None;
        }
        if self.download.answer.is_none() {
            self.download.answer = Some(Answer::Abandoned);
        }
        self.download.flow = Flow::Broken;
        self.download.client.take()
    }
}

impl Drop for AppHalf {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if state.download.flow != Flow::Open {
            return;
        }
        state.download.flow = Flow::Broken;
        if state.download.answer.is_none() {
            state.download.answer = Some(Answer::Failed);
        }
        let waker = state.download.client.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl ClientHalf {
    /// The head, once the application has sent enough of it to know how its body comes. Gives it once.
    pub(crate) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        let mut state = self.0.lock();
        match state.download.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                state.download.client = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Whatever waits of a streamed body, in one piece.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        let mut state = self.0.lock();
        if state.download.chunks.is_empty() {
            return match state.download.flow {
                Flow::Complete => Poll::Ready(None),
                Flow::Broken => Poll::Ready(Some(Err(BrokenOff))),
                Flow::Open => {
                    state.download.client = Some(cx.waker().clone());
                    Poll::Pending
                }
            };
        }
        let chunk = state.take_ready();
        let room = state.download.room.take();
        drop(state);
        if let Some(room) = room {
            room.wake();
        }
        Poll::Ready(Some(Ok(chunk)))
    }

    /// Whether nothing of the body is left to be written.
    pub(crate) fn is_complete(&self) -> bool {
        let state = self.0.lock();
        state.download.flow == Flow::Complete && state.download.chunks.is_empty()
    }

    /// What becomes of the connection; settled when the answer is complete.
    pub(crate) fn after(&self) -> After {
        self.0.lock().download.after
    }

    /// The client has all that was declared, though the application may have more to say.
    pub(crate) fn served(self) -> Encore {
        self.0.lock().client = Client::Served;
        Encore(Arc::clone(&self.0))
    }
}

/// Waits for an application to be through with an answer whose bytes are all written. Dropping it means that the
/// connection is gone.
#[derive(Debug)]
pub(crate) struct Encore(Arc<Shared>);

impl Encore {
    /// Until then the connection serves no other request: what comes may be a reason to close it.
    pub(crate) fn poll_through(&self, cx: &mut Context<'_>) -> Poll<After> {
        let mut state = self.0.lock();
        match state.download.flow {
            Flow::Complete => Poll::Ready(state.download.after),
            Flow::Broken => Poll::Ready(After::Close),
            Flow::Open => {
                state.download.client = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Encore {
    fn drop(&mut self) {
        self.0.client_left();
    }
}

impl State {
    /// Small chunks leave together; a large one is not copied.
    fn take_ready(&mut self) -> Bytes {
        let small = self.download.chunks.iter().take_while(|chunk| chunk.len() < JOINED).count();
        let chunk = if small > 1 {
            join(self.download.chunks.drain(..small))
        } else {
            self.download.chunks.pop_front().unwrap_or_default()
        };
        self.download.size -= chunk.len();
        chunk
    }
}

impl Drop for ClientHalf {
    fn drop(&mut self) {
        if self.0.lock().client != Client::Served {
            self.0.client_left();
        }
    }
}

impl Witness {
    /// The client sends no more. Whoever waits to hear from it is told; its answer still goes out.
    pub(crate) fn half_closed(&self) {
        let mut state = self.0.lock();
        if state.client == Client::Present {
            state.client = Client::HalfClosed;
        }
        let parked = state.unpark();
        drop(state);
        self.0.tell(parked);
    }

    /// Whether the whole request has been read, so that an end of the stream is the client's leaving.
    pub(crate) fn is_read(&self) -> bool {
        self.0.lock().upload.flow == Flow::Complete
    }
}
