//! Sends who comes in the clear to the same place by TLS.
//!
//! Invariant: nothing but the place leaves: no application is asked, and no body is read.

use std::sync::Arc;

use bridgehead_asgi::{ResponseHead, without_port};
use bridgehead_proxies::{Address, Peer};
use bytes::Bytes;
use http::header::HOST;
use http::{StatusCode, uri};

use crate::app::{App, Arrival, Report, RequestHead, Token};
use crate::config::Refusals;

/// The port that browsers take if none is named.
const USUAL: u16 = 443;

const REASON: &str = "Permanent Redirect: it came in the clear, and was sent to where TLS is spoken";

/// Answers with another place.
pub(crate) struct Redirect {
    /// Where TLS is spoken.
    pub(crate) port: u16,
    /// Who hears of what happens.
    pub(crate) app: Arc<dyn App>,
    /// Whether that is said of each request.
    pub(crate) refusals: Refusals,
}

impl App for Redirect {
    fn dispatch(&self, arrival: Box<Arrival>) -> Result<(), Box<Arrival>> {
        let place = place(&arrival.head, &arrival.peer, self.port);
        let head =
            ResponseHead::new(i64::from(StatusCode::PERMANENT_REDIRECT.as_u16())).and_then(|mut head| {
                head.header(b"location", place.as_bytes())?;
                head.header(b"content-length", b"0")?;
                Ok(head)
            });
        match head {
            Ok(head) => {
                self.tell(&arrival);
                let _ = arrival.half.finish(head.into_parts(), Bytes::new());
                Ok(())
            }
            Err(_) => Err(arrival),
        }
    }

    fn progress(&self, _: Token) {}

    fn report(&self, report: Report) {
        self.app.report(report);
    }
}

impl Redirect {
    /// Says to who wants to know why a request did not reach the application.
    fn tell(&self, arrival: &Arrival) {
        if self.refusals == Refusals::Reported {
            self.app.report(Report::Refused {
                client: arrival.peer.client.escaped(),
                reason: REASON.to_owned(),
                trace: arrival.head.trace.clone(),
            });
        }
    }
}

/// The host is as it came, which was judged; the port is ours.
fn place(head: &RequestHead, peer: &Peer, port: u16) -> String {
    let given = head.target.authority().map(uri::Authority::as_str);
    let given = given.or_else(|| head.headers.get(HOST).and_then(|host| host.to_str().ok()));
    let host = match (given, &peer.server) {
        (Some(given), _) if !given.is_empty() => without_port(given).to_owned(),
        (_, Address::Inet(address)) if address.is_ipv6() => format!("[{}]", address.ip()),
        (_, Address::Inet(address)) => address.ip().to_string(),
        _ => "localhost".to_owned(),
    };
    let path = head.target.path_and_query().map_or("/", uri::PathAndQuery::as_str);
    let path = if path == "*" { "/" } else { path };
    if port == USUAL { format!("https://{host}{path}") } else { format!("https://{host}:{port}{path}") }
}
