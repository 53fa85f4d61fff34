//! Modelled energy: what a device with a radio would have taken for the measured load. Made from
//! the coefficients and the activity in the journal, and never in one column or one ratio with
//! measured energy.

use std::collections::BTreeMap;
use weigh_model::numbers::{exact, percent, seconds, size};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_energy::answer::{self, DRAWS, SEED};
use weigh_energy::{Answer, Model, Parts, Quantity, Work};
use weigh_model::arrival::Arrival;
use weigh_model::event::{Event, RunStarted, TrialFinished};
use weigh_model::modelled::{Activity, EnergyBasis};
use weigh_model::plan::Plan;
use weigh_model::warnings::{Severity, WarningRecord};

use super::cell::Cell;
use super::comparison::{Ratio, Verdict};
use super::lint;
use super::matrix::point_key;
use super::metric::Metric;
use super::pairs::pairs;

/// Basis of modelled figures of a run, and their comparisons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Modelled {
    /// Device and radio, in a line: `Raspberry Pi 2 B over 3G (UMTS), 2009`.
    pub title: String,
    /// The name of the device.
    pub device: String,
    /// The name of the radio; null without one.
    pub radio: Option<String>,
    /// Assumptions about its battery; null without one.
    pub battery: Option<String>,
    /// Seconds between messages of the duty cycle.
    pub every_s: f64,
    /// Number of draws of the coefficients for the intervals.
    pub draws: u64,
    /// The seed of these draws.
    pub seed: u64,
    /// Every coefficient with its source.
    pub coefficients: Vec<Sourced>,
    /// Cell by cell: use of energy and sources of uncertainty.
    pub cells: Vec<ModelledCell>,
    /// Pairs of cells, both with the same coefficients.
    pub comparisons: Vec<ModelledRatio>,
}

/// A coefficient and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sourced {
    /// Its name: `3g tail_power`.
    pub name: String,
    /// As published: `0.62 W`.
    pub published: String,
    /// Half the width of its interval at 95 %.
    pub uncertainty: String,
    /// Source of the publication.
    pub source: String,
    /// Whether the value was verified or measured again.
    pub verification: String,
}

/// Use of the modelled energy of a cell, and sources of its uncertainty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelledCell {
    /// The cell's name.
    pub cell: String,
    /// Why it has no modelled figure; null if it has.
    pub absent: Option<String>,
    /// True if each message had its own connection.
    pub is_fresh: bool,
    /// What keeps its connection between two messages of the duty cycle, in a sentence; null if
    /// nothing has to.
    #[serde(default)]
    pub keep_alives: Option<String>,
    /// Joules of a message as measured, by use.
    pub weighed_j: BTreeMap<String, f64>,
    /// Joules of a message in the duty cycle; empty if a message takes longer than that.
    pub duty_j: BTreeMap<String, f64>,
    /// Shares of the variance of the energy as measured by source, the largest first.
    pub weighed_budget: Vec<Contribution>,
    /// Shares of the variance of a message's energy in the duty cycle, above idling.
    pub duty_budget: Vec<Contribution>,
}

/// A share of a variance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contribution {
    /// A coefficient, or `run to run`.
    pub name: String,
    /// Its share, from 0 to 1, as if the sources were independent.
    pub share: f64,
}

/// A modelled figure of one cell over that of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelledRatio {
    /// The metric.
    pub metric: String,
    /// Name of the left cell.
    pub left: String,
    /// Name of the right cell.
    pub right: String,
    /// Left over right, with an interval over coefficients that both share.
    pub ratio: Ratio,
    /// Left relative to right; `too close to call` if the interval contains 1 or is missing.
    pub verdict: Verdict,
}

