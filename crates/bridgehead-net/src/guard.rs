//! Where a client's requests begin and end, looked at before hyper reads them.
//!
//! hyper reads heads as leniently as RFC 9112 lets it (a bare line feed ends a line, a fragment is cut off) and does not
//! keep what it read. This follows the framing from byte to byte, and holds back what a stricter parser in front could
//! have understood in another way, what is larger than is allowed, and what hyper would refuse without a word (`letters`).
//! Hosts, and which methods are served, are `service`'s.
//!
//! | place | is left by |
//! |---|---|
//! | `Head` | its empty line: to a body by its length, to chunks, or to the next head |
//! | `Body` | its last byte |
//! | `Size` | a size: to that much data, or after 0 to the trailers |
//! | `Data` | its last byte, and the line's end that has to follow |
//! | `Trailers` | their empty line |
//!
//! Invariant: what is let through is a prefix of what came, and of a head that is refused nothing more reaches hyper. A line
//! of a head is judged when its end is there; who feeds hyper keeps it back until then.

use memchr::memchr;

use crate::config::HeadLimits;
use crate::letters;
use crate::refusal::Refusal;
use crate::request_line::{LONGEST_METHOD, Minor, no_method, request_line};

/// One header line, name and value: big cookies and tokens fit.
const LONGEST_LINE: usize = 16 * 1024;

/// Who allows larger heads than this allows any line in them.
const USUAL_HEAD: usize = 2 * LONGEST_LINE;

/// Empty lines before a request, left over from the body before it.
const BLANKS: u8 = 4;

/// A chunk's size and its extension.
const LONGEST_SIZE: usize = 272;

/// Framing of chunks that may come before it is compared with what they hold.
const FREE_FRAMING: u64 = 64 * 1024;

/// Bytes of framing for a byte of body.
const FRAMING_RATIO: u64 = 8;

/// What may follow the last chunk.
const TRAILER_LINES: usize = 32;
const TRAILER_BYTES: usize = 8 * 1024;

/// Follows one connection.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    place: Place,
    /// The part of a line that has come.
    line: Vec<u8>,
}

#[derive(Debug)]
enum Place {
    Head(Head),
    Body(u64),
    Size(Chunks),
    Data(u64, Chunks),
    DataEnd(Chunks),
    Trailers(Trailers),
}

/// What came behind the last chunk so far.
#[derive(Clone, Copy, Debug, Default)]
struct Trailers {
    lines: usize,
    bytes: usize,
    /// Whether one of them was a length.
    length: bool,
}

/// What is known of a head that is on its way.
#[derive(Debug, Default)]
struct Head {
    version: Option<Minor>,
    /// Empty lines that came before it.
    blanks: u8,
    fields: usize,
    bytes: usize,
    length: Option<u64>,
    chunked: bool,
}

/// Bytes of a chunked body so far, and of what surrounds them.
#[derive(Clone, Copy, Debug, Default)]
struct Chunks {
    body: u64,
    framing: u64,
}

/// Something that is not let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Breach {
    /// So many of the new bytes are in order.
    pub(crate) sound: usize,
    pub(crate) refusal: Refusal,
    /// Whether it is in a head, so that no request came of it.
    pub(crate) in_head: bool,
}

impl Default for Place {
    fn default() -> Self {
        Self::Head(Head::default())
    }
}

impl Guard {
    /// Whether a head has begun and not ended.
    pub(crate) fn is_in_head(&self) -> bool {
        matches!(&self.place, Place::Head(head) if head.version.is_some() || !self.line.is_empty())
    }

    /// The part of a head's line that has come so far.
    pub(crate) fn half_line(&self) -> &[u8] {
        if matches!(self.place, Place::Head(_)) { &self.line } else { &[] }
    }

    /// Whether a body has not come to its end.
    pub(crate) fn is_in_body(&self) -> bool {
        !matches!(self.place, Place::Head(_))
    }

    /// Looks at what came next.
    pub(crate) fn admit(&mut self, bytes: &[u8], limits: &HeadLimits) -> Result<(), Breach> {
        let mut at = 0;
        // Of a head that is refused, hyper gets no more than it had.
        let mut request = 0;
        while at < bytes.len() {
            let in_head = matches!(self.place, Place::Head(_));
            match self.step(&bytes[at..], limits) {
                Ok(taken) => at += taken,
                Err(refusal) => {
                    return Err(Breach { sound: if in_head { request } else { at }, refusal, in_head });
                }
            }
            if !in_head || !self.is_in_head() {
                request = at;
            }
        }
        Ok(())
    }

