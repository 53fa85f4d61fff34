//! Text on a terminal for a file of numbers: value ± the longer side of the interval, such as "1.32
//! ± 0.04 times".

use std::fmt::Write as _;
use weigh_model::numbers::{DECIMALS_MAX, fixed};

use crate::numbers::report::{Bounds, GroupReport, LevelReport, NumberReport, PairReport};

/// Returns the report, with a line break at its end.
pub fn render(report: &NumberReport) -> String {
    let mut text = format!("{}; intervals at 95 %\n", report.read_as);
    for group in &report.groups {
        text.push('\n');
        text += &of_group(group);
    }
    if !report.comparisons.is_empty() {
        text.push('\n');
        report.comparisons.iter().for_each(|pair| text += &of_pair(pair));
    }
    text
}

fn of_group(group: &GroupReport) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut line = |name: &str, value: String| lines.push((name.to_owned(), value));
    line("mean", with_bounds(group.mean, &group.interval));
    if let Some(bootstrap) = &group.bootstrap {
        line("  beside it", in_words(bootstrap));
    }
    if group.is_flat() {
        line("sd", significant(group.standard_deviation));
        line("median", with_bounds(group.median, &group.median_interval));
    }
    for quantile in &group.quantiles {
        if let Some(value) = quantile.value {
            let name = format!("p{}", quantile.q * 100.0);
            line(&name, with_bounds(value, &quantile.interval));
        }
    }
    let missing = group.quantiles.iter().find(|quantile| quantile.value.is_none());
    if let Some(refused) = missing.and_then(|quantile| quantile.interval.refused.as_ref()) {
        line("beyond", refused.clone());
    }
    if let (Some(p), Some(skewness)) = (group.normality_p, group.skewness) {
        let verdict = if p < 0.05 { "not normal" } else { "could be normal" };
        let text = format!("{verdict} (Shapiro-Wilk p {}), skewness {skewness:.2}", probability(p));
        line("shape", text);
    }
    if !group.outliers.is_empty() {
        line("apart", outliers(&group.outliers));
    }
    if let Some(course) = &group.course {
        let changes: Vec<String> = course.changes_at.iter().map(usize::to_string).collect();
        let at = match changes.is_empty() {
            true => String::new(),
            false => format!(", level changes at value {}", changes.join(", ")),
        };
        line("course", format!("{}{at}", course.state));
    }
    let together = group.course.as_ref().filter(|course| course.hangs_together);
    if let Some(course) = together {
        let (lag1, worth) = (course.lag1_autocorrelation, course.effective_n);
        let alike = format!("neighbours are alike (lag-1 {lag1:.2}): worth {worth:.0} independent");
        line("order", alike + " values, the interval of the mean is too narrow");
        if let Some(bounds) = &course.batch_means {
            line("  batches", in_words(bounds));
        }
    }
    let mut text = match group.name.as_str() {
        "" => format!("n = {}\n", group.n),
        name => format!("{name}, n = {}\n", group.n),
    };
    lines.iter().for_each(|(name, value)| {
        let _ = writeln!(text, "  {name:<11} {value}");
    });
    text + &of_levels(&group.levels)
}

