//! Report on a file of numbers: every group, its levels, and every pair of groups. It is the
//! document of `weigh stats --json`.

use serde::Serialize;
use weigh_stats::hierarchy::{self, Group, Hierarchy};
use weigh_stats::order_statistic::quantile_interval;
use weigh_stats::steady_state::{Better, State, SteadyState};
use weigh_stats::within_run::{BatchMeans, autocorrelation, autocorrelation_time};
use weigh_stats::{Comparison, Refusal, RunsMean};

use crate::numbers::file::NumberFile;

/// Name and version of the document.
pub const STATS_SCHEMA: &str = "weigh/stats/1";

/// Report on one file.
#[derive(Serialize)]
pub struct NumberReport {
    /// [`STATS_SCHEMA`].
    pub schema: &'static str,
    /// Description of how the file was read.
    pub read_as: String,
    /// Confidence level of every interval.
    pub confidence: f64,
    /// Report of every group, in the order of the file; one without a name if there are no groups.
    pub groups: Vec<GroupReport>,
    /// Comparison of every pair of groups: left divided by right.
    pub comparisons: Vec<PairReport>,
}

/// Report on one group of values.
#[derive(Serialize)]
pub struct GroupReport {
    pub name: String,
    pub n: usize,
    pub mean: f64,
    /// Interval of the mean. With levels, it is based on the means of the outermost repeated level.
    pub interval: Bounds,
    /// Studentised bootstrap interval, if the values call for a second look.
    #[serde(rename = "beside")]
    pub bootstrap: Option<Bounds>,
    pub standard_deviation: f64,
    pub median: f64,
    pub median_interval: Bounds,
    pub quantiles: Vec<Quantile>,
    /// P-value of the Shapiro-Wilk test: small if the values do not look normal.
    pub normality_p: Option<f64>,
    pub skewness: Option<f64>,
    /// Outliers, which are part of every figure.
    pub outliers: Vec<f64>,
    /// Dependence of the values on their order, from 20 values on and without levels.
    pub course: Option<Course>,
    /// Levels, outermost first; empty without levels.
    pub levels: Vec<LevelReport>,
    #[serde(skip)]
    hierarchy: Option<Hierarchy>,
    #[serde(skip)]
    values: Vec<f64>,
}

/// An interval, or the reason why there is none.
#[derive(Clone, Serialize)]
pub struct Bounds {
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub method: Option<&'static str>,
    pub refused: Option<String>,
}

#[derive(Serialize)]
pub struct Quantile {
    pub q: f64,
    /// Value of the quantile; null if there are too few values in the tail.
    pub value: Option<f64>,
    pub interval: Bounds,
}

/// Properties of the order of the values.
#[derive(Serialize)]
pub struct Course {
    /// State: `flat`, `falls`, `rises` or `not steady`.
    pub state: &'static str,
    /// Positions where the mean changes, counted from 1, without the first value.
    pub changes_at: Vec<usize>,
    pub lag1_autocorrelation: f64,
    /// Number of independent values with the same information.
    pub effective_n: f64,
    /// True if the values are not independent, so the interval of the mean is too narrow.
    pub hangs_together: bool,
    /// Interval of the mean from batch means, if the values are not independent.
    pub batch_means: Option<Bounds>,
}

#[derive(Serialize)]
pub struct LevelReport {
    pub name: String,
    pub members: usize,
    pub members_per_group: f64,
    /// Variance that this level adds to that of a single value; null if the level is not repeated.
    pub variance: Option<f64>,
    /// Share of this level in the variance of all levels.
    pub share: Option<f64>,
    /// Best number of members of a group at the given costs; null at the level to repeat.
    pub best_members: Option<usize>,
}

#[derive(Serialize)]
pub struct PairReport {
    pub left: String,
    pub right: String,
    pub ratio: Option<f64>,
    pub interval: Bounds,
    pub verdict: &'static str,
    /// Interval of the ratio by the method of Kalibera and Jones, if there are levels.
    pub kalibera_jones: Option<Bounds>,
    pub mann_whitney_p: Option<f64>,
    pub mann_whitney_exact: Option<bool>,
    /// Hodges-Lehmann shift, left minus right.
    pub shift: Option<f64>,
    pub shift_interval: Option<Bounds>,
}

