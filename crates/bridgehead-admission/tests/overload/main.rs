//! Whether `--limit-concurrency auto` keeps what it promises: beside four times too many requests as many answers as ever, and
//! each in time.
//!
//! A simulation of a server, its clients and a machine that is busy with something else; `make overload` asks a real one.

mod machine;
mod server;

#[path = "../../src/climb.rs"]
mod climb;
#[path = "../../src/gradient.rs"]
mod gradient;
#[path = "../../src/look.rs"]
mod look;

use crate::machine::Noise;
use crate::server::{Figures, Kind, Limit, MILLISECOND, PATIENCE, SECOND, Scenario, Server, follows};

/// What is promised: such a part of the peak, and no longer than twice the unloaded and the queue's deadline.
const GOODPUT: f64 = 0.9;
const TIMES: f64 = 2.0;

const COMPUTE: [Kind; 1] = [Kind { waits: 0.0, computes: MILLISECOND, part: 1.0 }];
const SLEEP: [Kind; 1] = [Kind { waits: 10.0 * MILLISECOND, computes: 0.5 * MILLISECOND, part: 1.0 }];
/// As `loadtests/queueing.py` does.
const BOTH: [Kind; 1] = [Kind { waits: 20.0 * MILLISECOND, computes: 2.0 * MILLISECOND, part: 1.0 }];
const SOME_OF_EACH: [Kind; 2] = [Kind { part: 0.5, ..COMPUTE[0] }, Kind { part: 0.5, ..SLEEP[0] }];
const A_FEW_LONG: [Kind; 2] = [
    Kind { waits: MILLISECOND, computes: 0.2 * MILLISECOND, part: 0.9 },
    Kind { waits: 100.0 * MILLISECOND, computes: 5.0 * MILLISECOND, part: 0.1 },
];
const LONG: [Kind; 1] = [Kind { waits: 200.0 * MILLISECOND, computes: MILLISECOND, part: 1.0 }];
const FOREIGN: [Kind; 1] = [Kind { waits: 500.0 * MILLISECOND, computes: 0.7 * MILLISECOND, part: 1.0 }];

fn four_times(kinds: &'static [Kind], noise: Noise, bursts: bool) -> Scenario {
    Scenario { kinds, noise, bursts, load: 4.0, seed: 7 }
}

/// Of seconds in which the machine does the same.
fn figures(scenario: Scenario, limit: Limit) -> Figures {
    scenario.run(limit, 12.0, 18.0)
}

/// Both promises.
fn kept(scenario: Scenario) {
    nearly_kept(scenario, 1.0);
}

/// All but this part of them.
fn nearly_kept(scenario: Scenario, part: f64) {
    let unloaded = figures(Scenario { load: 0.05, ..scenario }, Limit::Fixed(1000));
    let peak = figures(Scenario { load: 1.2, ..scenario }, Limit::Fixed(1000)).goodput;
    // Four times what it can answer beside everything else that the machine does.
    let scenario = Scenario { load: 4.0 * peak / scenario.capacity(), ..scenario };
    let found = figures(scenario, follows());
    let goodput = found.goodput / peak;
    let bound = TIMES * unloaded.p99 + PATIENCE / MILLISECOND;
    assert!(goodput >= GOODPUT * part, "{goodput} of the peak {peak}: {scenario:?} {found:?}");
    assert!(found.p99 <= bound / part, "{bound} ms was promised: {scenario:?} {found:?}");
}

fn kept_whatever_the_machine_does(kinds: &'static [Kind]) {
    for noise in [Noise::NONE, Noise::SOME, Noise::SPIKES] {
        kept(four_times(kinds, noise, false));
        kept(four_times(kinds, noise, true));
    }
    // Most of the time the core is somebody else's: nobody can tell from what requests take how many keep it busy.
    nearly_kept(four_times(kinds, Noise::MUCH, false), 0.9);
}

#[test]
fn handlers_that_only_compute() {
    kept_whatever_the_machine_does(&COMPUTE);
}

#[test]
fn handlers_that_sleep() {
    kept_whatever_the_machine_does(&SLEEP);
}

#[test]
fn handlers_that_wait_and_then_compute() {
    kept_whatever_the_machine_does(&BOTH);
}

#[test]
fn handlers_of_both_sorts() {
    kept_whatever_the_machine_does(&SOME_OF_EACH);
}

#[test]
fn handlers_of_which_a_few_take_a_hundred_times_as_long() {
    kept(four_times(&A_FEW_LONG, Noise::NONE, false));
    kept(four_times(&A_FEW_LONG, Noise::SOME, true));
}

#[test]
fn handlers_that_wait_for_a_fifth_of_a_second() {
    kept(four_times(&LONG, Noise::NONE, false));
    kept(four_times(&LONG, Noise::SOME, false));
}

#[test]
fn a_start_under_a_load_that_can_be_answered_refuses_nobody_after_three_seconds() {
    for noise in [Noise::NONE, Noise::SOME] {
        let scenario = Scenario { load: 0.3, ..four_times(&FOREIGN, noise, false) };
        let all = scenario.run(Limit::Fixed(1000), 3.0, 5.0);
        let found = scenario.run(follows(), 3.0, 5.0);
        assert!(found.goodput >= 0.99 * all.goodput, "{scenario:?} {all:?} {found:?}");
        assert!(found.limit >= 200, "{scenario:?} {all:?} {found:?}");
    }
}

#[test]
fn it_grows_again_when_requests_take_longer_by_themselves_and_shrinks_when_they_compute() {
    let mut server = Server::new(four_times(&BOTH, Noise::NONE, false), follows());
    server.serve(30.0 * SECOND);
    let before = server.limit();
    server.asks_for(&LONG);
    server.serve(60.0 * SECOND);
    let more = server.limit();
    assert!(more > 4 * before, "{before} and {more}: longer waits need more at a time");
    server.asks_for(&COMPUTE);
    server.serve(120.0 * SECOND);
    assert!(server.limit() < more / 4, "{more} and {}", server.limit());
}