/// Adds modelled figures to `cells` and returns their basis; `None` if they were not requested.
pub(crate) fn add(
    cells: &mut [Cell],
    events: &[Event],
    (started, trials): (&RunStarted, &[&TrialFinished]),
) -> Option<Modelled> {
    let basis = started.energy.as_deref()?;
    let model = Model::new(basis);
    let activities: BTreeMap<&str, &Activity> = events
        .iter()
        .filter_map(|event| match event {
            Event::Activity(own) => Some((own.trial.as_str(), &**own)),
            _ => None,
        })
        .collect();
    let works: Vec<Result<Vec<Work>, String>> = cells
        .iter()
        .map(|cell| works(cell, &of_cell(cell, trials), &activities, &started.plan))
        .collect();
    let mut told = Vec::new();
    for (place, (cell, works)) in cells.iter_mut().zip(&works).enumerate() {
        told.push(match works {
            Ok(works) => {
                warning(cell, basis, works);
                let answer = model.answer(works, place as u64);
                put(cell, &answer);
                of_answer(cell, &answer, works)
            }
            Err(reason) => absent(cell, reason),
        });
    }
    let compared = compared(cells, &works, &model);
    Some(Modelled {
        title: title(basis),
        device: basis.device.name.clone(),
        radio: basis.radio.as_ref().map(|radio| radio.name.clone()),
        battery: battery(basis),
        every_s: basis.every.as_secs_f64(),
        draws: DRAWS as u64,
        seed: SEED,
        coefficients: sources(basis),
        cells: told,
        comparisons: compared,
    })
}

/// The work of each repetition of a cell; or why it is unknown.
fn works(
    cell: &Cell,
    trials: &[&TrialFinished],
    activities: &BTreeMap<&str, &Activity>,
    plan: &Plan,
) -> Result<Vec<Work>, String> {
    let of_trial = |trial: &&TrialFinished| {
        let activity = activities.get(trial.trial.as_str()).ok_or_else(|| unknown(trial))?;
        let of = |name: &str| trial.metrics.get(name).copied();
        let cpu_us = of(CPU_US).ok_or(NO_CPU)?;
        let exchange_ns = EXCHANGES.iter().find_map(|name| of(name)).unwrap_or(0.0);
        let work =
            Work::of(activity, cpu_us / 1e6, exchange_ns.min(1e15) / 1e9, is_closed(cell, plan));
        if work.is_some() { Ok(work) } else { Err(NO_MESSAGE.to_owned()) }
    };
    let works: Result<Vec<Work>, String> = trials.iter().map(of_trial).collect();
    works.and_then(|works| if works.is_empty() { Err(NO_MESSAGE.to_owned()) } else { Ok(works) })
}

/// Why the work of a trial's devices is unknown.
fn unknown(trial: &TrialFinished) -> String {
    let is_heard = trial.metrics.contains_key("wire.packets");
    if is_heard { UNTOLD.to_owned() } else { UNHEARD.to_owned() }
}

/// Whether the next message waits for the one before.
fn is_closed(cell: &Cell, plan: &Plan) -> bool {
    let text = cell.point.get("load.arrival").and_then(serde_json::Value::as_str);
    let own = text.and_then(|text| text.parse::<Arrival>().ok());
    !own.as_ref().unwrap_or(&plan.load.arrival).is_open()
}

fn of_cell<'t>(cell: &Cell, trials: &[&'t TrialFinished]) -> Vec<&'t TrialFinished> {
    let key = point_key(&cell.point);
    let mut own: Vec<&TrialFinished> =
        trials.iter().copied().filter(|trial| point_key(&trial.point) == key).collect();
    own.sort_by_key(|trial| trial.repetition);
    own
}

/// Adds the figures to the metrics of the cell, with their own intervals instead of those over
/// runs.
fn put(cell: &mut Cell, answer: &Answer) {
    for (quantity, figure) in &answer.figures {
        let of_runs = Metric::new(quantity.metric(), &figure.values);
        let metric = match figure.interval {
            Some((low, high)) => Metric {
                low: Some(low),
                high: Some(high),
                method: Some(METHOD.to_owned()),
                refused: None,
                bootstrap: None,
                ..of_runs
            },
            None => of_runs,
        };
        cell.metrics.insert(quantity.metric().to_owned(), metric);
    }
}

