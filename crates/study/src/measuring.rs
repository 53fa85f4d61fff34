//! Values of the quantities of claims, from the existing runs: a value with its uncertainty, or the
//! reason why there is none.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use weigh_model::numbers::percent;

use weigh_model::trial::Point;
use weigh_report::summary::{Cell, Interference, Limit};
use weigh_stats::propagation::Known;

use crate::expression::Bound;
use crate::figures::number;
use crate::found::Found;
use crate::late::Late;
use crate::occasion::{Occasion, machine};
use crate::occasions::{Widening, widened};
use crate::openings;
use crate::outcome::Link;
use crate::quantity::{Along, Quantity, Source, Statistic};
use crate::run_checks;
use crate::runs::{RunMade, RunState, Runs};
use crate::scale::Scale;
use crate::selector::{self, Selector};
use crate::statistics::{crossing, known, taken};
use crate::study::Study;
use crate::tools::ToolMade;

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
    /// Why it must not decide anything; empty where it may.
    pub(crate) openings: Vec<String>,
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
        Measured {
            estimate,
            draws: None,
            repeated: None,
            n: None,
            unit,
            links,
            note: None,
            openings: Vec::new(),
        }
    }
}

/// Why a quantity has no value, and where one would look for it.
#[derive(Clone, Debug)]
pub(crate) struct Absent {
    pub(crate) reason: String,
    pub(crate) links: Vec<Link>,
    /// True where the run was not made at all.
    pub(crate) is_without_run: bool,
}

/// Looks quantities up in runs.
pub(crate) struct Measuring<'a> {
    study: &'a Study,
    runs: &'a Runs,
    scale: Scale,
    /// The id of the study's run: draws of different runs are independent.
    of: &'a str,
    /// How much wider intervals are than within the run.
    widening: Widening,
    /// Draws by what they are of: the same quantity has the same ones wherever it stands.
    drawn: RefCell<BTreeMap<String, Rc<Vec<f64>>>>,
}