impl NumberReport {
    /// Computes the report of a file. Two columns are a group and its values unless `has_levels`.
    /// More columns are levels, and the first is a group to compare by if it is called `group`.
    /// `costs` has the price of a repetition at every level, outermost first, or is empty for equal
    /// prices.
    ///
    /// # Errors
    /// Values that are too large or may have a decimal comma, costs that do not fit the levels, and
    /// too many groups.
    pub fn of(file: &NumberFile, has_levels: bool, costs: &[f64]) -> Result<NumberReport, String> {
        check_values(file, has_levels)?;
        let before = file.columns.len() - 1;
        let is_grouped = match before {
            0 => false,
            1 => !has_levels,
            _ => file.columns[0].eq_ignore_ascii_case("group"),
        };
        let first_level = usize::from(is_grouped);
        let level_names = if before > first_level { &file.columns[first_level..] } else { &[] };
        check(costs, level_names)?;
        let mut groups: Vec<(&str, Vec<Row<'_>>)> = Vec::new();
        for (names, value) in &file.rows {
            let name = if is_grouped { names[0].as_str() } else { "" };
            let row = (names[first_level..].iter().collect(), *value);
            match groups.iter_mut().find(|(other, _)| *other == name) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((name, vec![row])),
            }
        }
        if groups.len() > GROUPS_MAX {
            return Err(format!(
                "{} groups are too many to compare in pairs, at most {GROUPS_MAX}: type --levels \
                 if the first column names runs",
                groups.len()
            ));
        }
        let read_as = read_as(file, is_grouped, groups.len(), level_names);
        let weigh =
            |(name, rows): &(&str, Vec<Row<'_>>)| GroupReport::of(name, rows, level_names, costs);
        let groups: Vec<GroupReport> = groups.iter().map(weigh).collect::<Result<_, _>>()?;
        let pairs = groups.iter().enumerate().flat_map(|(index, left)| {
            groups[index + 1..].iter().map(move |right| PairReport::of(left, right))
        });
        let comparisons = pairs.collect();
        let confidence = weigh_stats::CONFIDENCE;
        Ok(NumberReport { schema: STATS_SCHEMA, read_as, confidence, groups, comparisons })
    }
}

/// Refuses values whose squares overflow, and numbers with an ambiguous comma.
fn check_values(file: &NumberFile, has_levels: bool) -> Result<(), String> {
    if file.may_be_decimal && !has_levels {
        let (names, value) = &file.rows[0];
        let group = &names[0];
        return Err(format!(
            "{group},{value} may be one number with a decimal comma, or the group {group} with the \
             value {value}: write {group}.{value}, or begin with the line group,value"
        ));
    }
    match file.rows.iter().map(|(_, value)| *value).find(|value| value.abs() > VALUE_MAX) {
        None => Ok(()),
        Some(value) => Err(format!(
            "{value:e} is too large for sums of squares, which end at 1e308: give the values in a \
             larger unit, below {VALUE_MAX:e}"
        )),
    }
}

/// Largest accepted value: its square, summed ten thousand million times, is finite.
const VALUE_MAX: f64 = 1e149;

/// Levels of a value, and the value.
type Row<'a> = (Vec<&'a String>, f64);

fn check(costs: &[f64], level_names: &[String]) -> Result<(), String> {
    if !costs.is_empty() && level_names.is_empty() {
        return Err("--costs: the file has no levels: leave it out".to_owned());
    }
    if !costs.is_empty() && costs.len() != level_names.len() {
        return Err(format!(
            "--costs has {} costs for {} levels ({}): give one for each",
            costs.len(),
            level_names.len(),
            level_names.join(", ")
        ));
    }
    match costs.iter().find(|cost| !cost.is_finite() || **cost <= 0.0) {
        Some(cost) => Err(format!("--costs: {cost} is not a cost: type numbers above 0")),
        None => Ok(()),
    }
}

fn read_as(file: &NumberFile, is_grouped: bool, groups: usize, level_names: &[String]) -> String {
    let count = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let mut text = count(file.rows.len(), "value");
    if is_grouped {
        text += &format!(" in {} by {:?}", count(groups, "group"), file.columns[0]);
    }
    if !level_names.is_empty() {
        text += &format!(", levels {}", level_names.join(" > "));
    }
    text
}

