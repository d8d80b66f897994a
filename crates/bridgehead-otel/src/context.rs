//! Which trace a request is a part of, as W3C's Trace Context has it.
//!
//! Not whether it is sampled (`sampler`).
//!
//! Invariant: neither number is zero, which is nobody.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::num::{NonZeroU64, NonZeroU128};
use std::sync::atomic::{AtomicU64, Ordering};

/// A trace's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId(pub(crate) NonZeroU128);

impl fmt::Display for TraceId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

/// A span, as others name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanContext {
    /// Of which trace.
    pub trace: TraceId,
    /// Its own number.
    pub span: NonZeroU64,
    /// Whether it is kept.
    pub sampled: bool,
}

impl SpanContext {
    /// What a `traceparent` names; `None` if it is none. Of a later version what version 00 has is read.
    #[must_use]
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let fits = version.len() == 2 && trace.len() == 32 && span.len() == 16 && flags.len() == 2;
        let lower = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !fits || ![version, trace, span, flags].into_iter().all(lower) || version == "ff" {
            return None;
        }
        if version == "00" && parts.next().is_some() {
            return None;
        }
        Some(Self {
            trace: TraceId(NonZeroU128::new(u128::from_str_radix(trace, 16).ok()?)?),
            span: NonZeroU64::new(u64::from_str_radix(span, 16).ok()?)?,
            sampled: u8::from_str_radix(flags, 16).ok()? & 1 == 1,
        })
    }
}

/// As `traceparent` has it, in version 00.
impl fmt::Display for SpanContext {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "00-{}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

/// Gives numbers that nobody else has.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    // Two keys of the system's chance each; what they hash is only counted.
    keys: [RandomState; 2],
    next: AtomicU64,
}

impl Numbers {
    pub(crate) fn trace(&self) -> TraceId {
        let (high, low) = (self.span(), self.span());
        let whole = u128::from(high.get()) << 64 | u128::from(low.get());
        TraceId(NonZeroU128::MIN.saturating_add(whole - 1))
    }

    pub(crate) fn span(&self) -> NonZeroU64 {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        let number = self.keys[0].hash_one(count) ^ self.keys[1].hash_one(!count);
        NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_traceparent_names_a_trace_and_a_span() {
        let context = SpanContext::parse(PARENT).expect("it is one");
        assert_eq!(context.trace.to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!((context.span.get(), context.sampled), (0xb7ad_6b71_6920_3331, true));
        assert_eq!(context.to_string(), PARENT);
        assert!(SpanContext::parse(&PARENT.replace("00-", "cc-")).is_some());
        let dropped = SpanContext::parse(&PARENT.replace("-01", "-00")).expect("it is one");
        assert!(!dropped.sampled && dropped.to_string().ends_with("-00"));
    }

    #[test]
    fn what_is_none_is_nobody() {
        let zero = "0".repeat(32);
        for text in [
            "",
            "00",
            &PARENT.to_uppercase(),
            &PARENT.replace("00-", "ff-"),
            &format!("{PARENT}-x"),
            &PARENT.replace("0af7651916cd43dd8448eb211c80319c", &zero),
            &PARENT.replace("b7ad6b7169203331", &zero[..16]),
        ] {
            assert_eq!(SpanContext::parse(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_not_given_twice() {
        let numbers = Numbers::default();
        let given: std::collections::HashSet<_> = (0..10_000).map(|_| numbers.span()).collect();
        assert_eq!(given.len(), 10_000);
        assert_ne!(numbers.trace(), numbers.trace());
    }
}
