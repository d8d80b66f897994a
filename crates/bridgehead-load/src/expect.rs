//! What an answer has to be, and whether it is.
//!
//! Pure: it sees heads and pieces of bodies, and keeps none of them but the end that a text may have begun in.
//!
//! Invariant: a text is found wherever pieces of the body are cut.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, StatusCode};

/// What the operator wants of every answer.
#[derive(Debug, Clone, Default)]
pub struct Expect {
    /// One of these; when there is none, any below 500.
    pub statuses: Vec<StatusCode>,
    /// Each is there, and its value has this text in it.
    pub headers: Vec<(HeaderName, String)>,
    /// The body has these bytes in it.
    pub body: Option<Bytes>,
}

/// A look at one body.
#[derive(Debug)]
pub(crate) enum Search<'a> {
    /// Nothing is looked for, or it has been found.
    Done,
    /// Still looked for; the end of what came may be its beginning.
    For(&'a [u8], BytesMut),
}

impl Expect {
    /// What is wrong with a head, in words.
    pub(crate) fn of_head(&self, status: StatusCode, headers: &HeaderMap) -> Option<String> {
        let is_wanted = match self.statuses.as_slice() {
            [] => !status.is_server_error(),
            statuses => statuses.contains(&status),
        };
        if !is_wanted {
            if self.statuses.is_empty() {
                return Some(format!("status {}", status.as_str()));
            }
            let due: Vec<&str> = self.statuses.iter().map(StatusCode::as_str).collect();
            return Some(format!("status {} instead of {}", status.as_str(), due.join(" or ")));
        }
        self.headers.iter().find_map(|(name, due)| {
            let mut values = headers.get_all(name).into_iter().peekable();
            if values.peek().is_none() {
                return Some(format!("no header {name}"));
            }
            let is_there = values.any(|value| contains(value.as_bytes(), due.as_bytes()));
            (!is_there).then(|| format!("header {name} without {due:?}"))
        })
    }

    pub(crate) fn search(&self) -> Search<'_> {
        match self.body.as_deref() {
            Some(due) if !due.is_empty() => Search::For(due, BytesMut::new()),
            _ => Search::Done,
        }
    }

    /// What is wrong with a body that has ended.
    pub(crate) fn of_body(&self, search: &Search<'_>) -> Option<String> {
        match search {
            Search::Done => None,
            Search::For(due, _) => Some(format!("body without {:?}", String::from_utf8_lossy(due))),
        }
    }
}

impl Search<'_> {
    pub(crate) fn see(&mut self, piece: &[u8]) {
        let Self::For(due, seen) = self else { return };
        seen.extend_from_slice(piece);
        if contains(seen, due) {
            *self = Self::Done;
        } else {
            let kept = seen.len().min(due.len() - 1);
            *seen = seen.split_off(seen.len() - kept);
        }
    }
}

fn contains(whole: &[u8], part: &[u8]) -> bool {
    part.is_empty() || whole.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expect() -> Expect {
        Expect {
            statuses: vec![StatusCode::OK, StatusCode::CREATED],
            headers: vec![(HeaderName::from_static("content-type"), "json".to_owned())],
            body: Some(Bytes::from_static(b"needle")),
        }
    }

    #[test]
    fn a_head_is_right_or_says_what_is_wrong() {
        let mut headers = HeaderMap::new();
        assert_eq!(expect().of_head(StatusCode::OK, &headers), Some("no header content-type".into()));
        headers.insert("content-type", "text/plain".parse().expect("it is a value"));
        let wrong = expect().of_head(StatusCode::OK, &headers).expect("it is wrong");
        assert_eq!(wrong, "header content-type without \"json\"");
        headers.append("content-type", "application/json".parse().expect("it is a value"));
        assert_eq!(expect().of_head(StatusCode::CREATED, &headers), None);
        let wrong = expect().of_head(StatusCode::NOT_FOUND, &headers).expect("it is wrong");
        assert_eq!(wrong, "status 404 instead of 200 or 201");
    }

    #[test]
    fn a_text_is_found_wherever_the_body_is_cut() {
        let expect = expect();
        for cut in 0.."a needle!".len() {
            let (one, other) = "a needle!".split_at(cut);
            let mut search = expect.search();
            search.see(one.as_bytes());
            search.see(b"");
            search.see(other.as_bytes());
            assert_eq!(expect.of_body(&search), None, "cut at {cut}");
        }
        let mut search = expect.search();
        search.see(b"need");
        search.see(b"les are not here: nee dle");
        assert_eq!(expect.of_body(&search), None);
        let mut search = expect.search();
        search.see(b"nee dle");
        assert_eq!(expect.of_body(&search), Some("body without \"needle\"".into()));
    }
}
