//! Which versions and ciphers are spoken, in the words that operators have for them.
//!
//! Not a judge of what is safe: rustls has nothing else.

use rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES;
use rustls::{CipherSuite, SupportedCipherSuite, SupportedProtocolVersion, version};

use crate::problem::Problem;

/// Of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

/// What may be spoken.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Any of these.
    pub versions: Vec<Version>,
    /// OpenSSL's words for the ciphers of TLS 1.2 (and names of those of 1.3); `None` for all.
    pub ciphers: Option<String>,
}

/// What OpenSSL calls the ciphers that there are.
const NAMES: [(&str, CipherSuite); 9] = [
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// Words for ciphers of which there is none without them. `TLSv1` is uvicorn's default, and means all.
const ALL: [&str; 8] = ["DEFAULT", "ALL", "HIGH", "SECURE", "TLSv1", "TLSv1.2", "ECDHE", "EECDH"];

impl Policy {
    pub(crate) fn versions(&self) -> Vec<&'static SupportedProtocolVersion> {
        self.versions
            .iter()
            .map(|version| match version {
                Version::Tls12 => &version::TLS12,
                Version::Tls13 => &version::TLS13,
            })
            .collect()
    }

    /// In the operator's order.
    pub(crate) fn suites(&self) -> Result<Vec<SupportedCipherSuite>, Problem> {
        let Some(words) = &self.ciphers else { return Ok(ALL_CIPHER_SUITES.to_vec()) };
        let mut chosen: Vec<CipherSuite> = Vec::new();
        for word in words.split([':', ',', ' ']).filter(|word| !word.is_empty()) {
            match named(word)? {
                Named::These(found) => {
                    for each in found {
                        if !chosen.contains(&each) {
                            chosen.push(each);
                        }
                    }
                }
                Named::NotThese(out) => chosen.retain(|each| !out.contains(each)),
            }
        }
        if !chosen.iter().any(|suite| is_tls13(*suite)) {
            // OpenSSL's words say nothing of these.
            chosen.splice(0..0, NAMES.iter().map(|(_, suite)| *suite).filter(|suite| is_tls13(*suite)));
        }
        let suites =
            chosen.iter().filter_map(|suite| ALL_CIPHER_SUITES.iter().find(|each| each.suite() == *suite));
        let suites: Vec<_> = suites.copied().collect();
        let speaks = |version: Version| {
            suites.iter().any(|suite| (version == Version::Tls13) == is_tls13(suite.suite()))
        };
        match self.versions.iter().find(|version| !speaks(**version)) {
            Some(_) => Err(Problem::new(
                format!("--ssl-ciphers {words:?} leaves no cipher for TLS 1.2"),
                "name one of them, or set --ssl-min-version 1.3",
            )),
            None => Ok(suites),
        }
    }
}

enum Named {
    These(Vec<CipherSuite>),
    NotThese(Vec<CipherSuite>),
}

fn named(word: &str) -> Result<Named, Problem> {
    let (out, name) = match word.strip_prefix(['!', '-']) {
        Some(name) => (true, name),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    };
    let found: Vec<CipherSuite> = NAMES
        .iter()
        .filter(|(known, suite)| is_meant(name, known, *suite))
        .map(|(_, suite)| *suite)
        .collect();
    // What we do not have, nobody needs to leave out; a strength is an order that we do not follow.
    if out {
        return Ok(Named::NotThese(found));
    }
    if found.is_empty() && !name.starts_with('@') {
        let known: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
        return Err(Problem::new(
            format!("--ssl-ciphers names {word:?}, which rustls does not have"),
            format!("name some of {}; or leave the option out", known.join(", ")),
        ));
    }
    Ok(Named::These(found))
}

/// One cipher by its whole name; those of TLS 1.2 by properties with `+` between them.
fn is_meant(name: &str, known: &str, suite: CipherSuite) -> bool {
    if name.eq_ignore_ascii_case(known) {
        return true;
    }
    let has = |word: &str| match word {
        "AESGCM" | "AES" => known.contains("AES"),
        "CHACHA20" => known.contains("CHACHA20"),
        "AES128" => known.contains("AES128"),
        "AES256" => known.contains("AES256"),
        "aRSA" | "RSA" => known.contains("-RSA-"),
        "aECDSA" | "ECDSA" => known.contains("ECDSA"),
        "kECDHE" | "kEECDH" => true,
        word => ALL.contains(&word),
    };
    // Alone, RSA is a key exchange that rustls does not have.
    name != "RSA" && !is_tls13(suite) && name.split('+').all(has)
}

fn is_tls13(suite: CipherSuite) -> bool {
    NAMES[..3].iter().any(|(_, each)| *each == suite)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suites(ciphers: &str) -> Result<Vec<CipherSuite>, Problem> {
        let policy =
            Policy { versions: vec![Version::Tls12, Version::Tls13], ciphers: Some(ciphers.to_owned()) };
        policy.suites().map(|found| found.iter().map(|suite| suite.suite()).collect())
    }

    #[test]
    fn openssl_words_name_ciphers() {
        assert_eq!(suites("TLSv1").map(|found| found.len()), Ok(9));
        assert_eq!(suites("HIGH:!aNULL:!MD5:!DSS").map(|found| found.len()), Ok(9));
        assert_eq!(suites("ECDHE+AESGCM").map(|found| found.len()), Ok(7));
        assert_eq!(suites("DEFAULT:!CHACHA20").map(|found| found.len()), Ok(7));
        let one = suites("ECDHE-RSA-AES128-GCM-SHA256").expect("a name");
        assert_eq!(one.last(), Some(&CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256));
        assert_eq!(one.len(), 4);
    }

    #[test]
    fn a_cipher_that_is_not_there_is_refused_by_name() {
        for word in ["AES128-SHA", "RC4", "kRSA", "RSA", "DHE-RSA-AES128-GCM-SHA256"] {
            let problem = suites(&format!("ECDHE+AESGCM:{word}")).expect_err("it is not there");
            assert!(problem.what.contains(&format!("{word:?}")), "{problem}");
        }
        let problem = suites("TLS_AES_128_GCM_SHA256").expect_err("nothing for 1.2");
        assert!(problem.what.contains("no cipher for TLS 1.2"), "{problem}");
    }
}
