//! The network's end of a WebSocket: what the client sends goes in, what it is sent comes out.
//!
//! Held by the session. What is shared with the other end is `websocket`'s.
//!
//! Invariant: an end that is dropped while its WebSocket is open is a client that is gone, and the application hears of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Context;

use bridgehead_asgi::Closing;
use bridgehead_websocket::{Deflation, Message};

use crate::config::WebSockets;
use crate::meters::Conversation;
use crate::websocket::{Ending, Shared, Stage, wake};

/// The network's end. Dropped while it is open, the client is gone.
#[derive(Debug)]
pub(crate) struct SessionEnd {
    shared: Arc<Shared>,
    /// Once it is accepted.
    pub(crate) conversation: Option<Conversation>,
}

/// A WebSocket that was accepted.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) end: SessionEnd,
    pub(crate) settings: WebSockets,
    /// What its messages are compressed with, if they are.
    pub(crate) deflation: Option<Deflation>,
}

/// What the application wants of the session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nothing but what it has sent.
    Nothing,
    /// To close, behind that.
    Close(Closing),
    /// It has heard that the client closes.
    Answer(Ending),
}

impl SessionEnd {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, conversation: None }
    }

    /// A message has come. Gives whether more are wanted.
    pub(crate) fn deliver(&self, message: Message) -> bool {
        self.conversation.iter().for_each(Conversation::heard);
        let mut state = self.shared.lock();
        if matches!(state.stage, Stage::Open) {
            state.inbound_size += message.payload().len();
            state.inbound.push_back(message);
        }
        let wanted = state.has_inbound_room();
        let parked = state.parked.take();
        drop(state);
        self.shared.progress(parked);
        wanted
    }

    /// Whether another message may be brought; if not, the session is woken once that changes.
    pub(crate) fn has_room(&self) -> bool {
        let mut state = self.shared.lock();
        state.paused = !state.has_inbound_room();
        !state.paused
    }

    /// The client has said that it closes: the application hears of it after what came before.
    pub(crate) fn closes(&self, ending: Ending) {
        let mut state = self.shared.lock();
        if matches!(state.stage, Stage::Open) {
            state.stage = Stage::Closing(ending);
        }
        let parked = state.parked.take();
        drop(state);
        self.shared.progress(parked);
    }

    /// It is over, though the application has not said so. The first ending counts.
    pub(crate) fn end(&self, ending: Ending) {
        let told = self.shared.lock().end(ending, None);
        self.shared.tell(told);
    }

    /// The application has had its time to hear that the client closes.
    pub(crate) fn end_closing(&self) {
        let mut state = self.shared.lock();
        if let Stage::Closing(ending) = &state.stage {
            let ending = ending.clone();
            let told = state.end(ending, None);
            drop(state);
            self.shared.tell(told);
        }
    }

    /// What is to be sent, and what else is wanted. The session is woken when there is more.
    pub(crate) fn take(&self, sent: &mut VecDeque<Message>, cx: &Context<'_>) -> Wish {
        let mut state = self.shared.lock();
        match &mut state.session {
            Some(known) => known.clone_from(cx.waker()),
            None => state.session = Some(cx.waker().clone()),
        }
        self.conversation.iter().for_each(|each| each.said(state.outbound.len()));
        sent.append(&mut state.outbound);
        state.outbound_size = 0;
        let wish = match &mut state.stage {
            Stage::Open | Stage::Closing(_) => Wish::Nothing,
            Stage::Over(ending, said) => match said.take() {
                Some(closing) => Wish::Close(closing),
                None => Wish::Answer(ending.clone()),
            },
        };
        let room = std::mem::take(&mut state.room);
        drop(state);
        wake(room);
        wish
    }
}

impl Drop for SessionEnd {
    fn drop(&mut self) {
        self.end_closing();
        self.end(Ending::lost());
        if let (Some(conversation), Stage::Over(ending, _)) = (&self.conversation, &self.shared.lock().stage)
        {
            conversation.end(ending.code);
        }
    }
}
