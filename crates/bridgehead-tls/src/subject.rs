//! Whose a certificate is, as RFC 4514 writes names.
//!
//! Not whether it is good: rustls has judged that. Why no library reads it is in decision 0010.
//!
//! Invariant: what cannot be written as text is written in hex, and no part of a name is left out.

use std::fmt::Write;

use pkcs8::ObjectIdentifier;
use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// The names that RFC 4514 has for what a part of a name is of; any other is written by its number, and its value in hex.
const KINDS: [(&str, &str); 9] = [
    ("CN", "2.5.4.3"),
    ("L", "2.5.4.7"),
    ("ST", "2.5.4.8"),
    ("O", "2.5.4.10"),
    ("OU", "2.5.4.11"),
    ("C", "2.5.4.6"),
    ("STREET", "2.5.4.9"),
    ("DC", "0.9.2342.19200300.100.1.25"),
    ("UID", "0.9.2342.19200300.100.1.1"),
];

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const IDENTIFIER: u8 = 0x06;

/// A value of DER, and what is behind it.
struct Value<'a> {
    tag: u8,
    contents: &'a [u8],
    /// With its tag and length.
    whole: &'a [u8],
    rest: &'a [u8],
}

/// `None`: this is no certificate, which none is that a handshake has found good.
pub(crate) fn subject(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    written(certificate.subject())
}

/// The last part first.
fn written(mut parts: &[u8]) -> Option<String> {
    let mut all = Vec::new();
    while !parts.is_empty() {
        let part = value(parts)?;
        all.push(part_of((part.tag == SET).then_some(part.contents)?)?);
        parts = part.rest;
    }
    all.reverse();
    Some(all.join(","))
}

/// One part, which may be of several things at once.
fn part_of(mut attributes: &[u8]) -> Option<String> {
    let mut all = Vec::new();
    while !attributes.is_empty() {
        let attribute = value(attributes)?;
        let kind = value((attribute.tag == SEQUENCE).then_some(attribute.contents)?)?;
        let number = ObjectIdentifier::from_bytes((kind.tag == IDENTIFIER).then_some(kind.contents)?).ok()?;
        all.push(attribute_of(&number.to_string(), &value(kind.rest)?));
        attributes = attribute.rest;
    }
    Some(all.join("+"))
}

fn attribute_of(number: &str, value: &Value<'_>) -> String {
    let name = KINDS.iter().find(|(_, known)| *known == number).map(|(name, _)| *name);
    match (name, text(value)) {
        (Some(name), Some(text)) => format!("{name}={}", escaped(&text)),
        (name, _) => {
            let mut written = format!("{}=#", name.unwrap_or(number));
            for byte in value.whole {
                write!(written, "{byte:02x}").expect("a string takes whatever is written");
            }
            written
        }
    }
}

/// By X.690, section 8.23, and X.680, section 41.
fn text(value: &Value<'_>) -> Option<String> {
    let bytes = value.contents;
    match value.tag {
        // UTF8String; NumericString, PrintableString, IA5String and VisibleString are ASCII.
        0x0c => std::str::from_utf8(bytes).ok().map(str::to_owned),
        0x12 | 0x13 | 0x16 | 0x1a if bytes.is_ascii() => std::str::from_utf8(bytes).ok().map(str::to_owned),
        // TeletexString, which everybody takes for Latin-1.
        0x14 => Some(bytes.iter().copied().map(char::from).collect()),
        // UniversalString.
        0x1c if bytes.len().is_multiple_of(4) => bytes
            .chunks_exact(4)
            .map(|unit| char::from_u32(u32::from_be_bytes([unit[0], unit[1], unit[2], unit[3]])))
            .collect(),
        // BMPString.
        0x1e if bytes.len().is_multiple_of(2) => {
            let units = bytes.chunks_exact(2).map(|unit| u16::from_be_bytes([unit[0], unit[1]]));
            char::decode_utf16(units).collect::<Result<_, _>>().ok()
        }
        _ => None,
    }
}

/// RFC 4514, section 2.4.
fn escaped(text: &str) -> String {
    let mut written = String::new();
    for (place, letter) in text.char_indices() {
        let is_first = place == 0;
        let is_last = place + letter.len_utf8() == text.len();
        match letter {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' => written.extend(['\\', letter]),
            '#' if is_first => written.push_str("\\#"),
            ' ' if is_first || is_last => written.push_str("\\ "),
            '\0'..='\x1f' | '\x7f' => {
                write!(written, "\\{:02x}", u32::from(letter)).expect("a string takes whatever is written");
            }
            _ => written.push(letter),
        }
    }
    written
}

