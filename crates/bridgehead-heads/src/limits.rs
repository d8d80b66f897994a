//! The sizes that heads are measured by.
//!
//! Not their defaults, which are Python's (`config.py`).

/// How large a head may be.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// Bytes of the target.
    pub target: usize,
    /// Bytes of the header lines, with their ends.
    pub bytes: usize,
    /// Header lines.
    pub fields: usize,
}
