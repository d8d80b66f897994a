//! The words that follow a status in HTTP/1.
//!
//! Not what a refusal of ours says, which stands in its body.
//!
//! Invariant: the status of most answers costs no look.

use http::StatusCode;
use hyper::ext::ReasonPhrase;

/// The words that whoever answers requests has for statuses, as far as they are not hyper's.
#[derive(Debug, Default)]
pub struct Reasons(Vec<(StatusCode, ReasonPhrase)>);

impl Reasons {
    /// Takes words, be they hyper's or not.
    #[must_use]
    pub fn new(words: Vec<(u16, String)>) -> Self {
        let other = words.into_iter().filter_map(|(status, word)| {
            let status = StatusCode::from_u16(status).ok()?;
            if status.canonical_reason() == Some(word.as_str()) {
                return None;
            }
            Some((status, ReasonPhrase::try_from(word).ok()?))
        });
        Self(other.collect())
    }

    /// What is written in the place of hyper's word.
    pub(crate) fn of(&self, status: StatusCode) -> Option<ReasonPhrase> {
        if status == StatusCode::OK {
            return None;
        }
        let word = self.0.iter().find(|(known, _)| *known == status).map(|(_, word)| word.clone());
        // hyper would write "<none>".
        word.or_else(|| status.canonical_reason().is_none().then_some(ReasonPhrase::from_static(b"")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_given_where_hyper_has_another_or_none() {
        let words = [(200, "Fine"), (404, "Not Found"), (418, "I'm a Teapot"), (599, "New"), (500, "a\nb")];
        let reasons = Reasons::new(words.map(|(status, word)| (status, word.to_owned())).to_vec());
        let word = |status| {
            let status = StatusCode::from_u16(status).expect("a good status");
            reasons.of(status).map(|word| String::from_utf8_lossy(word.as_bytes()).into_owned())
        };
        let given = [200, 404, 418, 599, 598, 500].map(word);
        assert_eq!(
            given.map(|word| word.unwrap_or_else(|| "hyper's".to_owned())),
            ["hyper's", "hyper's", "I'm a Teapot", "New", "", "hyper's"]
        );
    }
}
