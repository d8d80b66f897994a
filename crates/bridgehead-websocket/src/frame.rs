//! RFC 6455's frames, as a server reads them; it writes them by `head`.
//!
//! Not what follows from them: answers to pings, the close handshake and all deadlines are the network's. Bytes are taken as
//! they come, in whatever pieces; what becomes of a message's payload is `partial`'s.
//!
//! Invariant: memory is taken for bytes that came, never for bytes that were announced.

use bytes::Bytes;

use bridgehead_asgi::is_close_code;

use crate::deflate::Inflater;
use crate::failure::{Failure, NO_TEXT};
use crate::head::{COMPRESSED, FIN};
use crate::mask;
use crate::memory::Memory;
use crate::message::Message;
use crate::partial::{Kind, Means, Partial};

/// Bytes of the longest head: two, eight of length, four of key.
const LONGEST_HEAD: usize = 14;

/// RFC 6455 §5.5.
const LONGEST_CONTROL: usize = 125;

/// Bytes that a client's messages may be inflated to before others have their turn.
const TURN: usize = 256 * 1024;

const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;

/// Something whole.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A message, with its last byte.
    Message(Message),
    /// To be answered by what it holds.
    Ping(Bytes),
    /// Of no ping in particular.
    Pong,
    /// The client closes. Without a code, nothing was said.
    Close(Option<(u16, String)>),
    /// Nothing is whole yet, but much was inflated: others are to have their turn. What is left of the input has more.
    Turn,
}

const fn protocol(reason: &'static str) -> Failure {
    Failure { code: 1002, reason }
}

/// Reads frames.
#[derive(Debug)]
pub struct Decoder {
    means: Means,
    head: [u8; LONGEST_HEAD],
    /// How much of a head has come.
    filled: usize,
    frame: Option<Frame>,
    message: Option<Partial>,
    control: Vec<u8>,
}

/// A frame whose head is read.
#[derive(Debug)]
struct Frame {
    content: Content,
    fin: bool,
    left: u64,
    key: [u8; 4],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// Of the message that is being read.
    Data,
    Close,
    Ping,
    Pong,
}

impl Decoder {
    /// For messages of at most `limit` bytes, which come compressed only if there is what inflates them.
    #[must_use]
    pub fn new(limit: usize, memory: Memory, inflater: Option<Box<Inflater>>) -> Self {
        let means = Means { limit, memory, inflater, turn: TURN };
        Self { means, head: [0; LONGEST_HEAD], filled: 0, frame: None, message: None, control: Vec::new() }
    }

    /// Takes from `input` until something is whole, nothing is left, or others are to have their turn.
    ///
    /// # Errors
    ///
    /// When the client breaks the protocol or a bound: nothing that follows can be understood.
    #[inline]
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Event>, Failure> {
        loop {
            let Some(frame) = &mut self.frame else {
                if !self.read_head(input)? {
                    return Ok(None);
                }
                continue;
            };
            let come = usize::try_from(frame.left).unwrap_or(usize::MAX).min(input.len());
            let payload = &input[..come];
            let taken = match (frame.content, &mut self.message) {
                (Content::Data, Some(message)) => message.take(payload, frame.key, &mut self.means)?,
                _ => take_control(&mut self.control, payload, frame),
            };
            *input = &input[taken..];
            frame.left -= taken as u64;
            frame.key.rotate_left(taken % 4);
            if frame.left > 0 {
                if self.means.turn == 0 {
                    self.means.turn = TURN;
                    return Ok(Some(Event::Turn));
                }
                if input.is_empty() {
                    return Ok(None);
                }
                continue;
            }
            let (content, fin) = (frame.content, frame.fin);
            self.frame = None;
            if let Some(event) = self.end(content, fin)? {
                return Ok(Some(event));
            }
        }
    }

    /// What a frame that has come to its end makes whole.
    fn end(&mut self, content: Content, fin: bool) -> Result<Option<Event>, Failure> {
        match content {
            Content::Data if !fin => Ok(None),
            Content::Data => {
                let whole = self.message.take().map(|message| message.whole(&mut self.means));
                Ok(whole.transpose()?.map(Event::Message))
            }
            Content::Pong => {
                self.control.clear();
                Ok(Some(Event::Pong))
            }
            Content::Ping => Ok(Some(Event::Ping(std::mem::take(&mut self.control).into()))),
            Content::Close => {
                closing(&std::mem::take(&mut self.control)).map(|said| Some(Event::Close(said)))
            }
        }
    }

