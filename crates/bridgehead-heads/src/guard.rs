//! Where a client's requests begin and end, looked at before hyper reads them.
//!
//! hyper reads heads as leniently as RFC 9112 lets it (a bare line feed ends a line, a fragment is cut off) and does not
//! keep what it read. This follows the framing from byte to byte, and holds back what a stricter parser in front could
//! have understood in another way, what is larger than is allowed, and what hyper would refuse without a word (`letters`).
//! Hosts, and which methods are served, are `judge`'s.
//!
//! | place | is left by |
//! |---|---|
//! | `Head` | its empty line: to a body by its length, to chunks, or to the next head |
//! | `Body` | its last byte |
//! | `Size` | a size: to that much data, or after 0 to the trailers |
//! | `Data` | its last byte, and the line's end that has to follow |
//! | `Trailers` | their empty line |
//!
//! Invariant: what is let through is a prefix of what came, and has nothing of a head that is refused. A line of a head is
//! judged when its end is there, and the head is kept here until it is whole.

use memchr::memchr;

use crate::chunks::{self, Chunks, Trailers};
use crate::crumbs::Crumbs;
use crate::fault::Fault;
use crate::letters::{self, decimal, is_folded, trimmed};
use crate::limits::HeadLimits;
use crate::request_line::{LONGEST_METHOD, Minor, no_method, request_line};

/// One header line, name and value: big cookies and tokens fit.
#[cfg(not(miri))]
const LONGEST_LINE: usize = 16 * 1024;

/// Miri looks at each byte for long.
#[cfg(miri)]
const LONGEST_LINE: usize = 256;

/// Who allows larger heads than this allows any line in them.
const USUAL_HEAD: usize = 2 * LONGEST_LINE;

/// Empty lines before a request, left over from the body before it.
const BLANKS: u8 = 4;

/// What a head that comes in parts grows by: there may be thousands that never end, so none takes twice what it needs.
const GROWTH: usize = 1024;

/// Follows one connection.
#[derive(Debug, Default)]
pub struct Guard {
    place: Place,
    /// What has come of a head that is not whole, and elsewhere of a line.
    kept: Vec<u8>,
    /// Where the line begins in it that has no end yet.
    line: usize,
    /// A head that came in parts and is whole, until it is taken.
    whole: Vec<u8>,
    /// That have come with the last bytes.
    crumbs: Crumbs,
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

/// Something that is not let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breach {
    /// So many of the new bytes are in order.
    pub sound: usize,
    /// What it is.
    pub fault: Fault,
    /// Whether it is in a head, so that no request came of it.
    pub in_head: bool,
    /// Whether that head's method is HEAD, so that the answer has no body.
    pub asks_head: bool,
}

impl Default for Place {
    fn default() -> Self {
        Self::Head(Head::default())
    }
}

impl Guard {
    /// Whether a head has begun and not ended.
    #[must_use]
    #[inline]
    pub fn is_in_head(&self) -> bool {
        matches!(&self.place, Place::Head(head) if head.version.is_some() || self.kept.len() > self.line)
    }

    /// What has come so far of a head that is not whole.
    #[must_use]
    #[inline]
    pub fn half_head(&self) -> &[u8] {
        if matches!(self.place, Place::Head(_)) { &self.kept } else { &[] }
    }

