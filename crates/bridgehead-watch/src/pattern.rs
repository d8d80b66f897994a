//! Patterns over paths: `*.py`, `templates/*.html`, `src/**/*.sql`, `[!_]*.toml`.
//!
//! A pattern is compared with the last parts of a path, as Python's `PurePath.match` has it; one that begins with `/`
//! with all of them. `*` stays within a part, `**` stands for any number of parts.
//!
//! Pure: no file is looked at.

use std::path::{Component, Path};

/// A pattern, taken apart once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
    reach: Reach,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// The last parts of a path.
    Tail,
    /// All of it.
    Whole,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// `**`
    Any,
    Name(Vec<Token>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// `*`
    Run,
    /// `?`
    One,
    Letter(char),
    /// `[a-z]`, `[!a-z]`
    Set {
        ranges: Vec<(char, char)>,
        wanted: bool,
    },
}

impl Pattern {
    /// Takes a pattern apart. Every text is one: a `[` that is not closed is a letter.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let reach = if text.starts_with('/') { Reach::Whole } else { Reach::Tail };
        let parts = text
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .map(|part| if part == "**" { Part::Any } else { Part::Name(tokens(part)) })
            .collect();
        Self { parts, reach }
    }

    /// Whether it names one file only, without any wildcard.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.parts.iter().all(|part| match part {
            Part::Any => false,
            Part::Name(tokens) => tokens.iter().all(|token| matches!(token, Token::Letter(_))),
        })
    }

    /// Whether it is one of whole paths.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.reach == Reach::Whole
    }

    /// Whether `path` is meant by it.
    #[must_use]
    pub fn matches(&self, path: &Path) -> bool {
        let names: Vec<Vec<char>> = path
            .components()
            .filter_map(|component| match component {
                Component::Normal(name) => Some(name.to_string_lossy().chars().collect()),
                _ => None,
            })
            .collect();
        match self.reach {
            _ if self.parts.is_empty() => false,
            Reach::Whole => parts_match(&self.parts, &names),
            Reach::Tail => (0..names.len()).any(|start| parts_match(&self.parts, &names[start..])),
        }
    }
}

fn tokens(part: &str) -> Vec<Token> {
    let letters: Vec<char> = part.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        at += 1;
        tokens.push(match letter {
            '*' => Token::Run,
            '?' => Token::One,
            '[' => match set(&letters[at..]) {
                Some((token, length)) => {
                    at += length;
                    token
                }
                None => Token::Letter('['),
            },
            other => Token::Letter(other),
        });
    }
    tokens
}

/// What stands behind a `[`, and how many letters that are with its `]`. A `]` that comes first is one of the set.
fn set(letters: &[char]) -> Option<(Token, usize)> {
    let negated = usize::from(letters.first() == Some(&'!'));
    let end = negated + 1 + letters.get(negated + 1..)?.iter().position(|&letter| letter == ']')?;
    let mut inside = &letters[negated..end];
    let mut ranges = Vec::new();
    while let Some((&first, rest)) = inside.split_first() {
        if let ['-', last, others @ ..] = rest {
            ranges.push((first, *last));
            inside = others;
        } else {
            ranges.push((first, first));
            inside = rest;
        }
    }
    Some((Token::Set { ranges, wanted: negated == 0 }, end + 1))
}

fn parts_match(parts: &[Part], names: &[Vec<char>]) -> bool {
    match parts.split_first() {
        None => names.is_empty(),
        Some((Part::Any, rest)) => (0..=names.len()).any(|skipped| parts_match(rest, &names[skipped..])),
        Some((Part::Name(tokens), rest)) => names
            .split_first()
            .is_some_and(|(name, others)| name_matches(tokens, name) && parts_match(rest, others)),
    }
}

/// Goes back to the last `*` when it is stuck, and to no earlier one: that takes n × m steps at most.
fn name_matches(tokens: &[Token], name: &[char]) -> bool {
    let (mut token, mut letter) = (0, 0);
    let mut back = None;
    while letter < name.len() {
        match tokens.get(token) {
            Some(Token::Run) => {
                back = Some((token + 1, letter));
                token += 1;
            }
            Some(other) if other.takes(name[letter]) => {
                token += 1;
                letter += 1;
            }
            _ => {
                let Some((behind, from)) = back else { return false };
                back = Some((behind, from + 1));
                token = behind;
                letter = from + 1;
            }
        }
    }
    tokens[token..].iter().all(|token| *token == Token::Run)
}

impl Token {
    fn takes(&self, letter: char) -> bool {
        match self {
            Self::Run => false,
            Self::One => true,
            Self::Letter(own) => *own == letter,
            Self::Set { ranges, wanted } => {
                ranges.iter().any(|&(first, last)| (first..=last).contains(&letter)) == *wanted
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_the_last_parts_of_a_path() {
        for (pattern, path, expected) in [
            ("*.py", "main.py", true),
            ("*.py", "/srv/shop/main.py", true),
            ("*.py", "main.pyc", false),
            ("*.py", "main.py/x", false),
            ("main.py", "/srv/main.py", true),
            ("main.py", "/srv/domain.py", false),
            ("templates/*.html", "/srv/templates/a.html", true),
            ("templates/*.html", "/srv/templates/deep/a.html", false),
            ("templates/**/*.html", "/srv/templates/deep/er/a.html", true),
            ("templates/**/*.html", "/srv/templates/a.html", true),
            ("templates/**", "/srv/templates/deep/a.html", true),
            ("./a.py", "b/a.py", true),
            ("/srv/*.py", "/srv/a.py", true),
            ("/srv/*.py", "/srv/b/a.py", false),
            ("*", "/srv/a", true),
            ("", "/srv/a", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(Path::new(path)), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn wildcards_stay_within_a_name() {
        for (pattern, name, expected) in [
            ("*.py[cod]", "a.pyc", true),
            ("*.py[cod]", "a.py", false),
            ("[!_]*.py", "_a.py", false),
            ("[!_]*.py", "a.py", true),
            ("[a-cx]?", "b1", true),
            ("[a-cx]?", "d1", false),
            ("[]]", "]", true),
            ("[!]]", "a", true),
            ("[a", "[a", true),
            ("[", "[", true),
            ("[!", "[!", true),
            ("[a-]", "-", true),
            (".*", ".env", true),
            (".*", "env", false),
            ("*~", "main.py~", true),
            ("*a*b", "xaxaxb", true),
            ("*a*b", "xaxbx", false),
            ("a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
            ("??", "äö", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(Path::new(name)), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_literal_has_no_wildcard() {
        for (pattern, expected) in
            [(".env", true), ("conf/.env", true), ("*.py", false), ("a/**/b", false), ("[ab]", false)]
        {
            assert_eq!(Pattern::new(pattern).is_literal(), expected, "{pattern}");
        }
    }
}