/// Adds warnings on the figures of this cell.
fn warning(cell: &mut Cell, basis: &EnergyBasis, works: &[Work]) {
    let Some(radio) = &basis.radio else { return };
    let mut add = |code: &str, text: String, advice: String| {
        let (code, severity) = (code.to_owned(), Severity::Warning);
        cell.warnings.push(WarningRecord { code, severity, text, advice });
    };
    let path = cell.scene.get("path");
    if let (None, Some(own)) = (path, &radio.path) {
        add(
            "modelled-without-path",
            format!(
                "energy over {} is modelled from messages that were measured without such a \
                 path: they took less time",
                radio.title
            ),
            format!("measure with --path {own}"),
        );
    }
    let largest =
        works.iter().map(|work| work.message_bytes[0].max(work.message_bytes[1]) / work.messages);
    let largest = largest.fold(0.0, f64::max);
    if let Some(most) = radio.message_bytes_max.filter(|most| largest > *most as f64) {
        add(
            "modelled-beyond-range",
            format!(
                "a message took {} one way, and {} was measured with at most {}{}",
                size(largest.round() as u64),
                radio.title,
                size(most),
                match radio.coefficients.contains_key("message_up") {
                    true => ": the bytes beyond that are modelled by rate and power",
                    false => "",
                }
            ),
            "send less, or model another radio".to_owned(),
        );
    }
}

fn of_answer(cell: &Cell, answer: &Answer, works: &[Work]) -> ModelledCell {
    let named = |parts: &Parts| -> BTreeMap<String, f64> {
        parts.named().into_iter().map(|(name, joules)| (name.to_owned(), joules)).collect()
    };
    let contributions = |shares: &[answer::Share]| -> Vec<Contribution> {
        let one = |own: &answer::Share| Contribution { name: own.name.clone(), share: own.share };
        shares.iter().map(one).collect()
    };
    ModelledCell {
        cell: cell.name.clone(),
        absent: None,
        is_fresh: works.iter().all(Work::is_fresh),
        keep_alives: keep_alives(works, answer),
        weighed_j: named(&answer.weighed),
        duty_j: answer.duty.as_ref().map(named).unwrap_or_default(),
        weighed_budget: contributions(&answer.weighed_budget),
        duty_budget: contributions(&answer.duty_budget),
    }
}

/// What keeps the connection of a cell, if its messages share one.
fn keep_alives(works: &[Work], answer: &Answer) -> Option<String> {
    let joules = answer.duty.map(|duty| duty.keep_alive).filter(|joules| *joules > 0.0)?;
    let joules = crate::figures::three_digits(joules);
    let own_s = works.iter().map(|work| work.keep_alive_s).fold(0.0, f64::max);
    let why = match own_s > 0.0 {
        true => format!(
            "the protocol's keep-alive of {}, or the network's limit where that is shorter; set \
             the keep-alive longer to save them",
            seconds(own_s)
        ),
        false => "the network drops connections that are silent for longer".to_owned(),
    };
    Some(format!("keep-alives between two messages take {joules} J: {why}"))
}

fn absent(cell: &Cell, reason: &str) -> ModelledCell {
    ModelledCell {
        cell: cell.name.clone(),
        absent: Some(reason.to_owned()),
        is_fresh: false,
        keep_alives: None,
        weighed_j: BTreeMap::new(),
        duty_j: BTreeMap::new(),
        weighed_budget: Vec::new(),
        duty_budget: Vec::new(),
    }
}

/// Pairs of cells that differ in one factor, in the most important figures.
fn compared(
    cells: &[Cell],
    works: &[Result<Vec<Work>, String>],
    model: &Model,
) -> Vec<ModelledRatio> {
    let mut found = Vec::new();
    for pair in pairs(cells) {
        let (Ok(left), Ok(right)) = (&works[pair.left], &works[pair.right]) else { continue };
        let is_usable = |place: usize| cells[place].valid;
        if !is_usable(pair.left) || !is_usable(pair.right) {
            continue;
        }
        for quantity in COMPARED {
            if lint::pair::lost_unlike(quantity.metric(), &cells[pair.left], &cells[pair.right]) {
                continue;
            }
            let sides = [(&left[..], pair.left as u64), (&right[..], pair.right as u64)];
            let Some((value, ends)) = model.ratio(quantity, sides) else { continue };
            let [low, high] = [ends.map(|ends| ends.0), ends.map(|ends| ends.1)];
            found.push(ModelledRatio {
                metric: quantity.metric().to_owned(),
                left: cells[pair.left].name.clone(),
                right: cells[pair.right].name.clone(),
                ratio: Ratio { value, low, high },
                verdict: verdict(value, ends).or_equal(Some(Ratio { value, low, high })),
            });
        }
    }
    found
}