    /// The head of which a part had been kept, if what came last has its end.
    #[inline]
    pub fn take_head(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.whole)
    }

    /// Where in what came last the first small chunk begins, if there are many in it: see [`crate::join_crumbs`].
    #[must_use]
    pub fn crumbs(&self) -> Option<usize> {
        self.crumbs.first_of_many()
    }

    /// Whether a body has not come to its end.
    #[must_use]
    #[inline]
    pub fn is_in_body(&self) -> bool {
        !matches!(self.place, Place::Head(_))
    }

    /// Looks at what came next.
    ///
    /// # Errors
    ///
    /// When something in it is not let through.
    pub fn admit(&mut self, bytes: &[u8], limits: &HeadLimits) -> Result<(), Breach> {
        self.crumbs = Crumbs::default();
        let mut at = 0;
        // Where the head begins that is not whole, if that is here.
        let mut request = 0;
        while at < bytes.len() {
            let in_head = matches!(self.place, Place::Head(_));
            let at_size = matches!(self.place, Place::Size(_)) && self.kept.is_empty();
            match self.step(&bytes[request..], at - request, limits) {
                Ok(taken) => {
                    if let (true, Place::Data(size, _)) = (at_size, &self.place) {
                        self.crumbs.see(at, *size);
                    }
                    at += taken;
                }
                Err(fault) => {
                    let begun = if self.kept.is_empty() { &bytes[request..] } else { &self.kept };
                    let asks_head = in_head && asks_head(begun);
                    let sound = if in_head { request } else { at };
                    self.kept = Vec::new();
                    return Err(Breach { sound, fault, in_head, asks_head });
                }
            }
            if !in_head || !self.is_in_head() {
                request = at;
            }
        }
        if request < at && self.kept.is_empty() {
            self.keep(&bytes[request..], at - request);
        }
        Ok(())
    }

    /// Takes the line that begins there, or what there is of a body. Gives how many bytes that was.
    fn step(&mut self, begun: &[u8], at: usize, limits: &HeadLimits) -> Result<usize, Fault> {
        let bytes = &begun[at..];
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
            Place::Head(_) | Place::Size(_) | Place::Trailers(_) => self.line(begun, at, limits),
        }
    }

    /// The two bytes behind a chunk's data.
    fn end_of_data(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let Place::DataEnd(chunks) = self.place else { return Ok(0) };
        let due = if self.kept.is_empty() { b'\r' } else { b'\n' };
        if bytes[0] != due {
            return Err(Fault::BadBody);
        }
        if due == b'\r' {
            self.kept.push(due);
        } else {
            self.kept.clear();
            self.place = Place::Size(chunks);
        }
        Ok(1)
    }

    /// A line, when its end is there; else what has come of it is kept, with the lines of its head before it.
    fn line(&mut self, begun: &[u8], at: usize, limits: &HeadLimits) -> Result<usize, Fault> {
        let bytes = &begun[at..];
        let Some(end) = memchr(b'\n', bytes) else {
            self.keep(begun, at);
            self.judge_unfinished(limits)?;
            return Ok(bytes.len());
        };
        if self.kept.is_empty() {
            self.place = std::mem::take(&mut self.place).after(&bytes[..end], limits)?;
        } else {
            self.end_of_kept(&bytes[..=end], limits)?;
        }
        Ok(end + 1)
    }

    /// The end of a line that began in what is kept.
    fn end_of_kept(&mut self, rest: &[u8], limits: &HeadLimits) -> Result<(), Fault> {
        // Its memory goes with it: an idle connection must not keep what its longest head took.
        let mut kept = std::mem::take(&mut self.kept);
        append(&mut kept, rest);
        let line = std::mem::take(&mut self.line);
        let place = std::mem::take(&mut self.place);
        let was_in_head = matches!(place, Place::Head(_));
        match place.after(&kept[line..kept.len() - 1], limits) {
            Ok(place) => self.place = place,
            Err(fault) => {
                // Its method is there, and looked for.
                if was_in_head {
                    self.kept = kept;
                }
                return Err(fault);
            }
        }
        if self.is_in_head() {
            self.line = kept.len();
            self.kept = kept;
        } else if was_in_head {
            self.whole = kept;
        }
        Ok(())
    }

    /// Keeps what has come of a head, or of a line elsewhere; its last line begins there.
    fn keep(&mut self, begun: &[u8], at: usize) {
        if self.kept.is_empty() {
            self.line = at;
            append(&mut self.kept, begun);
        } else {
            append(&mut self.kept, &begun[at..]);
        }
    }

    /// A line without an end is as large as it will ever be allowed to be.
    fn judge_unfinished(&self, limits: &HeadLimits) -> Result<(), Fault> {
        let line = &self.kept[self.line..];
        let came = line.len();
        match &self.place {
            Place::Head(Head { version: None, .. }) => {
                let method = memchr(b' ', &line[..came.min(LONGEST_METHOD + 1)]);
                // Whoever speaks another protocol may wait for an answer before there is a line.
                let word = &line[..method.unwrap_or(came.min(LONGEST_METHOD))];
                if !letters::is_token(word) && line != b"\r" {
                    return Err(Fault::BadRequestLine);
                }
                let Some(method) = method else {
                    return if came > LONGEST_METHOD { Err(no_method(line)) } else { Ok(()) };
                };
                if came - method > limits.target + " HTTP/1.1\r".len() + 1 {
                    return Err(Fault::LongTarget);
                }
            }
            // The carriage return of a line is not counted, nor that of the last, empty one.
            Place::Head(head) if head.bytes + came > limits.bytes + 1 || is_too_long(came, 1, limits) => {
                return Err(Fault::LargeHead);
            }
            Place::Size(_) if chunks::is_too_long(came) => return Err(Fault::BadBody),
            Place::Trailers(read) if read.is_too_long(came) => return Err(Fault::BadBody),
            _ => {}
        }
        Ok(())
    }
}

