//! Reports repeated discharges: sessions, lifetime and charge per session of every lane, with their
//! intervals over discharges, and comparisons of lanes.

use serde::Serialize;
use weigh_model::battery::Battery;
use weigh_stats::comparison::Comparison;
use weigh_stats::outlier::Rule;
use weigh_stats::runs::RunsMean;

use crate::discharges::archive::Archive;
use crate::discharges::discharge::{Discharge, Ending};

/// The report on a folder of discharges.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The plan's name.
    pub plan: String,
    /// The battery by its label; `null` if it is unknown.
    pub battery: Option<Battery>,
    /// The lanes that were run down, in the plan's order.
    pub lanes: Vec<LaneReport>,
    /// Comparisons of every two lanes, figure by figure.
    pub comparisons: Vec<LaneComparison>,
    /// All discharges, including those that are ignored.
    pub discharges: Vec<DischargeReport>,
    /// Warnings on the figures.
    #[serde(rename = "doubts")]
    pub warnings: Vec<ReportWarning>,
}

/// A lane's figures over its complete discharges.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaneReport {
    /// Its title.
    pub lane: String,
    /// Complete discharges.
    pub n: usize,
    /// By their names, see [`Figure`].
    pub figures: Vec<LaneFigure>,
}

/// One figure of a lane.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaneFigure {
    /// The figure.
    pub name: Figure,
    /// The mean over discharges.
    pub value: f64,
    /// Lower end of the interval at 95 %; `null` below three discharges.
    pub low: Option<f64>,
    /// Upper end of it.
    pub high: Option<f64>,
    /// Method by which the interval was computed, or the reason for which there is none.
    pub method: String,
}

/// A figure of a discharge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Finished sessions per charge.
    SessionsPerCharge,
    /// Duration of a charge, seconds.
    LifetimeS,
    /// Rated charge of the battery over the sessions, mAh.
    RatedMahPerSession,
    /// Charge drawn by the battery's coulomb counter over the sessions, mAh.
    GaugeMahPerSession,
    /// CPU time of the program over the sessions, seconds.
    CpuSPerSession,
}

/// A comparison of two lanes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaneComparison {
    /// The compared figure.
    pub figure: Figure,
    /// The left lane.
    pub left: String,
    /// The right lane.
    pub right: String,
    /// Left over right; `null` if there is none.
    pub ratio: Option<f64>,
    /// Lower end of its 95 % confidence interval.
    pub low: Option<f64>,
    /// Upper end of its 95 % confidence interval.
    pub high: Option<f64>,
    /// `lower`, `higher`, `too close to call` or `refused`: left compared with right.
    pub verdict: &'static str,
    /// Reason for which it was refused.
    pub refused: Option<String>,
}

/// One discharge.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DischargeReport {
    /// Its number in the folder.
    pub number: u32,
    /// Title of the lane.
    pub lane: String,
    /// Its end.
    pub ended: &'static str,
    /// True if the battery was empty at the end, so that the discharge counts.
    pub complete: bool,
    /// Finished sessions.
    pub sessions: u64,
    /// Error responses.
    pub errors: u64,
    /// Seconds from the start to the last line.
    pub lifetime_s: f64,
    /// CPU time of the program, seconds.
    pub cpu_s: f64,
    /// Rated charge over the sessions, mAh.
    pub rated_mah_per_session: Option<f64>,
    /// Charge drawn by the coulomb counter over the sessions, mAh.
    pub gauge_mah_per_session: Option<f64>,
    /// Bytes of the line that was being written at the end.
    pub torn_bytes: u64,
    /// Lines before the last one that could not be read.
    pub damaged_lines: u64,
    /// Number of times the target could not be reached.
    pub troubles: u64,
}

/// A warning on the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReportWarning {
    /// Its name for programs.
    pub code: &'static str,
    /// Finding, why it matters, what to do.
    pub text: String,
}

impl Report {
    /// Compares the discharges of an archive. `battery` is used for discharges that name none.
    ///
    /// # Errors
    /// Discharges with different batteries.
    pub fn of(archive: &Archive, battery: Option<Battery>) -> Result<Report, String> {
        let battery = one_battery(archive, battery)?;
        let mut discharges = archive.discharges.clone();
        discharges.iter_mut().for_each(|discharge| discharge.begun.battery = battery);
        let all: Vec<&str> = discharges
            .first()
            .map_or(Vec::new(), |first| first.begun.lanes.iter().map(String::as_str).collect());
        let groups: Vec<(&str, Vec<&Discharge>)> = all
            .iter()
            .map(|lane| (*lane, complete(&discharges, lane)))
            .filter(|(_, group)| !group.is_empty())
            .collect();
        let mut warnings = unreadable(archive);
        warnings.extend(warnings_of(&discharges, &groups, all.len()));
        Ok(Report {
            schema: SCHEMA,
            plan: discharges.first().map_or(String::new(), |first| first.begun.plan.name.clone()),
            battery,
            lanes: groups.iter().map(|(lane, group)| of_lane(lane, group)).collect(),
            comparisons: compare(&groups),
            discharges: discharges.iter().map(of_discharge).collect(),
            warnings,
        })
    }
}

