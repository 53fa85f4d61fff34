//! Aligns the log of an external meter with the run's clock after a run, and computes the energy of
//! every trial.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use weigh_model::Pattern;
use weigh_model::energy::{EnergyMeasured, IdlePhase, LogAligned, Span};
use weigh_model::event::{Event, TrialFinished};
use weigh_observe::energy::alignment::Alignment;
use weigh_observe::energy::attribution::{Phases, measured};
use weigh_observe::energy::power_log::PowerLog;
use weigh_testbed::patience;

use crate::input_file::{self, CONTENT_BYTES_MAX};
use crate::probes::metering::counts;

/// Energy of the trials in `events` between the last two series of pulses. A log without its end is
/// read again for this long.
pub fn settle(
    events: &[Event],
    (file, voltage_v): (&str, Option<f64>),
    within: Duration,
) -> Vec<Event> {
    let give_up = Instant::now() + within;
    let may_wait = || Instant::now() < give_up && !patience::is_over();
    loop {
        match read(events, file, voltage_v) {
            Ok(told) => return told,
            Err(_) if may_wait() && Path::new(file).exists() => {
                std::thread::sleep(LOOK_EVERY);
            }
            Err(refused) => {
                let aligned = LogAligned {
                    file: file.to_owned(),
                    refused: Some(refused),
                    ..LogAligned::default()
                };
                return vec![Event::LogAligned(Box::new(aligned))];
            }
        }
    }
}

fn read(events: &[Event], file: &str, voltage_v: Option<f64>) -> Result<Vec<Event>, String> {
    let bytes = input_file::bytes(Path::new(file), CONTENT_BYTES_MAX);
    let bytes = bytes.map_err(|error| format!("{file}: cannot be read: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{file}: is not UTF-8 text"))?;
    let log = PowerLog::read(file, &text, voltage_v).map_err(|error| error.to_string())?;
    let (before, after) = pulses(events).ok_or(
        "the run has no pulses before and after its \
                                                trials",
    )?;
    let alignment = Alignment::find(&log.powers(), before, after)
        .map_err(|refused| format!("{file}: {refused}"))?;
    let aligned = LogAligned {
        file: file.to_owned(),
        rows: log.len() as u64,
        offset_ns: alignment.offset_ns(),
        drift_ppm: alignment.drift_ppm(),
        bound_ns: alignment.bound_ns,
        correlation: alignment.correlation,
        refused: None,
    };
    let mut told = vec![Event::LogAligned(Box::new(aligned))];
    let track = log.track(&alignment);
    let (from_ns, to_ns) = (before[0].from_ns, after[0].from_ns);
    let finished = finished(events);
    for own in waiting(events) {
        if own.window.from_ns < from_ns || own.window.to_ns > to_ns {
            continue;
        }
        let Some((finished, pattern)) = finished.get(own.trial.as_str()) else { continue };
        let idle = |phase: &Option<IdlePhase>| phase.map(|phase| phase.span);
        let phases = Phases {
            before: idle(&own.idle_before),
            window: own.window,
            after: idle(&own.idle_after),
        };
        let mut energy = measured(&own.trial, &track, phases, counts(finished, *pattern), 0);
        energy.add_alignment(alignment.bound_ns);
        told.push(Event::EnergyMeasured(Box::new(energy)));
    }
    Ok(told)
}

/// The last pulses before the trials, and those after.
fn pulses(events: &[Event]) -> Option<(&[Span], &[Span])> {
    let mut made = events.iter().rev().filter_map(|event| match event {
        Event::LoadPulses(own) => Some(&own.pulses[..]),
        _ => None,
    });
    let after = made.next()?;
    let before = made.next()?;
    (!before.is_empty() && !after.is_empty()).then_some((before, after))
}

/// The last placeholder of each trial until the log is read.
fn waiting(events: &[Event]) -> Vec<&EnergyMeasured> {
    let mut last: BTreeMap<&str, &EnergyMeasured> = BTreeMap::new();
    for event in events {
        if let Event::EnergyMeasured(own) = event {
            last.insert(&own.trial, own);
        }
    }
    last.into_values().collect()
}

/// Results and patterns by trial.
fn finished(events: &[Event]) -> BTreeMap<&str, (&TrialFinished, Pattern)> {
    let plan = events.iter().find_map(|event| match event {
        Event::RunStarted(started) => Some(&started.plan),
        _ => None,
    });
    let usual = plan.map_or(Pattern::Publish, |plan| plan.load.pattern);
    let pattern = |own: &TrialFinished| own.point.get("load.pattern")?.as_str()?.parse().ok();
    let mut all = BTreeMap::new();
    for event in events {
        if let Event::TrialFinished(own) = event {
            all.insert(own.trial.as_str(), (&**own, pattern(own).unwrap_or(usual)));
        }
    }
    all
}

/// The notice for a log that could not be used.
pub fn complaint(told: &[Event]) -> Option<String> {
    told.iter().find_map(|event| match event {
        Event::LogAligned(own) => own.refused.clone(),
        _ => None,
    })
}

/// Interval at which an incomplete log is read again.
const LOOK_EVERY: Duration = Duration::from_millis(500);
