//! What keeps a loop from going on.
//!
//! Not how that is found out, which is the bridge's (`suspicion.rs`).

use crate::system_call::SystemCall;

/// What holds the loop's thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// It was over before anybody knew, or the system does not tell.
    #[default]
    Unknown,
    /// Python code: it computes, and lets others have the GIL when they ask.
    Python,
    /// A call into C that keeps the GIL: no thread of Python's goes on.
    CallWithGil,
    /// A call into C that computes without the GIL: others go on, the loop does not.
    CallWithoutGil,
    /// It waits for the system, without the GIL.
    SystemCall(SystemCall),
    /// It waits for the GIL, which another thread keeps.
    OtherThread,
}

impl Cause {
    pub(crate) const ROOM: usize = 8;

    /// All of them; a system call stands for any.
    pub const ALL: [Self; 6] = [
        Self::Unknown,
        Self::Python,
        Self::CallWithGil,
        Self::CallWithoutGil,
        Self::SystemCall(SystemCall::ANY),
        Self::OtherThread,
    ];

    /// For labels.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Python => "python",
            Self::CallWithGil => "call_with_gil",
            Self::CallWithoutGil => "call_without_gil",
            Self::SystemCall(_) => "system_call",
            Self::OtherThread => "other_thread",
        }
    }

    /// For people.
    #[must_use]
    pub fn in_words(self) -> String {
        match self {
            Self::Unknown => "unknown".to_owned(),
            Self::Python => "Python code".to_owned(),
            Self::CallWithGil => "a C call that holds the GIL".to_owned(),
            Self::CallWithoutGil => "a C call that let go of the GIL".to_owned(),
            Self::SystemCall(call) => format!("a blocking system call ({call})"),
            Self::OtherThread => "a wait for the GIL, which another thread holds".to_owned(),
        }
    }

    /// In one word.
    #[must_use]
    pub fn code(self) -> u64 {
        let call = if let Self::SystemCall(call) = self { u64::from(call.number()) } else { 0 };
        call << 8 | self.place() as u64
    }

    /// What that word says.
    #[must_use]
    pub fn of_code(code: u64) -> Self {
        match Self::ALL.get((code & 0xff) as usize) {
            Some(Self::SystemCall(_)) => Self::SystemCall(SystemCall::of((code >> 8 & 0xffff) as u16)),
            Some(cause) => *cause,
            None => Self::Unknown,
        }
    }

    pub(crate) fn place(self) -> usize {
        match self {
            Self::Unknown => 0,
            Self::Python => 1,
            Self::CallWithGil => 2,
            Self::CallWithoutGil => 3,
            Self::SystemCall(_) => 4,
            Self::OtherThread => 5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_known_by_its_word() {
        let read = SystemCall::named("read").expect("it is one that blocks");
        for cause in Cause::ALL.into_iter().chain([Cause::SystemCall(read)]) {
            assert_eq!(Cause::of_code(cause.code()), cause);
        }
        assert_eq!(Cause::of_code(77), Cause::Unknown);
        assert!(Cause::ALL.iter().enumerate().all(|(at, cause)| cause.place() == at && at < Cause::ROOM));
        assert_eq!(Cause::SystemCall(read).in_words(), "a blocking system call (read)");
    }
}
