//! Searches the limit of a simulated token bucket and shows every trial:
//! `cargo run -p weigh-limit --example token_bucket -- rfc2544,quick 0.01 7` (goals, noise, seed).

#[path = "../tests/simulated/mod.rs"]
mod simulated;

use simulated::{Bucket, Noise, searched_bucket};
use weigh_limit::{Axis, AxisKind, Goal, Search};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |index: usize, default: &'static str| {
        words.get(index).map_or(default, String::as_str).to_owned()
    };
    let goals: Result<Vec<Goal>, _> = word(0, "quick").split(',').map(Goal::preset).collect();
    let noise: f64 = word(1, "0.01").parse()?;
    let seed: u64 = word(2, "1").parse()?;
    let axis = Axis::new(AxisKind::Rate, 100.0, 100_000.0, 1.0)?;
    let mut bucket = Bucket::new(3000.0, 10.0, Noise::OfTrials(noise), seed);
    let answer = searched_bucket(Search::new(axis, goals?), &mut bucket);
    for (number, trial) in answer.trials.iter().enumerate() {
        println!(
            "{number:4} {:>9}/s {:>9} loss {:.5} {:?} {:?}",
            trial.request.load,
            trial.request.duration.to_string(),
            trial.result.loss_ratio(),
            trial.standings,
            trial.bounds,
        );
    }
    for goal in &answer.goals {
        println!("{goal}; forwards {:?}/s", goal.conditional_throughput);
    }
    println!("{}; {} trials, {}", answer.stop, answer.trials.len(), answer.time_used);
    Ok(())
}
