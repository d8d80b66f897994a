//! Proves records, series and gates in every order that their threads may take: who reads a record has all of it, or none, each
//! request is counted once, in a place that is its series' alone, and who sees a gate sees all of its name.
//!
//! `record.rs`, `series.rs`, `gates.rs` and `histogram.rs` themselves are compiled here, with loom's atomics, shorter records and
//! names, and fewer places.
//! There, threads; in a server, processes that share the memory.

#![cfg(all(loom, test))]

/// As much of it as series need.
mod cells {
    pub(crate) const REASONS: usize = 1;
}
#[path = "../../../src/gates.rs"]
#[allow(dead_code, reason = "what is counted of one is nobody's order")]
mod gates;
#[path = "../../../src/histogram.rs"]
#[allow(dead_code, reason = "quantiles are for who reads")]
mod histogram;
#[path = "../../../src/record.rs"]
mod record;
#[path = "../../../src/series.rs"]
#[allow(dead_code, reason = "names are for who reads")]
mod series;

mod tests {
    use std::sync::Arc;

    use loom::sync::atomic::AtomicU64;
    use loom::thread;

    use crate::record::{NUMBERS, Record, Slot, WORDS};

    fn check(model: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    fn words() -> Arc<Vec<AtomicU64>> {
        Arc::new((0..WORDS).map(|_| AtomicU64::new(0)).collect())
    }

    fn write(words: &Arc<Vec<AtomicU64>>, number: u64) -> thread::JoinHandle<()> {
        let words = Arc::clone(words);
        thread::spawn(move || Slot(&words).write([number; NUMBERS], [&number.to_string(), ""]))
    }

    fn assert_whole(read: Option<Record>) {
        if let Some(Record { numbers, texts: [text, _] }) = read {
            assert_eq!((numbers, text), ([numbers[0]; NUMBERS], numbers[0].to_string()));
        }
    }

    #[test]
    fn who_reads_while_another_writes_has_one_record_or_none() {
        check(|| {
            let words = words();
            Slot(&words).write([1; NUMBERS], ["1", ""]);
            let writer = write(&words, 2);
            assert_whole(Slot(&words).read());
            writer.join().expect("it ends");
            assert_eq!(Slot(&words).read().map(|read| read.numbers[0]), Some(2));
        });
    }

    #[test]
    fn two_who_write_at_once_leave_one_record() {
        check(|| {
            let words = words();
            let writers = [write(&words, 1), write(&words, 2)];
            writers.into_iter().for_each(|writer| writer.join().expect("it ends"));
            let read = Slot(&words).read();
            assert!(read.is_some());
            assert_whole(read);
        });
    }
}

mod requests {
    use std::sync::Arc;
    use std::time::Duration;

    use loom::sync::atomic::AtomicU64;
    use loom::thread;

    use crate::series::{self, Protocol, Series, WORDS};

    const TIME: Duration = Duration::from_millis(3);

    fn series(status: u16) -> Series {
        Series::new("GET", status, Protocol::Http11)
    }

    /// How many requests of each series there are, and how long they were, in the order of the series.
    fn seen(words: &[AtomicU64]) -> Vec<(Series, u64, u64, u64)> {
        let read = series::read(words).map(|(series, seen)| (series, seen.count(), seen.sum, seen.longest));
        let mut read: Vec<_> = read.collect();
        read.sort_unstable();
        read
    }

    /// Somebody counts one request of each of these series.
    fn count(words: &Arc<Vec<AtomicU64>>, statuses: &[u16]) -> thread::JoinHandle<()> {
        let (words, statuses) = (Arc::clone(words), statuses.to_vec());
        thread::spawn(move || {
            statuses.iter().for_each(|status| series::record(&words, series(*status), TIME))
        })
    }

    fn check(counted: [&'static [u16]; 2], due: &'static [(u16, u64)]) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let words: Arc<Vec<AtomicU64>> = Arc::new((0..WORDS).map(|_| AtomicU64::new(0)).collect());
            let threads = counted.map(|statuses| count(&words, statuses));
            // Who reads meanwhile finds no series twice, and none that nobody counts.
            let early = seen(&words);
            assert!(early.windows(2).all(|two| two[0].0 < two[1].0));
            assert!(early.iter().all(|(found, ..)| due.iter().any(|(status, _)| series(*status) == *found)));
            threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
            let micros = TIME.as_micros() as u64;
            let mut due: Vec<_> =
                due.iter().map(|(status, count)| (series(*status), *count, count * micros, micros)).collect();
            due.sort_unstable();
            assert_eq!(seen(&words), due);
        });
    }

    #[test]
    fn two_who_count_the_same_series_first_count_it_in_one_place() {
        check([&[200], &[200]], &[(200, 2)]);
    }

    #[test]
    fn two_series_that_want_the_same_place_have_one_each() {
        check([&[200, 404], &[404]], &[(200, 1), (404, 2)]);
    }
}

mod names {
    use std::sync::Arc;

    use loom::sync::atomic::AtomicU64;
    use loom::thread;

    use crate::gates::{self, WORDS};

    // Longer than a word; the second finds no room.
    const GATES: [&str; 2] = ["to the database", "to the mailer"];
    const SHOWN: [&str; 2] = ["_OTHER", GATES[0]];

    #[test]
    fn who_reads_while_gates_are_named_has_whole_names_or_none() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let words: Arc<Vec<AtomicU64>> = Arc::new((0..WORDS).map(|_| AtomicU64::new(0)).collect());
            let named = Arc::clone(&words);
            let claims = thread::spawn(move || GATES.map(|name| gates::find(&named, name)));
            let seen = Arc::clone(&words);
            // A thread as well: loom takes what the model's own does before others have begun for done.
            let early = thread::spawn(move || gates::read(&seen)).join().expect("it ends");
            assert!(early.keys().all(|name| SHOWN.contains(&name.as_str())), "{early:?}");
            let [first, second] = claims.join().expect("it ends");
            assert_ne!(first, second);
            assert_eq!(gates::read(&words).into_keys().collect::<Vec<_>>(), SHOWN);
        });
    }
}
