//! Energy of a trial from readings: joules in its window, above idle, for each message and session,
//! with their uncertainty.

use std::collections::BTreeMap;
use weigh_model::numbers::{seconds, three_digits};

use weigh_model::Warning;
use weigh_model::energy::{ENERGY_ABSENT, EnergyBudgetLine, EnergyMeasured, IdlePhase, Span};

use super::accuracy::Accuracy;
use super::track::{Drawn, Refused, Track};

/// Phases of a trial, on the clock of the readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// Idle phase before it.
    pub before: Option<Span>,
    /// The measured window.
    pub window: Span,
    /// Idle phase after it.
    pub after: Option<Span>,
}

/// What a trial's energy is divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages delivered in the window, if known.
    pub delivered: Option<u64>,
    /// Sessions in it, from connect to close; `None` if connections stay open.
    pub sessions: Option<u64>,
}

/// The energy of a trial. Moments become those of a clock that is ahead of the readings' by
/// `ahead_ns`.
pub fn measured(
    trial: &str,
    track: &Track,
    phases: Phases,
    counts: Counts,
    ahead_ns: i64,
) -> EnergyMeasured {
    let mut told = EnergyMeasured {
        trial: trial.to_owned(),
        meter: track.facts().name.clone(),
        covers: track.facts().covers.clone(),
        window: moved(phases.window, ahead_ns),
        ..EnergyMeasured::default()
    };
    let idle = |span: Option<Span>| {
        let span = span?;
        Some((span, track.idle(span.from_ns, span.to_ns)))
    };
    let (before, after) = (idle(phases.before), idle(phases.after));
    told.idle_before = before.as_ref().map(|phase| phase_of(phase, ahead_ns));
    told.idle_after = after.as_ref().map(|phase| phase_of(phase, ahead_ns));
    let drawn = match track.window(phases.window.from_ns, phases.window.to_ns) {
        Ok(drawn) => drawn,
        Err(refused) => {
            told.warnings.push(absent(&track.facts().name, &refused).record());
            told.absent = Some(refused.to_string());
            return told;
        }
    };
    let idles = [before, after].into_iter().flatten();
    let idles: Vec<(Span, Drawn)> =
        idles.filter_map(|(span, drawn)| Some((span, drawn.ok()?))).collect();
    let above = Above::of(&drawn, phases.window.seconds(), &idles);
    told.energy_j = Some(drawn.energy_j);
    told.above_idle_j = above.map(|above| above.energy_j);
    told.charge_mah = drawn.charge_mah;
    told.voltage_v = drawn.voltage_v;
    told.domains.clone_from(&drawn.domains);
    told.readings = drawn.readings;
    let accuracy = &track.facts().accuracy;
    told.budget = budget(accuracy, &drawn, above, phases.window.seconds());
    told.metrics = metrics(&told, above, counts);
    let warnings = warnings(track, &drawn, above, phases, idles.len());
    told.warnings.extend(warnings.iter().map(Warning::record));
    told
}

/// The part of an energy above idle.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Above {
    energy_j: f64,
    idle_w: f64,
    /// Difference of the idle powers, watts; 0 with only one phase.
    drift_w: f64,
    /// Standard uncertainty of the idle energy, from sampling, joules.
    sampling_j: f64,
}

impl Above {
    /// `None` without an idle phase. Idle power is assumed to change linearly from before to the
    /// after, so that its mean over the window is the mean of both.
    fn of(drawn: &Drawn, seconds: f64, idles: &[(Span, Drawn)]) -> Option<Above> {
        let number = idles.len() as f64;
        let powers = || idles.iter().map(|(_, drawn)| drawn.power_w);
        if idles.is_empty() {
            return None;
        }
        let idle_w = powers().sum::<f64>() / number;
        let drift_w = powers().fold(f64::MIN, f64::max) - powers().fold(f64::MAX, f64::min);
        let squares = idles.iter().map(|(span, idle)| (idle.sampling_j / span.seconds()).powi(2));
        let energy_j = drawn.energy_j - idle_w * seconds;
        // What remains of sums that cancel is not energy.
        let is_nothing = energy_j.abs() < drawn.energy_j * ROUNDING;
        Some(Above {
            energy_j: if is_nothing { 0.0 } else { energy_j },
            idle_w,
            drift_w,
            sampling_j: squares.sum::<f64>().sqrt() / number * seconds,
        })
    }
}

/// Standard uncertainties, line by line. Limits are rectangular: divided by the root of three (JCGM
/// 100, 4.3.7). The offset of a meter is in idle power too, and drops out of what is above it.
fn budget(
    accuracy: &Accuracy,
    drawn: &Drawn,
    above: Option<Above>,
    seconds: f64,
) -> Vec<EnergyBudgetLine> {
    let root = 3.0_f64.sqrt();
    let above_j = above.map_or(0.0, |above| above.energy_j.abs());
    let drift_j = above.map_or(0.0, |above| above.drift_w / 2.0 / root * seconds);
    let sampling_above_j = above.map_or(0.0, |above| drawn.sampling_j.hypot(above.sampling_j));
    let limit = |source: &str, limit: f64| EnergyBudgetLine {
        source: source.to_owned(),
        energy_j: drawn.energy_j * limit / root,
        above_idle_j: above_j * limit / root,
        is_systematic: true,
        basis: accuracy.source.to_owned(),
    };
    let lines = [
        limit("meter gain", accuracy.gain),
        EnergyBudgetLine {
            basis: "assumed: a resistor of the 1 % class".to_owned(),
            ..limit("shunt", accuracy.shunt)
        },
        EnergyBudgetLine {
            source: "meter offset".to_owned(),
            energy_j: accuracy.offset_w * seconds / root,
            above_idle_j: 0.0,
            is_systematic: true,
            basis: accuracy.source.to_owned(),
        },
        EnergyBudgetLine {
            source: "sampling".to_owned(),
            energy_j: drawn.sampling_j,
            above_idle_j: sampling_above_j,
            is_systematic: false,
            basis: "from the readings themselves".to_owned(),
        },
        EnergyBudgetLine {
            source: "idle drift".to_owned(),
            energy_j: 0.0,
            above_idle_j: drift_j,
            is_systematic: false,
            basis: "half the change of idle power, over the window".to_owned(),
        },
    ];
    lines.into_iter().filter(|line| line.energy_j > 0.0 || line.above_idle_j > 0.0).collect()
}

