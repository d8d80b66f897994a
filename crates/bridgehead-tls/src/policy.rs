//! Which versions and ciphers are spoken, in the words that operators have for them.
//!
//! Not a judge of what is safe: rustls has nothing else.

use rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES;
use rustls::{CipherSuite, SignatureAlgorithm, SupportedCipherSuite, SupportedProtocolVersion, version};

use crate::identity::Identity;
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
/// `ECDH` is whatever agrees on keys by it, and rustls has what does so by new ones each time.
const ALL: [&str; 11] =
    ["DEFAULT", "ALL", "HIGH", "SECURE", "TLSv1", "TLSv1.2", "ECDH", "ECDHE", "EECDH", "kECDHE", "kEECDH"];

/// What OpenSSL is told beside ciphers, and holds for all that rustls has: the order is by strength already.
const COMMANDS: [&str; 4] = ["@STRENGTH", "@SECLEVEL=0", "@SECLEVEL=1", "@SECLEVEL=2"];

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
        let (mut chosen, mut never): (Vec<CipherSuite>, Vec<CipherSuite>) = Default::default();
        for word in split(words) {
            match named(word)? {
                Named::These(found) => {
                    for each in found {
                        if !chosen.contains(&each) && !never.contains(&each) {
                            chosen.push(each);
                        }
                    }
                }
                Named::NotThese(out) => chosen.retain(|each| !out.contains(each)),
                Named::NeverThese(out) => {
                    chosen.retain(|each| !out.contains(each));
                    never.extend(out);
                }
                Named::TheseLast(last) => chosen.sort_by_key(|each| last.contains(each)),
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

    /// Whether a handshake of TLS 1.2, where it is spoken, can come of this identity with these ciphers.
    pub(crate) fn serves(&self, identity: &Identity, suites: &[SupportedCipherSuite]) -> Result<(), Problem> {
        let kind = identity.certified.key.algorithm();
        let signed = |suite: &SupportedCipherSuite| {
            !is_tls13(suite.suite()) && suite.usable_for_signature_algorithm(kind)
        };
        if !self.versions.contains(&Version::Tls12) || suites.iter().any(signed) {
            return Ok(());
        }
        let (words, name) = (self.ciphers.as_deref().unwrap_or_default(), &identity.name);
        let due = if kind == SignatureAlgorithm::RSA { "aRSA" } else { "aECDSA" };
        Err(Problem::new(
            format!("--ssl-ciphers {words:?} leaves no cipher of TLS 1.2 for the certificate in {name}"),
            format!(
                "add some that go with its key ({due}), leave the certificate out, or set --ssl-min-version 1.3"
            ),
        ))
    }
}

/// What a word comes to.
enum Named {
    These(Vec<CipherSuite>),
    /// Until they are named again.
    NotThese(Vec<CipherSuite>),
    NeverThese(Vec<CipherSuite>),
    /// Those of them that there are.
    TheseLast(Vec<CipherSuite>),
}

/// The words, with a command as one of its own, which may stand right behind another.
fn split(words: &str) -> impl Iterator<Item = &str> {
    let words = words.split([':', ',', ';', ' ']);
    let apart = words.flat_map(|word| {
        let (before, command) = word.split_at(word.find('@').unwrap_or(word.len()));
        [before, command]
    });
    apart.filter(|word| !word.is_empty())
}

fn named(word: &str) -> Result<Named, Problem> {
    if word.starts_with('@') {
        return if COMMANDS.contains(&word) { Ok(Named::These(Vec::new())) } else { Err(no_command(word)) };
    }
    let (sign, name) = word.split_at(usize::from(word.starts_with(['!', '-', '+'])));
    let found: Vec<CipherSuite> = NAMES
        .iter()
        .filter(|(known, suite)| is_meant(name, known, *suite))
        .map(|(_, suite)| *suite)
        .collect();
    // What we do not have, nobody needs to leave out, or to put in its place.
    match sign {
        "!" => Ok(Named::NeverThese(found)),
        "-" => Ok(Named::NotThese(found)),
        "+" => Ok(Named::TheseLast(found)),
        _ if found.is_empty() => {
            let known: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
            Err(Problem::new(
                format!("--ssl-ciphers names {word:?}, which rustls does not have"),
                format!("name some of {}; or leave the option out", known.join(", ")),
            ))
        }
        _ => Ok(Named::These(found)),
    }
}

fn no_command(word: &str) -> Problem {
    Problem::new(
        format!("--ssl-ciphers says {word:?}, which rustls cannot be told"),
        format!("leave it out, or say one of {}, which hold already", COMMANDS.join(", ")),
    )
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
        "aRSA" => known.contains("-RSA-"),
        "aECDSA" | "ECDSA" => known.contains("ECDSA"),
        word => ALL.contains(&word),
    };
    // RSA by itself is a key exchange that rustls does not have.
    !is_tls13(suite) && name.split('+').all(has)
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
    fn words_mean_what_openssl_takes_them_for() {
        let found = |words| suites(words).map(|found| found.len());
        // Of TLS 1.3 there are three, and of 1.2 six.
        for words in ["ECDH", "ECDH+AESGCM:ECDH+CHACHA20", "DEFAULT@SECLEVEL=2", "@SECLEVEL=1:HIGH;@STRENGTH"]
        {
            assert_eq!(found(words), Ok(9), "{words}");
        }
        assert_eq!(found("ECDH+AESGCM"), Ok(7));
        assert_eq!(found("ECDH+CHACHA20"), Ok(5));
        // What was left out with `!` does not come back, with `-` it may.
        assert_eq!(found("!CHACHA20:HIGH"), Ok(7));
        assert_eq!(found("HIGH:-CHACHA20:CHACHA20"), Ok(9));
        // `+` puts last what there is, and brings nothing in.
        assert_eq!(found("AESGCM:+CHACHA20"), Ok(7));
        let last = suites("CHACHA20:AESGCM:+CHACHA20").expect("words");
        assert_eq!(last[7..], suites("CHACHA20").expect("a word")[3..]);
        for nothing in ["HIGH:!ECDH", "DEFAULT:-ECDHE", "+ECDH"] {
            let problem = suites(nothing).expect_err("nothing is left");
            assert!(problem.what.contains("no cipher for TLS 1.2"), "{problem}");
        }
        for command in ["@SECLEVEL=3", "DEFAULT@SECLEVEL=5", "@SOMETHING"] {
            let problem = suites(&format!("HIGH:{command}")).expect_err("it is not judged");
            assert!(problem.what.contains(&command[command.find('@').unwrap_or(0)..]), "{problem}");
        }
    }

    #[test]
    fn a_cipher_that_is_not_there_is_refused_by_name() {
        for word in ["AES128-SHA", "RC4", "kRSA", "RSA", "RSA+AESGCM", "DHE-RSA-AES128-GCM-SHA256"] {
            let problem = suites(&format!("ECDHE+AESGCM:{word}")).expect_err("it is not there");
            assert!(problem.what.contains(&format!("{word:?}")), "{problem}");
        }
        let problem = suites("TLS_AES_128_GCM_SHA256").expect_err("nothing for 1.2");
        assert!(problem.what.contains("no cipher for TLS 1.2"), "{problem}");
    }
}
