//! The answers given without the application.
//!
//! Each says in its body what came and what was due. Judging is `service`'s and `bridgehead-heads`'s. hyper refuses heads
//! that it cannot read by itself, without a body; the guard of heads lets none through, and one that were refused all the
//! same is told of.

use bridgehead_admission::TurnedAway;
use bridgehead_heads::Fault;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};

/// A request that the application never sees, or gave no answer to. A new one goes to the end, since processes of different
/// versions count them in one memory by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NoHost,
    TwoHosts,
    BadHost,
    BadTarget,
    LongTarget,
    BadMethod,
    BadRequestLine,
    UnknownVersion,
    /// The beginning of HTTP/2, where that is not spoken.
    Preface,
    BareLineFeed,
    FoldedLine,
    /// A header line is no name with a value.
    BadHeader,
    LargeHead,
    /// The head did not come in time.
    SlowHead,
    BadLength,
    TwoFramings,
    BadCoding,
    UnknownCoding,
    BadBody,
    LargeBody,
    /// The body stopped coming, though it was waited for.
    SlowBody,
    UnknownExpectation,
    BadUpgrade,
    /// A version of RFC 6455 that is not 13.
    UnknownWebSocket,
    /// The same in HTTP/2, where nothing is upgraded.
    OtherWebSocket,
    BadWebSocketKey,
    BadSubprotocol,
    /// Frames behind a handshake that nobody has answered.
    EarlyFrames,
    /// Too many requests wait for the loop.
    Overloaded,
    /// As many run as may, and as many wait for one of them to end.
    QueueFull,
    /// It has waited for that for too long.
    QueuedTooLong,
    /// The application took longer than it may.
    SlowAnswer,
    /// The application denied a WebSocket by an answer that accepts it.
    BadDenial,
    /// The application raised, or ended without an answer.
    ApplicationFailed,
    /// The application took longer than it may to accept a WebSocket, or to refuse it.
    SlowAcceptance,
    /// A target has a byte that no URL has as it is.
    RawByte,
    /// As many files are open as may be, and as many requests wait for one to be closed.
    FilesFull,
    /// It has waited for that for too long.
    FilesTooLong,
}

