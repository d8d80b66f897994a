//! What is wrong with a head, or with the framing of a body.
//!
//! Not what a client is told of it, by which status and in which words: that is the network's `Refusal`.
//!
//! Invariant: each is the client's, and is seen in its bytes alone.

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A request of HTTP/1.1 names no host.
    NoHost,
    /// It names more than one.
    TwoHosts,
    /// What it names is none.
    BadHost,
    /// A target is of no form that is served.
    BadTarget,
    /// A target has a byte that no URL has as it is.
    RawByte,
    /// A target is longer than is allowed.
    LongTarget,
    /// A method is not served.
    BadMethod,
    /// The first line is not a method, a target and a version.
    BadRequestLine,
    /// A version of HTTP that is not spoken.
    UnknownVersion,
    /// The beginning of HTTP/2.
    Preface,
    /// A line ends without its carriage return.
    BareLineFeed,
    /// A header line goes on in the next.
    FoldedLine,
    /// A header line is no name with a value.
    BadHeader,
    /// More header lines or bytes than are allowed.
    LargeHead,
    /// A body has no length, or two.
    BadLength,
    /// A length beside a coding.
    TwoFramings,
    /// A coding where none is due, or two.
    BadCoding,
    /// A coding that is not understood.
    UnknownCoding,
    /// The framing of a body is broken.
    BadBody,
    /// Nobody has so many bytes.
    LargeBody,
    /// An expectation that is not understood.
    UnknownExpectation,
}
