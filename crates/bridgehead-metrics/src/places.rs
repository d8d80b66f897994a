//! The places that held the loop for too long: where, by what, for which request, how often, how long, when last.
//!
//! Not who finds them: the bridge's detective does, and brings them one by one, from one thread.
//!
//! Invariant: no more are kept than there is room for; one that is new takes the place of the one that was seen least lately.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::cause::Cause;
use crate::record::{self, Slot};

/// Places that are kept; more are one mistake made everywhere.
const MOST: usize = 16;
pub(crate) const WORDS: usize = MOST * record::WORDS;

/// The numbers of a record.
const COUNT: usize = 0;
const LONGEST: usize = 1;
const LAST: usize = 2;
const CAUSE: usize = 3;

/// A place that held the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockingPlace {
    /// A function and a line, in words, and what it called if that is known.
    pub place: String,
    /// Method and path of the request for which it did so for the longest time.
    pub request: String,
    /// What kept the loop there, when it was seen last.
    pub cause: Cause,
    /// How often.
    pub count: u64,
    /// As far as it was seen.
    pub longest: Duration,
    /// When it was seen last, in milliseconds since 1970.
    pub last: u64,
}

impl BlockingPlace {
    /// The same place again, as somebody else saw it.
    pub(crate) fn join(&mut self, other: &Self) {
        self.count += other.count;
        if other.longest > self.longest {
            self.longest = other.longest;
            self.request.clone_from(&other.request);
        }
        if other.last > self.last {
            (self.last, self.cause) = (other.last, other.cause);
        }
    }
}

/// Where they lie.
pub(crate) struct Places<'a>(pub(crate) &'a [AtomicU64]);

impl Places<'_> {
    /// It held the loop, besides what is known of it. Gives where it lies.
    pub(crate) fn note(&self, seen: &BlockingPlace) -> Option<usize> {
        let known = self.read();
        let mut noted = seen.clone();
        let same = known.iter().position(|(_, each)| each.place == record::kept(&seen.place));
        if let Some((_, before)) = same.and_then(|same| known.get(same)) {
            noted.join(before);
        }
        let place = match same {
            Some(same) => known.get(same).map(|(at, _)| *at),
            None => (0..MOST).min_by_key(|at| self.slot(*at).number(LAST)),
        }?;
        let mut numbers = [0; record::NUMBERS];
        numbers[COUNT] = noted.count;
        numbers[LONGEST] = u64::try_from(noted.longest.as_micros()).unwrap_or(u64::MAX);
        numbers[LAST] = noted.last;
        numbers[CAUSE] = noted.cause.code();
        self.slot(place).write(numbers, [&noted.place, &noted.request]);
        Some(place)
    }

    /// Each with where it lies.
    pub(crate) fn read(&self) -> Vec<(usize, BlockingPlace)> {
        let records = (0..MOST).filter_map(|at| Some((at, self.slot(at).read()?)));
        let kept = records.map(|(at, record)| {
            let [place, request] = record.texts;
            let seen = BlockingPlace {
                place,
                request,
                cause: Cause::of_code(record.numbers[CAUSE]),
                count: record.numbers[COUNT],
                longest: Duration::from_micros(record.numbers[LONGEST]),
                last: record.numbers[LAST],
            };
            (at, seen)
        });
        kept.collect()
    }

    fn slot(&self, at: usize) -> Slot<'_> {
        Slot(self.0.get(at * record::WORDS..(at + 1) * record::WORDS).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Vec<AtomicU64> {
        (0..WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    fn seen(place: &str, millis: u64, last: u64) -> BlockingPlace {
        BlockingPlace {
            place: place.to_owned(),
            request: format!("GET /{last}"),
            cause: Cause::SystemCall(crate::SystemCall::of(0)),
            count: 1,
            longest: Duration::from_millis(millis),
            last,
        }
    }

    #[test]
    fn a_place_that_is_seen_again_is_counted_with_its_longest_time_and_the_request_of_that() {
        let words = words();
        let places = Places(&words);
        places.note(&seen("load()", 400, 1));
        places.note(&seen("save()", 300, 2));
        places.note(&seen("load()", 300, 3));
        let read: Vec<_> = places.read().into_iter().map(|(_, each)| each).collect();
        let request = "GET /1".to_owned();
        let load =
            BlockingPlace { count: 2, longest: Duration::from_millis(400), request, ..seen("load()", 0, 3) };
        assert_eq!(read, [load, seen("save()", 300, 2)]);
    }

    #[test]
    fn one_that_is_new_takes_the_place_of_the_one_that_was_seen_least_lately() {
        let words = words();
        let places = Places(&words);
        for at in 0..MOST as u64 {
            places.note(&seen(&format!("place {at}"), 300, at + 10));
        }
        places.note(&seen("place 0", 300, 100));
        places.note(&seen("another", 300, 101));
        let read: Vec<_> = places.read().into_iter().map(|(_, each)| each.place).collect();
        assert_eq!(read.len(), MOST);
        assert!(read.contains(&"place 0".to_owned()) && read.contains(&"another".to_owned()));
        assert!(!read.contains(&"place 1".to_owned()));
    }
}
