//! The trailers of one response on the application's side: collected until the last, then written after the body.
//!
//! Whether they are due is `bridgehead-asgi`'s to say.
//!
//! Invariant: every trailer that is due is written; a head that has not left announces it.

use bridgehead_asgi::{Fate, HeaderCount, Misuse, More, ResponseHead, Trailers};
use bridgehead_net::AppHalf;
use http::header::{HeaderMap, HeaderName};
use pyo3::PyResult;

use crate::raise;

/// What a response's trailers have come to.
#[derive(Default)]
pub(crate) struct Trailing {
    stage: Trailers,
    announced: Vec<HeaderName>,
    fields: HeaderMap,
    /// Of all messages together.
    count: HeaderCount,
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
        Some(Box::new(Self { stage, announced: head.announced(), ..Self::default() }))
    }

    pub(crate) fn body_ended(&mut self) {
        self.stage = self.stage.body_ended();
    }

    /// Whether the end of the body is not yet the response's.
    pub(crate) fn hold_the_end(&self) -> bool {
        self.stage.hold_the_end()
    }

    /// Takes a message's fields, and says what becomes of them.
    pub(crate) fn take(&mut self, fields: HeaderMap, more: More) -> PyResult<Fate> {
        let next = self.stage.trailers(more).map_err(raise::misuse)?;
        if std::mem::replace(&mut self.stage, next) == Trailers::Due(Fate::Dropped) {
            return Ok(Fate::Dropped);
        }
        self.collect(fields).map(|()| Fate::Written)
    }

    fn collect(&mut self, fields: HeaderMap) -> PyResult<()> {
        let mut name = None;
        for (next, value) in fields {
            // Of several values of one name only the first comes with it.
            name = next.or(name);
            let Some(name) = &name else { continue };
            let spent = self.count.spend(name.as_str().as_bytes(), value.as_bytes());
            spent.map_err(raise::misuse)?;
            let held = self.fields.len();
            let added = self.fields.try_append(name, value);
            added.map_err(|_| raise::misuse(Misuse::TooManyHeaders { held }))?;
        }
        Ok(())
    }

    /// Has a head that has not left name those that came.
    pub(crate) fn announce(&mut self, half: &AppHalf) {
        for name in self.fields.keys() {
            if !self.announced.contains(name) && half.announce(name.clone()) {
                self.announced.push(name.clone());
            }
        }
    }

    /// All that is to be written, after the last message.
    pub(crate) fn collected(&mut self) -> HeaderMap {
        std::mem::take(&mut self.fields)
    }
}
