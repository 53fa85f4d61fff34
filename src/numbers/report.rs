//! What can be said about a file of numbers: every group by itself, level by level where there are
//! levels, and every two groups beside each other. This is the document of `weigh stats --json`.

use serde::Serialize;
use weigh_stats::hierarchy::{self, Group, Hierarchy};
use weigh_stats::order_statistic::quantile_interval;
use weigh_stats::steady_state::{Better, State, SteadyState};
use weigh_stats::within_run::{BatchMeans, autocorrelation, autocorrelation_time};
use weigh_stats::{Comparison, Refusal, RunsMean};

use crate::numbers::file::NumberFile;

/// The name and version of the document.
pub const STATS_SCHEMA: &str = "weigh/stats/1";

/// Everything about one file.
#[derive(Serialize)]
pub struct NumberReport {
    /// [`STATS_SCHEMA`].
    pub schema: &'static str,
    /// How the file was read, in words.
    pub read_as: String,
    /// The confidence of every interval.
    pub confidence: f64,
    /// One for every group, in the order of the file; one without a name if there are no groups.
    pub groups: Vec<GroupReport>,
    /// Every two groups, left over right.
    pub comparisons: Vec<PairReport>,
}

/// One group of values.
#[derive(Serialize)]
pub struct GroupReport {
    pub name: String,
    pub n: usize,
    pub mean: f64,
    /// With levels it stands on the means of the outermost one that is repeated.
    pub interval: Bounds,
    /// The studentised bootstrap interval, where it should be looked at too.
    #[serde(rename = "beside")]
    pub bootstrap: Option<Bounds>,
    pub standard_deviation: f64,
    pub median: f64,
    pub median_interval: Bounds,
    pub quantiles: Vec<Quantile>,
    /// Shapiro and Wilk's p: small if the values do not look normal.
    pub normality_p: Option<f64>,
    pub skewness: Option<f64>,
    /// Values that stand apart; they are part of every figure.
    pub outliers: Vec<f64>,
    /// How the values hang together in their order, from 20 values on and without levels.
    pub course: Option<Course>,
    /// With levels, outermost first.
    pub levels: Vec<LevelReport>,
    #[serde(skip)]
    hierarchy: Option<Hierarchy>,
    #[serde(skip)]
    values: Vec<f64>,
}

/// An interval, or why there is none.
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
    /// Null where the values do not reach so far into the tail.
    pub value: Option<f64>,
    pub interval: Bounds,
}

/// What the order of the values shows.
#[derive(Serialize)]
pub struct Course {
    /// `flat`, `falls`, `rises` or `not steady`.
    pub state: &'static str,
    /// Where levels begin, counted from 1, the first one left out.
    pub changes_at: Vec<usize>,
    pub lag1_autocorrelation: f64,
    /// How many independent values these are worth.
    pub effective_n: f64,
    /// Whether the interval of the mean takes for independent what is not.
    pub hangs_together: bool,
    /// The mean's interval from batch means, where the values hang together.
    pub batch_means: Option<Bounds>,
}

#[derive(Serialize)]
pub struct LevelReport {
    pub name: String,
    pub members: usize,
    pub members_per_group: f64,
    /// What this level adds to the variance of a single value; null where it is not repeated.
    pub variance: Option<f64>,
    /// The same as a share of what all levels add.
    pub share: Option<f64>,
    /// How many members a group should have at the prices given; null at the level to repeat.
    pub best_members: Option<usize>,
}

#[derive(Serialize)]
pub struct PairReport {
    pub left: String,
    pub right: String,
    pub ratio: Option<f64>,
    pub interval: Bounds,
    pub verdict: &'static str,
    /// With levels: the ratio's interval as Kalibera and Jones compute it.
    pub kalibera_jones: Option<Bounds>,
    pub mann_whitney_p: Option<f64>,
    pub mann_whitney_exact: Option<bool>,
    /// Hodges and Lehmann's shift, left minus right.
    pub shift: Option<f64>,
    pub shift_interval: Option<Bounds>,
}

impl NumberReport {
    /// Weighs a file. Two columns are a group and its values unless `has_levels`; of more, all
    /// are levels, the first one a group to compare by if it is called `group`. `costs` has the
    /// price of a repetition at every level, outermost first, or is empty for equal prices.
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
                "{} groups are too many to compare every two of them, at most {GROUPS_MAX}: if the \
                 first column names runs, say --levels",
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

/// Refuses values whose squares overflow, and numbers of which nobody knows which they are.
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

/// The square of this, times ten thousand million values, is still a number.
const VALUE_MAX: f64 = 1e149;

/// The levels that a value stands in, and the value.
type Row<'a> = (Vec<&'a String>, f64);

fn check(costs: &[f64], level_names: &[String]) -> Result<(), String> {
    if !costs.is_empty() && level_names.is_empty() {
        return Err("--costs: there are no levels to repeat at; leave it out".to_owned());
    }
    if !costs.is_empty() && costs.len() != level_names.len() {
        return Err(format!(
            "--costs has {} prices, {} levels are there ({}): give one for each",
            costs.len(),
            level_names.len(),
            level_names.join(", ")
        ));
    }
    match costs.iter().find(|cost| !cost.is_finite() || **cost <= 0.0) {
        Some(cost) => Err(format!("--costs: {cost} is no price: it must be above 0")),
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

    /// Puts what rests on the highest level in the place of what takes all values for runs.
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

    /// Whether its values stand in no levels.
    pub fn is_flat(&self) -> bool {
        self.levels.is_empty()
    }

    /// What is independent: the means of the highest level, or the values themselves.
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
        // Beyond what chance shows among independent values (M. S. Bartlett, 1946).
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
    /// Values inside runs are not independent, so that theirs would be too narrow.
    fn none() -> Bounds {
        let refused = Some("the values stand in levels: they are not independent".to_owned());
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

/// Every two of so many groups are 190 lines to read.
const GROUPS_MAX: usize = 20;
const COURSE_VALUES_MIN: usize = 20;
