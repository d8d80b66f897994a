//! One request at a time: take a ticket, ask, note what came, until there are no tickets.
//!
//! Not a judge (`expect`) and not a clock (`pace`).
//!
//! Invariant: what was begun is noted as ended, whatever happened to it.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::channel::{Answer, Channel};
use crate::deadline::Deadline;
use crate::desk::Desk;
use crate::fault::{Fault, Kind};
use crate::http1::Http1;
use crate::http2::Http2;
use crate::pace::{Pace, Ticket};
use crate::plan::{Protocol, Think};
use crate::random::Random;
use crate::secure::Line;
use crate::stream::Stream;
use crate::websocket::WebSocket;

/// A server that refuses is asked again after this, then after twice that, up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A connection, or a stream of one, while there is one.
pub(crate) struct Worker {
    desk: Arc<Desk>,
    /// Which of its desk.
    index: usize,
    /// Which of all.
    who: u64,
    random: Random,
    channel: Option<Channel>,
    deadline: Deadline,
    /// Whether the last try to connect failed, and how long to leave it alone.
    pause: Option<Duration>,
}

impl Worker {
    pub(crate) fn new(desk: Arc<Desk>, index: usize) -> Self {
        let who = (index * desk.share.of + desk.share.index) as u64;
        let deadline = Deadline::new(Instant::now() + desk.timeout);
        Self { random: Random::new(desk.seed, who), desk, index, who, channel: None, deadline, pause: None }
    }

    pub(crate) async fn work(mut self) {
        if self.desk.keep_alive {
            // Connecting is no part of the first request's latency; who cannot will be told with that request.
            self.deadline.set(Instant::now() + self.desk.timeout);
            self.channel = self.open().await.ok();
        }
        let desk = Arc::clone(&self.desk);
        while let Some(ticket) = desk.pace.next().await {
            let scenario = desk.choose(&mut self.random);
            desk.record().began(ticket.due);
            let outcome = self.ask(scenario, ticket).await;
            let failed = outcome.is_err();
            desk.record().ended(scenario, ticket.due, Instant::now(), outcome);
            if failed || !desk.keep_alive {
                self.leave().await;
            }
            self.rest(desk.recipes[scenario].think).await;
        }
        self.leave().await;
    }

    /// Lets go of the connection; of a shared one only when nobody else is to have it.
    async fn leave(&mut self) {
        if let Some(channel) = self.channel.take() {
            channel.finish().await;
        }
        if !self.desk.keep_alive
            && let Some(shared) = self.desk.shared.get(self.index / self.desk.streams)
        {
            *shared.lock().await = None;
        }
    }

    async fn ask(&mut self, scenario: usize, ticket: Ticket) -> Result<Answer, Fault> {
        let desk = Arc::clone(&self.desk);
        let begun = if matches!(desk.pace, Pace::Closed(_)) { ticket.due } else { Instant::now() };
        self.deadline.set(begun + desk.timeout);
        let recipe = &desk.recipes[scenario];
        if let Some(mut channel) = self.reuse().await {
            let number = desk.number(ticket);
            if let Some(answer) = channel.ask(recipe, number, &mut self.random, &mut self.deadline).await? {
                self.channel = Some(channel);
                return Ok(answer);
            }
        }
        let mut channel = self.open().await?;
        let answer = channel.ask(recipe, desk.number(ticket), &mut self.random, &mut self.deadline).await?;
        self.channel = Some(channel);
        answer.ok_or_else(|| Fault::new(Kind::Closed, "closed before the request was sent"))
    }

    /// The connection of the last request, if the server has not closed it.
    async fn reuse(&mut self) -> Option<Channel> {
        let mut channel = self.channel.take()?;
        channel.is_open(&mut self.deadline).await.then_some(channel)
    }

    async fn open(&mut self) -> Result<Channel, Fault> {
        let desk = Arc::clone(&self.desk);
        let Some(shared) = desk.shared.get(self.index / desk.streams) else { return self.connect().await };
        let Ok(mut shared) = timeout_at(self.deadline.at(), shared.lock()).await else {
            return Err(Fault::new(Kind::Connect, "no connection within the time"));
        };
        if let Some(open) = &mut *shared
            && open.is_open(&mut self.deadline).await
        {
            return Ok(Channel::Http2(open.clone()));
        }
        let channel = self.connect().await?;
        if let Channel::Http2(open) = &channel {
            *shared = Some(open.clone());
        }
        Ok(channel)
    }

    async fn connect(&mut self) -> Result<Channel, Fault> {
        let begun = Instant::now();
        let first = self.desk.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let connected = async {
            let stream = match first {
                Some(first) => first.adopt()?,
                None => Stream::connect(&self.desk.place).await?,
            };
            Line::over(stream, self.desk.secrecy.as_ref()).await
        };
        let line = match timeout_at(self.deadline.at(), connected).await {
            Ok(Ok(line)) => line,
            Ok(Err(error)) => {
                self.pause = Some(self.pause.map_or(FIRST_PAUSE, |last| (last * 2).min(LONGEST_PAUSE)));
                return Err(Fault::connect(&error));
            }
            Err(_) => return Err(Fault::new(Kind::Connect, "no connection within the time")),
        };
        self.pause = None;
        let channel = self.speak(line).await?;
        self.desk.record().connected(begun.elapsed());
        Ok(channel)
    }

    /// Begins what is spoken, within the time.
    async fn speak(&mut self, line: Line) -> Result<Channel, Fault> {
        match self.desk.protocol {
            Protocol::Http1 => Http1::open(line).await.map(Channel::Http1),
            Protocol::Http2 { .. } => Http2::open(line).await.map(Channel::Http2),
            Protocol::WebSocket => {
                let request = self.desk.recipes[0].request(self.who, &mut self.random);
                let opened = WebSocket::open(line, request, &mut self.random);
                self.deadline.over(opened).await?.map(Channel::WebSocket)
            }
        }
    }

    /// Thinks, or leaves a server alone that refused. A rate knows neither.
    async fn rest(&mut self, think: Option<Think>) {
        if matches!(self.desk.pace, Pace::Open(_)) {
            return;
        }
        let thought = think.map(|Think { least, most }| {
            let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            Duration::from_nanos(self.random.between(nanoseconds(least), nanoseconds(most)))
        });
        let Some(pause) = self.pause.max(thought) else { return };
        let end = self.desk.record().window.end;
        let left = end.map_or(pause, |end| end.saturating_duration_since(Instant::now()));
        sleep(pause.min(left)).await;
    }
}