    /// Takes a line, or what there is of a body. Gives how many bytes that was.
    fn step(&mut self, bytes: &[u8], limits: &HeadLimits) -> Result<usize, Refusal> {
        match &mut self.place {
            Place::Body(left) => {
                let taken = shorter(*left, bytes.len());
                *left -= taken as u64;
                if *left == 0 {
                    self.place = Place::default();
                }
                Ok(taken)
            }
            Place::Data(left, chunks) => {
                let taken = shorter(*left, bytes.len());
                *left -= taken as u64;
                if *left == 0 {
                    self.place = Place::DataEnd(*chunks);
                }
                Ok(taken)
            }
            Place::DataEnd(_) => self.end_of_data(bytes),
            Place::Head(_) | Place::Size(_) | Place::Trailers(_) => self.line(bytes, limits),
        }
    }

    /// The two bytes behind a chunk's data.
    fn end_of_data(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        let Place::DataEnd(chunks) = self.place else { return Ok(0) };
        let due = if self.line.is_empty() { b'\r' } else { b'\n' };
        if bytes[0] != due {
            return Err(Refusal::BadBody);
        }
        if due == b'\r' {
            self.line.push(due);
        } else {
            self.line.clear();
            self.place = Place::Size(chunks);
        }
        Ok(1)
    }

    /// A line, when its end is there; else what has come of it is kept.
    fn line(&mut self, bytes: &[u8], limits: &HeadLimits) -> Result<usize, Refusal> {
        let Some(end) = memchr(b'\n', bytes) else {
            self.line.extend_from_slice(bytes);
            self.judge_unfinished(limits)?;
            return Ok(bytes.len());
        };
        let place = std::mem::take(&mut self.place);
        if self.line.is_empty() {
            self.place = place.after(&bytes[..end], limits)?;
        } else {
            self.line.extend_from_slice(&bytes[..end]);
            // Its memory goes with it: an idle connection must not keep what its longest line took.
            self.place = place.after(&std::mem::take(&mut self.line), limits)?;
        }
        Ok(end + 1)
    }

    /// A line without an end is as large as it will ever be allowed to be.
    fn judge_unfinished(&self, limits: &HeadLimits) -> Result<(), Refusal> {
        let came = self.line.len();
        match &self.place {
            Place::Head(Head { version: None, .. }) => {
                let method = memchr(b' ', &self.line[..came.min(LONGEST_METHOD + 1)]);
                // Whoever speaks another protocol may wait for an answer before there is a line.
                let word = &self.line[..method.unwrap_or(came.min(LONGEST_METHOD))];
                if !letters::is_token(word) && self.line != b"\r" {
                    return Err(Refusal::BadRequestLine);
                }
                let Some(method) = method else {
                    return if came > LONGEST_METHOD { Err(no_method(&self.line)) } else { Ok(()) };
                };
                if came - method > limits.target + " HTTP/1.1\r".len() + 1 {
                    return Err(Refusal::LongTarget);
                }
            }
            // The carriage return of a line is not counted, nor that of the last, empty one.
            Place::Head(head) if head.bytes + came > limits.bytes + 1 || is_too_long(came, 1, limits) => {
                return Err(Refusal::LargeHead);
            }
            Place::Size(_) if came > LONGEST_SIZE + 1 => return Err(Refusal::BadBody),
            Place::Trailers(read) if read.bytes + came > TRAILER_BYTES + 1 => return Err(Refusal::BadBody),
            _ => {}
        }
        Ok(())
    }
}

impl Place {
    /// Where a line leads to. What came before its line feed has to end in a carriage return.
    fn after(self, line: &[u8], limits: &HeadLimits) -> Result<Self, Refusal> {
        let Some((b'\r', line)) = line.split_last() else {
            return Err(if matches!(self, Self::Head(_)) { Refusal::BareLineFeed } else { Refusal::BadBody });
        };
        match self {
            Self::Head(head) => head.after(line, limits),
            Self::Size(chunks) => chunks.after(line),
            Self::Trailers(_) if line.is_empty() => Ok(Self::default()),
            Self::Trailers(trailers) => trailers.after(line).map(Self::Trailers),
            other @ (Self::Body(_) | Self::Data(..) | Self::DataEnd(_)) => Ok(other),
        }
    }
}