    /// True once a head is whole; what is wrong in it is told as early as it can be seen.
    fn read_head(&mut self, input: &mut &[u8]) -> Result<bool, Failure> {
        loop {
            let due = if self.filled < 2 { 2 } else { head_length(self.head[1]) };
            let come = (due - self.filled).min(input.len());
            self.head[self.filled..self.filled + come].copy_from_slice(&input[..come]);
            *input = &input[come..];
            self.filled += come;
            if self.filled < due {
                return Ok(false);
            }
            if due > 2 {
                break;
            }
            self.judge_first()?;
        }
        self.filled = 0;
        let (left, key) = length_and_key(&self.head)?;
        let fin = self.head[0] & FIN != 0;
        let content = self.begin(self.head[0], left)?;
        self.frame = Some(Frame { content, fin, left, key });
        Ok(true)
    }

    /// The first two bytes.
    fn judge_first(&self) -> Result<(), Failure> {
        let (first, second) = (self.head[0], self.head[1]);
        // Said by the first frame of a message alone.
        let allowed =
            if self.means.inflater.is_some() && matches!(first & 0x0f, 1 | 2) { COMPRESSED } else { 0 };
        if first & RESERVED & !allowed != 0 {
            return Err(protocol("a reserved bit was set"));
        }
        if second & MASKED == 0 {
            return Err(protocol("a frame came without a mask"));
        }
        match (first & 0x0f, self.message.is_some()) {
            (0, false) => Err(protocol("a message began with a continuation")),
            (1 | 2, true) => Err(protocol("a message began within another")),
            (0..=2, _) => Ok(()),
            (8..=10, _) if first & FIN == 0 => Err(protocol("a control frame came in fragments")),
            (8..=10, _) if usize::from(second & !MASKED) > LONGEST_CONTROL => {
                Err(protocol("a control frame of more than 125 bytes came"))
            }
            (8..=10, _) => Ok(()),
            _ => Err(protocol("a frame of an unknown kind came")),
        }
    }

    fn begin(&mut self, first: u8, length: u64) -> Result<Content, Failure> {
        let kind = match first & 0x0f {
            8 => return Ok(Content::Close),
            9 => return Ok(Content::Ping),
            10 => return Ok(Content::Pong),
            1 => Kind::Text,
            _ => Kind::Binary,
        };
        let message = self.message.get_or_insert_with(|| Partial::new(kind, first & COMPRESSED != 0));
        message.begin_frame(length, &self.means)?;
        Ok(Content::Data)
    }
}

fn take_control(control: &mut Vec<u8>, payload: &[u8], frame: &Frame) -> usize {
    let before = control.len();
    control.extend_from_slice(payload);
    mask::apply(&mut control[before..], frame.key);
    payload.len()
}

/// Bytes of a masked frame's head, by its second.
fn head_length(second: u8) -> usize {
    match second & !MASKED {
        127 => LONGEST_HEAD,
        126 => 8,
        _ => 6,
    }
}

fn length_and_key(head: &[u8; LONGEST_HEAD]) -> Result<(u64, [u8; 4]), Failure> {
    let [_, second, a, b, c, d, e, f, g, h, i, j, k, l] = *head;
    match second & !MASKED {
        127 => {
            let length = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
            let fits = length > u64::from(u16::MAX) && length <= i64::MAX as u64;
            if fits {
                Ok((length, [i, j, k, l]))
            } else {
                Err(protocol("a length was not written as it is due"))
            }
        }
        126 => {
            let length = u16::from_be_bytes([a, b]);
            let fits = usize::from(length) > LONGEST_CONTROL;
            let length = u64::from(length);
            if fits {
                Ok((length, [c, d, e, f]))
            } else {
                Err(protocol("a length was not written as it is due"))
            }
        }
        short => Ok((u64::from(short), [a, b, c, d])),
    }
}