impl Refusal {
    /// All of them, in the order by whose numbers they are counted.
    pub(crate) const ALL: [Self; 38] = [
        Self::NoHost,
        Self::TwoHosts,
        Self::BadHost,
        Self::BadTarget,
        Self::LongTarget,
        Self::BadMethod,
        Self::BadRequestLine,
        Self::UnknownVersion,
        Self::Preface,
        Self::BareLineFeed,
        Self::FoldedLine,
        Self::BadHeader,
        Self::LargeHead,
        Self::SlowHead,
        Self::BadLength,
        Self::TwoFramings,
        Self::BadCoding,
        Self::UnknownCoding,
        Self::BadBody,
        Self::LargeBody,
        Self::SlowBody,
        Self::UnknownExpectation,
        Self::BadUpgrade,
        Self::UnknownWebSocket,
        Self::OtherWebSocket,
        Self::BadWebSocketKey,
        Self::BadSubprotocol,
        Self::EarlyFrames,
        Self::Overloaded,
        Self::QueueFull,
        Self::QueuedTooLong,
        Self::SlowAnswer,
        Self::BadDenial,
        Self::ApplicationFailed,
        Self::SlowAcceptance,
        Self::RawByte,
        Self::FilesFull,
        Self::FilesTooLong,
    ];

    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::NoHost
            | Self::TwoHosts
            | Self::BadHost
            | Self::BadTarget
            | Self::RawByte
            | Self::BadRequestLine
            | Self::BareLineFeed
            | Self::FoldedLine
            | Self::BadHeader
            | Self::BadLength
            | Self::TwoFramings
            | Self::BadCoding
            | Self::BadUpgrade
            | Self::OtherWebSocket
            | Self::BadWebSocketKey
            | Self::BadSubprotocol
            | Self::EarlyFrames
            | Self::BadBody => StatusCode::BAD_REQUEST,
            Self::UnknownWebSocket => StatusCode::UPGRADE_REQUIRED,
            Self::LongTarget => StatusCode::URI_TOO_LONG,
            Self::LargeHead => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::LargeBody => StatusCode::PAYLOAD_TOO_LARGE,
            Self::SlowHead | Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::UnknownVersion | Self::Preface => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Self::BadMethod | Self::UnknownCoding => StatusCode::NOT_IMPLEMENTED,
            Self::UnknownExpectation => StatusCode::EXPECTATION_FAILED,
            Self::Overloaded
            | Self::QueueFull
            | Self::QueuedTooLong
            | Self::FilesFull
            | Self::FilesTooLong => StatusCode::SERVICE_UNAVAILABLE,
            Self::SlowAnswer | Self::SlowAcceptance => StatusCode::GATEWAY_TIMEOUT,
            Self::BadDenial | Self::ApplicationFailed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::NoHost => "Bad Request: an HTTP/1.1 request needs a Host header",
            Self::TwoHosts => "Bad Request: one Host header was due, more came",
            Self::BadHost => "Bad Request: the Host header is not a host with an optional port",
            Self::BadTarget => {
                "Bad Request: the request target must begin with / or be an absolute URL without a user"
            }
            Self::RawByte => {
                r#"Bad Request: the request target has a raw ", <, >, `, #, control or non-ASCII byte: percent-encode it"#
            }
            Self::LongTarget => "URI Too Long: the request target is longer than is allowed",
            Self::BadRequestLine => "Bad Request: the first line must be a method, a target and HTTP/1.1",
            Self::UnknownVersion | Self::Preface => {
                "HTTP Version Not Supported: HTTP/1.1 and HTTP/1.0 are understood"
            }
            Self::BareLineFeed => "Bad Request: a line ended without its carriage return",
            Self::FoldedLine => "Bad Request: a header line began with a blank",
            Self::BadHeader => "Bad Request: a header line must be a name, a colon and text",
            Self::LargeHead => "Request Header Fields Too Large: more header lines or bytes than are allowed",
            Self::SlowHead => "Request Timeout: the request's head took too long",
            Self::BadLength => "Bad Request: one Content-Length of digits was due",
            Self::TwoFramings => "Bad Request: a Content-Length beside a Transfer-Encoding",
            Self::BadCoding => "Bad Request: one Transfer-Encoding was due, in HTTP/1.1",
            Self::LargeBody => "Payload Too Large: the body is larger than is allowed",
            Self::SlowBody => "Request Timeout: the request's body took too long",
            Self::BadMethod => "Not Implemented: this method is not served",
            Self::BadBody => "Bad Request: the body's framing is broken",
            Self::UnknownCoding => "Not Implemented: chunked is the only transfer coding understood",
            Self::UnknownExpectation => "Expectation Failed: 100-continue is the only expectation understood",
            Self::BadUpgrade => "Bad Request: a WebSocket is asked for by GET, in HTTP/1.1, without a body",
            Self::UnknownWebSocket => "Upgrade Required: one Sec-WebSocket-Version of 13 was due",
            Self::OtherWebSocket => "Bad Request: one Sec-WebSocket-Version of 13 was due",
            Self::BadWebSocketKey => "Bad Request: one Sec-WebSocket-Key of 16 bytes in base64 was due",
            Self::BadSubprotocol => "Bad Request: Sec-WebSocket-Protocol must be a list of tokens",
            Self::EarlyFrames => "Bad Request: bytes came before the WebSocket was accepted",
            Self::Overloaded => "Service Unavailable: too many requests are waiting",
            Self::QueueFull => {
                "Service Unavailable: too many requests are running, and too many wait for them"
            }
            Self::QueuedTooLong => {
                "Service Unavailable: too many requests are running, and none ended in time"
            }
            Self::FilesFull => {
                "Service Unavailable: too many files are open, and too many requests wait for them"
            }
            Self::FilesTooLong => "Service Unavailable: too many files are open, and none was closed in time",
            Self::SlowAnswer => "Gateway Timeout: the application took too long",
            Self::SlowAcceptance => {
                "Gateway Timeout: the application neither accepted nor refused the WebSocket in time"
            }
            Self::BadDenial => "Internal Server Error: the application denied what its answer would accept",
            Self::ApplicationFailed => "Internal Server Error",
        }
    }

    /// By which it is counted.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NoHost => "no_host",
            Self::TwoHosts => "two_hosts",
            Self::BadHost => "bad_host",
            Self::BadTarget => "bad_target",
            Self::LongTarget => "long_target",
            Self::BadMethod => "bad_method",
            Self::BadRequestLine => "bad_request_line",
            Self::UnknownVersion => "unknown_version",
            Self::Preface => "http2_off",
            Self::BareLineFeed => "bare_line_feed",
            Self::FoldedLine => "folded_line",
            Self::BadHeader => "bad_header",
            Self::LargeHead => "large_head",
            Self::SlowHead => "slow_head",
            Self::BadLength => "bad_length",
            Self::TwoFramings => "two_framings",
            Self::BadCoding => "bad_coding",
            Self::UnknownCoding => "unknown_coding",
            Self::BadBody => "bad_body",
            Self::LargeBody => "large_body",
            Self::SlowBody => "slow_body",
            Self::UnknownExpectation => "unknown_expectation",
            Self::BadUpgrade => "bad_upgrade",
            Self::UnknownWebSocket => "unknown_websocket",
            Self::OtherWebSocket => "other_websocket",
            Self::BadDenial => "bad_denial",
            Self::BadWebSocketKey => "bad_websocket_key",
            Self::BadSubprotocol => "bad_subprotocol",
            Self::EarlyFrames => "early_frames",
            Self::Overloaded => "overloaded",
            Self::QueueFull => "queue_full",
            Self::QueuedTooLong => "queued_too_long",
            Self::SlowAnswer => "slow_answer",
            Self::ApplicationFailed => "application_failed",
            Self::SlowAcceptance => "slow_acceptance",
            Self::RawByte => "raw_byte",
            Self::FilesFull => "files_full",
            Self::FilesTooLong => "files_too_long",
        }
    }

    /// Whether what follows on the connection can still be trusted.
    pub(crate) fn keeps_connection(self) -> bool {
        self.is_overload()
            || matches!(self, Self::SlowAnswer | Self::SlowAcceptance | Self::ApplicationFailed)
    }

    /// Whether the same request may well be answered a moment later.
    pub(crate) fn is_overload(self) -> bool {
        self.status() == StatusCode::SERVICE_UNAVAILABLE
    }

    pub(crate) fn response(self) -> Response<&'static str> {
        let mut response = Response::new(self.text());
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if !self.keeps_connection() {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if matches!(self, Self::UnknownWebSocket | Self::OtherWebSocket) {
            // RFC 6455 section 4.4: the versions that we speak.
            headers.insert(http::header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        if self == Self::UnknownWebSocket {
            // RFC 9110 section 15.5.22: what to upgrade to.
            headers.insert(http::header::UPGRADE, HeaderValue::from_static("websocket"));
        }
        if self.is_overload() {
            headers.insert(http::header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NoHost => Self::NoHost,
            Fault::TwoHosts => Self::TwoHosts,
            Fault::BadHost => Self::BadHost,
            Fault::BadTarget => Self::BadTarget,
            Fault::RawByte => Self::RawByte,
            Fault::LongTarget => Self::LongTarget,
            Fault::BadMethod => Self::BadMethod,
            Fault::BadRequestLine => Self::BadRequestLine,
            Fault::UnknownVersion => Self::UnknownVersion,
            Fault::Preface => Self::Preface,
            Fault::BareLineFeed => Self::BareLineFeed,
            Fault::FoldedLine => Self::FoldedLine,
            Fault::BadHeader => Self::BadHeader,
            Fault::LargeHead => Self::LargeHead,
            Fault::BadLength => Self::BadLength,
            Fault::TwoFramings => Self::TwoFramings,
            Fault::BadCoding => Self::BadCoding,
            Fault::UnknownCoding => Self::UnknownCoding,
            Fault::BadBody => Self::BadBody,
            Fault::LargeBody => Self::LargeBody,
            Fault::UnknownExpectation => Self::UnknownExpectation,
        }
    }
}

impl From<TurnedAway> for Refusal {
    fn from(turned_away: TurnedAway) -> Self {
        match turned_away {
            TurnedAway::Full => Self::QueueFull,
            TurnedAway::Late => Self::QueuedTooLong,
        }
    }
}

/// What hyper answered by itself before it ended with this error, if it did.
///
/// It refuses what it cannot read as a head, and closes; nothing is said to a client that broke off in the middle of
/// one, or that began in HTTP/2.
pub(crate) fn status_of(ended: &hyper::Error) -> Option<StatusCode> {
    if !ended.is_parse() || ended.is_parse_version_h2() {
        None
    } else if !ended.is_parse_too_large() {
        Some(StatusCode::BAD_REQUEST)
    } else if ended.to_string().contains("URI") {
        // hyper's word is all that tells a target from a head.
        Some(StatusCode::URI_TOO_LONG)
    } else {
        Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
    }
}
