//! What happened in each second of a run.
//!
//! Not the percentiles of the whole: these come from the histograms of `record`.
//!
//! Invariant: at most `ROWS` rows are kept. When they are full, each two become one, of twice the length.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Enough for a plot; at two hundred different latencies a row, some 2 MB.
const ROWS: usize = 600;
/// Two digits: a row has few answers, and is drawn, not compared.
const DIGITS: u8 = 2;

/// A row of the report.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Where it begins, from the end of the warm-up, in seconds.
    pub at: f64,
    /// How long it is.
    pub seconds: f64,
    /// Answers that were as they should be.
    pub answers: u64,
    /// Errors of every kind.
    pub errors: u64,
    /// Bytes of bodies that came.
    pub bytes: u64,
    /// Latency of its answers, in seconds.
    pub p50: f64,
    /// Of ten, one took longer.
    pub p90: f64,
    /// Of a hundred, one took longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

#[derive(Debug, Default, Clone)]
struct Cell {
    answers: u64,
    errors: u64,
    bytes: u64,
    latency: Vec<(u64, u32)>,
}

/// The rows of one thread.
#[derive(Debug)]
pub(crate) struct Timeline {
    width: Duration,
    closed: Vec<Cell>,
    current: Cell,
    latency: Histogram<u32>,
}

/// Nanoseconds, from a tenth of a microsecond to an hour.
pub(crate) const LEAST: u64 = 100;
pub(crate) const MOST: u64 = 3_600_000_000_000;

fn histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(LEAST, MOST, DIGITS).expect("the bounds are right")
}

pub(crate) fn seconds(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64()
}

impl Timeline {
    pub(crate) fn new() -> Self {
        let width = Duration::from_secs(1);
        Self { width, closed: Vec::new(), current: Cell::default(), latency: histogram() }
    }

    /// An answer, so long after the warm-up, that took so many nanoseconds.
    pub(crate) fn answer(&mut self, at: Duration, latency: u64, bytes: u64) {
        self.turn_to(at);
        self.current.answers += 1;
        self.current.bytes += bytes;
        self.latency.saturating_record(latency);
    }

    pub(crate) fn error(&mut self, at: Duration) {
        self.turn_to(at);
        self.current.errors += 1;
    }

    fn turn_to(&mut self, at: Duration) {
        while at >= self.width.saturating_mul(u32::try_from(self.closed.len() + 1).unwrap_or(u32::MAX)) {
            self.close();
        }
    }

    fn close(&mut self) {
        let mut cell = std::mem::take(&mut self.current);
        if cell.answers > 0 {
            cell.latency = recorded(&self.latency);
            self.latency.reset();
        }
        self.closed.push(cell);
        if self.closed.len() == ROWS {
            self.widen();
        }
    }

    /// Each two rows become one.
    fn widen(&mut self) {
        let mut scratch = histogram();
        self.closed = self.closed.chunks(2).map(|pair| joined(pair, &mut scratch)).collect();
        self.width *= 2;
    }

    /// The row of all threads that ended last before `now`.
    pub(crate) fn latest(parts: &[&Self], now: Duration) -> Option<Row> {
        let width = parts.iter().map(|part| part.width).max()?;
        let index = usize::try_from(now.as_nanos() / width.as_nanos()).ok()?.checked_sub(1)?;
        let cells: Vec<Cell> = parts.iter().filter_map(|part| part.at(index)).collect();
        let mut scratch = histogram();
        Some(row(&joined(&cells, &mut scratch), index, width, width, &scratch))
    }

    fn at(&self, index: usize) -> Option<Cell> {
        if index == self.closed.len() {
            return Some(Cell { latency: recorded(&self.latency), ..self.current.clone() });
        }
        self.closed.get(index).cloned()
    }