impl Figure {
    /// All figures.
    pub const ALL: [Figure; 5] = [
        Figure::SessionsPerCharge,
        Figure::LifetimeS,
        Figure::RatedMahPerSession,
        Figure::GaugeMahPerSession,
        Figure::CpuSPerSession,
    ];

    /// The figure of one discharge.
    pub fn of(self, discharge: &Discharge) -> Option<f64> {
        let sessions = discharge.sessions() as f64;
        match self {
            Figure::SessionsPerCharge => Some(sessions),
            Figure::LifetimeS => Some(discharge.lifetime_s()),
            Figure::RatedMahPerSession => discharge.rated_mah_per_session(),
            Figure::GaugeMahPerSession => discharge.gauge_mah_per_session(),
            Figure::CpuSPerSession => (sessions > 0.0).then(|| discharge.cpu_s() / sessions),
        }
    }

    /// The words for a table.
    pub fn words(self) -> &'static str {
        match self {
            Figure::SessionsPerCharge => "sessions per charge",
            Figure::LifetimeS => "lifetime",
            Figure::RatedMahPerSession => "mAh per session, by the label",
            Figure::GaugeMahPerSession => "mAh per session, by the gauge",
            Figure::CpuSPerSession => "CPU per session",
        }
    }
}

/// Values of all these discharges; `None` if one has none.
fn values(group: &[&Discharge], figure: Figure) -> Option<Vec<f64>> {
    group.iter().map(|discharge| figure.of(discharge)).collect()
}

fn one_battery(archive: &Archive, given: Option<Battery>) -> Result<Option<Battery>, String> {
    let mut battery = given;
    for discharge in &archive.discharges {
        let Some(own) = discharge.begun.battery else { continue };
        match battery {
            Some(known) if known != own => {
                return Err(format!(
                    "{}: was run with a battery of {own}, and another is {known}: read them apart, \
                     or leave --battery out",
                    discharge.folder.display()
                ));
            }
            _ => battery = Some(own),
        }
    }
    Ok(battery)
}

fn complete<'d>(discharges: &'d [Discharge], lane: &str) -> Vec<&'d Discharge> {
    let counts = |discharge: &&Discharge| discharge.is_complete() && discharge.begun.lane == lane;
    discharges.iter().filter(counts).collect()
}

fn of_lane(lane: &str, group: &[&Discharge]) -> LaneReport {
    let figures = Figure::ALL.iter().filter_map(|figure| {
        let mean = RunsMean::of(&values(group, *figure)?).ok()?;
        let (low, high, method) = match &mean.interval {
            Ok(interval) => (Some(interval.low), Some(interval.high), interval.method.to_string()),
            Err(refusal) => (None, None, refusal.to_string()),
        };
        Some(LaneFigure { name: *figure, value: mean.mean, low, high, method })
    });
    LaneReport { lane: lane.to_owned(), n: group.len(), figures: figures.collect() }
}

fn compare(groups: &[(&str, Vec<&Discharge>)]) -> Vec<LaneComparison> {
    let mut comparisons = Vec::new();
    for (index, (left, left_group)) in groups.iter().enumerate() {
        for (right, right_group) in &groups[index + 1..] {
            for figure in Figure::ALL {
                let both = values(left_group, figure).zip(values(right_group, figure));
                let Some((left_values, right_values)) = both else { continue };
                let found = Comparison::of(&left_values, &right_values);
                comparisons.push(LaneComparison {
                    figure,
                    left: (*left).to_owned(),
                    right: (*right).to_owned(),
                    ratio: found.ratio.map(|ratio| ratio.value),
                    low: found.ratio.and_then(|ratio| ratio.low),
                    high: found.ratio.and_then(|ratio| ratio.high),
                    verdict: found.verdict.name(),
                    refused: found.refusal.map(|refusal| refusal.to_string()),
                });
            }
        }
    }
    comparisons
}

fn of_discharge(discharge: &Discharge) -> DischargeReport {
    DischargeReport {
        number: discharge.number,
        lane: discharge.begun.lane.clone(),
        ended: discharge.ending.words(),
        complete: discharge.is_complete(),
        sessions: discharge.sessions(),
        errors: discharge.last.errors,
        lifetime_s: discharge.lifetime_s(),
        cpu_s: discharge.cpu_s(),
        rated_mah_per_session: discharge.rated_mah_per_session(),
        gauge_mah_per_session: discharge.gauge_mah_per_session(),
        torn_bytes: discharge.torn_bytes,
        damaged_lines: discharge.damaged_lines,
        troubles: discharge.troubles,
    }
}

