//! The tables: all advisers, and every situation for itself.

use super::advisers::{advisers, shuffled};
use super::outcome::{Situation, mean};
use super::score::{Scores, scores};
use super::tree::Tree;

/// The table of all advisers.
pub(crate) fn table(all: &[Situation], tree: &Tree) -> String {
    let mut text =
        "| adviser | covered | set | single | regret 50 % | 95 % | closed gap | missed |\n\
         |---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for (name, pick) in advisers(tree) {
        let own = scores(all, &*pick);
        // Intervals, probabilities and refusals are those of the advice alone.
        let of_all = |goal: &&str| !["intervals", "Brier score", "refusals"].contains(goal);
        let missed: Vec<&str> = match name {
            "weigh advise" => own.missed(),
            _ => own.missed().into_iter().filter(of_all).collect(),
        };
        text += &row(name, &own, &missed);
    }
    let control = scores(&shuffled(all, CONTROL_SEED), &|own| own.advised.clone());
    text += &row("shuffled labels", &control, &control.missed());
    let own = scores(all, &|own| own.advised.clone());
    text += &format!(
        "\nrefused: {} of {} outside, {} others; break-evens left open: {} of {}; intervals hold \
         {:.0} %; Brier {:.3}, by literature {:.3}\n",
        own.refusals[0],
        own.outside,
        own.refusals[1],
        own.undecided[0],
        own.undecided[1],
        own.held * 100.0,
        own.brier[0],
        own.brier[1],
    );
    text + &format!("\nThe tree:\n\n```text\n{}```\n", tree.words(0))
}

fn row(name: &str, own: &Scores, missed: &[&str]) -> String {
    let regret = |share: f64| match own.regrets.is_empty() {
        true => "-".to_owned(),
        false => format!("{:.3}", own.regret_at(share)),
    };
    format!(
        "| {name} | {} of {} | {:.2} | {} | {} | {} | {:.2} | {} |\n",
        own.covered,
        own.measured,
        own.set_size,
        own.singles,
        regret(0.5),
        regret(0.95),
        own.closed_gap,
        if missed.is_empty() { "none".to_owned() } else { missed.join(", ") },
    )
}

/// A row for every situation: what was advised, what was best, and whether both meet.
pub(crate) fn by_situation(all: &[Situation]) -> String {
    let mut text = "| | kind | matters | advised | measured best | regret | |\n\
                    |---|---|---|---|---|---|---|\n"
        .to_owned();
    for own in all {
        let advised = match own.advised.as_slice() {
            [] => "refused".to_owned(),
            names => names.join("; "),
        };
        let (best, regret, verdict) = match own.is_scored() {
            false if own.kind == "outside" => {
                let verdict = if own.is_answered { "MISS: answered" } else { "as it should" };
                ("-".to_owned(), "-".to_owned(), verdict.to_owned())
            }
            false => ("-".to_owned(), "-".to_owned(), "not measured".to_owned()),
            true => {
                let regret = own.advised.first().and_then(|first| own.regret(first));
                let verdict = if own.is_covered(&own.advised) { "covered" } else { "MISS" };
                let regret = regret.map_or("-".to_owned(), |own| format!("{own:.3}"));
                (own.best().join("; "), regret, verdict.to_owned() + &outside_interval(own))
            }
        };
        text += &format!(
            "| {} | {} | {} | {advised} | {best} | {regret} | {verdict} |\n",
            own.number, own.kind, own.criterion
        );
    }
    for own in all {
        for (option, why) in &own.left_out {
            text += &format!("\n{}, {option}: not measured: {why}\n", own.number);
        }
    }
    text
}

/// Options whose measured figure is outside of its predicted interval.
fn outside_interval(own: &Situation) -> String {
    let is_outside = |(name, values): &(&String, &Vec<f64>)| {
        let value = mean(values);
        own.predicted.get(*name).is_some_and(|[low, high]| !(*low..=*high).contains(&value))
    };
    let names: Vec<String> = own
        .measured
        .iter()
        .filter(is_outside)
        .map(|(name, values)| {
            let [low, high] = own.predicted[name];
            format!("{name} {:.2} of the middle", mean(values) / (low * high).sqrt())
        })
        .collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!("; outside of its interval: {}", names.join(", ")),
    }
}

/// The permutation of the control in the table.
const CONTROL_SEED: u64 = 7;
