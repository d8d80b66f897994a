//! A private key, in whatever PEM holds it: PKCS#8, PKCS#1, SEC1, and the first and older ways to encrypt one.
//!
//! Not whether it belongs to a certificate (`identity`).

use pem::Pem;
use pkcs8::{EncryptedPrivateKeyInfo, Error, ObjectIdentifier, PrivateKeyInfo, pkcs5};
use rustls::pki_types::PrivateKeyDer;

use crate::identity::sections;
use crate::legacy_key;
use crate::problem::Problem;

/// What the keys are for that sign by RSA-PSS alone, whose certificates rustls does not show.
const RSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");

const PASSWORD: &str = "give it with --ssl-keyfile-password, or BRIDGEHEAD_SSL_KEYFILE_PASSWORD";

/// The first key of a file.
pub(crate) fn private_key(
    bytes: &[u8],
    password: Option<&str>,
    name: &str,
    beside: bool,
) -> Result<PrivateKeyDer<'static>, Problem> {
    let found = sections(bytes, name)?.into_iter().find(|section| section.tag().ends_with("PRIVATE KEY"));
    let Some(section) = found else {
        let next = if beside {
            "name the key's own file with --ssl-keyfile"
        } else {
            "give a PEM file with the key"
        };
        return Err(Problem::new(format!("{name} holds no private key"), next));
    };
    match section.tag() {
        "ENCRYPTED PRIVATE KEY" => decrypt(&section, wanted(password, name)?, name),
        "PRIVATE KEY" => Ok(PrivateKeyDer::Pkcs8(section.into_contents().into())),
        "RSA PRIVATE KEY" => Ok(PrivateKeyDer::Pkcs1(plain(section, password, name)?.into())),
        "EC PRIVATE KEY" => Ok(PrivateKeyDer::Sec1(plain(section, password, name)?.into())),
        other => Err(Problem::new(
            format!("the key in {name} is of a kind that is not known: {other:?}"),
            "`openssl pkey -in FILE -out FILE.pem` writes it as PKCS#8",
        )),
    }
}

pub(crate) fn is_rsa_pss(key: &PrivateKeyDer<'_>) -> bool {
    let PrivateKeyDer::Pkcs8(key) = key else { return false };
    PrivateKeyInfo::try_from(key.secret_pkcs8_der()).is_ok_and(|info| info.algorithm.oid == RSA_PSS)
}

fn plain(section: Pem, password: Option<&str>, name: &str) -> Result<Vec<u8>, Problem> {
    let Some(how) = section.headers().get("DEK-Info").map(str::to_owned) else {
        return Ok(section.into_contents());
    };
    legacy_key::decrypt(section.contents(), &how, wanted(password, name)?, name)
}

fn wanted<'a>(password: Option<&'a str>, name: &str) -> Result<&'a str, Problem> {
    password.ok_or_else(|| {
        Problem::new(format!("the key in {name} is encrypted, and there is no password"), PASSWORD)
    })
}

fn decrypt(section: &Pem, password: &str, name: &str) -> Result<PrivateKeyDer<'static>, Problem> {
    let unknown = || {
        Problem::new(
            format!(
                "the key in {name} is encrypted in a way that is not known; PBES2 with PBKDF2 or scrypt, and AES or \
                 3DES in CBC mode, was due"
            ),
            "`openssl pkey -in FILE -aes256 -out FILE.pem` encrypts it as PKCS#8 does today",
        )
    };
    let key = EncryptedPrivateKeyInfo::try_from(section.contents()).map_err(|_| unknown())?;
    let document = key.decrypt(password).map_err(|error| match error {
        Error::EncryptedPrivateKey(
            pkcs5::Error::UnsupportedAlgorithm { .. }
            | pkcs5::Error::AlgorithmParametersInvalid { .. }
            | pkcs5::Error::NoPbes1CryptSupport,
        ) => unknown(),
        _ => refused(name),
    })?;
    Ok(PrivateKeyDer::Pkcs8(document.as_bytes().to_vec().into()))
}

/// What a wrong password looks like.
pub(crate) fn refused(name: &str) -> Problem {
    Problem::new(format!("the password does not open the key in {name}"), PASSWORD)
}
