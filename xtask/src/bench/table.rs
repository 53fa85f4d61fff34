//! The table of one job: medians over the undisturbed rounds, and ratios to the other tools.

use super::measure::Measured;

/// All runs of one tool in a job.
pub(crate) struct Row {
    /// The tool.
    pub(crate) tool: String,
    /// Its runs, disturbed ones included.
    pub(crate) runs: Vec<Measured>,
}

/// Prints the rows of a job.
pub(crate) fn print(rows: &[Row]) {
    let references: Vec<&Row> =
        rows.iter().filter(|row| row.tool != "weigh" && !row.usable().is_empty()).collect();
    print!("{:<15} {:>12} {:>21} {:>9}", "tool", "ops / CPU-s", "range", "ops / s");
    for reference in &references {
        print!(" {:>width$}", format!("/ {}", reference.tool), width = ratio_width(reference));
    }
    println!(" {:>5} {:>6} {:>10} {:>7}", "gen", "target", "limit", "rounds");
    for row in rows {
        row.print(&references);
    }
    println!();
}

impl Row {
    fn usable(&self) -> Vec<&Measured> {
        self.runs.iter().filter(|run| run.unusable().is_none()).collect()
    }

    fn print(&self, references: &[&Row]) {
        let usable = self.usable();
        print!("{:<15} ", self.tool);
        if usable.is_empty() {
            println!("{}", self.without_verdict());
            return;
        }
        let median_of = |value: fn(&Measured) -> f64| median(usable.iter().map(|run| value(run)));
        let costs: Vec<f64> = usable.iter().map(|run| run.per_cpu_s()).collect();
        let lowest = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = costs.iter().copied().fold(0.0, f64::max);
        let range = format!("{}–{}", thousands(lowest), thousands(highest));
        print!("{:>12} {range:>21} ", thousands(median(costs.iter().copied())));
        print!("{:>9}", thousands(median_of(Measured::rate)));
        for reference in references {
            let width = ratio_width(reference);
            let of = median(reference.usable().iter().map(|run| run.per_cpu_s()));
            print!(" {:>width$.2}", median(costs.iter().copied()) / of);
        }
        let limit = usable[usable.len() / 2].bottleneck();
        println!(
            " {:>4.0}% {:>5.0}% {limit:>10} {:>4}/{}",
            median_of(|run| run.busy_generator) * 100.0,
            median_of(|run| run.busy_target) * 100.0,
            usable.len(),
            self.runs.len()
        );
        self.print_disagreement(&usable);
    }

    /// What is said of a tool none of whose rounds may be used. Disturbed rounds are shown, so
    /// that one can tell whether a quieter hour would be worth it, but enter no ratio.
    fn without_verdict(&self) -> String {
        let why = self.runs.last().and_then(Measured::unusable).unwrap_or_default();
        let worked: Vec<&Measured> =
            self.runs.iter().filter(|run| run.exit == 0 && run.operations > 0.0).collect();
        let rounds = self.runs.len();
        if worked.is_empty() {
            return format!("no usable round of {rounds}: {why}");
        }
        let cost = thousands(median(worked.iter().map(|run| run.per_cpu_s())));
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
            println!("{:<15} note: it counted {own}, the target {target}", "");
        }
    }
}

fn ratio_width(row: &Row) -> usize {
    (row.tool.len() + 2).max(6)
}

/// The middle value, or the mean of the two middle ones; 0 of none.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match (values.len(), values.len() / 2) {
        (0, _) => 0.0,
        (n, middle) if n % 2 == 1 => values[middle],
        (_, middle) => (values[middle - 1] + values[middle]) / 2.0,
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

    #[test]
    fn medians_and_commas() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0].into_iter()), 2.5);
        assert_eq!(median(std::iter::empty()), 0.0);
        assert_eq!(thousands(1_234_567.4), "1,234,567");
        assert_eq!(thousands(12.0), "12");
    }
}
