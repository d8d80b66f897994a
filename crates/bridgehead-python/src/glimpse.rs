//! Where the loop's thread is while it keeps the GIL: it says so itself, when a signal asks it to.
//!
//! CPython's `faulthandler` answers (`glimpse.py` has it do so): it writes the frames of the thread that the signal interrupts,
//! which stand still meanwhile, into a file in memory. No other thread could read them, since they change while their thread
//! runs. Not when it is asked (`lookout.rs`).
//!
//! Invariant: who is asked computes: no system call is cut short by it.

use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::ffi::{self, Disposition};
use crate::suspicion::{Doing, Suspect};

/// Between two looks at what is written, and so many of them without another byte are its end.
const PAUSE: Duration = Duration::from_millis(1);
const STILL: u32 = 5;
/// Whoever computes has written all of it by then, on a machine that is busy as well.
const PATIENCE: Duration = Duration::from_millis(100);
/// What is said of the place of what has no frame.
const NAMELESS: &str = "a callback that is no Python code";

/// `bridgehead.glimpse.Glass`: what to ask by, and whose frames are passed over.
#[derive(FromPyObject)]
pub(crate) struct Glass {
    signal: i32,
    descriptor: RawFd,
    /// Files that begin so are libraries', or ours, unless they begin so, or run loops, and end so.
    libraries: Vec<String>,
    theirs: Vec<String>,
    loops: Vec<String>,
}

/// Asks.
#[derive(Debug)]
pub(crate) struct Glimpser {
    signal: i32,
    /// What answers, as long as nobody else has taken the signal.
    handler: Disposition,
    file: File,
    whose: Whose,
    /// The last question had no answer in time: it may still come.
    asked: bool,
}

#[derive(Debug)]
struct Whose {
    libraries: Vec<String>,
    theirs: Vec<String>,
    loops: Vec<String>,
}

/// One line of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Frame<'a> {
    file: &'a str,
    line: &'a str,
    function: &'a str,
}

impl Glass {
    pub(crate) fn open(self) -> io::Result<Glimpser> {
        let Self { signal, descriptor, libraries, theirs, loops } = self;
        Ok(Glimpser {
            signal,
            handler: Disposition::of(signal),
            file: File::from(ffi::duplicate(descriptor)?),
            whose: Whose { libraries, theirs, loops },
            asked: false,
        })
    }
}

impl Glimpser {
    /// The place where a thread is that computes and keeps the GIL, in words.
    pub(crate) fn look(&mut self, suspect: Suspect) -> Option<String> {
        if self.asked && self.written() == 0 {
            return None;
        }
        self.clear().ok()?;
        let answers = Disposition::of(self.signal) == self.handler;
        if !answers || suspect.does() != Doing::Runs || !ffi::signal_thread(suspect.0, self.signal) {
            return None;
        }
        let answer = self.answer();
        self.asked = answer.is_none();
        self.whose.place_in(&answer?)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()
    }

    fn written(&self) -> u64 {
        self.file.metadata().map_or(0, |file| file.len())
    }