impl Head {
    fn after(mut self, line: &[u8], limits: &HeadLimits) -> Result<Place, Refusal> {
        match self.version {
            // An empty line before a request is left over from the body before it.
            None if line.is_empty() && self.blanks < BLANKS => self.blanks += 1,
            None => self.version = Some(request_line(line, limits)?),
            Some(_) if line.is_empty() => return self.end(),
            Some(_) => self.field(line, limits)?,
        }
        Ok(Place::Head(self))
    }

    fn field(&mut self, line: &[u8], limits: &HeadLimits) -> Result<(), Refusal> {
        if is_folded(line) {
            return Err(Refusal::FoldedLine);
        }
        self.fields += 1;
        self.bytes += line.len() + 2;
        if self.fields > limits.fields || self.bytes > limits.bytes || is_too_long(line.len(), 0, limits) {
            return Err(Refusal::LargeHead);
        }
        let (name, value) = letters::field(line).ok_or(Refusal::BadHeader)?;
        if name.eq_ignore_ascii_case(b"content-length") {
            self.length(trimmed(value))
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.coding(trimmed(value))
        } else {
            Ok(())
        }
    }

    fn length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        let length = decimal(value).ok_or(Refusal::BadLength)?;
        // Longer ones are no lengths to hyper, and nobody has so many bytes.
        if length > u64::MAX / 2 {
            return Err(Refusal::LargeBody);
        }
        if self.length.replace(length).is_some() { Err(Refusal::BadLength) } else { Ok(()) }
    }

    fn coding(&mut self, value: &[u8]) -> Result<(), Refusal> {
        if self.version == Some(Minor::Zero) || self.chunked {
            return Err(Refusal::BadCoding);
        }
        if !value.eq_ignore_ascii_case(b"chunked") {
            let hollow = value.split(|byte| *byte == b',').any(|it| trimmed(it).is_empty());
            return Err(if hollow { Refusal::BadCoding } else { Refusal::UnknownCoding });
        }
        self.chunked = true;
        Ok(())
    }

    fn end(self) -> Result<Place, Refusal> {
        match (self.length, self.chunked) {
            (Some(_), true) => Err(Refusal::TwoFramings),
            (None | Some(0), false) => Ok(Place::default()),
            (Some(length), false) => Ok(Place::Body(length)),
            (None, true) => Ok(Place::Size(Chunks::default())),
        }
    }
}

impl Chunks {
    fn after(mut self, line: &[u8]) -> Result<Place, Refusal> {
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (size, extension) = line.split_at(digits);
        let is_text = extension.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control());
        // No blank stands behind a size: some parsers take it for a part of it, some for its end.
        let is_extension = extension.is_empty() || extension.starts_with(b";");
        if line.len() > LONGEST_SIZE || !is_extension || !is_text {
            return Err(Refusal::BadBody);
        }
        let size = std::str::from_utf8(size).ok().and_then(|size| u64::from_str_radix(size, 16).ok());
        let size = size.ok_or(Refusal::BadBody)?;
        self.framing += line.len() as u64 + 4;
        self.body = self.body.checked_add(size).ok_or(Refusal::BadBody)?;
        if self.framing > FREE_FRAMING.saturating_add(FRAMING_RATIO.saturating_mul(self.body)) {
            return Err(Refusal::BadBody);
        }
        Ok(if size == 0 { Place::Trailers(Trailers::default()) } else { Place::Data(size, self) })
    }
}

impl Trailers {
    fn after(mut self, line: &[u8]) -> Result<Self, Refusal> {
        self.lines += 1;
        self.bytes += line.len() + 2;
        let is_coding = value_of(line, b"transfer-encoding").is_some();
        // A length means nothing here. One that could not be read in a head is an attempt at whoever merges the two.
        let length = value_of(line, b"content-length").map(decimal);
        let is_bad_length = matches!(length, Some(None)) || length.is_some() && self.length;
        self.length |= length.is_some();
        if self.lines > TRAILER_LINES
            || self.bytes > TRAILER_BYTES
            || is_folded(line)
            || is_coding
            || is_bad_length
        {
            return Err(Refusal::BadBody);
        }
        Ok(self)
    }
}

