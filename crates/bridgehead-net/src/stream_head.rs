//! Whether the head of a request of HTTP/2 may reach the application.
//!
//! By the measures of HTTP/1, and with its refusals. `h2` has seen to pseudo-headers, connection-specific headers, letters
//! and the length that a body has to have.
//!
//! Invariant: what the application sees could have come in HTTP/1.

use bridgehead_heads::HeadLimits;
use http::header::{CONTENT_LENGTH, COOKIE, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Method, request};

use crate::refusal::Refusal;

/// Crumbs of a cookie for each header line that is allowed: browsers send each cookie by itself.
pub(crate) const CRUMBS: usize = 2;

/// RFC 9113 section 8.2.3: crumbs of a cookie are one header for whoever knows HTTP/1. Gives how many there were. Those
/// that hold nothing add nothing; where one has blanks around it, all stay as they came, and are judged so.
pub(crate) fn join_cookies(headers: &mut HeaderMap) -> usize {
    let mut crumbs = headers.get_all(COOKIE).iter();
    if crumbs.next().is_none() || crumbs.next().is_none() {
        return 0;
    }
    let crumbs: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    let count = crumbs.len();
    if crumbs.iter().any(|crumb| is_padded(crumb)) {
        return count;
    }
    let filled: Vec<&[u8]> = crumbs.into_iter().filter(|crumb| !crumb.is_empty()).collect();
    if let Ok(whole) = HeaderValue::from_bytes(&filled.join(&b"; "[..])) {
        headers.insert(COOKIE, whole);
    }
    count
}

/// RFC 9113 section 8.2.1. In HTTP/1 such blanks belong to the line, not to the value.
fn is_padded(value: &[u8]) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    is_blank(value.first()) || is_blank(value.last())
}

/// Whether a head may reach the application; `crumbs` of its cookie were joined.
pub(crate) fn judge(head: &request::Parts, crumbs: usize, limits: &HeadLimits) -> Result<(), Refusal> {
    if crumbs > CRUMBS * limits.fields {
        return Err(Refusal::LargeHead);
    }
    bridgehead_heads::judge_method(&head.method)?;
    judge_size(head, limits)?;
    bridgehead_heads::judge_target(head)?;
    let path = head.uri.path();
    let is_whole_server = path == "*" && head.method == Method::OPTIONS;
    if !path.starts_with('/') && !is_whole_server {
        return Err(Refusal::BadTarget);
    }
    if head
        .uri
        .path_and_query()
        .is_some_and(|target| !bridgehead_heads::are_of_urls(target.as_str().as_bytes()))
    {
        return Err(Refusal::RawByte);
    }
    judge_host(head)?;
    if head.headers.values().any(|value| is_padded(value.as_bytes())) {
        return Err(Refusal::BadHeader);
    }
    let unknown = |value: &HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if head.headers.get_all(EXPECT).iter().any(unknown) {
        return Err(Refusal::UnknownExpectation);
    }
    if head.headers.get_all(CONTENT_LENGTH).iter().nth(1).is_some() {
        return Err(Refusal::BadLength);
    }
    Ok(())
}

/// By the measure of HTTP/1: each header as a line of its own.
fn judge_size(head: &request::Parts, limits: &HeadLimits) -> Result<(), Refusal> {
    if head.uri.path_and_query().is_some_and(|target| target.as_str().len() > limits.target) {
        return Err(Refusal::LongTarget);
    }
    let line = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 4;
    let bytes: usize = head.headers.iter().map(line).sum();
    if head.headers.len() > limits.fields || bytes > limits.bytes {
        return Err(Refusal::LargeHead);
    }
    Ok(())
}

/// One host, wherever it stands; `:authority` wins.
fn judge_host(head: &request::Parts) -> Result<(), Refusal> {
    let mut hosts = head.headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (_, Some(_)) => return Err(Refusal::TwoHosts),
        (host, None) => host,
    };
    let valid = |host: &[u8]| bridgehead_asgi::is_valid_host(host);
    match (head.uri.authority(), host) {
        (None, None) => Err(Refusal::NoHost),
        (authority, host)
            if authority.is_none_or(|authority| valid(authority.as_str().as_bytes()))
                && host.is_none_or(|host| valid(host.as_bytes())) =>
        {
            Ok(())
        }
        _ => Err(Refusal::BadHost),
    }
}