impl GroupReport {
    fn of(
        name: &str,
        rows: &[Row<'_>],
        level_names: &[String],
        costs: &[f64],
    ) -> Result<GroupReport, String> {
        let values: Vec<f64> = rows.iter().map(|(_, value)| *value).collect();
        let failed = |refusal: Refusal| refusal.to_string();
        let runs = RunsMean::of(&values).map_err(failed)?;
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let quantile = |q: f64| {
            let found = quantile_interval(&sorted, q);
            let value = found.ok().map(|found| found.value);
            Quantile { q, value, interval: Bounds::of(found.map(|found| found.interval)) }
        };
        let mut report = GroupReport {
            name: name.to_owned(),
            n: runs.n,
            mean: runs.mean,
            interval: Bounds::of(runs.interval),
            bootstrap: runs.bootstrap.map(|interval| Bounds::of(Ok(interval))),
            standard_deviation: runs.deviation,
            median: runs.median,
            median_interval: Bounds::of(runs.median_interval),
            quantiles: [0.9, 0.99, 0.999].map(quantile).into(),
            normality_p: runs.normality.map(|normality| normality.p),
            skewness: runs.normality.map(|normality| normality.skewness),
            outliers: runs.outliers.iter().map(|index| values[*index]).collect(),
            course: level_names.is_empty().then(|| Course::of(&values)).flatten(),
            levels: Vec::new(),
            hierarchy: None,
            values,
        };
        if !level_names.is_empty() {
            report.stand_on_levels(rows, level_names, costs);
        }
        Ok(report)
    }

    /// Replaces the figures that treat all values as runs by those of the highest level.
    fn stand_on_levels(&mut self, rows: &[Row<'_>], level_names: &[String], costs: &[f64]) {
        (self.bootstrap, self.normality_p, self.skewness) = (None, None, None);
        self.outliers.clear();
        self.quantiles.clear();
        self.median_interval = Bounds::none();
        match Hierarchy::of(&Group::of_rows(rows)) {
            Err(refusal) => self.interval = Bounds::of(Err(refusal)),
            Ok(hierarchy) => {
                self.mean = hierarchy.mean;
                self.interval = Bounds::of(Ok(hierarchy.interval));
                self.levels = level_reports(&hierarchy, level_names, costs);
                self.hierarchy = Some(hierarchy);
            }
        }
    }

    /// True if the values have no levels.
    pub fn is_flat(&self) -> bool {
        self.levels.is_empty()
    }

    /// Returns the independent values: the means of the highest level, or the values themselves.
    fn independent(&self) -> &[f64] {
        match &self.hierarchy {
            Some(hierarchy) => &hierarchy.top_means,
            None => &self.values,
        }
    }
}

fn level_reports(hierarchy: &Hierarchy, names: &[String], costs: &[f64]) -> Vec<LevelReport> {
    let equal = vec![1.0; names.len()];
    let best = hierarchy.best_members(if costs.is_empty() { &equal } else { costs });
    let own = |level: &hierarchy::Level| level.repeated.then_some(level.own_variance.max(0.0));
    let all: f64 = hierarchy.levels.iter().filter_map(own).sum();
    let levels = hierarchy.levels.iter().zip(names).zip(best);
    levels
        .map(|((level, name), best_members)| LevelReport {
            name: name.clone(),
            members: level.members,
            members_per_group: level.members_per_group,
            variance: own(level),
            share: own(level).filter(|_| all > 0.0).map(|variance| variance / all),
            best_members,
        })
        .collect()
}

impl Course {
    fn of(values: &[f64]) -> Option<Course> {
        if values.len() < COURSE_VALUES_MIN {
            return None;
        }
        let steady = SteadyState::of(values, Better::Lower).ok()?;
        let changes = steady.segments.iter().skip(1).map(|segment| segment.start + 1);
        let lag1 = autocorrelation(values, 1);
        // More than chance shows among independent values (M. S. Bartlett, 1946).
        let hangs_together = lag1 > 2.0 / (values.len() as f64).sqrt();
        let in_batches = || Bounds::of(BatchMeans::of(values).map(|found| found.interval));
        Some(Course {
            state: match steady.state {
                State::Flat => "flat",
                State::WarmUp => "falls",
                State::SlowDown => "rises",
                State::NotSteady => "not steady",
            },
            changes_at: changes.collect(),
            lag1_autocorrelation: lag1,
            effective_n: values.len() as f64 / autocorrelation_time(values),
            hangs_together,
            batch_means: hangs_together.then(in_batches),
        })
    }
}

impl PairReport {
    fn of(left: &GroupReport, right: &GroupReport) -> PairReport {
        let compared = Comparison::of(left.independent(), right.independent());
        let rank = compared.rank;
        let bounds = compared.ratio.and_then(|ratio| ratio.interval());
        let both = left.hierarchy.as_ref().zip(right.hierarchy.as_ref());
        PairReport {
            left: left.name.clone(),
            right: right.name.clone(),
            ratio: compared.ratio.map(|ratio| ratio.value),
            interval: Bounds {
                low: bounds.map(|interval| interval.low),
                high: bounds.map(|interval| interval.high),
                method: bounds.map(|interval| interval.method.name()),
                refused: compared.refusal.map(|refusal| refusal.to_string()),
            },
            verdict: compared.verdict.name(),
            kalibera_jones: both.map(|(left, right)| {
                Bounds::of(hierarchy::ratio(left, right).map(|(_, interval)| interval))
            }),
            mann_whitney_p: rank.map(|rank| rank.p),
            mann_whitney_exact: rank.map(|rank| rank.exact),
            shift: rank.map(|rank| rank.shift),
            shift_interval: rank.map(|rank| Bounds::of(rank.interval)),
        }
    }
}

impl Bounds {
    /// Returns no interval: values inside runs are not independent, so it would be too narrow.
    fn none() -> Bounds {
        let refused = Some("the values have levels, so they are not independent".to_owned());
        Bounds { low: None, high: None, method: None, refused }
    }

    fn of(interval: Result<weigh_stats::Interval, Refusal>) -> Bounds {
        let found = interval.ok();
        Bounds {
            low: found.map(|interval| interval.low),
            high: found.map(|interval| interval.high),
            method: found.map(|interval| interval.method.name()),
            refused: interval.err().map(|refusal| refusal.to_string()),
        }
    }
}

/// Largest number of groups that are compared in pairs: 20 groups make 190 lines.
const GROUPS_MAX: usize = 20;
const COURSE_VALUES_MIN: usize = 20;
