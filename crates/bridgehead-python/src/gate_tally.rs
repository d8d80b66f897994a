//! What the entries of a gate come to: who is inside, who waits, who was turned away, and for how long each has waited; and the
//! sheets in which operators see that.
//!
//! Not whose turn it is (`bridgehead_admission::Admission`).
//!
//! Invariant: what a sheet says of a gate that lives is what its tally does, from when the two met.

use std::collections::VecDeque;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bridgehead_admission::Permit;
use bridgehead_metrics::{GateCells, GateGauge, GateOutcome, Sheet};

/// Waits that are remembered, for percentiles.
const REMEMBERED: usize = 1024;

// Gates are made on any thread, and servers begin and end on their own, in any order.
static SHOWN: Mutex<Shown> = Mutex::new(Shown { sheets: Vec::new(), gates: Vec::new(), last: 0 });

/// The gates of this process that have a name, and the sheets of its servers.
struct Shown {
    sheets: Vec<(Showing, Sheet)>,
    gates: Vec<Weak<Tally>>,
    last: u64,
}

/// That a sheet shows the gates of a process: one that the application forked has the same memory, and gates of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Showing {
    number: u64,
    process: u32,
}

/// One gate's.
#[derive(Debug)]
pub(crate) struct Tally {
    slots: usize,
    name: String,
    // A gate may be used by several threads, each with a loop.
    books: Mutex<Books>,
}

/// What is known now.
#[derive(Debug, Default)]
pub(crate) struct Books {
    /// Any of them is as good as another.
    inside: Vec<Permit>,
    waiting: usize,
    pub(crate) most_waiting: usize,
    outcomes: [u64; GateOutcome::ALL.len()],
    waits: VecDeque<Duration>,
    shown: Vec<(Showing, GateCells)>,
}

/// Somebody who waits, for as long as it does.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<Tally>);

impl Tally {
    /// Of a gate with so many slots; without a name nobody is shown it.
    pub(crate) fn new(slots: usize, name: &str) -> Arc<Self> {
        let tally = Arc::new(Self { slots, name: name.to_owned(), books: Mutex::default() });
        if !name.is_empty() {
            let mut shown = locked(&SHOWN);
            shown.gates.retain(|gate| gate.strong_count() > 0);
            shown.gates.push(Arc::downgrade(&tally));
            let sheets = shown.sheets.iter().filter(|(showing, _)| showing.is_ours());
            sheets.for_each(|(showing, sheet)| tally.show(*showing, sheet));
        }
        tally
    }

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        locked(&self.books)
    }

    /// One has come in, after so long.
    pub(crate) fn admit(&self, permit: Permit, wait: Duration) {
        let mut books = self.books();
        books.inside.push(permit);
        books.tell(|cells| cells.up(GateGauge::Running, 1));
        books.count(GateOutcome::Admitted);
        books.remember(wait);
    }

    /// One has not, and has waited for so long if it waited.
    pub(crate) fn turn_away(&self, outcome: GateOutcome, wait: Option<Duration>) {
        let mut books = self.books();
        books.count(outcome);
        wait.into_iter().for_each(|wait| books.remember(wait));
    }

    /// One goes out. What it had is to be dropped by who asks, without the lock: whoever waits is told by a call of Python's.
    pub(crate) fn leave(&self) -> Option<Permit> {
        let mut books = self.books();
        let permit = books.inside.pop()?;
        books.tell(|cells| cells.down(GateGauge::Running, 1));
        Some(permit)
    }

    /// One more waits.
    pub(crate) fn wait(self: &Arc<Self>) -> Waiting {
        let mut books = self.books();
        books.waiting += 1;
        books.tell(|cells| cells.up(GateGauge::Waiting, 1));
        Waiting(Arc::clone(self))
    }

    /// So many wait now.
    pub(crate) fn saw_waiting(&self, waiting: usize) {
        let mut books = self.books();
        books.most_waiting = books.most_waiting.max(waiting);
    }

    fn show(&self, showing: Showing, sheet: &Sheet) {
        let cells = sheet.gate(&self.name);
        let mut books = self.books();
        let stands = [self.slots, books.inside.len(), books.waiting];
        GateGauge::ALL.into_iter().zip(stands).for_each(|(gauge, by)| cells.up(gauge, by));
        books.shown.push((showing, cells));
    }

    fn hide(&self, showing: Showing) {
        self.books().shown.retain(|(each, _)| *each != showing);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let books = self.books();
        let stands = [self.slots, books.inside.len(), books.waiting];
        books.tell(|cells| {
            GateGauge::ALL.into_iter().zip(stands).for_each(|(gauge, by)| cells.down(gauge, by))
        });
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut books = self.0.books();
        books.waiting -= 1;
        books.tell(|cells| cells.down(GateGauge::Waiting, 1));
    }
}

impl Books {
    /// How many it became of.
    pub(crate) fn counted(&self, outcome: GateOutcome) -> u64 {
        self.outcomes[outcome as usize]
    }

    /// The last waits, in seconds.
    pub(crate) fn waits(&self) -> Vec<f64> {
        self.waits.iter().map(Duration::as_secs_f64).collect()
    }

    fn count(&mut self, outcome: GateOutcome) {
        self.outcomes[outcome as usize] += 1;
        self.tell(|cells| cells.count(outcome));
    }

    fn remember(&mut self, wait: Duration) {
        if self.waits.len() == REMEMBERED {
            self.waits.pop_front();
        }
        self.waits.push_back(wait);
        self.tell(|cells| cells.wait(wait));
    }

    fn tell(&self, news: impl Fn(&GateCells)) {
        self.shown.iter().filter(|(showing, _)| showing.is_ours()).for_each(|(_, cells)| news(cells));
    }
}

impl Showing {
    /// Has this sheet show the gates that have a name, from now on. What they have counted before is not in it.
    pub(crate) fn begin(sheet: Sheet) -> Self {
        let mut shown = locked(&SHOWN);
        shown.last += 1;
        let showing = Self { number: shown.last, process: process::id() };
        let gates: Vec<_> = shown.gates.iter().filter_map(Weak::upgrade).collect();
        gates.iter().for_each(|gate| gate.show(showing, &sheet));
        shown.sheets.push((showing, sheet));
        showing
    }

    /// It shows nothing new.
    pub(crate) fn end(self) {
        let mut shown = locked(&SHOWN);
        shown.sheets.retain(|(each, _)| *each != self);
        let gates: Vec<_> = shown.gates.iter().filter_map(Weak::upgrade).collect();
        gates.iter().for_each(|gate| gate.hide(self));
    }

    fn is_ours(self) -> bool {
        self.process == process::id()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
