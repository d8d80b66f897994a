//! The two ends of a WebSocket within the server, the client's and the application's, and all backpressure between them.
//!
//! The network holds a [`SessionEnd`] (what the client sends goes in), the application a [`WebSocketHalf`]. Frames,
//! deadlines and the socket are `session`'s; the rules of ASGI `bridgehead-asgi`'s.
//!
//! | who | does | the other side |
//! |---|---|---|
//! | application | `send` | nothing yet: `push_out` wakes the session for all of them at once |
//! | application | finds `Room::Full` | waits for `room()`: woken below the low-water mark, or when it is over |
//! | application | `receive` → `Nothing` | its token gets `App::progress` when there is something |
//! | network | has brought as many messages as may wait | stops reading until half of them are taken |
//! | client | says that it closes | is answered once the application has heard of it, after all that it sent before |
//!
//! Invariant: there is one ending, the first that was said, and the application hears of it once all that came before it
//! was taken; an end that is dropped is one.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bridgehead_asgi::Closing;
use bridgehead_websocket::Message;

use crate::app::{App, Token};
use crate::app_half::{Outbox, Room};
use crate::exchange::{CHUNKS, HIGH_WATER, LOW_WATER};
use crate::session_end::SessionEnd;
use crate::websocket_half::WebSocketHalf;

/// Bytes of messages that may wait for the application, however many messages may.
const AHEAD: usize = 1024 * 1024;

/// Nobody said why.
const NO_STATUS: u16 = 1005;

/// The connection is gone, and nothing was said.
const LOST: u16 = 1006;

/// Why a WebSocket is over, as its application is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// RFC 6455's code; 1005 for none, 1006 for a connection that is gone.
    pub code: u16,
    /// In words, if there are any.
    pub reason: String,
}

impl Ending {
    pub(crate) fn new(code: u16, reason: &str) -> Self {
        Self { code, reason: reason.to_owned() }
    }

    /// The connection is gone.
    #[must_use]
    pub fn lost() -> Self {
        Self::new(LOST, "")
    }

    /// What a close frame says.
    pub(crate) fn said(said: Option<(u16, String)>) -> Self {
        let (code, reason) = said.unwrap_or((NO_STATUS, String::new()));
        Self { code, reason }
    }

    /// As a frame has it.
    pub(crate) fn to_say(&self) -> Option<(u16, &str)> {
        (self.code != NO_STATUS).then_some((self.code, self.reason.as_str()))
    }
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) inbound: VecDeque<Message>,
    pub(crate) inbound_size: usize,
    pub(crate) outbound: VecDeque<Message>,
    pub(crate) outbound_size: usize,
    /// How many messages may wait for the application.
    most: usize,
    pub(crate) stage: Stage,
    /// Whether the session waits for room.
    pub(crate) paused: bool,
    pub(crate) session: Option<Waker>,
    pub(crate) room: Vec<Waker>,
    pub(crate) parked: Option<Token>,
}

#[derive(Debug)]
pub(crate) enum Stage {
    Open,
    /// The client has said that it closes; the application has not heard of it.
    Closing(Ending),
    /// Nobody says anything any more. What the application said last is still to be said.
    Over(Ending, Option<Closing>),
}

pub(crate) struct Shared {
    app: Arc<dyn App>,
    // The loop's thread and the network's both come here, each for a few instructions.
    state: Mutex<State>,
}

/// Both ends of a WebSocket that is about to open; `most` messages may wait for the application.
pub(crate) fn open(app: Arc<dyn App>, most: usize) -> (SessionEnd, WebSocketHalf) {
    let state = State {
        inbound: VecDeque::new(),
        inbound_size: 0,
        outbound: VecDeque::new(),
        outbound_size: 0,
        most,
        stage: Stage::Open,
        paused: false,
        session: None,
        room: Vec::new(),
        parked: None,
    };
    let shared = Arc::new(Shared { app, state: Mutex::new(state) });
    (SessionEnd::new(Arc::clone(&shared)), WebSocketHalf(shared))
}

/// Who is to hear of an end, outside the lock.
pub(crate) struct Told {
    pub(crate) parked: Option<Token>,
    wakers: Vec<Waker>,
}

impl Shared {
    /// A thread that panicked while it held the state has left it whole: every change is one assignment or push.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn progress(&self, parked: Option<Token>) {
        if let Some(token) = parked {
            self.app.progress(token);
        }
    }

    pub(crate) fn tell(&self, told: Told) {
        self.progress(told.parked);
        wake(told.wakers);
    }
}

impl Outbox for Shared {
    fn push_out(&self) {
        let mut state = self.lock();
        let woken = if state.outbound.is_empty() { None } else { state.session.take() };
        drop(state);
        wake(woken);
    }
}

impl State {
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(..))
    }

    /// Gives whom to tell.
    pub(crate) fn end(&mut self, ending: Ending, said: Option<Closing>) -> Told {
        if self.is_over() {
            return Told { parked: None, wakers: Vec::new() };
        }
        self.stage = Stage::Over(ending, said);
        let mut wakers = std::mem::take(&mut self.room);
        wakers.extend(self.session.take());
        Told { parked: self.parked.take(), wakers }
    }

    pub(crate) fn forget_inbound(&mut self) {
        self.inbound.clear();
        self.inbound_size = 0;
    }

    pub(crate) fn has_inbound_room(&self) -> bool {
        self.inbound.len() < self.most && self.inbound_size < AHEAD
    }

    /// Not for every message that is taken.
    pub(crate) fn may_resume(&self) -> bool {
        self.inbound.len() <= self.most / 2 && self.inbound_size <= AHEAD / 2
    }

    pub(crate) fn room(&self) -> Room {
        if self.outbound_size < HIGH_WATER && self.outbound.len() < CHUNKS { Room::Free } else { Room::Full }
    }

    pub(crate) fn has_much_room(&self) -> bool {
        self.outbound_size <= LOW_WATER && self.outbound.len() <= CHUNKS / 4
    }
}

pub(crate) fn wake(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}

impl Debug for Shared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("WebSocket").field("state", &self.state).finish_non_exhaustive()
    }
}
