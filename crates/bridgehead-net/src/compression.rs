//! Which answers of the application are compressed, and for whom.
//!
//! What a head says then is `bridgehead-coding`'s, and how a body is encoded as it comes `press`'s.
//!
//! Invariant: what encoders keep is bounded for a worker: who finds nothing left is answered as if it took no coding.

use bridgehead_asgi::ResponseParts;
use bridgehead_coding::{Accepted, Coding, Encoder, Policy, SLICE};
use bridgehead_websocket::{Loan, Memory};
use http::header::IF_NONE_MATCH;
use http::{HeaderValue, Method, StatusCode, request};

use crate::client_half::ClientHalf;
use crate::exchange::Answer;
use crate::press::Press;

/// Bytes for all encoders of a worker.
const ALL: usize = 256 * 1024 * 1024;

/// Of equally welcome ones the first: what takes the least time for each byte that it saves.
const CODINGS: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

/// How answers are compressed.
#[derive(Debug)]
pub struct Compression {
    policy: Policy,
    memory: Memory,
}

/// What one request's answer may get.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    liking: Liking,
    /// Tags of what its client, or a cache, has.
    held: Vec<HeaderValue>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Liking {
    /// Its client takes none, or there is nothing to encode; others might get one.
    Plain,
    Coded(Coding),
    /// It asks for the head alone of what would be coded so.
    Told(Coding),
}

impl Compression {
    /// Of these answers.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { policy, memory: Memory::new(ALL) }
    }

    pub(crate) fn wish(&self, head: &request::Parts) -> Wish {
        let liked = if head.method == Method::HEAD { Liking::Told } else { Liking::Coded };
        let liking = Accepted::of(&head.headers).choices(&CODINGS).next().map_or(Liking::Plain, liked);
        Wish { liking, held: head.headers.get_all(IF_NONE_MATCH).iter().cloned().collect() }
    }

    /// An answer as it leaves.
    pub(crate) fn apply(&self, wish: &Wish, answer: &mut Answer, client: &mut ClientHalf) {
        let sent = std::mem::replace(answer, Answer::Abandoned);
        *answer = match sent {
            Answer::Whole(mut parts, body) if parts.status == StatusCode::NOT_MODIFIED => {
                self.policy.confirms(&mut parts.headers, &wish.held);
                Answer::Whole(parts, body)
            }
            Answer::HeadOnly(mut parts) if parts.status == StatusCode::NOT_MODIFIED => {
                self.policy.confirms(&mut parts.headers, &wish.held);
                Answer::HeadOnly(parts)
            }
            sent => self.compress(wish.liking, sent, client),
        };
    }

    /// A body that comes in pieces, or is large, is encoded by `client` as it is written.
    fn compress(&self, wish: Liking, answer: Answer, client: &mut ClientHalf) -> Answer {
        match answer {
            Answer::Whole(mut parts, body) => {
                let length = match wish {
                    // HEAD is told of the body that it does not get.
                    Liking::Plain | Liking::Told(_) if body.is_empty() => parts.declared,
                    _ => Some(body.len() as u64),
                };
                let Some(coding) = self.coding(wish, &mut parts, length) else {
                    return Answer::Whole(parts, body);
                };
                if let Liking::Told(_) = wish {
                    tell(&mut parts, coding);
                    return Answer::Whole(parts, body);
                }
                if body.len() > SLICE {
                    return match self.memory.lend(Encoder::cost(coding, length)) {
                        None => Answer::Whole(parts, body),
                        Some(loan) => {
                            client.refill(body);
                            encode(client, coding, length, loan);
                            mark(&mut parts, coding);
                            Answer::Stream(parts)
                        }
                    };
                }
                let (mut encoder, mut output) = (Encoder::new(coding, length), Vec::new());
                let encoded = encoder.encode(&body, &mut output).and_then(|()| encoder.finish(&mut output));
                // One that is no shorter goes out as well: HEAD has said so, and knows no body.
                if encoded.is_err() {
                    return Answer::Whole(parts, body);
                }
                mark(&mut parts, coding);
                Answer::Whole(parts, output.into())
            }
            Answer::Stream(mut parts) => {
                let length = parts.declared;
                if let Some(coding) = self.coding(wish, &mut parts, length)
                    && let Some(loan) = self.memory.lend(Encoder::cost(coding, length))
                {
                    encode(client, coding, length, loan);
                    mark(&mut parts, coding);
                }
                Answer::Stream(parts)
            }
            Answer::HeadOnly(mut parts) => {
                let length = parts.declared;
                if let Some(coding) = self.coding(wish, &mut parts, length) {
                    tell(&mut parts, coding);
                }
                Answer::HeadOnly(parts)
            }
            other => other,
        }
    }

    /// Which coding an answer gets, if any; says that it might have been another.
    fn coding(&self, wish: Liking, parts: &mut ResponseParts, length: Option<u64>) -> Option<Coding> {
        if !self.policy.covers(parts.status, &parts.headers, length) {
            return None;
        }
        Policy::varies(&mut parts.headers);
        match wish {
            Liking::Coded(coding) | Liking::Told(coding) => Some(coding),
            Liking::Plain => None,
        }
    }
}

fn encode(client: &mut ClientHalf, coding: Coding, length: Option<u64>, loan: Loan) {
    client.encode(Press::new(Encoder::new(coding, length), loan));
}

/// RFC 9110, section 8.6: a length in the answer to HEAD is the one of the body that GET would get, which nobody knows here.
/// Without one in it, nobody knows either whether that would be long enough.
fn tell(parts: &mut ResponseParts, coding: Coding) {
    if parts.declared.is_some() {
        mark(parts, coding);
    }
}

fn mark(parts: &mut ResponseParts, coding: Coding) {
    parts.declared = None;
    Policy::encodes(&mut parts.headers, coding);
}
