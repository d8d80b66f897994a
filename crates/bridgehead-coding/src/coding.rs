//! Which codings a client takes, and which it likes best (RFC 9110 section 12.5.3).
//!
//! Invariant: a coding that a client has not named is never chosen, but by `*`; one that it has refused never.

use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, HeaderValue};

/// A coding of bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
    /// RFC 1952.
    Gzip,
}

/// In thousandths, as a client may give it; 0 is a refusal.
type Weight = u16;

/// What a client takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    brotli: Option<Weight>,
    zstd: Option<Weight>,
    gzip: Option<Weight>,
    identity: Option<Weight>,
    others: Option<Weight>,
}

impl Coding {
    /// As headers have it.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// As headers have it.
    #[must_use]
    pub fn value(self) -> HeaderValue {
        HeaderValue::from_static(self.token())
    }

    /// What a file's name has behind it that holds another in this coding.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }
}

impl Accepted {
    /// By a request's headers.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let mut accepted = Self::default();
        let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        for item in values.flat_map(|value| value.split(',')) {
            let mut parts = item.split(';').map(str::trim);
            let place = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
                "br" => &mut accepted.brotli,
                "zstd" => &mut accepted.zstd,
                "gzip" | "x-gzip" => &mut accepted.gzip,
                "identity" => &mut accepted.identity,
                "*" => &mut accepted.others,
                _ => continue,
            };
            *place = Some(parts.next().map_or(1000, weight));
        }
        accepted
    }

    /// What the client gives one; 0 if it does not take it.
    fn weight(&self, coding: Coding) -> Weight {
        let named = match coding {
            Coding::Brotli => self.brotli,
            Coding::Zstd => self.zstd,
            Coding::Gzip => self.gzip,
        };
        named.or(self.others).unwrap_or(0)
    }

    /// Those of `offered` that the client takes, and not less gladly than none at all: the one it likes best first, of
    /// equal ones the first that is offered.
    pub fn choices(&self, offered: &[Coding]) -> impl Iterator<Item = Coding> + use<> {
        let least = self.identity.unwrap_or(0).max(1);
        let mut taken: Vec<Coding> =
            offered.iter().copied().filter(|coding| self.weight(*coding) >= least).collect();
        taken.sort_by_key(|coding| std::cmp::Reverse(self.weight(*coding)));
        taken.into_iter()
    }
}

/// Of a parameter: `q=0.5`. What is none is a refusal, for it was meant as less than all.
fn weight(parameter: &str) -> Weight {
    let Some((name, value)) = parameter.split_once('=') else { return 0 };
    let value = value.trim();
    if !name.trim().eq_ignore_ascii_case("q") || value.len() > 5 {
        return 0;
    }
    let (whole, part) = value.split_once('.').unwrap_or((value, ""));
    if !part.bytes().all(|digit| digit.is_ascii_digit()) {
        return 0;
    }
    match whole {
        "1" if part.bytes().all(|digit| digit == b'0') => 1000,
        "0" => {
            part.bytes().chain([b'0'; 3]).take(3).fold(0, |sum, digit| sum * 10 + Weight::from(digit - b'0'))
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

    fn choices(written: &[&str]) -> Vec<&'static str> {
        let mut headers = HeaderMap::new();
        for value in written {
            headers.append(ACCEPT_ENCODING, HeaderValue::from_str(value).expect("a value"));
        }
        Accepted::of(&headers).choices(&ALL).map(Coding::token).collect()
    }

    #[test]
    fn what_a_client_likes_best_comes_first() {
        for (written, chosen) in [
            ("gzip, deflate, br, zstd", &["br", "zstd", "gzip"][..]),
            ("gzip;q=1.0, br;q=0.5", &["gzip", "br"]),
            ("gzip;q=0.001, zstd ; q=0.01", &["zstd", "gzip"]),
            ("x-gzip", &["gzip"]),
            ("GZIP", &["gzip"]),
            ("*", &["br", "zstd", "gzip"]),
            ("*;q=0.5, gzip", &["gzip", "br", "zstd"]),
            ("br;q=0, *", &["zstd", "gzip"]),
            ("gzip, identity;q=0.5", &["gzip"]),
            ("gzip;q=0.5, identity", &[]),
            ("identity", &[]),
            ("gzip;q=0", &[]),
            ("", &[]),
            ("deflate", &[]),
        ] {
            assert_eq!(choices(&[written]), chosen, "{written}");
        }
        assert_eq!(choices(&[]), [""; 0]);
        assert_eq!(choices(&["gzip;q=0.3", "br"]), ["br", "gzip"]);
    }

    #[test]
    fn a_weight_that_is_none_is_a_refusal() {
        for written in
            ["gzip;q=2", "gzip;q=-1", "gzip;q=x", "gzip;q=0.1234", "gzip;q", "gzip;level=1", "gzip;q=1.001"]
        {
            assert_eq!(choices(&[written]), [""; 0], "{written}");
        }
    }
}
