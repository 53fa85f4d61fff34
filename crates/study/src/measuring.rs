//! What the quantities of claims are, by the runs that there are: a value with what is known of its
//! uncertainty, or why there is none.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use weigh_model::doubt::DoubtRecord;
use weigh_model::trial::Point;
use weigh_report::interference::Interference;
use weigh_report::limits::Limit;
use weigh_report::summary::Cell;
use weigh_stats::line::Line;
use weigh_stats::propagation::Known;

use crate::expression::Bound;
use crate::figures::number;
use crate::late::Late;
use crate::outcome::Link;
use crate::quantity::{Along, Quantity, Source, Statistic};
use crate::run_checks;
use crate::runs::{RunMade, RunState, Runs};
use crate::scale::Scale;
use crate::selector::{self, Selector};
use crate::study::Study;

/// A quantity that was measured.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// Its best estimate; may be infinite.
    pub(crate) estimate: f64,
    /// Draws from what is known of it; `None` where it is exact.
    pub(crate) draws: Option<Rc<Vec<f64>>>,
    /// Its value in every repetition, where it is the mean over all repetitions of one cell.
    pub(crate) repeated: Option<Repeated>,
    /// Repetitions behind it; `None` where it is exact.
    pub(crate) n: Option<u32>,
    pub(crate) unit: String,
    pub(crate) links: Vec<Link>,
    /// What is to be known of it.
    pub(crate) note: Option<String>,
}

/// The values of the repetitions of one cell: those of the same place are of the same trials.
#[derive(Clone, Debug)]
pub(crate) struct Repeated {
    /// The run and the cell.
    pub(crate) place: String,
    /// In the order of repetitions.
    pub(crate) values: Vec<f64>,
}

impl Measured {
    fn exactly(estimate: f64, unit: &str, links: Vec<Link>) -> Measured {
        let unit = unit.to_owned();
        Measured { estimate, draws: None, repeated: None, n: None, unit, links, note: None }
    }
}

/// Why a quantity has no value, and where one would look for it.
#[derive(Clone, Debug)]
pub(crate) struct Absent {
    pub(crate) reason: String,
    pub(crate) links: Vec<Link>,
}

/// Looks quantities up in runs.
pub(crate) struct Measuring<'a> {
    study: &'a Study,
    runs: &'a Runs,
    scale: Scale,
    /// Draws by what they are of: the same quantity has the same ones wherever it stands.
    drawn: RefCell<BTreeMap<String, Rc<Vec<f64>>>>,
}

/// A cell, all that is known of where it stands, and its run.
struct Found<'r> {
    run: &'r str,
    made: &'r RunMade,
    cell: &'r Cell,
    point: Point,
    /// Whether its figures are taken even where the generator was the limit.
    even_limited: bool,
}

