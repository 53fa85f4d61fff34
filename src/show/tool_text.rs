//! Text on a terminal for real programs that ran next to Weighbridge: each compared figure, with
//! the difference.

use std::fmt::Write;

use weigh_report::figures::three_digits;
use weigh_study::tools::{ToolCompared, ToolFigure, ToolShown};

/// Returns a block for every program that was run; empty if there was none.
pub fn tools(all: &[ToolShown]) -> String {
    let mut text = String::new();
    for tool in all.iter().filter(|tool| tool.skipped.is_none()) {
        let version = tool.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
        let _ = writeln!(text, "\n{} ({}{version}): {}", tool.name, tool.program, tool.about);
        for figure in tool.figures.iter().filter(|figure| is_shown(figure)) {
            let name = figure.name.replace('_', " ");
            let own = interval(figure.mean, (figure.low, figure.high), &figure.unit);
            let _ = writeln!(text, "  {name}: {own}, n = {}", figure.n);
            for own in &figure.compared_with {
                let _ = writeln!(text, "    {}", compared(own, &figure.unit));
            }
        }
        for why in &tool.failures {
            let _ = writeln!(text, "  a repetition failed: {why}");
        }
        for warning in &tool.warnings {
            let _ = writeln!(text, "  warning: {warning}");
        }
    }
    text
}

/// True for figures that are compared, and for the cost of a message in the program.
fn is_shown(figure: &ToolFigure) -> bool {
    !figure.compared_with.is_empty() || figure.name == "cpu_s_per_message"
}

/// Returns a line such as `weigh like autocannon: 10,000/s; difference 4.00/s (-2.00 to 10.0)`.
fn compared(own: &ToolCompared, unit: &str) -> String {
    let what = &own.what;
    let Some(value) = own.value else { return format!("{what}: {}", own.reason) };
    let value = interval(value, (own.low, own.high), unit);
    let difference = match own.difference {
        Some(difference) => {
            let ends = (own.difference_low, own.difference_high);
            format!("difference {}", interval(difference, ends, unit))
        }
        None => own.reason.clone(),
    };
    format!("{what}: {value}; {difference}")
}

fn interval(value: f64, ends: (Option<f64>, Option<f64>), unit: &str) -> String {
    // Times of a message are seconds in study.json, and milliseconds for readers.
    let (factor, unit) = match unit {
        "s" if value.abs() < 1.0 => (1e3, " ms"),
        "s" => (1.0, " s"),
        "1/s" => (1.0, "/s"),
        "bytes" => (1.0, " B"),
        "ms" => (1.0, " ms"),
        _ => (1.0, ""),
    };
    let shown = |value: f64| three_digits(value * factor);
    match ends {
        (Some(low), Some(high)) if low != high => {
            format!("{}{unit} ({} to {})", shown(value), shown(low), shown(high))
        }
        _ => format!("{}{unit}", shown(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_stands_with_its_interval() {
        let own = ToolCompared {
            what: "weigh like autocannon".to_owned(),
            value: Some(10_000.0),
            low: None,
            high: None,
            difference: Some(4.0),
            difference_low: Some(-2.0),
            difference_high: Some(10.0),
            reason: String::new(),
        };
        let text = "weigh like autocannon: 10,000/s; difference 4.00/s (-2.00 to 10.0)";
        assert_eq!(compared(&own, "1/s"), text);
        let absent = ToolCompared { value: None, reason: "not run".to_owned(), ..own };
        assert_eq!(compared(&absent, "1/s"), "weigh like autocannon: not run");
        assert_eq!(interval(0.0024, (Some(0.002), Some(0.003)), "s"), "2.40 ms (2.00 to 3.00)");
    }
}
