//! The table of one job: medians over the rounds that may be used, our ratios to the other tools
//! with their range, and what we wanted to reach.

use super::jobs::Job;
use super::measure::Measured;
use super::ratio::{Ratio, median};

/// All runs of one tool in a job.
pub(crate) struct Row {
    /// The tool.
    pub(crate) tool: String,
    /// Its runs, round by round; disturbed ones included.
    pub(crate) runs: Vec<Measured>,
}

/// Prints the rows of a job.
pub(crate) fn print(job: &Job, rows: &[Row]) {
    println!(
        "{:<17} {:>12} {:>23} {:>11} {:>5} {:>6} {:>6} {:>10} {:>7}",
        "tool", "ops / CPU-s", "range", "ops / s", "gen", "target", "waited", "limit", "rounds"
    );
    rows.iter().for_each(Row::print);
    println!();
    ratios(job, rows).iter().for_each(|line| println!("{line}"));
    println!();
}

/// A line for every ratio of ours to another tool.
fn ratios(job: &Job, rows: &[Row]) -> Vec<String> {
    let is_own = |row: &&Row| row.tool.starts_with("weigh");
    let mut lines = Vec::new();
    for own in rows.iter().filter(is_own) {
        for other in rows.iter().filter(|row| row.tool != own.tool) {
            let bar = job.bars.iter().find(|bar| bar.own == own.tool && bar.other == other.tool);
            // Variants of ours are compared with the plain one, and where a bar asks for it.
            let is_told = bar.is_some() || own.tool == "weigh";
            let Some(ratio) = Ratio::of(&own.costs(), &other.costs()).filter(|_| is_told) else {
                continue;
            };
            let goal = bar.map_or_else(String::new, |bar| {
                format!("   at least {}: {}", bar.at_least, ratio.verdict(bar.at_least).words())
            });
            lines.push(format!(
                "{:<32} {:>7.2}  {:>15} in {} rounds{goal}",
                format!("{} / {}", own.tool, other.tool),
                ratio.median,
                format!("{:.2}–{:.2}", ratio.low, ratio.high),
                ratio.rounds
            ));
        }
        if let Some(least) = job.rate_at_least.filter(|_| own.tool == "weigh") {
            let costs: Vec<f64> = own.costs().into_iter().flatten().collect();
            let verdict = if median(&costs) >= least { "met" } else { "MISSED" };
            lines.push(format!("weigh: at least {} per CPU-s: {verdict}", thousands(least)));
        }
    }
    lines
}

impl Row {
    /// Operations per CPU-second, round by round; `None` for rounds that may not be used.
    pub(crate) fn costs(&self) -> Vec<Option<f64>> {
        let usable = |run: &Measured| run.unusable().is_none().then(|| run.per_cpu_s());
        self.runs.iter().map(usable).collect()
    }

    fn usable(&self) -> Vec<&Measured> {
        self.runs.iter().filter(|run| run.unusable().is_none()).collect()
    }

    fn print(&self) {
        let usable = self.usable();
        print!("{:<17} ", self.tool);
        if usable.is_empty() {
            println!("{}", self.without_verdict());
            return;
        }
        let median_of = |value: fn(&Measured) -> f64| {
            median(&usable.iter().map(|run| value(run)).collect::<Vec<_>>())
        };
        let costs: Vec<f64> = usable.iter().map(|run| run.per_cpu_s()).collect();
        let lowest = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = costs.iter().copied().fold(0.0, f64::max);
        let range = format!("{}–{}", thousands(lowest), thousands(highest));
        let limit = usable[usable.len() / 2].bottleneck();
        println!(
            "{:>12} {range:>23} {:>11} {:>4.0}% {:>5.0}% {:>5.0}% {limit:>10} {:>4}/{}",
            thousands(median(&costs)),
            thousands(median_of(Measured::rate)),
            median_of(|run| run.busy_generator) * 100.0,
            median_of(|run| run.busy_target) * 100.0,
            median_of(|run| run.kept_waiting) * 100.0,
            usable.len(),
            self.runs.len()
        );
        self.print_disagreement(&usable);
    }

    /// What is said of a tool none of whose rounds may be used. Disturbed rounds are shown, so
    /// that one can tell whether a quieter hour would be worth it, but enter no ratio.
    fn without_verdict(&self) -> String {
        let why = self.runs.last().and_then(Measured::unusable).unwrap_or_default();
        let worked: Vec<f64> = self
            .runs
            .iter()
            .filter(|run| run.exit == 0 && run.operations > 0.0)
            .map(Measured::per_cpu_s)
            .collect();
        let rounds = self.runs.len();
        if worked.is_empty() {
            return format!("no usable round of {rounds}: {why}");
        }
        let cost = thousands(median(&worked));
        format!("no usable round of {rounds}: {why} ({cost} ops / CPU-s, no verdict)")
    }

    /// A tool that counts other than the target is told so under its row.
    fn print_disagreement(&self, usable: &[&Measured]) {
        let furthest = usable
            .iter()
            .filter_map(|run| Some((run.own_count?, run.operations)))
            .max_by(|a, b| (a.0 / a.1 - 1.0).abs().total_cmp(&(b.0 / b.1 - 1.0).abs()));
        if let Some((own, target)) = furthest
            && (own / target - 1.0).abs() > DISAGREEMENT_MAX
        {
            let (own, target) = (thousands(own), thousands(target));
            println!("{:<17} note: it counted {own}, the target {target}", "");
        }
    }
}

/// A whole number with commas.
pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Counts further apart than this are worth a note.
const DISAGREEMENT_MAX: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::jobs::JOBS;

    fn run(per_cpu_s: f64, foreign: f64) -> Measured {
        Measured {
            operations: per_cpu_s,
            own_count: None,
            cpu_s: 1.0,
            active_s: 1.0,
            busy_generator: 1.0,
            busy_target: 0.5,
            foreign,
            kept_waiting: 0.0,
            is_ahead: false,
            exit: 0,
        }
    }

    #[test]
    fn commas() {
        assert_eq!(thousands(1_234_567.4), "1,234,567");
        assert_eq!(thousands(12.0), "12");
    }

    /// The second round of the floor was disturbed: only the first and third make ratios.
    #[test]
    fn ratios_are_told_with_range_and_goal() {
        let row = |tool: &str, runs| Row { tool: tool.to_owned(), runs };
        let rows = [
            row("weigh", vec![run(110.0, 0.0), run(50.0, 0.0), run(104.0, 0.0)]),
            row("zrk", vec![run(100.0, 0.0), run(100.0, 0.5), run(100.0, 0.0)]),
            row("wrk", vec![run(50.0, 0.0), run(50.0, 0.0), run(50.0, 0.0)]),
        ];
        let job = JOBS.iter().find(|job| job.name == "http-64").unwrap();
        let lines = ratios(job, &rows);
        assert_eq!(lines.len(), 2);
        assert_eq!(
            lines[0].split_whitespace().collect::<Vec<_>>().join(" "),
            "weigh / zrk 1.07 1.04–1.10 in 2 rounds at least 1.05: met in the median"
        );
        assert!(lines[1].contains("2.08") && lines[1].contains("1.00–2.20 in 3 rounds"));
    }
}