/// What a close frame says.
fn closing(payload: &[u8]) -> Result<Option<(u16, String)>, Failure> {
    match payload {
        [] => Ok(None),
        [_] => Err(protocol("a close frame of one byte came")),
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            if !is_close_code(code) {
                return Err(protocol("a close code came that no frame may hold"));
            }
            let reason = std::str::from_utf8(reason).map_err(|_| NO_TEXT)?;
            Ok(Some((code, reason.to_owned())))
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::failure::TOO_BIG;
    use crate::head::{Opcode, write_head};

    const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

    /// A client's frame with these first bytes; a payload is masked.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = BytesMut::new();
        write_head(Opcode::Text, payload.len(), &mut out);
        let mut bytes = out.to_vec();
        bytes[0] = first;
        bytes[1] |= MASKED;
        bytes.extend(KEY);
        bytes.extend(payload.iter().zip(KEY.iter().cycle()).map(|(byte, key)| byte ^ key));
        bytes
    }

    fn reader(limit: usize) -> Decoder {
        Decoder::new(limit, Memory::new(usize::MAX), None)
    }

    fn read(limit: usize, bytes: &[u8], piece: usize) -> Result<Vec<Event>, Failure> {
        let mut decoder = reader(limit);
        let mut events = Vec::new();
        for mut piece in bytes.chunks(piece) {
            while let Some(event) = decoder.next(&mut piece)? {
                events.push(event);
            }
            assert!(piece.is_empty());
        }
        Ok(events)
    }

    fn text(words: &str) -> Event {
        Event::Message(Message::Text(Bytes::copy_from_slice(words.as_bytes())))
    }

    #[test]
    fn frames_are_read_in_whatever_pieces_they_come() {
        let long = "héllo".repeat(30_000);
        let bytes = [
            frame(0x81, "one".as_bytes()),
            frame(0x01, "tw".as_bytes()),
            frame(0x89, b"ping"),
            frame(0x00, b""),
            frame(0x80, b"o"),
            frame(0x8a, b""),
            frame(0x82, &[7; 300]),
            frame(0x81, long.as_bytes()),
            frame(0x88, b"\x03\xe8bye"),
        ]
        .concat();
        for piece in [1, 2, 3, 7, 4096, bytes.len()] {
            let events = read(1 << 20, &bytes, piece).expect("sound frames");
            let due = [
                text("one"),
                Event::Ping(Bytes::from_static(b"ping")),
                text("two"),
                Event::Pong,
                Event::Message(Message::Binary(Bytes::from_static(&[7; 300]))),
                text(&long),
                Event::Close(Some((1000, "bye".to_owned()))),
            ];
            assert!(events == due, "in pieces of {piece}");
        }
    }

    #[test]
    fn what_breaks_the_protocol_is_told_by_its_first_bytes() {
        let long_ping = {
            let mut bytes = frame(0x89, &[0; 126]);
            bytes.truncate(2);
            bytes
        };
        for (bytes, code) in [
            (frame(0xc1, b"x"), 1002),
            (frame(0x80, b"x"), 1002),
            (frame(0x83, b"x"), 1002),
            (frame(0x8b, b"x"), 1002),
            (frame(0x09, b"x"), 1002),
            (long_ping, 1002),
            (vec![0x81, 0x01], 1002),
            ([frame(0x01, b"x"), frame(0x01, b"x")].concat(), 1002),
            (frame(0x88, b"x"), 1002),
            (frame(0x88, &1006u16.to_be_bytes()), 1002),
            (frame(0x88, &999u16.to_be_bytes()), 1002),
            (frame(0x88, b"\x03\xe8\xff"), 1007),
            (vec![0x82, 0xfe, 0, 125, 0, 0, 0, 0], 1002),
            (vec![0x82, 0xff, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0], 1002),
            (vec![0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1002),
        ] {
            assert_eq!(read(100, &bytes, 1).map_err(|failure| failure.code), Err(code), "{bytes:x?}");
        }
    }

    #[test]
    fn a_message_is_as_large_as_is_allowed_and_no_larger() {
        assert!(read(5, &frame(0x82, b"12345"), 100).is_ok());
        assert_eq!(read(5, &frame(0x82, b"123456"), 100), Err(TOO_BIG));
        let pieces = [frame(0x02, b"123"), frame(0x00, b"45")].concat();
        assert_eq!(read(5, &pieces, 100), Ok(vec![]));
        assert_eq!(read(5, &[pieces, frame(0x80, b"6")].concat(), 100), Err(TOO_BIG));
        // Announced, and refused before a byte of it has come.
        let announced = [vec![0x82, 0xff], i64::MAX.to_be_bytes().to_vec(), KEY.to_vec()].concat();
        assert_eq!(read(1 << 24, &announced, 100), Err(TOO_BIG));
    }

    #[test]
    fn fragments_of_a_byte_are_a_message_and_fragments_of_nothing_are_none() {
        let bytes = [frame(0x02, b"x"), frame(0x00, b"x").repeat(9_998), frame(0x80, b"x")].concat();
        assert_eq!(read(10_000, &bytes, 4096).map(|events| events.len()), Ok(1));
        let bytes = [frame(0x02, b""), frame(0x00, b"").repeat(1024)].concat();
        assert_eq!(read(10_000, &bytes, 4096).map_err(|failure| failure.code), Err(1008));
    }

    #[test]
    fn text_that_is_none_is_refused_as_soon_as_it_shows() {
        let mut decoder = reader(100);
        let bytes = frame(0x81, "κόσμε\u{e000}".as_bytes());
        assert_eq!(decoder.next(&mut &bytes[..]).map(|event| event.is_some()), Ok(true));
        // The third byte of six can begin nothing.
        let bytes = frame(0x01, b"ab\xff");
        let mut decoder = reader(100);
        assert_eq!(decoder.next(&mut &bytes[..bytes.len()]), Err(NO_TEXT));
        // Half a letter is sound so far, but not as a whole.
        assert_eq!(read(100, &frame(0x01, b"\xce"), 100), Ok(vec![]));
        assert_eq!(read(100, &frame(0x81, b"\xce"), 100), Err(NO_TEXT));
        let halves = [frame(0x01, b"\xce"), frame(0x80, b"\xba")].concat();
        assert_eq!(read(100, &halves, 100), Ok(vec![text("κ")]));
    }
}
