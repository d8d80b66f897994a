//! The bridge as the network sees it: requests go into the inbox.
//!
//! No Python here: these methods run on the thread that turns Tokio.

use std::sync::Arc;

use bridgehead_net::{App, Arrival, Report, Token};

use crate::inbox::{Event, Inbox};

/// Hands what the network has to the loop's thread.
#[derive(Debug)]
pub(crate) struct ToLoop(pub(crate) Arc<Inbox>);

impl App for ToLoop {
    fn dispatch(&self, arrival: Box<Arrival>) -> Result<(), Box<Arrival>> {
        self.0.arrive(arrival)
    }

    fn progress(&self, token: Token) {
        self.0.push(Event::Progress(token));
    }

    fn cancel(&self, token: Token) {
        self.0.push(Event::Cancel(token));
    }

    fn report(&self, report: Report) {
        self.0.report(report);
    }
}