fn unreadable(archive: &Archive) -> Vec<ReportWarning> {
    let warning = |(path, reason): &(std::path::PathBuf, String)| ReportWarning {
        code: "unreadable-discharge",
        text: format!("{}: {reason}; it is ignored", path.display()),
    };
    archive.unreadable.iter().map(warning).collect()
}

fn warnings_of(
    discharges: &[Discharge],
    groups: &[(&str, Vec<&Discharge>)],
    lanes: usize,
) -> Vec<ReportWarning> {
    let mut warnings = Vec::new();
    let mut warning = |code, text: String| warnings.push(ReportWarning { code, text });
    for discharge in discharges {
        let number = discharge.number;
        if let Some((code, text)) = warning_of_the_end(discharge) {
            warning(code, format!("discharge {number} {text}"));
        }
        if discharge.damaged_lines > 0 {
            let lines = discharge.damaged_lines;
            warning(
                "damaged-lines",
                format!(
                    "discharge {number}: {lines} lines before the last one are damaged; the counts \
                     are of the last complete line: test the card"
                ),
            );
        }
        if let Some(trouble) = &discharge.first_trouble {
            let times = discharge.troubles;
            let text = format!(
                "discharge {number}: the target could not be reached {times} times ({trouble}): \
                 the battery ran down without sessions meanwhile"
            );
            warning("target-troubles", text);
        }
        if let Some(share) = discharge.full_share().filter(|share| *share < FULL_SHARE) {
            let percent = share * 100.0;
            let text = format!(
                "discharge {number} began at {percent:.0} % by the gauge: charge until it is full"
            );
            warning("not-full", text);
        }
    }
    for (lane, group) in groups {
        let n = group.len();
        if n < ENOUGH {
            let text = format!(
                "{lane}: {n} of {ENOUGH} discharges: batteries and radios vary from charge to \
                 charge; repeat"
            );
            warning("few-discharges", text);
        }
        let sessions = values(group, Figure::SessionsPerCharge).unwrap_or_default();
        for index in Rule::TukeyFences.flags(&sessions) {
            let number = group[index].number;
            let text = format!(
                "discharge {number} is an outlier among those of {lane}; it is part of every \
                 figure: find out why"
            );
            warning("stands-apart", text);
        }
    }
    warnings.extend(not_alternating(discharges, lanes));
    warnings
}

/// Warns if the battery may not have been empty at the end.
fn warning_of_the_end(discharge: &Discharge) -> Option<(&'static str, String)> {
    match discharge.ending {
        Ending::Killed => {
            let text = "is ignored: its log just stops and the machine did not reboot, so the \
                        program was killed and the power did not go";
            Some(("not-run-down", text.to_owned()))
        }
        Ending::Unknown => {
            let text = "is ignored for now: only the next start of the machine it ran on shows \
                        whether the power went; read it there";
            Some(("end-unknown", text.to_owned()))
        }
        Ending::Power | Ending::ShutDown => {
            let share = discharge.left_share().filter(|share| *share > EMPTY_SHARE)?;
            let percent = share * 100.0;
            let text = format!(
                "ended with {percent:.0} % left by the gauge: if the program was killed, or the \
                 machine rebooted, before the battery was empty, remove its folder"
            );
            Some(("not-empty", text))
        }
        Ending::Running | Ending::Reported(_) => None,
    }
}

/// Warns if lanes did not alternate: a battery ages with each discharge.
fn not_alternating(discharges: &[Discharge], lanes: usize) -> Option<ReportWarning> {
    let complete: Vec<&Discharge> = discharges.iter().filter(|own| own.is_complete()).collect();
    let twice = |pair: &&[&Discharge]| pair[0].begun.lane == pair[1].begun.lane;
    let found = complete.windows(2).find(twice).filter(|_| lanes > 1)?;
    let (first, second) = (found[0].number, found[1].number);
    Some(ReportWarning {
        code: "not-alternating",
        text: format!(
            "discharges {first} and {second} were of the same lane: the battery's ageing affects \
             one lane more than the other; let weigh choose the lane"
        ),
    })
}

/// Discharges of a lane that a figure needs (methodology, section 5: battery until empty).
pub const ENOUGH: usize = 5;

/// The highest gauge reading of an empty battery. Assumed: many machines shut down at 3 to 10 %,
/// and gauges of old batteries are off by another 10 %.
const EMPTY_SHARE: f64 = 0.2;

/// The lowest gauge reading of a full battery: chargers stop, and gauges settle, a little below 1.
const FULL_SHARE: f64 = 0.95;

/// Schema of the JSON document.
pub const SCHEMA: &str = "weigh/rundown-report/1";