fn is_folded(line: &[u8]) -> bool {
    matches!(line, [b' ' | b'\t', ..])
}

/// What follows a name and its colon, without the blanks around it.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (found, value) = line.split_at_checked(name.len())?;
    let value = value.strip_prefix(b":")?;
    found.eq_ignore_ascii_case(name).then(|| trimmed(value))
}

fn trimmed(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// A length is digits, and nothing else.
fn decimal(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    if digits { std::str::from_utf8(value).ok()?.parse().ok() } else { None }
}

fn shorter(left: u64, there: usize) -> usize {
    usize::try_from(left).map_or(there, |left| left.min(there))
}

/// Whether a header line is, of which `spare` bytes do not count.
fn is_too_long(line: usize, spare: usize, limits: &HeadLimits) -> bool {
    line > LONGEST_LINE + spare && limits.bytes <= USUAL_HEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HeadLimits = HeadLimits { target: 64, bytes: 256, fields: 4 };

    fn verdict(bytes: &[u8]) -> Result<(), Refusal> {
        let whole = Guard::default().admit(bytes, &LIMITS);
        // However it is cut, it comes to the same.
        for cut in 0..=bytes.len() {
            let mut guard = Guard::default();
            let (first, second) = bytes.split_at(cut);
            let cut = guard.admit(first, &LIMITS).and_then(|()| guard.admit(second, &LIMITS));
            assert_eq!(cut.map_err(|breach| breach.refusal), whole.map_err(|breach| breach.refusal));
        }
        let mut guard = Guard::default();
        let drip = bytes.iter().try_for_each(|byte| guard.admit(&[*byte], &LIMITS));
        assert_eq!(drip.map_err(|breach| breach.refusal), whole.map_err(|breach| breach.refusal));
        whole.map_err(|breach| breach.refusal)
    }

    fn head(lines: &str) -> Result<(), Refusal> {
        verdict(format!("POST / HTTP/1.1\r\n{lines}\r\n").as_bytes())
    }

    fn chunks(body: &str) -> Result<(), Refusal> {
        head(&format!("Transfer-Encoding: chunked\r\n\r\n{body}"))
    }

    #[test]
    fn requests_in_order_pass_one_behind_the_other() {
        let one = "POST /a?b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nx\n#";
        let two =
            "POST / HTTP/1.1\r\ntransfer-encoding:\tChunked \r\n\r\n3;a=\"b\"\r\n\nx#\r\n0\r\nA: b\r\n\r\n";
        let three = "\r\nGET / HTTP/1.0\r\n\r\n";
        assert_eq!(verdict(format!("{one}{two}{three}{one}").as_bytes()), Ok(()));
    }

    #[test]
    fn lines_end_in_both_characters() {
        assert_eq!(verdict(b"GET / HTTP/1.1\nHost: a\r\n\r\n"), Err(Refusal::BareLineFeed));
        assert_eq!(head("Host: a\n"), Err(Refusal::BareLineFeed));
        assert_eq!(head("Host: a\r\n\n"), Err(Refusal::BareLineFeed));
        assert_eq!(head("A: b\r\n c\r\n"), Err(Refusal::FoldedLine));
        assert_eq!(chunks("3\nabc\r\n"), Err(Refusal::BadBody));
        assert_eq!(chunks("3\r\nabc\n"), Err(Refusal::BadBody));
    }

    #[test]
    fn a_request_line_is_three_words() {
        for line in
            ["GET /\r\n", "GET\r\n", "GET / HTTP/1.10\r\n", "GET / HTTP/x.1\r\n", "GET / http/1.1\r\n"]
        {
            assert_eq!(verdict(line.as_bytes()), Err(Refusal::BadRequestLine));
        }
        for line in ["GET / HTTP/1.2\r\n", "GET / HTTP/2.0\r\n"] {
            assert_eq!(verdict(line.as_bytes()), Err(Refusal::UnknownVersion));
        }
        assert_eq!(verdict(b"PRI * HTTP/2.0\r\n"), Err(Refusal::Preface));
        for line in ["G(T / HTTP/1.1\r\n", " / HTTP/1.1\r\n", "GET  / HTTP/1.1\r\n", "GET  HTTP/1.1\r\n"] {
            assert_eq!(verdict(line.as_bytes()), Err(Refusal::BadRequestLine));
        }
        for target in ["/a\x01", "/<", "*/", "a/b", "http:///", "?"] {
            let line = format!("GET {target} HTTP/1.1\r\n");
            assert_eq!(verdict(line.as_bytes()), Err(Refusal::BadTarget), "{target}");
        }
        assert_eq!(verdict(b"GET /a#b HTTP/1.1\r\n"), Err(Refusal::BadTarget));
        assert_eq!(verdict(b"GET /\xc3\xa9 HTTP/1.1\r\n"), Err(Refusal::BadTarget));
        assert_eq!(verdict("M".repeat(33).as_bytes()), Err(Refusal::BadMethod));
        assert_eq!(verdict(&[0x16; 33]), Err(Refusal::BadRequestLine));
        assert_eq!(verdict(b"\0"), Err(Refusal::BadRequestLine));
        assert_eq!(verdict("(".repeat(33).as_bytes()), Err(Refusal::BadRequestLine));
    }

    #[test]
    fn a_header_line_is_a_name_and_text() {
        for line in ["A", ":b", "A : b", "A b: c", "A(: b", "A: \x01", "A: b\rc", "A: \x7f", "\u{e9}: b"] {
            assert_eq!(head(&format!("{line}\r\n")), Err(Refusal::BadHeader), "{line:?}");
        }
        assert_eq!(head("A:\r\nb:\t\u{e9} : \"\r\n"), Ok(()));
    }

    #[test]
    fn limits_hold_to_the_byte() {
        let target = |length: usize| format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(length - 1));
        assert_eq!(verdict(target(64).as_bytes()), Ok(()));
        assert_eq!(verdict(target(65).as_bytes()), Err(Refusal::LongTarget));
        let field = |length: usize| format!("A: {}\r\n", "b".repeat(length - 5));
        assert_eq!(head(&field(256)), Ok(()));
        assert_eq!(head(&field(257)), Err(Refusal::LargeHead));
        assert_eq!(head(&"A: b\r\n".repeat(4)), Ok(()));
        assert_eq!(head(&"A: b\r\n".repeat(5)), Err(Refusal::LargeHead));
        assert_eq!(chunks(&format!("1;{}\r\n", "e".repeat(LONGEST_SIZE))), Err(Refusal::BadBody));
    }

    #[test]
    fn a_head_that_may_be_larger_than_usual_may_be_one_line() {
        for (bytes, fits) in [(USUAL_HEAD, false), (2 * USUAL_HEAD, true)] {
            let limits = HeadLimits { target: 64, bytes, fields: 4 };
            let line = format!("a:{}\r\n", "e".repeat(LONGEST_LINE + 1));
            let head = format!("GET / HTTP/1.1\r\n{line}\r\n");
            assert_eq!(Guard::default().admit(head.as_bytes(), &limits).is_ok(), fits);
            let mut guard = Guard::default();
            assert_eq!(guard.admit(&head.as_bytes()[..head.len() - 4], &limits).is_ok(), fits);
        }
    }

    #[test]
    fn a_line_as_long_as_it_may_be_may_come_without_its_line_feed() {
        let limits = HeadLimits { target: 64, bytes: 2 * LONGEST_LINE, fields: 4 };
        let split = |before: &str, line: usize, rest: &str| {
            let mut guard = Guard::default();
            let first = format!("{before}{}\r", "e".repeat(line));
            guard
                .admit(first.as_bytes(), &limits)
                .and_then(|()| guard.admit(rest.as_bytes(), &limits))
                .is_ok()
        };
        let chunks = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        for more in [0, 1] {
            let fits = more == 0;
            assert_eq!(split("GET / HTTP/1.1\r\na:", LONGEST_LINE - 2 + more, "\n\r\n"), fits);
            assert_eq!(split(&format!("{chunks}1;"), LONGEST_SIZE - 2 + more, "\nx\r\n0\r\n\r\n"), fits);
            assert_eq!(split(&format!("{chunks}0\r\na:"), TRAILER_BYTES - 4 + more, "\n\r\n"), fits);
            let trailers = format!("{chunks}0\r\na:{}\r\n", "e".repeat(TRAILER_BYTES - 4));
            assert!(split(&trailers, 0, "\n"));
        }
    }

    #[test]
    fn a_body_has_one_length() {
        for value in ["", "+5", "-0", "0x5", "5_0", "5 5", "5,5", "5, 6", "99999999999999999999", "1Z"] {
            assert_eq!(head(&format!("Content-Length: {value}\r\n")), Err(Refusal::BadLength), "{value}");
        }
        assert_eq!(head("Content-Length: 1\r\nContent-Length: 1\r\n"), Err(Refusal::BadLength));
        assert_eq!(head("Content-Length: 9223372036854775807\r\n"), Ok(()));
        assert_eq!(head("Content-Length: 9223372036854775808\r\n"), Err(Refusal::LargeBody));
        assert_eq!(head("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), Err(Refusal::TwoFramings));
        assert_eq!(
            head("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            Err(Refusal::BadCoding)
        );
        assert_eq!(verdict(b"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n"), Err(Refusal::BadCoding));
        assert_eq!(head("Transfer-Encoding: gzip, chunked\r\n"), Err(Refusal::UnknownCoding));
        for value in ["", ",", ", chunked", "chunked,", "chunked, ,chunked"] {
            assert_eq!(head(&format!("Transfer-Encoding: {value}\r\n")), Err(Refusal::BadCoding), "{value}");
        }
    }

    #[test]
    fn chunks_are_counted() {
        assert_eq!(chunks("3; a = b\r\nabc\r\n0\r\n\r\n"), Ok(()));
        for size in
            ["", " 3", "3 ", "3 ;a", "3\t;a", "+3", "0x3", "3_0", "12345678901234567", "3;\x01", "3;a\rb"]
        {
            assert_eq!(chunks(&format!("{size}\r\n")), Err(Refusal::BadBody), "{size:?}");
        }
        // A size that is possible, of a body that will never come.
        assert_eq!(chunks("ffffffffffffffff\r\nabc"), Ok(()));
        assert_eq!(chunks("3\r\nabc\r\nffffffffffffffff\r\n"), Err(Refusal::BadBody));
        assert_eq!(chunks("3\r\nabcd\r\n"), Err(Refusal::BadBody));
        assert_eq!(chunks("0\r\nA: b\r\n c\r\n"), Err(Refusal::BadBody));
        assert_eq!(chunks("0\r\nContent-Length: 5\r\nHost: b\r\n\r\n"), Ok(()));
        for trailers in
            ["Transfer-Encoding: chunked", "Content-Length: +5", "Content-Length: 5\r\nContent-Length: 5"]
        {
            assert_eq!(chunks(&format!("0\r\n{trailers}\r\n")), Err(Refusal::BadBody), "{trailers}");
        }
        assert_eq!(chunks(&format!("0\r\n{}", "A: b\r\n".repeat(33))), Err(Refusal::BadBody));
    }

    #[test]
    fn framing_that_outweighs_what_it_frames_is_refused() {
        let ratio = |extension: usize| {
            let chunk = format!("1;{}\r\nx\r\n", "e".repeat(extension));
            let mut guard = Guard::default();
            guard.admit(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", &LIMITS).expect("a head");
            (0..10_000).try_for_each(|_| guard.admit(chunk.as_bytes(), &LIMITS))
        };
        assert_eq!(ratio(0), Ok(()));
        assert!(ratio(100).is_err());
    }

    #[test]
    fn what_comes_before_a_breach_is_let_through() {
        let sound = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
        let mut both = sound.to_vec();
        both.extend_from_slice(b"GET /#b HTTP/1.1\r\n\r\n");
        let breach = Breach { sound: sound.len(), refusal: Refusal::BadTarget, in_head: true };
        assert_eq!(Guard::default().admit(&both, &LIMITS), Err(breach));
        let mut guard = Guard::default();
        guard.admit(b"GET / HTTP/1.1\r\n", &LIMITS).expect("a line");
        assert!(guard.is_in_head());
        let breach = Breach { sound: 0, refusal: Refusal::FoldedLine, in_head: true };
        assert_eq!(guard.admit(b"A: b\r\n c\r\n", &LIMITS), Err(breach));
    }
}
