//! The list in a `Forwarded` header (RFC 7239, section 4).
//!
//! Not whom of it to believe, which is `forwarded`'s.
//!
//! Invariant: a list is read whole or not at all: no word of one element is ever another's.

/// What one proxy has added: whom it heard, by which scheme, and for which host. `by` is of no use to anybody here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) node: Option<String>,
    pub(crate) scheme: Option<String>,
    pub(crate) host: Option<String>,
}

/// It is not written as the grammar has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Adds the elements of one header to those of the ones before.
pub(crate) fn read(mut rest: &str, elements: &mut Vec<Element>) -> Result<(), Malformed> {
    loop {
        let mut element = Element::default();
        rest = pairs(rest, &mut element)?;
        if element != Element::default() {
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
fn pairs<'a>(mut rest: &'a str, element: &mut Element) -> Result<&'a str, Malformed> {
    let mut seen = Vec::new();
    loop {
        rest = rest.trim_start_matches(BLANK);
        if !rest.starts_with([';', ',']) && !rest.is_empty() {
            let (name, value, behind) = pair(rest)?;
            let name = name.to_ascii_lowercase();
            match name.as_str() {
                "for" => element.node = Some(value),
                "proto" => element.scheme = Some(value),
                "host" => element.host = Some(value),
                _ => {}
            }
            if seen.contains(&name) {
                return Err(Malformed);
            }
            seen.push(name);
            rest = behind.trim_start_matches(BLANK);
        }
        match rest.strip_prefix(';') {
            Some(next) => rest = next,
            None => return Ok(rest),
        }
    }
}

const BLANK: [char; 2] = [' ', '\t'];

/// One name and its value, and what is behind.
fn pair(text: &str) -> Result<(&str, String, &str), Malformed> {
    let (name, rest) = text.split_once('=').ok_or(Malformed)?;
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(Malformed);
    }
    let (value, rest) = match rest.strip_prefix('"') {
        Some(quoted) => unquoted(quoted)?,
        None => {
            let end = rest.find(|letter| !is_bare(letter)).unwrap_or(rest.len());
            (rest[..end].to_owned(), &rest[end..])
        }
    };
    if value.is_empty() { Err(Malformed) } else { Ok((name, value, rest)) }
}

/// What is in quotes, and what is behind them.
fn unquoted(text: &str) -> Result<(String, &str), Malformed> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Ok((value, &text[at + 1..])),
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
}
