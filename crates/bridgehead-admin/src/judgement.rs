//! Whether a server lives and is ready, judged by what its workers have written.
//!
//! Not how it is asked (`serve`).
//!
//! Invariant: a worker that says nothing any more is not ready, whatever it said last.

use std::time::Duration;

use bridgehead_metrics::{Condition, Figures, Gauge, Snapshot};

/// After so long without a sign of life a loop is not ready. It is asked every 50 ms, and a busy machine makes it late.
const STALE: Duration = Duration::from_secs(1);

/// By what is judged.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// After so long without a sign of life a process that is alone is not alive; `None`: it is, and somebody else replaces
    /// workers.
    pub silence: Option<Duration>,
    /// One clock for all processes.
    pub clock: fn() -> Duration,
}

impl Rules {
    /// Why nobody is to be sent here; empty if clients are welcome. With several workers one that is ready is enough, since
    /// it lets in the others' clients too.
    pub(crate) fn unready(&self, seen: &Snapshot) -> Vec<String> {
        let mut all = Vec::new();
        for (place, figures) in &seen.workers {
            match self.fault(figures) {
                None => return Vec::new(),
                Some(fault) => all.push(format!("worker {place}: {fault}")),
            }
        }
        if all.is_empty() {
            all.push("there is no worker".to_owned());
        }
        all
    }

    /// Why this worker is not ready.
    pub(crate) fn fault(&self, figures: &Figures) -> Option<String> {
        match figures.condition() {
            Condition::Serving => {}
            Condition::Absent => return Some("is not there".to_owned()),
            Condition::Starting => return Some("has not started".to_owned()),
            Condition::LastCall | Condition::Draining => return Some("is about to end".to_owned()),
        }
        let silence = self.silence_of(figures);
        if silence > STALE {
            return Some(format!("its loop has given no sign of life for {:.1} s", silence.as_secs_f64()));
        }
        figures.is_crowded().then(|| "as many requests wait as may".to_owned())
    }

    /// Why the process is to be ended by who looks after it.
    pub(crate) fn dead(&self, seen: &Snapshot) -> Option<String> {
        let limit = self.silence?;
        let (_, figures) = seen.workers.first()?;
        let silence = self.silence_of(figures);
        let serves = figures.condition() == Condition::Serving;
        (serves && silence > limit)
            .then(|| format!("its loop has given no sign of life for {:.1} s", silence.as_secs_f64()))
    }

    /// For how long its loop has said nothing.
    pub(crate) fn silence_of(&self, figures: &Figures) -> Duration {
        match figures.gauge(Gauge::Beat) {
            // It has not been asked yet.
            0 => Duration::ZERO,
            beat => (self.clock)().saturating_sub(Duration::from_millis(beat)),
        }
    }
}

#[cfg(test)]
mod tests {
    use bridgehead_metrics::Sheet;

    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    fn rules() -> Rules {
        Rules { silence: Some(Duration::from_secs(30)), clock: || NOW }
    }

    fn worker(condition: Condition, silent: u64, waiting: u64) -> (usize, Figures) {
        let sheet = Sheet::own();
        sheet.set(Gauge::Condition, condition as u64);
        sheet.set(Gauge::Beat, NOW.as_millis() as u64 - silent);
        sheet.set(Gauge::Waiting, waiting);
        sheet.set(Gauge::QueueLimit, 5);
        (0, sheet.read())
    }

    fn seen(workers: Vec<(usize, Figures)>) -> Snapshot {
        Snapshot { workers, ..Snapshot::default() }
    }

    #[test]
    fn a_worker_that_serves_whose_loop_lives_and_whose_queue_has_room_is_ready() {
        assert_eq!(rules().unready(&seen(vec![worker(Condition::Serving, 40, 4)])), [""; 0]);
    }

    #[test]
    fn any_of_the_reasons_makes_it_unready() {
        let why = |worker| rules().unready(&seen(vec![worker])).join("");
        assert!(why(worker(Condition::Starting, 0, 0)).contains("has not started"));
        assert!(why(worker(Condition::Draining, 0, 0)).contains("about to end"));
        assert!(why(worker(Condition::Serving, 1500, 0)).contains("no sign of life for 1.5 s"));
        assert!(why(worker(Condition::Serving, 0, 5)).contains("as many requests wait"));
        assert!(rules().unready(&seen(Vec::new())).concat().contains("no worker"));
    }

    #[test]
    fn one_worker_that_is_ready_is_enough() {
        let workers = vec![worker(Condition::Starting, 0, 0), worker(Condition::Serving, 0, 0)];
        assert!(rules().unready(&seen(workers)).is_empty());
    }

    #[test]
    fn a_process_alone_is_dead_when_its_loop_has_been_silent_for_too_long() {
        assert!(rules().dead(&seen(vec![worker(Condition::Serving, 31_000, 0)])).is_some());
        assert!(rules().dead(&seen(vec![worker(Condition::Serving, 29_000, 0)])).is_none());
        assert!(rules().dead(&seen(vec![worker(Condition::Draining, 31_000, 0)])).is_none());
        let several = Rules { silence: None, ..rules() };
        assert!(several.dead(&seen(vec![worker(Condition::Serving, 31_000, 0)])).is_none());
    }
}
