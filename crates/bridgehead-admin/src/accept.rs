//! Which of the two forms of the figures a scraper wants, by its `Accept`.
//!
//! Not what they say (`exposition`).
//!
//! Invariant: OpenMetrics is for who names it, and likes it no less than the older text.

use http::HeaderMap;
use http::header::ACCEPT;

/// In thousandths, as many as RFC 9110 section 12.4.2 allows.
type Weight = u16;

const WHOLE: Weight = 1000;
const OPENMETRICS: &str = "application/openmetrics-text";
/// What the older text is called, the most exact first.
const OLDER: [&str; 3] = ["text/plain", "text/*", "*/*"];

/// Whether it is OpenMetrics.
pub(crate) fn wants_openmetrics(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<_> = values.flat_map(|value| value.split(',')).map(range).collect();
    let given = |name: &str| named.iter().filter(|(range, _)| range == name).map(|(_, weight)| *weight).max();
    let older = OLDER.iter().find_map(|name| given(name)).unwrap_or(0);
    given(OPENMETRICS).is_some_and(|weight| weight > 0 && weight >= older)
}

/// A media range, and how much it is liked. Its version and charset are not looked at: there is one of each.
fn range(text: &str) -> (String, Weight) {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    let weight = parts.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| weight(value.trim()))
    });
    (name, weight.unwrap_or(WHOLE))
}

/// What is none is a refusal, for it was meant as less than all.
fn weight(text: &str) -> Weight {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 3 || !part.bytes().all(|digit| digit.is_ascii_digit()) {
        return 0;
    }
    match whole {
        "1" if part.bytes().all(|digit| digit == b'0') => WHOLE,
        "0" => format!("{part:0<3}").parse().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn wanted(values: &[&'static str]) -> bool {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT, HeaderValue::from_static(value));
        }
        wants_openmetrics(&headers)
    }

    #[test]
    fn openmetrics_is_for_who_names_it_and_likes_it_no_less() {
        for (value, openmetrics) in [
            // Prometheus 2 and 3, curl, a browser.
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                true,
            ),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                true,
            ),
            ("*/*", false),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false),
            ("application/openmetrics-text", true),
            ("APPLICATION/OPENMETRICS-TEXT ; Version=1.0.0 ; Q=0.5", true),
            ("application/openmetrics-text;q=0", false),
            ("application/openmetrics-text;q=0.000, */*", false),
            ("text/plain;version=0.0.4;q=1,application/openmetrics-text;q=0.1", false),
            ("text/plain;q=0.25, application/openmetrics-text;q=0.3", true),
            ("text/plain;q=0.5, application/openmetrics-text;q=0.5", true),
            ("*/*;q=0.9, text/plain;q=0.1, application/openmetrics-text;q=0.2", true),
            ("text/*;q=0.9, application/openmetrics-text;q=0.2", false),
            ("application/openmetrics-text;q=most", false),
            ("application/openmetrics-text-like", false),
            ("", false),
        ] {
            assert_eq!(wanted(&[value]), openmetrics, "{value}");
        }
    }

    #[test]
    fn several_lines_are_one() {
        assert!(wanted(&["text/plain;q=0.5", "application/openmetrics-text"]));
        assert!(!wanted(&["text/plain", "application/openmetrics-text;q=0.5"]));
        assert!(!wanted(&[]));
    }
}
