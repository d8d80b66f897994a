//! How much of a body is still due.
//!
//! Not what to do about a wrong length: `http` decides that for responses.
//!
//! Invariant: what was spent never exceeds what was declared.
//!
//! | state         | spend n ≤ left  | spend n > left  | settle       |
//! |---------------|-----------------|-----------------|--------------|
//! | `Declared(0)` | `Declared(0)`   | `Excess`        | settled      |
//! | `Declared(k)` | `Declared(k-n)` | `Excess`        | `Missing(k)` |
//! | `Open`        | `Open`          | (cannot happen) | settled      |

/// What is still due of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// So many bytes, no more and no fewer.
    Declared(u64),
    /// As many as there will be.
    Open,
}

/// More bytes were spent than were due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excess {
    /// How many of them still fit.
    pub fits: usize,
    /// How many do not. Never 0.
    pub excess: u64,
}

/// So many bytes were still due when the body ended. Never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing(pub u64);

impl Length {
    /// Takes so many bytes off what is due.
    pub fn spend(self, offered: usize) -> Result<Self, Excess> {
        let Self::Declared(left) = self else { return Ok(Self::Open) };
        // `usize` is at most 64 bits wide wherever Rust runs, so both casts keep the number: the second one
        // because `left` is less than `offered` there.
        let bytes = offered as u64;
        match left.checked_sub(bytes) {
            Some(left) => Ok(Self::Declared(left)),
            None => Err(Excess { fits: left as usize, excess: bytes - left }),
        }
    }

    /// Ends the body.
    pub fn settle(self) -> Result<(), Missing> {
        match self {
            Self::Declared(0) | Self::Open => Ok(()),
            Self::Declared(missing) => Err(Missing(missing)),
        }
    }
}

impl From<Option<u64>> for Length {
    fn from(declared: Option<u64>) -> Self {
        declared.map_or(Self::Open, Self::Declared)
    }
}
