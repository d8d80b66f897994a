//! Where one WebSocket stands on the application's side, beside the exchange that its handshake is answered by.
//!
//! Rules are `bridgehead-asgi`'s and waiting is the half's; here the two meet. No Python runs here.
//!
//! Invariant: `websocket.connect` is given once and first, `websocket.disconnect` once and last.

use bridgehead_asgi::{Acceptance, Closing, Hearing, NotTaken, WebSocket, WebSocketMessage};
use bridgehead_net::{AppHalf, Ending, Heard, Reception, Room, Token, WebSocketHalf};
use bridgehead_websocket::Message;
use pyo3::PyResult;

use crate::raise;

/// What is known of a WebSocket.
pub(crate) struct WebSocketState {
    /// How far it is.
    pub(crate) stage: WebSocket,
    pub(crate) hearing: Hearing,
    /// The way to the client once it is accepted. Gone once the application has returned.
    half: Option<WebSocketHalf>,
}

/// What `receive()` comes to.
pub(crate) enum Receipt {
    Connect,
    Message(Message),
    Disconnect(Ending),
    /// Nothing more is ever given.
    Nothing,
    Wait,
}

impl WebSocketState {
    pub(crate) fn new(half: WebSocketHalf) -> Self {
        Self { stage: WebSocket::default(), hearing: Hearing::default(), half: Some(half) }
    }

    /// What comes next. `handshake` is what it is accepted by.
    pub(crate) fn receive(&mut self, handshake: Option<&AppHalf>, token: Token) -> Receipt {
        match self.hearing {
            Hearing::Fresh => {
                self.hearing = Hearing::Open;
                return Receipt::Connect;
            }
            Hearing::Over => return Receipt::Nothing,
            Hearing::Open => {}
        }
        let ending = match (self.stage, &self.half) {
            (WebSocket::Connecting | WebSocket::Denying | WebSocket::Denied, _) => {
                match handshake.map(|half| half.watch(token)) {
                    Some(Reception::Nothing) => return Receipt::Wait,
                    _ => {
                        // A half of a WebSocket is none.
                        handshake.inspect(|half| half.abandon());
                        Ending::lost()
                    }
                }
            }
            (WebSocket::Open | WebSocket::Closed, Some(half)) => match half.receive(token) {
                Heard::Message(message) => return Receipt::Message(message),
                Heard::Nothing => return Receipt::Wait,
                Heard::Over(ending) => ending,
            },
            (WebSocket::Open | WebSocket::Closed, None) => Ending::lost(),
        };
        self.hearing = Hearing::Over;
        Receipt::Disconnect(ending)
    }

    /// Whether this message may come; the stage moves on with what is done for it.
    pub(crate) fn judge(&self, message: WebSocketMessage) -> PyResult<WebSocket> {
        self.stage.send(message).map_err(|refused| match refused {
            NotTaken::Misuse(misuse) => raise::misuse(misuse),
            NotTaken::Over => raise::closed(),
        })
    }

    pub(crate) fn accept(&mut self, acceptance: Acceptance, handshake: Option<&AppHalf>) -> PyResult<()> {
        let next = self.judge(WebSocketMessage::Accept)?;
        if handshake.is_none_or(|half| half.accept(acceptance) == Room::Gone) {
            // Whatever follows would be as late.
            self.stage = WebSocket::Closed;
            return Err(raise::disconnected());
        }
        self.stage = next;
        Ok(())
    }

    pub(crate) fn send(&mut self, message: Message) -> PyResult<Room> {
        self.stage = self.judge(WebSocketMessage::Send)?;
        Ok(self.half.as_ref().map_or(Room::Gone, |half| half.send(message)))
    }

    /// Closes. That the client has done so in the meantime is nobody's mistake.
    pub(crate) fn close(&mut self, closing: Closing) {
        if let Some(half) = &self.half {
            half.close(closing);
        }
    }

    /// The application has said all that it says.
    pub(crate) fn let_go(&mut self) {
        self.half = None;
    }

    pub(crate) fn half(&self) -> Option<&WebSocketHalf> {
        self.half.as_ref()
    }

    pub(crate) fn room_now(&self) -> Room {
        self.half.as_ref().map_or(Room::Gone, WebSocketHalf::room_now)
    }

    /// Whether frames can be exchanged, or could be.
    pub(crate) fn was_accepted(&self) -> bool {
        matches!(self.stage, WebSocket::Open | WebSocket::Closed)
    }

    /// Whether nobody hears anything any more.
    pub(crate) fn is_over(&self) -> bool {
        self.half.as_ref().is_none_or(WebSocketHalf::is_over)
    }
}