/// Whether what has come of a head begins with HEAD, behind the blank lines that may be before it.
#[must_use]
pub fn asks_head(begun: &[u8]) -> bool {
    let line = begun.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(begun.len());
    begun[line..].starts_with(b"HEAD ")
}

impl Place {
    /// Where a line leads to. What came before its line feed has to end in a carriage return.
    fn after(self, line: &[u8], limits: &HeadLimits) -> Result<Self, Fault> {
        let Some((b'\r', line)) = line.split_last() else {
            return Err(if matches!(self, Self::Head(_)) { Fault::BareLineFeed } else { Fault::BadBody });
        };
        match self {
            Self::Head(head) => head.after(line, limits),
            Self::Size(chunks) => Ok(match chunks.after(line)? {
                (0, _) => Self::Trailers(Trailers::default()),
                (size, chunks) => Self::Data(size, chunks),
            }),
            Self::Trailers(_) if line.is_empty() => Ok(Self::default()),
            Self::Trailers(trailers) => trailers.after(line).map(Self::Trailers),
            other @ (Self::Body(_) | Self::Data(..) | Self::DataEnd(_)) => Ok(other),
        }
    }
}

impl Head {
    fn after(mut self, line: &[u8], limits: &HeadLimits) -> Result<Place, Fault> {
        match self.version {
            // An empty line before a request is left over from the body before it.
            None if line.is_empty() && self.blanks < BLANKS => self.blanks += 1,
            None => self.version = Some(request_line(line, limits)?),
            Some(_) if line.is_empty() => return self.end(),
            Some(_) => self.field(line, limits)?,
        }
        Ok(Place::Head(self))
    }

    fn field(&mut self, line: &[u8], limits: &HeadLimits) -> Result<(), Fault> {
        if is_folded(line) {
            return Err(Fault::FoldedLine);
        }
        self.fields += 1;
        self.bytes += line.len() + 2;
        if self.fields > limits.fields || self.bytes > limits.bytes || is_too_long(line.len(), 0, limits) {
            return Err(Fault::LargeHead);
        }
        let (name, value) = letters::field(line).ok_or(Fault::BadHeader)?;
        if name.eq_ignore_ascii_case(b"content-length") {
            self.length(trimmed(value))
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.coding(trimmed(value))
        } else {
            Ok(())
        }
    }

    fn length(&mut self, value: &[u8]) -> Result<(), Fault> {
        let length = decimal(value).ok_or(Fault::BadLength)?;
        // Longer ones are no lengths to hyper, and nobody has so many bytes.
        if length > u64::MAX / 2 {
            return Err(Fault::LargeBody);
        }
        if self.length.replace(length).is_some() { Err(Fault::BadLength) } else { Ok(()) }
    }

    fn coding(&mut self, value: &[u8]) -> Result<(), Fault> {
        if self.version == Some(Minor::Zero) || self.chunked {
            return Err(Fault::BadCoding);
        }
        if !value.eq_ignore_ascii_case(b"chunked") {
            let hollow = value.split(|byte| *byte == b',').any(|it| trimmed(it).is_empty());
            return Err(if hollow { Fault::BadCoding } else { Fault::UnknownCoding });
        }
        self.chunked = true;
        Ok(())
    }

    fn end(self) -> Result<Place, Fault> {
        match (self.length, self.chunked) {
            (Some(_), true) => Err(Fault::TwoFramings),
            (None | Some(0), false) => Ok(Place::default()),
            (Some(length), false) => Ok(Place::Body(length)),
            (None, true) => Ok(Place::Size(Chunks::default())),
        }
    }
}