fn metrics(told: &EnergyMeasured, above: Option<Above>, counts: Counts) -> BTreeMap<String, f64> {
    let mut metrics = BTreeMap::new();
    let mut put = |name: &str, value: Option<f64>| {
        metrics.extend(value.map(|value| (name.to_owned(), value)));
    };
    let per = |joules: Option<f64>, count: Option<u64>| {
        Some(joules? / count.filter(|count| *count > 0)? as f64)
    };
    let (whole, above_j) = (told.energy_j, told.above_idle_j);
    put("energy_j", whole);
    put("energy_above_idle_j", above_j);
    put("energy_power_w", whole.map(|joules| joules / told.window.seconds()));
    put("energy_idle_power_w", above.map(|above| above.idle_w));
    put("energy_j_per_message", per(whole, counts.delivered));
    put("energy_above_idle_j_per_message", per(above_j, counts.delivered));
    put("energy_j_per_session", per(whole, counts.sessions));
    put("energy_above_idle_j_per_session", per(above_j, counts.sessions));
    put("energy_mah_per_session", per(told.charge_mah, counts.sessions));
    put("energy_voltage_v", told.voltage_v);
    metrics
}

fn warnings(
    track: &Track,
    drawn: &Drawn,
    above: Option<Above>,
    phases: Phases,
    idles: usize,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut add = |code, text: String, advice| warnings.push(Warning::Energy(code, text, advice));
    let name = &track.facts().name;
    if drawn.is_implausibly_low {
        add(
            "energy-implausible",
            format!(
                "{name} shows {} W on average, less than such a machine uses: its unit may be off \
                 by 1,000",
                three_digits(drawn.power_w)
            ),
            "compare one reading with a meter at the plug before you use any energy figure",
        );
    }
    let wanted = [phases.before, phases.after].into_iter().flatten();
    let shortest = wanted.clone().map(|span| span.seconds()).fold(f64::MAX, f64::min);
    if wanted.clone().count() > idles || idles == 1 {
        add(
            "energy-idle-unknown",
            match idles {
                0 => format!("{name} has no readings of idle, so the energy above idle is unknown"),
                _ => format!(
                    "{name} has no readings of one idle phase: energy above idle uses {idles} of \
                     2, and its interval does not include the drift of idle power"
                ),
            },
            "repeat the trial with the meter connected all the time",
        );
    } else if idles > 0 && shortest < IDLE_S_MIN {
        add(
            "energy-idle-short",
            format!(
                "idle was measured for {}, less than {} each",
                seconds(shortest),
                seconds(IDLE_S_MIN)
            ),
            "give --idle 60s (in a plan observe.idle): clocks and caches take that long to settle",
        );
    }
    if let Some(above) = above {
        let drift_j = above.drift_w * phases.window.seconds();
        let is_seen = drift_j > drawn.energy_j * ROUNDING;
        if is_seen && drift_j > above.energy_j.abs() * DRIFT_RATIO_MAX {
            add(
                "energy-idle-drift",
                format!(
                    "idle power changed by {} W between before and after, which is {} J of the {} \
                     J used above idle",
                    three_digits(above.drift_w),
                    three_digits(drift_j),
                    three_digits(above.energy_j)
                ),
                "stop other programs on the machine, measure longer, and use the total instead",
            );
        }
    }
    warnings
}

/// Warning that there is no energy, with the reason.
pub fn absent(meter: &str, refused: &Refused) -> Warning {
    let advice = match refused {
        Refused::Vanished(_) => "find out why it went away, and repeat",
        Refused::Implausible(..) => "check the meter's unit and shunt, and repeat",
        Refused::Charged => "unplug the supply, or measure longer",
        _ => "measure longer, or with another meter (see weigh energy meters)",
    };
    Warning::Energy(ENERGY_ABSENT, format!("no energy: {meter}: {refused}"), advice)
}

fn phase_of((span, drawn): &(Span, Result<Drawn, Refused>), ahead_ns: i64) -> IdlePhase {
    let power_w = drawn.as_ref().ok().map(|drawn| drawn.power_w);
    IdlePhase { span: moved(*span, ahead_ns), power_w }
}

fn moved(span: Span, ahead_ns: i64) -> Span {
    let moved = |at_ns: u64| at_ns.saturating_add_signed(ahead_ns);
    Span { from_ns: moved(span.from_ns), to_ns: moved(span.to_ns) }
}

/// Methodology, part 7.1: idle before and after, 60 s each at least.
pub const IDLE_S_MIN: f64 = 60.0;

/// Relative rounding error of a sum of a million readings.
const ROUNDING: f64 = 1e-9;

/// With a larger drift, energy above idle depends more on the machine than on the load.
const DRIFT_RATIO_MAX: f64 = 0.1;
