//! Whether the head of a request may reach the application.
//!
//! Not its framing, which `guard` has followed, and not its letters, which hyper has parsed.
//!
//! Invariant: what is let through has one host where one is due, a method that is served and a target that names a path.

use http::header::{EXPECT, HOST, HeaderValue};
use http::{Method, Version, request};

use crate::fault::Fault;

/// Whether a head may reach the application. `guard` has followed its framing and hyper has parsed it, which leaves these.
///
/// # Errors
///
/// When it may not.
pub fn judge(head: &request::Parts) -> Result<(), Fault> {
    judge_method(&head.method)?;
    judge_target(head)?;
    judge_host(head)?;
    let unknown = |value: &HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if head.version == Version::HTTP_11 && head.headers.get_all(EXPECT).iter().any(unknown) {
        return Err(Fault::UnknownExpectation);
    }
    Ok(())
}

/// Whether a method is served.
///
/// # Errors
///
/// When it is not.
pub fn judge_method(method: &Method) -> Result<(), Fault> {
    // A server that is no proxy has nothing to connect to, and TRACE gives cookies to scripts.
    let refused = matches!(*method, Method::CONNECT | Method::TRACE);
    let lower = method.as_str().bytes().any(|byte| byte.is_ascii_lowercase());
    if refused || lower { Err(Fault::BadMethod) } else { Ok(()) }
}

/// Whether a target names a path.
///
/// # Errors
///
/// When it does not.
pub fn judge_target(head: &request::Parts) -> Result<(), Fault> {
    let target = &head.uri;
    let fits = match target.scheme_str() {
        Some(scheme) => matches!(scheme, "http" | "https"),
        None if target.authority().is_some() => false,
        None => target.path().starts_with('/') || (target.path() == "*" && head.method == Method::OPTIONS),
    };
    if fits { Ok(()) } else { Err(Fault::BadTarget) }
}

fn judge_host(head: &request::Parts) -> Result<(), Fault> {
    if head.uri.authority().is_some_and(|host| !bridgehead_asgi::is_valid_host(host.as_str().as_bytes())) {
        return Err(Fault::BadTarget);
    }
    let mut hosts = head.headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if head.version == Version::HTTP_11 => Err(Fault::NoHost),
        (None, _) => Ok(()),
        (Some(_), Some(_)) => Err(Fault::TwoHosts),
        (Some(host), None) if bridgehead_asgi::is_valid_host(host.as_bytes()) => Ok(()),
        (Some(_), None) => Err(Fault::BadHost),
    }
}
