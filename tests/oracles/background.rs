//! A second workload whose effect is known: two Poisson streams at one exponential server are one
//! stream of the sum of their rates (the superposition of Poisson processes), so that the mean
//! response time goes from 1 / (mu - a) to 1 / (mu - a - b); at a server of its own the second one
//! changes nothing.

use std::sync::{Arc, Mutex};

use weigh_model::{Nanos, Pattern};
use weigh_stats::paired::Paired;
use weigh_stats::random::Random;

use crate::rig::{Setup, assert_near};
use crate::scripted::Policy;

/// Mean service time: the server does 1,000 messages a second.
const SERVICE_NS: f64 = 1e6;

/// The measured load and its background, as shares of what the server can do.
const MEASURED: f64 = 0.3;
const BACKGROUND: f64 = 0.5;

/// An exponential server that whoever has a copy of this shares.
type Busy = Arc<Mutex<Nanos>>;

fn server(busy: &Busy, seed: u64) -> Policy {
    let busy = Arc::clone(busy);
    let mut random = Random::stream(seed, 78);
    Box::new(move |now, _| {
        let took = Nanos(random.exponential(SERVICE_NS).round() as u64);
        let mut last = busy.lock().unwrap();
        *last = last.max(now) + took;
        *last
    })
}

fn stream(share: f64, seconds: f64, seed: u64) -> Setup {
    let rate = share * 1e9 / SERVICE_NS;
    let messages = (rate * seconds) as u64;
    let setup = Setup::new("tcp", &[], Pattern::Request, messages);
    setup.open("poisson", &format!("{rate}/s")).seed(seed)
}

/// The mean response time in service times: alone, above a background at the same server, and
/// above one at a server of its own.
fn means(seed: u64) -> [f64; 3] {
    let measured = stream(MEASURED, SECONDS, 100 + seed);
    // It lasts longer than what is measured.
    let background = stream(BACKGROUND, 1.05 * SECONDS, 500 + seed);
    let of = |outcome: &weigh_engine::outcome::Outcome| {
        outcome.shards.recorder.response.mean().unwrap() / SERVICE_NS
    };
    let alone = measured.scripted_on_virtual_time(server(&Busy::default(), seed));
    let busy = Busy::default();
    let shared = measured.above(&background, [server(&busy, seed), server(&busy, seed + 1)]);
    let apart = [server(&Busy::default(), seed), server(&Busy::default(), seed + 1)];
    let apart = measured.above(&background, apart);
    for seen in [&alone, &shared, &apart] {
        assert_eq!(seen.ledger().delivered, measured.load.messages);
    }
    [of(&alone.outcome), of(&shared.outcome), of(&apart.outcome)]
}

/// By theory 1 / (1 - 0.3) = 1.43 service times alone and 1 / (1 - 0.8) = 5 above the background:
/// the interval of the difference over repetitions holds 3.57, and 0 where nothing is shared.
#[test]
fn half_a_server_taken_away_shifts_the_mean_as_the_sum_of_rates_says() {
    let runs: Vec<[f64; 3]> = (0..RUNS).map(means).collect();
    let (alone, loaded) = (1.0 / (1.0 - MEASURED), 1.0 / (1.0 - MEASURED - BACKGROUND));
    let pairs = |place: usize| runs.iter().map(|run| (run[place], run[0])).collect::<Vec<_>>();
    let found = Paired::of(&pairs(1)).unwrap();
    let [low, high] = [found.difference.low.unwrap(), found.difference.high.unwrap()];
    println!(
        "shift {:.3} ({low:.3} to {high:.3}), {:.3} by theory",
        found.difference.value,
        loaded - alone
    );
    assert!((low..=high).contains(&(loaded - alone)), "{low} to {high}");
    assert!(high - low < 0.4 * (loaded - alone), "an interval that says something");
    let ratio = found.ratio.unwrap();
    assert!((ratio.low.unwrap()..=ratio.high.unwrap()).contains(&(loaded / alone)), "{ratio:?}");
    let apart = Paired::of(&pairs(2)).unwrap();
    let [low, high] = [apart.difference.low.unwrap(), apart.difference.high.unwrap()];
    assert!((low..=high).contains(&0.0), "{low} to {high} where nothing is shared");
    let mean = runs.iter().map(|run| run[0]).sum::<f64>() / runs.len() as f64;
    assert_near("alone", mean, alone, 0.05);
}

/// Repetitions, and the seconds of each: 3,000 measured messages.
const RUNS: u64 = 8;
const SECONDS: f64 = 10.0;