impl<'a> Measuring<'a> {
    pub(crate) fn new(study: &'a Study, runs: &'a Runs, scale: Scale) -> Measuring<'a> {
        Measuring { study, runs, scale, drawn: RefCell::default() }
    }

    /// What a quantity is.
    pub(crate) fn measure(&self, quantity: &Quantity) -> Result<Measured, Absent> {
        match quantity {
            Quantity::Cell { run, source, at, statistic, even_limited } => {
                let mut found = self.cells(run, at)?;
                match &mut found[..] {
                    [one] => {
                        one.even_limited = *even_limited;
                        self.of_cell(one, source, *statistic)
                    }
                    _ => Err(self.no_cell(run, at)),
                }
            }
            Quantity::Along { run, source, at, over, what } => {
                let mut found = self.cells(run, at)?;
                let x = |found: &Found<'_>| selector::number(found.point.get(over)?);
                found.retain(|found| x(found).is_some());
                if found.is_empty() {
                    return Err(self.no_cell(run, at));
                }
                let mut along: Vec<(f64, Found<'_>)> =
                    found.into_iter().filter_map(|found| Some((x(&found)?, found))).collect();
                along.sort_by(|left, right| left.0.total_cmp(&right.0));
                match what {
                    Along::First(bound) => self.first(&along, source, *bound),
                    what => self.fit(&along, source, *what),
                }
            }
            Quantity::Limit { run, name, goal, at } => self.limit(run, name, goal.as_deref(), at),
            Quantity::Interference { run, metric, at } => self.interference(run, metric, at),
            Quantity::Published { cell } => Ok(self.published(&[*cell], None)),
            Quantity::PublishedAlong { cells, what } => Ok(self.published(cells, Some(*what))),
            Quantity::Finding { is_found, place, rule } => {
                let links = vec![printed(format!("audit {rule} {place}"))];
                Ok(Measured::exactly(f64::from(u8::from(*is_found)), "1", links))
            }
        }
    }

    /// The run of this name.
    fn made(&self, run: &str) -> Result<(&'a str, &'a RunMade), Absent> {
        match self.runs.get_key_value(run) {
            Some((name, RunState::Made(made))) => Ok((name, made)),
            Some((_, RunState::Skipped(reason))) => Err(absent(format!("{run}: {reason}"))),
            None => Err(absent(format!("{run} was not run"))),
        }
    }

    /// The cells of a run that are meant, or why there are none.
    pub(crate) fn points(
        &self,
        run: &str,
        at: &Selector,
    ) -> Result<Vec<(&'a Cell, Point, Link)>, Absent> {
        let found = self.cells(run, at)?;
        if found.is_empty() {
            return Err(self.no_cell(run, at));
        }
        Ok(found.into_iter().map(|found| (found.cell, found.point.clone(), found.link())).collect())
    }

    fn cells(&self, run: &str, at: &Selector) -> Result<Vec<Found<'a>>, Absent> {
        let (run, made) = self.made(run)?;
        let plan = &made.summary.run.plan;
        let of = |cell: &'a Cell| {
            let point = selector::whole(plan, &cell.point);
            Found { run, made, cell, point, even_limited: false }
        };
        let all = made.summary.cells.iter().map(of);
        Ok(all.filter(|found| at.fits(&found.point)).collect())
    }

    /// Why there is no such cell.
    fn no_cell(&self, run: &str, at: &Selector) -> Absent {
        let Ok((_, made)) = self.made(run) else { return absent(format!("{run} was not run")) };
        let summary = &made.summary;
        let of_plan = |point: &Point| at.fits(&selector::whole(&summary.run.plan, point));
        let failed = summary.failures.iter().find(|failure| of_plan(&failure.point));
        let is_planned = |scale| {
            let planned = self.study.plan(run).and_then(|plan| plan.scales.get(&scale));
            planned.is_some_and(|planned| {
                run_checks::points(planned).iter().any(|point| at.fits(point))
            })
        };
        let reason = match failed {
            Some(failure) => format!("its trials failed: {}", failure.error),
            None if !is_planned(self.scale) && is_planned(Scale::Full) => {
                "it is weighed at --scale full only".to_owned()
            }
            None if summary.run.outcome != "done" => {
                format!("the run is {}: --resume goes on with it", summary.run.outcome)
            }
            None => "it was left out, by a stop rule or for want of time".to_owned(),
        };
        let link = Link { run: run.to_owned(), folder: made.folder.clone(), ..Link::default() };
        Absent { reason: format!("{run}{at}: {reason}"), links: vec![link] }
    }

    fn of_cell(
        &self,
        found: &Found<'_>,
        source: &Source,
        statistic: Statistic,
    ) -> Result<Measured, Absent> {
        let links = vec![found.link()];
        let absent = |reason: String| Absent { reason, links: links.clone() };
        if let Source::Ledger(name) = source {
            let count = found.counted(name).map_err(absent)?;
            return Ok(Measured::exactly(count, "messages", links));
        }
        let Source::Metric(name) = source else { unreachable!("a source is one of two") };
        let values = found.values(name).map_err(absent)?;
        let known = known(&values, statistic).ok_or_else(|| absent(found.too_few(name)))?;
        let unit = match statistic {
            Statistic::Variation => "1".to_owned(),
            _ => found.cell.metrics[name].unit.clone(),
        };
        let key = format!("{} {} {name} {statistic}", found.run, found.cell.name);
        let range = match statistic {
            Statistic::Variation => ANY,
            _ => weigh_report::summary::possible(name, &values),
        };
        let is_whole = values.len() == found.cell.repetitions as usize;
        let is_paired = statistic == Statistic::Mean && is_whole;
        let place = format!("{} {}", found.run, found.cell.name);
        let late = Late::of(found.cell, name).filter(|_| statistic == Statistic::Mean);
        let draws = self.draws(&key, known, range);
        Ok(Measured {
            estimate: known.estimate(),
            draws: match &late {
                Some(late) => draws.map(|draws| late.taken_from(&draws, seed(&key))),
                None => draws,
            },
            n: Some(values.len() as u32),
            // Pairs of repetitions know nothing of what all of them have in common.
            repeated: (is_paired && late.is_none()).then_some(Repeated { place, values }),
            unit,
            links,
            note: found.limited().or(late.map(|late| late.words)),
        })
    }

    /// The least-squares line of every repetition along the axis, and what is known of its mean.
    fn fit(
        &self,
        along: &[(f64, Found<'a>)],
        source: &Source,
        what: Along,
    ) -> Result<Measured, Absent> {
        let links: Vec<Link> = along.iter().map(|(_, found)| found.link()).collect();
        let absent = |reason: String| Absent { reason, links: links.clone() };
        let rows = along.iter().map(|(_, found)| match source {
            Source::Metric(name) => found.values(name),
            Source::Ledger(name) => found.counted(name).map(|count| vec![count]),
        });
        let rows = rows.collect::<Result<Vec<Vec<f64>>, String>>().map_err(absent)?;
        let repetitions = rows.iter().map(Vec::len).min().unwrap_or(0);
        let line = |repetition: usize| {
            let points = along.iter().zip(&rows).map(|((x, _), row)| (*x, row[repetition]));
            taken(&points.collect::<Vec<_>>(), what)
        };
        let lines: Option<Vec<f64>> = (0..repetitions).map(line).collect();
        let lines = lines.ok_or_else(|| absent("no line goes through its cells".to_owned()))?;
        let run = along[0].1.run;
        if matches!(source, Source::Ledger(_)) {
            return Ok(Measured::exactly(lines[0], "1", links));
        }
        if lines.iter().any(|value| value.is_nan()) {
            return Err(absent(format!("{run}: there is no {what}: {source} is the same in all")));
        }
        let known = Known::mean_of(&lines).ok_or_else(|| {
            absent(format!("{run}: one repetition tells no interval: repeat it, --scale full"))
        })?;
        let places: Vec<&str> = along.iter().map(|(_, found)| found.cell.name.as_str()).collect();
        let key = format!("{run} {} {source} {what}", places.join(" "));
        let range = if what == Along::Correlation { (-1.0, 1.0) } else { ANY };
        Ok(Measured {
            estimate: known.estimate(),
            draws: self.draws(&key, known, range),
            repeated: None,
            n: Some(repetitions as u32),
            unit: "1".to_owned(),
            links,
            note: None,
        })
    }

    /// Where on the axis the figure comes to be where it should be: anywhere between the value
    /// before and the first at which it is seen there.
    fn first(
        &self,
        along: &[(f64, Found<'a>)],
        source: &Source,
        bound: Bound,
    ) -> Result<Measured, Absent> {
        let mut cells = Vec::new();
        for (x, found) in along {
            cells.push((*x, self.of_cell(found, source, Statistic::Mean)?));
        }
        let links: Vec<Link> = along.iter().map(|(_, found)| found.link()).collect();
        let places: Vec<&str> = along.iter().map(|(_, found)| found.cell.name.as_str()).collect();
        let key = format!("{} {} {source} first {bound}", along[0].1.run, places.join(" "));
        let between = |value: &dyn Fn(&Measured) -> f64| {
            crossing(cells.iter().map(|(x, measured)| (*x, bound.holds(value(measured)))))
        };
        let at = |(draw, share): (usize, f64)| {
            let drawn = |measured: &Measured| {
                measured.draws.as_ref().map_or(measured.estimate, |all| all[draw])
            };
            between(&drawn).map_or(f64::INFINITY, |(low, high)| low + (high - low) * share)
        };
        let shares = Known::Between(0.0, 1.0).draws(seed(&key));
        let draws: Vec<f64> = shares.into_iter().enumerate().map(at).collect();
        let found = between(&|measured| measured.estimate);
        let last = cells.last().map_or(0.0, |(x, _)| *x);
        let note = match found {
            None => format!("it never is {bound}, up to {}", number(last)),
            Some((_, high)) if high == cells[0].0 => {
                format!("it is {bound} from the first value on: at or below {}", number(high))
            }
            Some((low, high)) => {
                format!("it comes to be {bound} between {} and {}", number(low), number(high))
            }
        };
        Ok(Measured {
            estimate: found
                .map_or(f64::INFINITY, |(low, high)| Known::Between(low, high).estimate()),
            draws: Some(Rc::new(draws)),
            repeated: None,
            n: cells.iter().filter_map(|(_, measured)| measured.n).min(),
            unit: "1".to_owned(),
            links,
            note: Some(note),
        })
    }

    fn limit(
        &self,
        run: &str,
        name: &str,
        goal: Option<&str>,
        at: &Selector,
    ) -> Result<Measured, Absent> {
        let (run, made) = self.made(run)?;
        let plan = &made.summary.run.plan;
        let fits = |limit: &&Limit| at.fits(&selector::whole(plan, &limit.point));
        let Some(limit) = made.summary.limits.iter().find(fits) else {
            return Err(self.no_cell(run, at));
        };
        let (run, folder) = (run.to_owned(), made.folder.clone());
        let trials = limit.trials.iter().map(|trial| trial.trial.clone()).collect();
        let links = vec![Link { run, folder, cell: limit.title(), trials }];
        let absent = |reason: String| Absent { reason, links: links.clone() };
        let own = match goal {
            Some(goal) => limit.goals.iter().find(|own| own.name == goal),
            None => limit.goals.first(),
        };
        let own = own.ok_or_else(|| absent("the search had no such goal".to_owned()))?;
        let capacity = own.metrics.get(name).ok_or_else(|| absent(own.sentence.clone()))?;
        let ended = own.ended_by.as_ref().filter(|ended| ended.is_ours);
        let high = capacity.high.filter(|_| ended.is_none()).unwrap_or(f64::INFINITY);
        let note = match ended {
            Some(ended) => {
                Some(format!("its upper bound is the instrument's own: {}", ended.sentence))
            }
            None if high.is_infinite() => Some("the search found no upper bound".to_owned()),
            None => Some(format!("found between {} and {}", number(capacity.low), number(high))),
        };
        let known = Known::Between(capacity.low, high);
        // Titles of lanes leave out what two may differ in, such as their rate.
        let point = serde_json::to_string(&limit.point).unwrap_or_default();
        let key = format!("{} {point} {name} {}", links[0].run, own.name);
        Ok(Measured {
            estimate: known.estimate(),
            draws: self.draws(&key, known, ANY),
            repeated: None,
            n: None,
            unit: weigh_report::summary::unit_of(name).to_owned(),
            links,
            note,
        })
    }

    /// With the background over without, pair by pair of repetitions.
    fn interference(&self, run: &str, metric: &str, at: &Selector) -> Result<Measured, Absent> {
        let found = self.cells(run, at)?;
        let [with] = &found[..] else { return Err(self.no_cell(run, at)) };
        let summary = &with.made.summary;
        let is_it = |own: &&Interference| own.cell == with.cell.name;
        let own = summary.interference.iter().find(is_it);
        let baseline = own.and_then(|own| own.baseline.as_deref());
        let without = summary.cells.iter().find(|cell| Some(cell.name.as_str()) == baseline);
        let mut links = vec![with.link()];
        let Some((own, without)) = own.zip(without) else {
            let reason = format!("{run}{at}: there is no baseline beside it");
            return Err(Absent { reason, links });
        };
        let without = Found { cell: without, point: Point::default(), ..*with };
        links.push(without.link());
        let absent = |reason: String| Absent { reason, links: links.clone() };
        if own.overlap_ratio < OVERLAP_MIN {
            let percent = 100.0 * own.overlap_ratio;
            return Err(absent(format!("{run}: its background covers {percent:.1} % (L11)")));
        }
        let left = with.values(metric).map_err(absent)?;
        let right = without.values(metric).map_err(absent)?;
        let ratios: Vec<f64> = left.iter().zip(&right).map(|(own, base)| own / base).collect();
        let known = Known::mean_of(&ratios).filter(|_| left.len() == right.len());
        let known = known.ok_or_else(|| absent(with.too_few(metric)))?;
        let key = format!("{} {} {metric} interference", with.run, with.cell.name);
        let range = weigh_report::summary::possible(metric, &left);
        let range = (range.0, f64::INFINITY);
        Ok(Measured {
            estimate: known.estimate(),
            draws: self.draws(&key, known, range),
            repeated: None,
            n: Some(ratios.len() as u32),
            unit: "1".to_owned(),
            links: links.clone(),
            note: None,
        })
    }

    fn published(&self, indices: &[usize], what: Option<Along>) -> Measured {
        let cells: Vec<_> = indices.iter().map(|at| &self.study.published.cells[*at]).collect();
        let points: Vec<(f64, f64)> =
            cells.iter().map(|cell| (cell.x_value().unwrap_or(0.0), cell.value)).collect();
        let place = format!("{}, {}", cells[0].table, cells[0].series);
        let mut draws = None;
        let estimate = match what {
            None => cells[0].value,
            Some(Along::First(bound)) => {
                let found = crossing(points.iter().map(|(x, y)| (*x, bound.holds(*y))));
                let known = found.map(|(low, high)| Known::Between(low, high));
                let key = format!("{place} first {bound}");
                draws = known.and_then(|known| self.draws(&key, known, ANY));
                known.map_or(f64::INFINITY, Known::estimate)
            }
            Some(what) => taken(&points, what).unwrap_or(f64::NAN),
        };
        let is_plain =
            |what| matches!(what, Along::Over(statistic) if statistic != Statistic::Variation);
        let unit = match what {
            None => cells[0].unit.clone(),
            Some(what) if is_plain(what) => cells[0].unit.clone(),
            Some(_) => "1".to_owned(),
        };
        Measured { draws, ..Measured::exactly(estimate, &unit, vec![printed(place)]) }
    }

    /// Draws of a quantity: the same ones wherever it stands. `None` where nothing spreads. One
    /// beyond what is possible becomes the end of it, as intervals do (decision 7).
    fn draws(&self, key: &str, known: Known, range: (f64, f64)) -> Option<Rc<Vec<f64>>> {
        if let Known::Exactly(_) = known {
            return None;
        }
        let mut drawn = self.drawn.borrow_mut();
        let make = || {
            let draws = known.draws(seed(key)).into_iter();
            Rc::new(draws.map(|draw| draw.clamp(range.0, range.1)).collect())
        };
        Some(drawn.entry(key.to_owned()).or_insert_with(make).clone())
    }
}

impl Found<'_> {
    fn link(&self) -> Link {
        Link {
            run: self.run.to_owned(),
            folder: self.made.folder.clone(),
            cell: self.cell.name.clone(),
            trials: self.made.trials.get(&self.cell.name).cloned().unwrap_or_default(),
        }
    }

    /// The doubt for which this figure is not to be taken.
    fn spoilt_by(&self, figure: &str) -> Option<&DoubtRecord> {
        let is_allowed = |doubt: &DoubtRecord| self.even_limited && doubt.code == LIMITED;
        let spoils = |doubt: &&DoubtRecord| self.cell.is_spoilt(doubt, figure);
        self.cell.doubts.iter().filter(spoils).find(|doubt| !is_allowed(doubt))
    }

    /// That the generator was its limit, where it is taken nevertheless.
    fn limited(&self) -> Option<String> {
        let doubt = self.cell.doubts.iter().find(|doubt| doubt.code == LIMITED);
        doubt.filter(|_| self.even_limited).map(|doubt| doubt.text.clone())
    }

    /// The values of its repetitions.
    fn values(&self, metric: &str) -> Result<Vec<f64>, String> {
        let place = format!("{}, {}", self.run, self.cell.name);
        if let Some(doubt) = self.spoilt_by(metric) {
            return Err(format!("{place} is not valid: {}", doubt.text));
        }
        let Some(found) = self.cell.metrics.get(metric) else {
            return Err(format!("{place}: {metric} was not measured"));
        };
        let values: Option<Vec<f64>> = found.values.iter().copied().collect();
        values.ok_or_else(|| format!("{place}: {metric} falls into the lost share"))
    }

    /// A count of its ledger.
    fn counted(&self, name: &str) -> Result<f64, String> {
        let place = format!("{}, {}", self.run, self.cell.name);
        if let Some(doubt) = self.spoilt_by(name) {
            return Err(format!("{place} is not valid: {}", doubt.text));
        }
        let ledger = serde_json::to_value(&self.cell.ledger).unwrap_or_default();
        match name.split_once('.') {
            // A cause that is not there had no message.
            Some((kind, cause)) => Ok(ledger[kind][cause].as_f64().unwrap_or(0.0)),
            None => ledger[name].as_f64().ok_or_else(|| format!("{place}: {name} is not known")),
        }
    }

    fn too_few(&self, metric: &str) -> String {
        let place = format!("{}, {}", self.run, self.cell.name);
        format!("{place}: one repetition of {metric} tells no interval: repeat it, --scale full")
    }
}

/// What is known of a statistic of repetitions.
fn known(values: &[f64], statistic: Statistic) -> Option<Known> {
    let extreme = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick);
    Some(match (statistic, Known::mean_of(values)) {
        (Statistic::Least, _) => Known::Exactly(extreme(f64::min)?),
        (Statistic::Most, _) => Known::Exactly(extreme(f64::max)?),
        (Statistic::Mean, known) => known?,
        (Statistic::Deviation, Some(Known::MeanOf { deviation, n, .. })) => {
            Known::DeviationOf { deviation, n }
        }
        (Statistic::Variation, Some(Known::MeanOf { mean, deviation, n })) => {
            Known::VariationOf { mean, deviation, n }
        }
        _ => return None,
    })
}

/// What is taken of points along an axis.
fn taken(points: &[(f64, f64)], what: Along) -> Option<f64> {
    let values: Vec<f64> = points.iter().map(|point| point.1).collect();
    match what {
        Along::Slope => Line::through(points).map(|line| line.slope),
        Along::Intercept => Line::through(points).map(|line| line.intercept),
        Along::Correlation => Line::through(points).map(|line| line.correlation),
        // It lies between points: see `crossing`.
        Along::First(_) => None,
        Along::Over(statistic) => known(&values, statistic).map(Known::estimate),
    }
}

/// Between which values of an axis something comes to hold: the one before, and the first at which
/// it holds. Before the first one of all stands 0. `None` where it never holds.
fn crossing(points: impl Iterator<Item = (f64, bool)>) -> Option<(f64, f64)> {
    let mut before = None;
    for (x, holds) in points {
        if holds {
            return Some((before.unwrap_or(x.min(0.0)), x));
        }
        before = Some(x);
    }
    None
}

fn absent(reason: String) -> Absent {
    Absent { reason, links: Vec::new() }
}

/// A link to something published.
fn printed(cell: String) -> Link {
    Link { cell, ..Link::default() }
}

/// A seed for the draws of a quantity, from its name: FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo).
fn seed(key: &str) -> u64 {
    key.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The doubt about a result that the generator limited.
const LIMITED: &str = "generator-limited";

/// Nothing is impossible.
const ANY: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

/// Rule L11: the background is there in at least so much of the window.
const OVERLAP_MIN: f64 = 0.99;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crossing_lies_between_two_values_of_the_axis() {
        let of = |seen: &[(f64, bool)]| crossing(seen.iter().copied());
        assert_eq!(of(&[(500.0, false), (1750.0, true), (2000.0, false)]), Some((500.0, 1750.0)));
        assert_eq!(of(&[(500.0, true), (1750.0, true)]), Some((0.0, 500.0)));
        assert_eq!(of(&[(-3.0, true)]), Some((-3.0, -3.0)));
        assert_eq!(of(&[(500.0, false)]), None);
    }
}