impl<'a> Measuring<'a> {
    pub(crate) fn new(
        study: &'a Study,
        occasion: &'a Occasion,
        widening: Widening,
    ) -> Measuring<'a> {
        let Occasion { runs, scale, run: of, .. } = occasion;
        Measuring { study, runs, scale: *scale, of, widening, drawn: RefCell::default() }
    }

    /// Drops the draws of quantities: those of another claim are others.
    pub(crate) fn forget(&self) {
        self.drawn.borrow_mut().clear();
    }

    /// The load under which a quantity was measured, as a text to compare; empty where the run is
    /// not there.
    pub(crate) fn load_of(&self, run: &str, at: &Selector) -> String {
        let Ok((_, made)) = self.made(run) else { return String::new() };
        let plan = &made.summary.run.plan;
        let is_meant = |case: &&Point| at.fits(&selector::whole(plan, case));
        let cases: Vec<_> = plan.cases.iter().filter(is_meant).collect();
        let load = (&plan.load, &plan.background, &plan.energy, cases);
        serde_json::to_string(&load).unwrap_or_default()
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
                let mut measured = match what {
                    Along::First(bound) => self.first(&along, source, *bound),
                    what => self.fit(&along, source, *what),
                }?;
                measured.openings.extend(self.missing(run, at, along.len()));
                Ok(measured)
            }
            Quantity::Limit { run, name, goal, at } => self.limit(run, name, goal.as_deref(), at),
            Quantity::Interference { run, metric, at } => self.interference(run, metric, at),
            Quantity::Tool { run, figure } => self.tool(run, figure),
            Quantity::Published { cell } => Ok(self.published(&[*cell], None)),
            Quantity::PublishedAlong { cells, what } => Ok(self.published(cells, Some(*what))),
            Quantity::Finding { is_found, place, rule } => {
                let links = vec![printed(format!("audit {rule} {place}"))];
                Ok(Measured::exactly(f64::from(u8::from(*is_found)), "1", links))
            }
        }
    }

    /// Why the machine of this run must not decide a condition that needs `cores_min` cores.
    pub(crate) fn too_small(&self, run: &str, cores_min: u32) -> Option<String> {
        openings::of_host(self.runs.get(run)?.host()?, cores_min)
    }

    /// The machine of the runs, in words; empty where nothing was run.
    pub(crate) fn host(&self) -> String {
        self.runs.values().find_map(RunState::host).map_or(String::new(), machine)
    }

    /// The run of a tool of this name.
    pub(crate) fn tool_made(&self, run: &str) -> Result<&'a ToolMade, Absent> {
        match self.runs.get(run) {
            Some(RunState::Tool(made)) => Ok(made),
            Some(RunState::Skipped(reason)) => Err(without_run(format!("{run}: {reason}"))),
            _ => Err(without_run(format!("{run} was not run"))),
        }
    }

    /// The run of this name.
    fn made(&self, run: &str) -> Result<(&'a str, &'a RunMade), Absent> {
        match self.runs.get_key_value(run) {
            Some((name, RunState::Made(made))) => Ok((name, made)),
            Some((_, RunState::Skipped(reason))) => Err(without_run(format!("{run}: {reason}"))),
            _ => Err(without_run(format!("{run} was not run"))),
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

    /// That planned cells of an axis are missing: what lies along it could be elsewhere.
    fn missing(&self, run: &str, at: &Selector, found: usize) -> Option<String> {
        let (_, made) = self.made(run).ok()?;
        let plan = &made.summary.run.plan;
        let points = plan.cases.iter().map(|case| selector::whole(plan, case));
        let planned = points.filter(|point| at.fits(point)).count();
        (found < planned).then(|| {
            format!("{run}{at}: {} of {planned} cells of the axis are missing", planned - found)
        })
    }

    /// Why there is no such cell.
    fn no_cell(&self, run: &str, at: &Selector) -> Absent {
        let Ok((_, made)) = self.made(run) else {
            return without_run(format!("{run} was not run"));
        };
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
                "it is measured at --scale full only".to_owned()
            }
            None if summary.run.outcome != "done" => {
                format!("the run is {}: continue it with --resume", summary.run.outcome)
            }
            None => "it was left out, by a stop rule or for lack of time".to_owned(),
        };
        let link = Link { run: run.to_owned(), folder: made.folder.clone(), ..Link::default() };
        let reason = format!("{run}{at}: {reason}");
        Absent { reason, links: vec![link], is_without_run: false }
    }

    fn of_cell(
        &self,
        found: &Found<'_>,
        source: &Source,
        statistic: Statistic,
    ) -> Result<Measured, Absent> {
        let links = vec![found.link()];
        let absent = |reason: String| of(reason, &links);
        if let Source::Ledger(name) = source {
            let count = found.counted(name).map_err(absent)?;
            let openings = found.openings(found.cell.repetitions as usize);
            return Ok(Measured { openings, ..Measured::exactly(count, "messages", links) });
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
        let repetitions = values.len();
        let late = Late::of(found.cell, name).filter(|_| statistic == Statistic::Mean);
        let draws = self.draws(&key, known, range);
        Ok(Measured {
            estimate: known.estimate(),
            draws: match &late {
                Some(late) => draws.map(|draws| late.taken_from(&draws, seed(&key))),
                None => draws,
            },
            n: Some(repetitions as u32),
            // Pairs of repetitions know nothing of what all of them have in common.
            repeated: (is_paired && late.is_none()).then_some(Repeated { place, values }),
            unit,
            links,
            note: found.limited().or(late.map(|late| late.words)),
            openings: found.openings(repetitions),
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
        let absent = |reason: String| of(reason, &links);
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
        let lines = lines.ok_or_else(|| absent("its cells do not define a line".to_owned()))?;
        let run = along[0].1.run;
        let openings = |repetitions: Option<usize>| {
            let own = |found: &Found<'_>| {
                found.openings(repetitions.unwrap_or(found.cell.repetitions as usize))
            };
            along.iter().flat_map(|(_, found)| own(found)).collect::<Vec<String>>()
        };
        if matches!(source, Source::Ledger(_)) {
            return Ok(Measured {
                openings: openings(None),
                ..Measured::exactly(lines[0], "1", links)
            });
        }
        if lines.iter().any(|value| value.is_nan()) {
            return Err(absent(format!(
                "{run}: no {what}, because {source} is equal in all cells"
            )));
        }
        let known = Known::mean_of(&lines).ok_or_else(|| {
            absent(format!("{run}: one repetition has no interval: repeat it, --scale full"))
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
            openings: openings(Some(repetitions)),
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
            None => format!("it is never {bound}, up to {}", number(last)),
            Some((_, high)) if high == cells[0].0 => {
                format!("it is {bound} from the first value on: at or below {}", number(high))
            }
            Some((low, high)) => {
                format!("it becomes {bound} between {} and {}", number(low), number(high))
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
            openings: cells.iter().flat_map(|(_, measured)| measured.openings.clone()).collect(),
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
        let absent = |reason: String| of(reason, &links);
        let own = match goal {
            Some(goal) => limit.goals.iter().find(|own| own.name == goal),
            None => limit.goals.first(),
        };
        let own = own.ok_or_else(|| absent("the search did not have this goal".to_owned()))?;
        let capacity = own.metrics.get(name).ok_or_else(|| absent(own.sentence.clone()))?;
        let ended = own.ended_by.as_ref().filter(|ended| ended.is_ours);
        let high = capacity.high.filter(|_| ended.is_none()).unwrap_or(f64::INFINITY);
        let note = match ended {
            Some(ended) => {
                Some(format!("its upper bound is that of the generator: {}", ended.sentence))
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
            unit: weigh_model::metrics::unit_of(name).to_owned(),
            openings: own.unproven.iter().cloned().collect(),
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
            let reason = format!("{run}{at}: it has no cell without the background");
            return Err(of(reason, &links));
        };
        let without = Found { cell: without, point: Point::default(), ..*with };
        links.push(without.link());
        let absent = |reason: String| of(reason, &links);
        if own.overlap_ratio < OVERLAP_MIN {
            let share = percent(100.0 * own.overlap_ratio);
            return Err(absent(format!("{run}: its background covers {share} (L11)")));
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
            openings: [with, &without].map(|one| one.openings(ratios.len())).concat(),
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
                draws = known.map(|known| Rc::new(known.draws(seed(&key))));
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
    pub(crate) fn draws(&self, key: &str, known: Known, range: (f64, f64)) -> Option<Rc<Vec<f64>>> {
        if let Known::Exactly(_) = known {
            return None;
        }
        let mut drawn = self.drawn.borrow_mut();
        let factor = match known {
            Known::Between(..) => self.widening.bounds,
            _ => self.widening.repeated,
        };
        let make = || {
            let draws = known.draws(seed(&format!("{} {key}", self.of))).into_iter();
            let wide = draws.map(|draw| widened(draw, known.estimate(), factor));
            Rc::new(wide.map(|draw| draw.clamp(range.0, range.1)).collect())
        };
        Some(drawn.entry(key.to_owned()).or_insert_with(make).clone())
    }
}

fn of(reason: String, links: &[Link]) -> Absent {
    Absent { reason, links: links.to_vec(), is_without_run: false }
}

/// Why there is no value of a run that was not made.
fn without_run(reason: String) -> Absent {
    Absent { reason, links: Vec::new(), is_without_run: true }
}

/// A link to something published.
fn printed(cell: String) -> Link {
    Link { cell, ..Link::default() }
}

/// A seed for the draws of a quantity, from its name: FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo).
pub(crate) fn seed(key: &str) -> u64 {
    key.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Nothing is impossible.
const ANY: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

/// Rule L11: the background must cover at least this share of the window.
const OVERLAP_MIN: f64 = 0.99;