/// An interval that excludes 1 is significant only if the effect is larger than the accuracy of the
/// model.
fn verdict(value: f64, ends: Option<(f64, f64)>) -> Verdict {
    if (value - 1.0).abs() < EFFECT_MIN {
        return Verdict::TooClose;
    }
    match ends {
        Some((_, high)) if high < 1.0 => Verdict::Lower,
        Some((low, _)) if low > 1.0 => Verdict::Higher,
        _ => Verdict::TooClose,
    }
}

fn title(basis: &EnergyBasis) -> String {
    match &basis.radio {
        Some(radio) => format!("{} over {}", basis.device.title, radio.title),
        None => format!("{}, without a radio", basis.device.title),
    }
}

/// Assumptions about the battery's label: a charge alone is not an energy, and a label may rate the
/// cell or a socket.
fn battery(basis: &EnergyBasis) -> Option<String> {
    let battery = basis.battery?;
    let watt_hours = battery.energy_j() / JOULES_PER_WATT_HOUR;
    let volts = basis.device.volts;
    let converter = basis.device.coefficients.get("converter");
    let way = match converter.filter(|_| answer::has_converter(basis)) {
        Some(converter) => format!(
            "through a converter to {volts} V that passes on {} (\u{b1} {})",
            percent(converter.value * 100.0),
            converter.uncertainty
        ),
        None if (battery.rated_v - volts).abs() < 0.05 => {
            let charge = battery.to_string();
            let charge = charge.split('@').next().unwrap_or_default();
            let unit = charge.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            let other = format!("If the label gives the {unit} at 5 V, type --battery {charge}@5V");
            return Some(format!("{battery} is {} Wh. {other}", exact(watt_hours)));
        }
        None => format!("all of it, although the device was measured at {volts} V"),
    };
    Some(format!("{battery} is {} Wh, {way}", exact(watt_hours)))
}

fn sources(basis: &EnergyBasis) -> Vec<Sourced> {
    let parts = std::iter::once(&basis.device).chain(&basis.radio);
    let of_part = |part: &weigh_model::modelled::EnergyPart| {
        let name = part.name.clone();
        let sourced = part.coefficients.iter().map(move |(key, own)| Sourced {
            name: format!("{name} {key}"),
            published: own.published.clone(),
            uncertainty: own.uncertainty.clone(),
            source: own.source.clone(),
            verification: own.verification.clone(),
        });
        sourced.collect::<Vec<_>>()
    };
    parts.flat_map(of_part).collect()
}

/// Figures in which cells are compared.
const COMPARED: [Quantity; 4] =
    [Quantity::MahPerSession, Quantity::Lifetime, Quantity::WakePerMessage, Quantity::Days];

/// A smaller effect is not a difference: published models of NB-IoT meet measurements to 5 % at
/// best (Sorensen et al. 2021) and 21 % at worst (Andres-Maldonado et al. 2019); 1 % remains if
/// both sides share the model (chosen).
const EFFECT_MIN: f64 = 0.01;

/// Method of the intervals.
pub(crate) const METHOD: &str = "Monte Carlo over coefficients and runs";

const CPU_US: &str = "generator_cpu_us_per_message";

/// Times that a message on a kept connection waits for its confirmation, the best one first.
const EXCHANGES: [&str; 2] = ["service_time_ns.mean", "response_time_ns.mean"];

const UNHEARD: &str = "there was no packet capture: a radio carries headers too, so that the \
                       counts of the codecs would be too small; add --wire";

const UNTOLD: &str = "its connections could not all be identified: open fewer than 10,000 (-n)";

const NO_CPU: &str = "the generator's processor time is unknown";

const NO_MESSAGE: &str = "no device sent a message over its own connection";

const JOULES_PER_WATT_HOUR: f64 = 3600.0;
