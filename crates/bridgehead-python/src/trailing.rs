//! The trailers of one response on the application's side: collected until the last, then written after the body.
//!
//! Whether they are due is `bridgehead-asgi`'s to say.
//!
//! Invariant: every trailer that is written in HTTP/1.1 was announced in the head, since hyper writes no other; one that
//! comes when the head has left is left out, and its response ends as it should have. HTTP/2 has no such need.

use bridgehead_asgi::{Fate, More, ResponseHead, Trailers};
use bridgehead_net::{AppHalf, Room};
use http::header::{HeaderMap, HeaderName};
use pyo3::PyResult;

use crate::raise;

/// What a response's trailers have come to.
#[derive(Default)]
pub(crate) struct Trailing {
    stage: Trailers,
    announced: Vec<HeaderName>,
    fields: HeaderMap,
}

/// What came of a message of trailers.
#[derive(Default)]
pub(crate) struct Taken {
    /// Whether anybody is there to read them; `None` where they have no place.
    pub(crate) room: Option<Room>,
    /// The first that had to be left out.
    pub(crate) left_out: Option<HeaderName>,
}

impl Trailing {
    /// Looks whether a head promises any; a promise that cannot be kept is not announced.
    pub(crate) fn of(head: &mut ResponseHead, fate: Fate) -> Option<Box<Self>> {
        if !head.promises_trailers() {
            return None;
        }
        if fate == Fate::Dropped {
            head.forgo_trailers();
        }
        let stage = Trailers::Promised(fate);
        Some(Box::new(Self { stage, announced: head.announced(), fields: HeaderMap::new() }))
    }

    pub(crate) fn body_ended(&mut self) {
        self.stage = self.stage.body_ended();
    }

    /// Whether they come next: a head that waits for them can still announce them.
    pub(crate) fn are_next(&self) -> bool {
        self.stage.are_next()
    }

    /// Whether the end of the body is not yet the response's.
    pub(crate) fn hold_the_end(&self) -> bool {
        self.stage.hold_the_end()
    }

    /// Takes a message's fields. `head` has not left yet, if there is one.
    pub(crate) fn take(
        &mut self,
        fields: HeaderMap,
        more: More,
        head: Option<&mut ResponseHead>,
        half: Option<&AppHalf>,
    ) -> PyResult<Taken> {
        let next = self.stage.trailers(more).map_err(raise::misuse)?;
        if self.stage == Trailers::Due(Fate::Dropped) {
            self.stage = next;
            return Ok(Taken::default());
        }
        let Some(half) = half else { return Ok(Taken { room: Some(Room::Gone), left_out: None }) };
        let left_out = self.keep_announced(fields, head, half);
        self.stage = next;
        Ok(Taken { room: Some(Room::Free), left_out })
    }

    /// All that is to be written, after the last message.
    pub(crate) fn collected(&mut self) -> HeaderMap {
        std::mem::take(&mut self.fields)
    }

    /// Announces what it still can; gives the first field that had to be left out for want of it.
    fn keep_announced(
        &mut self,
        mut fields: HeaderMap,
        mut head: Option<&mut ResponseHead>,
        half: &AppHalf,
    ) -> Option<HeaderName> {
        let mut late = Vec::new();
        for name in fields.keys() {
            if self.announced.contains(name) {
                continue;
            }
            let announced = match &mut head {
                Some(head) => head.announce(name.clone()),
                None => half.announce(name.clone()),
            };
            if announced {
                self.announced.push(name.clone());
            } else if half.announces_trailers() {
                late.push(name.clone());
            }
        }
        for name in &late {
            fields.remove(name);
        }
        self.fields.extend(fields);
        late.into_iter().next()
    }
}