    /// The rows of all threads together, for a run that was measured for `whole`.
    pub(crate) fn join(mut parts: Vec<Self>, whole: Duration) -> Vec<Row> {
        let width = parts.iter().map(|part| part.width).max().unwrap_or(Duration::from_secs(1));
        for part in &mut parts {
            part.close();
            while part.width < width {
                part.widen();
            }
        }
        let count = usize::try_from(whole.as_nanos().div_ceil(width.as_nanos())).unwrap_or(ROWS).min(ROWS);
        let mut scratch = histogram();
        (0..count)
            .map(|index| {
                let cells: Vec<Cell> =
                    parts.iter().filter_map(|part| part.closed.get(index).cloned()).collect();
                let begin = width.saturating_mul(u32::try_from(index).unwrap_or(u32::MAX));
                let length = whole.saturating_sub(begin).min(width);
                row(&joined(&cells, &mut scratch), index, width, length, &scratch)
            })
            .collect()
    }
}

fn recorded(latency: &Histogram<u32>) -> Vec<(u64, u32)> {
    latency.iter_recorded().map(|each| (each.value_iterated_to(), each.count_at_value())).collect()
}

/// One cell of several; their latencies are in `scratch` afterwards.
fn joined(cells: &[Cell], scratch: &mut Histogram<u32>) -> Cell {
    scratch.reset();
    let mut whole = Cell::default();
    for cell in cells {
        whole.answers += cell.answers;
        whole.errors += cell.errors;
        whole.bytes += cell.bytes;
        for &(value, count) in &cell.latency {
            scratch.saturating_record_n(value, count);
        }
    }
    whole.latency = recorded(scratch);
    whole
}

fn row(cell: &Cell, index: usize, width: Duration, length: Duration, latency: &Histogram<u32>) -> Row {
    let at = |quantile: f64| seconds(latency.value_at_quantile(quantile));
    Row {
        at: width.as_secs_f64() * index as f64,
        seconds: length.as_secs_f64(),
        answers: cell.answers,
        errors: cell.errors,
        bytes: cell.bytes,
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        max: at(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    #[test]
    fn each_second_has_a_row_and_empty_ones_are_there() {
        let mut timeline = Timeline::new();
        timeline.answer(Duration::from_millis(10), MILLISECOND, 5);
        timeline.answer(Duration::from_millis(2500), 3 * MILLISECOND, 5);
        timeline.error(Duration::from_millis(2600));
        let rows = Timeline::join(vec![timeline], Duration::from_millis(3500));
        let counts: Vec<(u64, u64)> = rows.iter().map(|row| (row.answers, row.errors)).collect();
        assert_eq!(counts, [(1, 0), (0, 0), (1, 1), (0, 0)]);
        assert!((rows[0].p50 - 0.001).abs() < 0.0001, "{:?}", rows[0]);
        assert!((rows[3].seconds - 0.5).abs() < 1e-9);
    }

    #[test]
    fn threads_come_together_in_one_row() {
        let mut parts = [Timeline::new(), Timeline::new()];
        parts[0].answer(Duration::ZERO, MILLISECOND, 1);
        parts[1].answer(Duration::ZERO, 9 * MILLISECOND, 1);
        let latest = Timeline::latest(&[&parts[0], &parts[1]], Duration::from_millis(1500)).expect("a row");
        assert_eq!(latest.answers, 2);
        let rows = Timeline::join(parts.into(), Duration::from_secs(1));
        assert_eq!((rows.len(), rows[0].answers), (1, 2));
        assert!((rows[0].max - 0.009).abs() < 0.001, "{:?}", rows[0]);
    }

    #[test]
    fn a_long_run_keeps_its_answers_and_few_rows() {
        let mut timeline = Timeline::new();
        let hours = Duration::from_secs(5000);
        for second in 0..5000 {
            timeline.answer(Duration::from_secs(second), MILLISECOND, 1);
        }
        let rows = Timeline::join(vec![timeline, Timeline::new()], hours);
        assert!(rows.len() <= ROWS, "{}", rows.len());
        assert_eq!(rows.iter().map(|row| row.answers).sum::<u64>(), 5000);
        assert!((rows.iter().map(|row| row.seconds).sum::<f64>() - 5000.0).abs() < 1e-6);
    }
}
