//! The list in a `Forwarded` header (RFC 7239, section 4).
//!
//! Not whom of it to believe, which is `forwarded`'s.
//!
//! Invariant: a list is read whole or not at all: no word of one element is ever another's. However long it is, no more
//! than `MOST` elements of `MOST_PAIRS` are looked at: a list is sent by HTTP/2 for less than it costs to read.

use std::borrow::Cow;

/// As many proxies are behind one another nowhere.
pub(crate) const MOST: usize = 100;

/// Of one element. The standard knows four.
const MOST_PAIRS: usize = 16;

/// What one proxy has added: whom it heard, by which scheme, and for which host. `by` is of no use to anybody here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) node: Option<String>,
    pub(crate) scheme: Option<String>,
    pub(crate) host: Option<String>,
}

/// It is not written as the grammar has it, or longer than any that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Adds the elements of one header to those of the ones before. One that has a pair says something, if only that there
/// was a proxy.
pub(crate) fn read(mut rest: &str, elements: &mut Vec<Element>) -> Result<(), Malformed> {
    loop {
        let (element, behind) = pairs(rest)?;
        rest = behind;
        if let Some(element) = element {
            if elements.len() == MOST {
                return Err(Malformed);
            }
            elements.push(element);
        }
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None if rest.is_empty() => return Ok(()),
            None => return Err(Malformed),
        }
    }
}

/// The pairs of one element; what is behind them begins with a comma, or is nothing.
fn pairs(mut rest: &str) -> Result<(Option<Element>, &str), Malformed> {
    let mut element = Element::default();
    let mut seen = [""; MOST_PAIRS];
    let mut count = 0;
    loop {
        rest = rest.trim_start_matches(BLANK);
        if !rest.starts_with([';', ',']) && !rest.is_empty() {
            let (name, value, behind) = pair(rest)?;
            if seen[..count].iter().any(|other| other.eq_ignore_ascii_case(name)) {
                return Err(Malformed);
            }
            *seen.get_mut(count).ok_or(Malformed)? = name;
            count += 1;
            if name.eq_ignore_ascii_case("for") {
                element.node = Some(value.into_owned());
            } else if name.eq_ignore_ascii_case("proto") {
                element.scheme = Some(value.into_owned());
            } else if name.eq_ignore_ascii_case("host") {
                element.host = Some(value.into_owned());
            }
            rest = behind.trim_start_matches(BLANK);
        }
        match rest.strip_prefix(';') {
            Some(next) => rest = next,
            None => return Ok(((count > 0).then_some(element), rest)),
        }
    }
}

const BLANK: [char; 2] = [' ', '\t'];

/// One name and its value, and what is behind.
fn pair(text: &str) -> Result<(&str, Cow<'_, str>, &str), Malformed> {
    let (name, rest) = text.split_once('=').ok_or(Malformed)?;
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(Malformed);
    }
    let (value, rest) = match rest.strip_prefix('"') {
        Some(quoted) => unquoted(quoted)?,
        None => {
            let end = rest.find(|letter| !is_bare(letter)).unwrap_or(rest.len());
            (rest[..end].into(), &rest[end..])
        }
    };
    if value.is_empty() { Err(Malformed) } else { Ok((name, value, rest)) }
}

/// What is in quotes, and what is behind them.
fn unquoted(text: &str) -> Result<(Cow<'_, str>, &str), Malformed> {
    let end = text.find(['"', '\\']).ok_or(Malformed)?;
    if text[end..].starts_with('"') {
        return Ok((text[..end].into(), &text[end + 1..]));
    }
    let mut value = text[..end].to_owned();
    let mut letters = text[end..].char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Ok((value.into(), &text[end + at + 1..])),
            '\\' => value.push(letters.next().ok_or(Malformed)?.1),
            _ => value.push(letter),
        }
    }
    Err(Malformed)
}

/// RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Addresses with colons and brackets should be in quotes, and often are not.
fn is_bare(letter: char) -> bool {
    letter.is_ascii_graphic() && (is_token(letter as u8) || matches!(letter, ':' | '[' | ']' | '/' | '@'))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    fn listed(text: &str) -> Result<Vec<Element>, Malformed> {
        let mut elements = Vec::new();
        read(text, &mut elements).map(|()| elements)
    }

    fn element(node: &str, scheme: &str, host: &str) -> Element {
        let given = |word: &str| (!word.is_empty()).then(|| word.to_owned());
        Element { node: given(node), scheme: given(scheme), host: given(host) }
    }

    #[test]
    fn lists_are_read_as_the_grammar_has_them() {
        let cases = [
            ("", vec![]),
            (" , ,", vec![]),
            ("for=a", vec![element("a", "", "")]),
            ("FOR=a;Proto=b;hOst=c;by=d;ext=e", vec![element("a", "b", "c")]),
            (" for=a ; proto=b , for=c", vec![element("a", "b", ""), element("c", "", "")]),
            (";for=a;;", vec![element("a", "", "")]),
            (r#"for="a,b;c=\"d\\""#, vec![element(r#"a,b;c="d\"#, "", "")]),
            ("by=b, ext=e", vec![Element::default(), Element::default()]),
            (r#"for="a\b";host="c""#, vec![element("ab", "", "c")]),
            ("for=[::1]:80", vec![element("[::1]:80", "", "")]),
            ("for=\"caf\u{e9}\"", vec![element("caf\u{e9}", "", "")]),
        ];
        for (text, expected) in cases {
            assert_eq!(listed(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_list_is_nothing() {
        for text in [
            "a",
            "for",
            "for=",
            "=a",
            "for =a",
            "for= a",
            "for=\"\"",
            "for=\"a",
            "for=\"a\\",
            "for=\"a\"b",
            "for=a b",
            "for=a;for=b",
            "for=a;FOR=b",
            "for=\u{e9}",
            "f\u{e9}r=a",
            "for={a}",
        ] {
            assert_eq!(listed(text), Err(Malformed), "{text}");
        }
    }

    #[test]
    fn what_follows_as_many_as_are_meant_is_not_looked_at() {
        let many = |count: usize| (0..count).map(|at| format!("x{at}=y")).collect::<Vec<_>>().join(";");
        assert_eq!(listed(&many(MOST_PAIRS)), Ok(vec![Element::default()]));
        assert_eq!(listed(&many(MOST_PAIRS + 1)), Err(Malformed));
        assert_eq!(listed(&many(4000)), Err(Malformed));

        let long = vec!["for=a"; MOST].join(",");
        let mut elements = Vec::new();
        assert_eq!(read(&long, &mut elements), Ok(()));
        assert_eq!(read(" , ", &mut elements), Ok(()));
        assert_eq!(elements.len(), MOST);
        assert_eq!(read("by=b", &mut elements), Err(Malformed), "of all headers together");
        assert_eq!(elements.len(), MOST);
        assert_eq!(listed(&format!("{long},for=a,{}", many(9))), Err(Malformed));
    }

    /// A list as a proxy may write it, every value in quotes.
    fn written(elements: &[Element]) -> String {
        let quoted = |name: &str, value: &Option<String>| {
            let value = value.as_ref()?.replace('\\', r"\\").replace('"', "\\\"");
            Some(format!("{name}=\"{value}\""))
        };
        let pairs = |each: &Element| {
            let pairs =
                [quoted("For", &each.node), quoted("proto", &each.scheme), quoted("HOST", &each.host)];
            pairs.into_iter().flatten().collect::<Vec<_>>().join(";")
        };
        elements.iter().map(pairs).collect::<Vec<_>>().join(", ")
    }

    proptest! {
        #[test]
        fn whatever_stands_in_quotes_is_read_as_it_was_meant(
            words in vec((option::of("[ -~]{1,12}"), option::of("[ -~]{1,12}"), option::of("[ -~]{1,12}")), 0..5),
        ) {
            let elements: Vec<_> = words
                .into_iter()
                .map(|(node, scheme, host)| Element { node, scheme, host })
                .filter(|element| *element != Element::default())
                .collect();
            prop_assert_eq!(listed(&written(&elements)), Ok(elements));
        }
    }
}