    /// What is written, once nothing more comes.
    fn answer(&self) -> Option<String> {
        let (began, mut length, mut still) = (Instant::now(), 0, 0);
        while still < STILL {
            if began.elapsed() > PATIENCE {
                return None;
            }
            thread::sleep(PAUSE);
            let now = self.written();
            still = if now == length && now > 0 { still + 1 } else { 0 };
            length = now;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.file.read_exact_at(&mut bytes, 0).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Whose {
    /// The innermost line of the application's; of anybody's if it has none.
    fn place_in(&self, answer: &str) -> Option<String> {
        let frames = || answer.lines().filter_map(frame);
        let runs_a_loop = |frame: &Frame<'_>| self.loops.iter().any(|each| frame.file.ends_with(each));
        let begins = |names: &[String], file: &str| names.iter().any(|name| file.starts_with(name.as_str()));
        let is_theirs = |frame: &Frame<'_>| {
            begins(&self.theirs, frame.file)
                || !(begins(&self.libraries, frame.file) || frame.file.starts_with("<frozen "))
        };
        let inner = frames().next()?;
        if runs_a_loop(&inner) {
            return Some(NAMELESS.to_owned());
        }
        let theirs = frames().take_while(|frame| !runs_a_loop(frame)).find(is_theirs);
        Some(in_words(&theirs.unwrap_or(inner)))
    }
}

/// `  File "/app/shop.py", line 31 in load`.
fn frame(line: &str) -> Option<Frame<'_>> {
    let (file, place) = line.trim_start().strip_prefix("File \"")?.rsplit_once("\", line ")?;
    let (line, function) = place.split_once(" in ")?;
    Some(Frame { file, line, function })
}

/// As `whereabouts.py` says it, below the current directory as it is seen from there.
fn in_words(frame: &Frame<'_>) -> String {
    let Frame { file, line, function } = frame;
    let here = std::env::current_dir().ok();
    let below = here.as_deref().and_then(|here| file.strip_prefix(here.to_str()?)?.strip_prefix('/'));
    format!("{function}() at {}:{line}", below.unwrap_or(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"Stack (most recent call first):
  File "/usr/lib/python3.11/re/__init__.py", line 166 in match
  File "/app/shop/reports.py", line 31 in load
  File "/usr/lib/python3.11/site-packages/fastapi/routing.py", line 7 in run
  File "/usr/lib/python3.11/asyncio/base_events.py", line 1922 in _run_once
  File "/app/main.py", line 3 in <module>
"#;

    fn whose(theirs: &[&str]) -> Whose {
        Whose {
            libraries: vec!["/usr/lib/python3.11".to_owned()],
            theirs: theirs.iter().map(|each| (*each).to_owned()).collect(),
            loops: vec!["asyncio/base_events.py".to_owned()],
        }
    }

    fn place(answer: &str) -> Option<String> {
        whose(&[]).place_in(answer)
    }

    #[test]
    fn the_innermost_line_of_the_applications_is_the_place() {
        assert_eq!(place(ANSWER).as_deref(), Some("load() at /app/shop/reports.py:31"));
        let theirs = whose(&["/usr/lib/python3.11/re/"]).place_in(ANSWER);
        assert_eq!(theirs.as_deref(), Some("match() at /usr/lib/python3.11/re/__init__.py:166"));
    }

    #[test]
    fn where_the_application_has_no_line_a_librarys_is_and_who_runs_the_loop_is_nobody() {
        let library = ANSWER.replace("/app/shop/", "/usr/lib/python3.11/site-packages/");
        assert_eq!(place(&library).as_deref(), Some("match() at /usr/lib/python3.11/re/__init__.py:166"));
        let (_, outer) = ANSWER.split_once("run\n").expect("it is there");
        assert_eq!(place(outer).as_deref(), Some(NAMELESS));
        assert_eq!(place("Stack (most recent call first):\n  <no Python frame>\n"), None);
    }

    #[test]
    fn what_is_cut_or_odd_is_passed_over() {
        for odd in ["", "  File", "  File \"a\", line", "  File \"a\", line 3", "  ..."] {
            assert_eq!(frame(odd), None, "{odd}");
        }
        let named = frame("  File \"/a \", line 1 in b/c.py\", line 9 in <lambda>");
        assert_eq!(named, Some(Frame { file: "/a \", line 1 in b/c.py", line: "9", function: "<lambda>" }));
    }

    #[test]
    fn a_place_below_the_current_directory_is_seen_from_there() {
        let here = std::env::current_dir().expect("there is one");
        let file = format!("{}/shop.py", here.display());
        assert_eq!(in_words(&Frame { file: &file, line: "1", function: "load" }), "load() at shop.py:1");
    }
}