/// Adds what came to what is kept, in no more memory than that takes.
fn append(kept: &mut Vec<u8>, came: &[u8]) {
    let due = (kept.len() + came.len()).next_multiple_of(GROWTH);
    kept.reserve_exact(due - kept.len());
    kept.extend_from_slice(came);
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
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::chunks::{LONGEST_SIZE, TRAILER_BYTES};

    const LIMITS: HeadLimits = HeadLimits { target: 64, bytes: 256, fields: 4 };

    fn verdict(bytes: &[u8]) -> Result<(), Fault> {
        let whole = Guard::default().admit(bytes, &LIMITS);
        // However it is cut, it comes to the same.
        for cut in 0..=bytes.len() {
            let mut guard = Guard::default();
            let (first, second) = bytes.split_at(cut);
            let cut = guard.admit(first, &LIMITS).and_then(|()| guard.admit(second, &LIMITS));
            assert_eq!(cut.map_err(|breach| breach.fault), whole.map_err(|breach| breach.fault));
        }
        let mut guard = Guard::default();
        let drip = bytes.iter().try_for_each(|byte| guard.admit(&[*byte], &LIMITS));
        assert_eq!(drip.map_err(|breach| breach.fault), whole.map_err(|breach| breach.fault));
        whole.map_err(|breach| breach.fault)
    }

    fn head(lines: &str) -> Result<(), Fault> {
        verdict(format!("POST / HTTP/1.1\r\n{lines}\r\n").as_bytes())
    }

    fn chunks(body: &str) -> Result<(), Fault> {
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
        assert_eq!(verdict(b"GET / HTTP/1.1\nHost: a\r\n\r\n"), Err(Fault::BareLineFeed));
        assert_eq!(head("Host: a\n"), Err(Fault::BareLineFeed));
        assert_eq!(head("Host: a\r\n\n"), Err(Fault::BareLineFeed));
        assert_eq!(head("A: b\r\n c\r\n"), Err(Fault::FoldedLine));
        assert_eq!(chunks("3\nabc\r\n"), Err(Fault::BadBody));
        assert_eq!(chunks("3\r\nabc\n"), Err(Fault::BadBody));
    }

    #[test]
    fn a_request_line_is_three_words() {
        for line in
            ["GET /\r\n", "GET\r\n", "GET / HTTP/1.10\r\n", "GET / HTTP/x.1\r\n", "GET / http/1.1\r\n"]
        {
            assert_eq!(verdict(line.as_bytes()), Err(Fault::BadRequestLine));
        }
        for line in ["GET / HTTP/1.2\r\n", "GET / HTTP/2.0\r\n"] {
            assert_eq!(verdict(line.as_bytes()), Err(Fault::UnknownVersion));
        }
        assert_eq!(verdict(b"PRI * HTTP/2.0\r\n"), Err(Fault::Preface));
        for line in ["G(T / HTTP/1.1\r\n", " / HTTP/1.1\r\n", "GET  / HTTP/1.1\r\n", "GET  HTTP/1.1\r\n"] {
            assert_eq!(verdict(line.as_bytes()), Err(Fault::BadRequestLine));
        }
        for target in ["*/", "a/b", "http:///", "?"] {
            let line = format!("GET {target} HTTP/1.1\r\n");
            assert_eq!(verdict(line.as_bytes()), Err(Fault::BadTarget), "{target}");
        }
        assert_eq!(verdict("M".repeat(33).as_bytes()), Err(Fault::BadMethod));
        assert_eq!(verdict(&[0x16; 33]), Err(Fault::BadRequestLine));
        assert_eq!(verdict(b"\0"), Err(Fault::BadRequestLine));
        assert_eq!(verdict("(".repeat(33).as_bytes()), Err(Fault::BadRequestLine));
    }

    #[test]
    fn a_byte_that_is_to_be_escaped_in_a_target_is_told_from_a_target_of_another_form() {
        let raw =
            ["/a\x01", "/<", "/>", "/`", "/?a=\"1\"", "/?<", "/?>", "/a#b", "/\u{e9}", "/?\u{e9}", "\x7f"];
        for target in raw.into_iter().chain(["http://a/?\"", "http://a/<", "\u{e9}"]) {
            let line = format!("GET {target} HTTP/1.1\r\n");
            assert_eq!(verdict(line.as_bytes()), Err(Fault::RawByte), "{target}");
        }
    }

    #[test]
    fn a_header_line_is_a_name_and_text() {
        for line in ["A", ":b", "A : b", "A b: c", "A(: b", "A: \x01", "A: b\rc", "A: \x7f", "\u{e9}: b"] {
            assert_eq!(head(&format!("{line}\r\n")), Err(Fault::BadHeader), "{line:?}");
        }
        assert_eq!(head("A:\r\nb:\t\u{e9} : \"\r\n"), Ok(()));
    }

    #[test]
    fn limits_hold_to_the_byte() {
        let target = |length: usize| format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(length - 1));
        assert_eq!(verdict(target(64).as_bytes()), Ok(()));
        assert_eq!(verdict(target(65).as_bytes()), Err(Fault::LongTarget));
        let field = |length: usize| format!("A: {}\r\n", "b".repeat(length - 5));
        assert_eq!(head(&field(256)), Ok(()));
        assert_eq!(head(&field(257)), Err(Fault::LargeHead));
        assert_eq!(head(&"A: b\r\n".repeat(4)), Ok(()));
        assert_eq!(head(&"A: b\r\n".repeat(5)), Err(Fault::LargeHead));
        assert_eq!(chunks(&format!("1;{}\r\n", "e".repeat(LONGEST_SIZE))), Err(Fault::BadBody));
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
            assert_eq!(head(&format!("Content-Length: {value}\r\n")), Err(Fault::BadLength), "{value}");
        }
        assert_eq!(head("Content-Length: 1\r\nContent-Length: 1\r\n"), Err(Fault::BadLength));
        assert_eq!(head("Content-Length: 9223372036854775807\r\n"), Ok(()));
        assert_eq!(head("Content-Length: 9223372036854775808\r\n"), Err(Fault::LargeBody));
        assert_eq!(head("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), Err(Fault::TwoFramings));
        assert_eq!(
            head("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            Err(Fault::BadCoding)
        );
        assert_eq!(verdict(b"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n"), Err(Fault::BadCoding));
        assert_eq!(head("Transfer-Encoding: gzip, chunked\r\n"), Err(Fault::UnknownCoding));
        for value in ["", ",", ", chunked", "chunked,", "chunked, ,chunked"] {
            assert_eq!(head(&format!("Transfer-Encoding: {value}\r\n")), Err(Fault::BadCoding), "{value}");
        }
    }

    #[test]
    fn chunks_are_counted() {
        assert_eq!(chunks("3; a = b\r\nabc\r\n0\r\n\r\n"), Ok(()));
        for size in
            ["", " 3", "3 ", "3 ;a", "3\t;a", "+3", "0x3", "3_0", "12345678901234567", "3;\x01", "3;a\rb"]
        {
            assert_eq!(chunks(&format!("{size}\r\n")), Err(Fault::BadBody), "{size:?}");
        }
        // A size that is possible, of a body that will never come.
        assert_eq!(chunks("ffffffffffffffff\r\nabc"), Ok(()));
        assert_eq!(chunks("3\r\nabc\r\nffffffffffffffff\r\n"), Err(Fault::BadBody));
        assert_eq!(chunks("3\r\nabcd\r\n"), Err(Fault::BadBody));
        assert_eq!(chunks("0\r\nA: b\r\n c\r\n"), Err(Fault::BadBody));
        assert_eq!(chunks("0\r\nContent-Length: 5\r\nHost: b\r\n\r\n"), Ok(()));
        for trailers in
            ["Transfer-Encoding: chunked", "Content-Length: +5", "Content-Length: 5\r\nContent-Length: 5"]
        {
            assert_eq!(chunks(&format!("0\r\n{trailers}\r\n")), Err(Fault::BadBody), "{trailers}");
        }
        assert_eq!(chunks(&format!("0\r\n{}", "A: b\r\n".repeat(33))), Err(Fault::BadBody));
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
    fn a_head_is_kept_until_it_is_whole_and_takes_little_more_than_it_has() {
        let limits = HeadLimits { target: 64, bytes: 64 * 1024, fields: 400 };
        let line = format!("a: {}\r\n", "b".repeat(95));
        // Each byte of it is compared as often as it has bytes, for which Miri takes hours.
        let head = format!("GET / HTTP/1.1\r\n{}\r\n", line.repeat(if cfg!(miri) { 9 } else { 333 }));
        for piece in [1, 7, 100, 8192] {
            let mut guard = Guard::default();
            let mut came = 0;
            for part in head.as_bytes()[..head.len() - 1].chunks(piece) {
                guard.admit(part, &limits).expect("a head in order");
                came += part.len();
                assert_eq!(guard.half_head(), &head.as_bytes()[..came]);
                assert!(guard.kept.capacity() <= came + GROWTH);
                assert!(guard.take_head().is_empty());
            }
            guard.admit(b"\nGET /b", &limits).expect("its end");
            assert_eq!(guard.take_head(), head.as_bytes());
            assert_eq!(guard.half_head(), b"GET /b");
        }
    }

    #[test]
    fn what_comes_before_a_breach_is_let_through() {
        let sound = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
        let mut both = sound.to_vec();
        both.extend_from_slice(b"GET /#b HTTP/1.1\r\n\r\n");
        let breach = Breach { sound: sound.len(), fault: Fault::RawByte, in_head: true, asks_head: false };
        assert_eq!(Guard::default().admit(&both, &LIMITS), Err(breach));
        let mut guard = Guard::default();
        guard.admit(b"GET / HTTP/1.1\r\n", &LIMITS).expect("a line");
        assert!(guard.is_in_head());
        let breach = Breach { sound: 0, fault: Fault::FoldedLine, in_head: true, asks_head: false };
        assert_eq!(guard.admit(b"A: b\r\n c\r\n", &LIMITS), Err(breach));
    }

    #[test]
    fn a_refused_head_is_known_by_its_method_however_it_comes() {
        let heads: [(&[u8], bool); 6] = [
            (b"HEAD / HTTP/1.1\r\nA: b\r\n c\r\n", true),
            (b"\r\nHEAD /#b HTTP/1.1\r\n", true),
            (b"HEAD / HTTP/1.1\r\nA: b\r\nB: c\r\nC\r\n", true),
            (b"GET / HTTP/1.1\r\nHEAD : b\r\n", false),
            (b"HEADER / HTTP/1.1\r\nC\r\n", false),
            (b"HEAD / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", false),
        ];
        for (head, due) in heads {
            for cut in 0..head.len() {
                let (first, second) = head.split_at(cut);
                let mut guard = Guard::default();
                let judged = guard.admit(first, &LIMITS).and_then(|()| guard.admit(second, &LIMITS));
                let breach = judged.expect_err("a breach");
                assert_eq!(breach.asks_head, due, "{cut} of {}", head.escape_ascii());
            }
        }
    }

    /// What a head comes to by its sizes alone.
    fn by_size(target: usize, values: &[usize]) -> Result<(), Fault> {
        if target > LIMITS.target {
            return Err(Fault::LongTarget);
        }
        let bytes: usize = values.iter().map(|value| "A: \r\n".len() + value).sum();
        if values.len() > LIMITS.fields || bytes > LIMITS.bytes { Err(Fault::LargeHead) } else { Ok(()) }
    }

    proptest! {
        #[test]
        fn limits_hold_for_any_sizes_in_any_cut(target in 1..80_usize, values in vec(0..120_usize, 0..6)) {
            let lines: String = values.iter().map(|value| format!("A: {}\r\n", "b".repeat(*value))).collect();
            let head = format!("GET /{} HTTP/1.1\r\n{lines}\r\n", "a".repeat(target - 1));
            prop_assert_eq!(verdict(head.as_bytes()), by_size(target, &values));
        }

        #[test]
        fn a_body_in_any_chunks_ends_where_they_say(
            pieces in vec(vec(any::<u8>(), 1..40), 0..5),
            behind in "[A-Z]{1,8}",
        ) {
            let mut stream = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for piece in &pieces {
                stream.extend(format!("{:x}\r\n", piece.len()).bytes());
                stream.extend(piece);
                stream.extend(b"\r\n");
            }
            stream.extend(b"0\r\n\r\n");
            let mut guard = Guard::default();
            for byte in &stream {
                prop_assert!(guard.admit(&[*byte], &LIMITS).is_ok());
            }
            prop_assert!(!guard.is_in_body() && !guard.is_in_head());
            prop_assert!(guard.admit(behind.as_bytes(), &LIMITS).is_ok());
            prop_assert_eq!(guard.half_head(), behind.as_bytes());
        }
    }
}
