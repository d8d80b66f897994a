//! The bridge as the network sees it: requests go into the inbox.
//!
//! No Python here: these methods run on the thread that turns Tokio.

use std::sync::Arc;

use bridgehead_metrics::Gauge;
use bridgehead_net::{App, Arrival, Beat, Config, Meters, Report, Rota, Token};

use crate::inbox::{Event, Inbox};

/// Hands what the network has to the loop's thread.
#[derive(Debug)]
pub(crate) struct ToLoop {
    inbox: Arc<Inbox>,
    /// Where requests are counted, if anybody wants to know.
    rota: Option<Rota>,
    /// Where it is measured how many wait.
    meters: Option<Meters>,
}

impl ToLoop {
    pub(crate) fn new(inbox: Arc<Inbox>, config: &Config) -> Self {
        Self { inbox, rota: config.rota, meters: config.meters.clone() }
    }
}

impl App for ToLoop {
    fn dispatch(&self, arrival: Box<Arrival>) -> Result<(), Box<Arrival>> {
        if let Some(rota) = &self.rota {
            rota.board.count_request(rota.place);
        }
        // Beforehand: the loop may be quicker.
        if let Some(meters) = &self.meters {
            meters.sheet.up(Gauge::Inbox);
        }
        let taken = self.inbox.arrive(arrival);
        if let (Err(_), Some(meters)) = (&taken, &self.meters) {
            meters.sheet.down(Gauge::Inbox);
        }
        taken
    }

    fn progress(&self, token: Token) {
        self.inbox.push(Event::Progress(token));
    }

    fn cancel(&self, token: Token) {
        self.inbox.push(Event::Cancel(token));
    }

    fn show_life(&self, beat: Beat) {
        self.inbox.ask(beat);
    }

    fn report(&self, report: Report) {
        self.inbox.report(report);
    }
}
