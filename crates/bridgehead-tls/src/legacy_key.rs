//! The encryption that OpenSSL had before PKCS#8: `Proc-Type: 4,ENCRYPTED`, and a `DEK-Info` that says how.
//!
//! Weak (one round of MD5 makes the key), and still what `openssl rsa -traditional` and other tools write.

use aes::{Aes128, Aes192, Aes256};
use cbc::Decryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockCipher, BlockDecryptMut, KeyInit, KeyIvInit};
use des::TdesEde3;
use md5::{Digest, Md5};

use crate::key::refused;
use crate::problem::Problem;

/// Bytes of the initial vector that salt the password.
const SALT: usize = 8;

/// What is behind the password.
pub(crate) fn decrypt(bytes: &[u8], how: &str, password: &str, name: &str) -> Result<Vec<u8>, Problem> {
    let unknown = || {
        Problem::new(
            format!(
                "the key in {name} is encrypted by {how:?}; AES-128-CBC, AES-192-CBC, AES-256-CBC or DES-EDE3-CBC was due"
            ),
            "`openssl pkey -in FILE -aes256 -out FILE.pem` encrypts it as PKCS#8 does today",
        )
    };
    let (cipher, vector) = how.split_once(',').ok_or_else(unknown)?;
    let vector = hex(vector.trim()).filter(|vector| vector.len() >= SALT).ok_or_else(unknown)?;
    let opened = match cipher.trim() {
        "AES-128-CBC" => open::<Aes128>(bytes, password, &vector, 16),
        "AES-192-CBC" => open::<Aes192>(bytes, password, &vector, 24),
        "AES-256-CBC" => open::<Aes256>(bytes, password, &vector, 32),
        "DES-EDE3-CBC" => open::<TdesEde3>(bytes, password, &vector, 24),
        _ => return Err(unknown()),
    };
    opened.ok_or_else(|| refused(name))
}

fn open<C>(bytes: &[u8], password: &str, vector: &[u8], length: usize) -> Option<Vec<u8>>
where
    C: BlockCipher + BlockDecryptMut + KeyInit,
    Decryptor<C>: KeyIvInit + BlockDecryptMut,
{
    let key = stretched(password.as_bytes(), &vector[..SALT], length);
    let cipher = Decryptor::<C>::new_from_slices(&key, vector).ok()?;
    let opened = cipher.decrypt_padded_vec_mut::<Pkcs7>(bytes).ok()?;
    // A wrong password passes the padding once in 256 times; a key is a sequence of DER.
    (opened.first() == Some(&0x30)).then_some(opened)
}

/// OpenSSL's `EVP_BytesToKey`, with MD5 and one round.
fn stretched(password: &[u8], salt: &[u8], length: usize) -> Vec<u8> {
    let mut key = Vec::with_capacity(length + 16);
    let mut last: Vec<u8> = Vec::new();
    while key.len() < length {
        last = Md5::new().chain_update(&last).chain_update(password).chain_update(salt).finalize().to_vec();
        key.extend_from_slice(&last);
    }
    key.truncate(length);
    key
}

fn hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|place| u8::from_str_radix(&text[place..place + 2], 16).ok()).collect()
}
