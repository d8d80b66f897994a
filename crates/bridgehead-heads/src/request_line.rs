//! The first line of a request: a method, a target and a version.
//!
//! Not which methods and targets are served, which is `judge`'s.
//!
//! Invariant: a line that passes is one that hyper takes, and no other parser reads in another way.

use memchr::{memchr, memrchr};

use crate::fault::Fault;
use crate::letters;
use crate::limits::HeadLimits;

/// No registered method is longer; a longer one is an attack on whoever logs it.
pub(crate) const LONGEST_METHOD: usize = 32;

/// The version, behind its `HTTP/1.`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Minor {
    Zero,
    One,
}

/// What a whole line says of the version, if it is in order.
pub(crate) fn request_line(line: &[u8], limits: &HeadLimits) -> Result<Minor, Fault> {
    let (Some(first), Some(last)) = (memchr(b' ', line), memrchr(b' ', line)) else {
        return Err(if line.len() > LONGEST_METHOD { no_method(line) } else { Fault::BadRequestLine });
    };
    if first > LONGEST_METHOD {
        return Err(no_method(line));
    }
    let target = line.get(first + 1..last).ok_or(Fault::BadRequestLine)?;
    let version = &line[last + 1..];
    if target.len() > limits.target || letters::is_too_long(target) {
        return Err(Fault::LongTarget);
    }
    if !letters::is_token(&line[..first]) || target.is_empty() || memchr(b' ', target).is_some() {
        return Err(Fault::BadRequestLine);
    }
    if !letters::is_target(target) {
        return Err(if letters::are_of_urls(target) { Fault::BadTarget } else { Fault::RawByte });
    }
    match version {
        _ if line == b"PRI * HTTP/2.0" => Err(Fault::Preface),
        b"HTTP/1.1" => Ok(Minor::One),
        b"HTTP/1.0" => Ok(Minor::Zero),
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => Err(Fault::UnknownVersion),
        _ => Err(Fault::BadRequestLine),
    }
}

/// Why a line without a word that is short enough to be a method is refused: often it is no HTTP at all.
pub(crate) fn no_method(line: &[u8]) -> Fault {
    if letters::is_token(&line[..LONGEST_METHOD]) { Fault::BadMethod } else { Fault::BadRequestLine }
}
