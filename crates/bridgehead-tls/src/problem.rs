//! What is wrong with what the operator gave us, and what to do about it.

use std::io;
use std::path::Path;

/// The operator's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Problem {
    /// What came, and what was due.
    pub what: String,
    /// What to do next.
    pub next: String,
}

impl Problem {
    pub(crate) fn new(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self { what: what.into(), next: next.into() }
    }
}

/// The whole file; `option` is who named it.
pub(crate) fn read(path: &Path, option: &str) -> Result<Vec<u8>, Problem> {
    std::fs::read(path).map_err(|error| {
        let next = match error.kind() {
            io::ErrorKind::NotFound => {
                format!("check the path of {option}; it is looked for from the current directory")
            }
            io::ErrorKind::PermissionDenied => "give this user the right to read it".to_owned(),
            _ => format!("give a readable file with {option}"),
        };
        // Without the number, which tells nobody more.
        let error = error.to_string();
        let why = error.split(" (os error").next().unwrap_or_default().to_lowercase();
        Problem::new(format!("{} cannot be read: {why}", path.display()), next)
    })
}
