//! The trailers of one response on the application's side: collected until the last, then written after the body.
//!
//! Whether they are due is `bridgehead-asgi`'s to say.
//!
//! Invariant: every trailer that is written was announced in the head.

use bridgehead_asgi::{Fate, Misuse, More, ResponseHead, Trailers};
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

    /// Whether the end of the body is not yet the response's.
    pub(crate) fn hold_the_end(&self) -> bool {
        self.stage.hold_the_end()
    }

    /// Takes a message's fields. Says, after the last, what came of writing them, if they are written at all.
    pub(crate) fn take(
        &mut self,
        fields: HeaderMap,
        more: More,
        half: Option<&AppHalf>,
    ) -> PyResult<Option<Room>> {
        let next = self.stage.trailers(more).map_err(raise::misuse)?;
        if self.stage == Trailers::Due(Fate::Dropped) {
            self.stage = next;
            return Ok(None);
        }
        let Some(half) = half else { return Ok(Some(Room::Gone)) };
        for name in fields.keys() {
            if !self.announced.contains(name) {
                if !half.announce(name.clone()) {
                    let name = bridgehead_asgi::Excerpt::of(name.as_str());
                    return Err(raise::misuse(Misuse::TrailerUnannounced { name }));
                }
                self.announced.push(name.clone());
            }
        }
        self.fields.extend(fields);
        self.stage = next;
        match more {
            More::Follows => Ok(Some(Room::Free)),
            More::Ends => Ok(Some(half.end_with(std::mem::take(&mut self.fields)))),
        }
    }
}