/// The first value that is there (X.690, sections 8.1 and 10.1). A tag of several bytes is in no name.
fn value(bytes: &[u8]) -> Option<Value<'_>> {
    let (&[tag, length], rest) = bytes.split_first_chunk()?;
    let more = match length {
        ..=0x7f => 0,
        0x81..=0x84 => usize::from(length - 0x80),
        _ => return None,
    };
    let length = if more == 0 {
        usize::from(length)
    } else {
        rest.get(..more)?.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte))
    };
    let end = 2 + more + length;
    let contents = bytes.get(2 + more..end)?;
    Some(Value { tag, contents, whole: &bytes[..end], rest: &bytes[end..] })
}

#[cfg(test)]
mod tests {
    use rcgen::string::{BmpString, TeletexString, UniversalString};
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

    use super::*;

    fn name(parts: Vec<(DnType, DnValue)>) -> Option<String> {
        let mut wanted = CertificateParams::new(Vec::new()).expect("no names");
        wanted.distinguished_name = DistinguishedName::new();
        parts.into_iter().for_each(|(kind, value)| wanted.distinguished_name.push(kind, value));
        let made = wanted.self_signed(&KeyPair::generate().expect("a key")).expect("a certificate");
        subject(made.der())
    }

    #[test]
    fn what_rfc_4514_has_no_name_for_is_written_by_its_number() {
        let parts = vec![
            (DnType::CountryName, "DE".into()),
            (DnType::CustomDnType(vec![2, 5, 4, 5]), "12, 3".into()),
            (DnType::CommonName, "alice=a".into()),
            (DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]), "a@b".into()),
        ];
        let due = "1.2.840.113549.1.9.1=#0c03614062,CN=alice=a,2.5.4.5=#0c0531322c2033,C=DE";
        assert_eq!(name(parts).as_deref(), Some(due));
    }

    #[test]
    fn a_text_is_written_whichever_kind_it_is_of() {
        let universal = UniversalString::try_from("Zażółć 🔑").expect("any text");
        let parts = vec![
            (DnType::CommonName, DnValue::UniversalString(universal)),
            (DnType::OrganizationName, DnValue::BmpString(BmpString::try_from("Żó").expect("two letters"))),
            (
                DnType::OrganizationalUnitName,
                DnValue::TeletexString(TeletexString::try_from("R+D").expect("ASCII")),
            ),
        ];
        assert_eq!(name(parts).as_deref(), Some("OU=R\\+D,O=Żó,CN=Zażółć 🔑"));
        for (tag, bytes, due) in [
            (0x12, &b"12"[..], Some("12")),
            (0x14, b"\xdcber", Some("Über")),
            (0x13, b"\xff", None),
            (0x1c, b"\0\0\xd8\0", None),
            (0x1c, b"\0\0\0", None),
            (0x1e, b"\xd8\0", None),
            (0x1e, b"a", None),
            (0x02, b"1", None),
        ] {
            let value = Value { tag, contents: bytes, whole: bytes, rest: &[] };
            assert_eq!(text(&value).as_deref(), due, "{tag:02x} {bytes:?}");
        }
    }

    #[test]
    fn letters_that_mean_something_are_escaped() {
        for (text, due) in [
            (" a b ", "\\ a b\\ "),
            ("#1 #2", "\\#1 #2"),
            ("a,b;c\"", "a\\,b\\;c\\\""),
            ("\0\n\u{7f}", "\\00\\0a\\7f"),
            (" ", "\\ "),
        ] {
            assert_eq!(escaped(text), due);
        }
    }

    #[test]
    fn what_is_cut_off_or_of_another_form_is_no_name() {
        // {2.5.4.3: "ab"}
        let whole = b"\x31\x0b\x30\x09\x06\x03\x55\x04\x03\x0c\x02ab";
        assert_eq!(written(whole).as_deref(), Some("CN=ab"));
        for cut in 1..whole.len() {
            assert_eq!(written(&whole[..cut]), None, "{cut}");
        }
        for other in
            [&b"\x30\x00"[..], b"\x31\x80\x00\x00", b"\x31\x85\0\0\0\0\0", b"\x31\x84\xff\xff\xff\xff"]
        {
            assert_eq!(written(other), None, "{other:?}");
        }
        assert_eq!(written(b"").as_deref(), Some(""));
    }
}