fn outliers(values: &[f64]) -> String {
    let shown: Vec<String> = values.iter().take(OUTLIERS_SHOWN).map(|v| significant(*v)).collect();
    let more = match values.len().saturating_sub(OUTLIERS_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more} (beyond Tukey's fences; kept)", shown.join(", "))
}

fn of_levels(levels: &[LevelReport]) -> String {
    let mut text = String::new();
    for level in levels {
        let varies = match (level.variance, level.share) {
            (Some(variance), Some(share)) => {
                format!(
                    "sd {}, {:.0} % of the variance",
                    significant(variance.sqrt()),
                    share * 100.0
                )
            }
            (Some(_), None) => "does not vary".to_owned(),
            _ => "not repeated: counted to the level above".to_owned(),
        };
        let advice = match (level.variance, level.best_members) {
            (None, _) => String::new(),
            (_, None) => "; repeat here".to_owned(),
            (_, Some(best)) => format!("; {best} per group would do"),
        };
        let (name, members) = (&level.name, level.members);
        let _ = writeln!(text, "  level {name:<11} {members:>6} members  {varies}{advice}");
    }
    text
}

fn of_pair(pair: &PairReport) -> String {
    let (left, right) = (&pair.left, &pair.right);
    let mut text = match (pair.ratio, pair.interval.low, pair.interval.high) {
        (Some(ratio), Some(low), Some(high)) => {
            let half = (high - low) / 2.0;
            let times = with_deviation(ratio, low, high);
            format!("{left} is {times} times {right} ({} … {})", at(low, half), at(high, half))
        }
        (Some(ratio), ..) => format!("{left} is {} times {right}", significant(ratio)),
        _ => format!("{left} and {right}"),
    };
    text += &format!(": {}", pair.verdict);
    if let Some(reason) = &pair.interval.refused {
        text += &format!(", {reason}");
    }
    text.push('\n');
    if let Some(bounds) = &pair.kalibera_jones {
        let _ = writeln!(text, "  ratio       {}", in_words(bounds));
    }
    if let (Some(p), Some(exact)) = (pair.mann_whitney_p, pair.mann_whitney_exact) {
        let how = if exact { "exact" } else { "normal approximation" };
        let _ = writeln!(text, "  ranks       Mann-Whitney p {} ({how})", probability(p));
    }
    if let (Some(shift), Some(bounds)) = (pair.shift, &pair.shift_interval) {
        let _ = writeln!(text, "  shift       {}", with_bounds(shift, bounds));
    }
    text
}

fn with_bounds(value: f64, bounds: &Bounds) -> String {
    match (bounds.low, bounds.high) {
        (Some(low), Some(high)) => {
            format!("{} ({})", with_deviation(value, low, high), in_words(bounds))
        }
        _ => format!("{} ({})", significant(value), in_words(bounds)),
    }
}

fn in_words(bounds: &Bounds) -> String {
    match (bounds.low, bounds.high, &bounds.refused) {
        (Some(low), Some(high), _) => {
            let half = (high - low) / 2.0;
            format!("{} … {}, {}", at(low, half), at(high, half), bounds.method.unwrap_or_default())
        }
        (_, _, Some(refused)) => format!("no interval: {refused}"),
        _ => "no interval".to_owned(),
    }
}

/// Returns the value and ± the longer side of its interval if both sides are about equal, and the
/// ends of the interval otherwise.
pub fn with_deviation(value: f64, low: f64, high: f64) -> String {
    let (below, above) = (value - low, high - value);
    let is_lopsided = (above - below).abs() > LOPSIDED * (high - low);
    if is_lopsided { at(value, (high - low) / 2.0) } else { plus_minus(value, below.max(above)) }
}

/// Returns the value and its uncertainty with two digits of the latter, as the GUM advises (JCGM
/// 100, 7.2.6).
fn plus_minus(value: f64, half: f64) -> String {
    format!("{} ± {}", at(value, half), at(half, half))
}

/// Returns `value` with as many decimals as two digits of `half` need.
pub fn at(value: f64, half: f64) -> String {
    if half <= 0.0 || !half.is_finite() {
        return significant(value);
    }
    let decimals = (1 - half.log10().floor() as i32).clamp(0, DECIMALS_MAX) as usize;
    fixed(value, decimals)
}

/// Returns four significant digits.
pub fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { value.to_string() };
    }
    let decimals = (3 - value.abs().log10().floor() as i32).clamp(0, DECIMALS_MAX) as usize;
    fixed(value, decimals)
}

fn probability(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".to_owned() } else { format!("= {p:.4}") }
}

/// Largest difference between the sides, as a share of the interval, that is printed as one ±.
const LOPSIDED: f64 = 0.02;
const OUTLIERS_SHOWN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_digits_that_their_uncertainty_leaves() {
        assert_eq!(plus_minus(1.318_4, 0.0432), "1.318 ± 0.043");
        assert_eq!(plus_minus(12_345.678, 210.0), "12,346 ± 210");
        assert_eq!(plus_minus(3.0, 0.0), "3.000 ± 0");
        assert_eq!(
            (significant(0.001_234_5), significant(-20.0)),
            ("0.001234".into(), "-20.00".into())
        );
    }

    #[test]
    fn the_longer_side_stands_for_both_unless_they_differ() {
        assert_eq!(with_deviation(100.0, 98.48, 101.56), "100.0 ± 1.6");
        assert_eq!(with_deviation(100.0, 98.44, 101.52), "100.0 ± 1.6");
        assert_eq!(with_deviation(10.0, 9.0, 14.0), "10.0");
    }
}
