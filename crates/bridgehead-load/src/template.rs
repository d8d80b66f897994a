//! Texts with places that each request fills anew: `{n}`, `{uuid}`, `{random:1-100}`.
//!
//! Not a language: what looks like a place and is none is refused, and every other brace stands for itself.
//!
//! Invariant: filling cannot fail.

use std::fmt::Write;

use crate::random::Random;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Number,
    Uuid,
    Random(u64, u64),
}

/// A text that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

impl Template {
    /// Understands a text. `{{n}` is `{n}` as it stands.
    pub(crate) fn parse(written: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = written;
        while let Some(at) = rest.find('{') {
            text.push_str(&rest[..at]);
            let (braces, behind) = rest[at..].split_at(1);
            if let Some(place) = behind.strip_prefix('{').and_then(place) {
                if behind[1 + place.len() + 1..].starts_with('}') {
                    text.push('{'); // of somebody else's template, which has two on either side
                }
                text.push_str(braces);
                text.push_str(place);
                text.push('}');
                rest = &behind[1 + place.len() + 1..];
            } else if let Some(place) = place(behind) {
                if !text.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                }
                parts.push(part(place)?);
                rest = &behind[place.len() + 1..];
            } else {
                text.push_str(braces);
                rest = behind;
            }
        }
        text.push_str(rest);
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        Ok(Self(parts))
    }

    /// The text, when it is always the same.
    pub(crate) fn constant(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The text for request `number`.
    pub(crate) fn fill(&self, number: u64, random: &mut Random) -> String {
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Number => push(&mut filled, format_args!("{number}")),
                Part::Uuid => push_uuid(&mut filled, random),
                Part::Random(least, most) => {
                    push(&mut filled, format_args!("{}", random.between(*least, *most)));
                }
            }
        }
        filled
    }
}

/// What is between the braces, if it looks like a place: small letters, and perhaps a colon with more behind it.
fn place(behind: &str) -> Option<&str> {
    let inner = &behind[..behind.find('}')?];
    let (name, _) = inner.split_once(':').unwrap_or((inner, ""));
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
    (is_name && !inner.contains(['"', '{', '\n'])).then_some(inner)
}

fn part(place: &str) -> Result<Part, String> {
    match place.split_once(':') {
        None if place == "n" => Ok(Part::Number),
        None if place == "uuid" => Ok(Part::Uuid),
        Some(("random", range)) => {
            let numbers = range.split_once('-').and_then(|(least, most)| {
                Some((least.trim().parse::<u64>().ok()?, most.trim().parse::<u64>().ok()?))
            });
            match numbers {
                Some((least, most)) if least <= most => Ok(Part::Random(least, most)),
                _ => Err(format!("{{{place}}} is not a range; write {{random:1-100}}")),
            }
        }
        _ => Err(format!(
            "{{{place}}} is no template; there are {{n}}, {{uuid}} and {{random:1-100}} (write {{{{{place}}} for the text itself)"
        )),
    }
}

/// Version 4 of RFC 9562, section 5.4.
fn push_uuid(filled: &mut String, random: &mut Random) {
    let (high, low) = (random.next(), random.next());
    let high = (high & !0xf000) | 0x4000;
    let low = (low & !(0b11 << 62)) | (0b10 << 62);
    let (tail, node) = (low >> 48, low & 0xffff_ffff_ffff);
    let (first, second, third) = (high >> 32, (high >> 16) & 0xffff, high & 0xffff);
    push(filled, format_args!("{first:08x}-{second:04x}-{third:04x}-{tail:04x}-{node:012x}"));
}

fn push(filled: &mut String, shown: std::fmt::Arguments<'_>) {
    filled.write_fmt(shown).expect("a string takes whatever is written");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(written: &str) -> String {
        Template::parse(written).expect("it is right").fill(7, &mut Random::new(1, 1))
    }

    #[test]
    fn places_are_filled_and_other_braces_stand_for_themselves() {
        assert_eq!(filled("/items/{n}?again={n}"), "/items/7?again=7");
        assert_eq!(filled("{\"a\": {\"b\": 1}, \"c\": {}}"), "{\"a\": {\"b\": 1}, \"c\": {}}");
        assert_eq!(filled("{\"id\": \"{n}\"}"), "{\"id\": \"7\"}");
        assert_eq!(filled("{{n} and {"), "{n} and {");
        assert_eq!(filled("Hello {{name}}, {{n}}"), "Hello {{name}}, {{n}}");
        assert_eq!(filled("{random:4-4}"), "4");
        assert_eq!(filled("ä{n}ö"), "ä7ö");
    }

    #[test]
    fn a_uuid_has_its_form_and_is_another_each_time() {
        let template = Template::parse("{uuid}").expect("it is right");
        let mut random = Random::new(1, 1);
        let (one, other) = (template.fill(1, &mut random), template.fill(1, &mut random));
        assert_ne!(one, other);
        let lengths: Vec<usize> = one.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(&one[14..15], "4");
        assert!(matches!(&one[19..20], "8" | "9" | "a" | "b"));
    }

    #[test]
    fn what_looks_like_a_place_and_is_none_is_refused() {
        for (written, part) in [
            ("/{id}", "{id} is no template"),
            ("{random:9-1}", "not a range"),
            ("{random:x}", "not a range"),
            ("{n:1}", "{n:1} is no template"),
        ] {
            let refused = Template::parse(written).expect_err(written);
            assert!(refused.contains(part), "{refused}");
        }
    }

    #[test]
    fn a_text_without_places_is_constant() {
        let constant = |written| Template::parse(written).expect("it is right").constant().map(str::to_owned);
        assert_eq!(constant("/a"), Some("/a".to_owned()));
        assert_eq!(constant(""), Some(String::new()));
        assert_eq!(constant("/{n}"), None);
    }
}
