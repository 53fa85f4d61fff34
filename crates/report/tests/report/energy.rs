//! Energies in a report: widened by the meter's budget as squares add up, taken from a log that was
//! read after the run, and never a part of one.

use std::collections::BTreeMap;

use weigh_model::energy::{EnergyBudgetLine, EnergyMeasured, LogAligned, MeterChosen};
use weigh_model::event::Event;
use weigh_model::warnings::WarningRecord;
use weigh_report::page::{Provenance, page};
use weigh_report::summary::Cell;
use weigh_report::table::render;
use weigh_report::{Style, Summary};

use crate::story::{Told, started};

const JOULES: [f64; 5] = [100.0, 104.0, 96.0, 102.0, 98.0];

fn line(source: &str, energy_j: f64, is_systematic: bool) -> EnergyBudgetLine {
    EnergyBudgetLine {
        source: source.to_owned(),
        energy_j,
        above_idle_j: energy_j / 2.0,
        is_systematic,
        basis: "a test".to_owned(),
    }
}

/// A run of five trials, each with its energy told after its result as that of a log is.
fn run(budget: &[EnergyBudgetLine]) -> Vec<Event> {
    let mut events = vec![started("constant")];
    events.push(Event::MeterChosen(Box::new(MeterChosen {
        asked: "csv:power.csv".to_owned(),
        meter: Some("log power.csv".to_owned()),
        is_asked: true,
        ..MeterChosen::default()
    })));
    let mut late = Vec::new();
    for (repetition, joules) in (0..).zip(JOULES) {
        let told = Told { repetition, ..Told::new("mqtt", Some(1), "reference") };
        let own = told.events();
        let Event::TrialStarted { trial, .. } = &own[0] else { panic!("it begins") };
        late.push(Event::EnergyMeasured(Box::new(EnergyMeasured {
            trial: trial.clone(),
            energy_j: Some(joules),
            above_idle_j: Some(joules / 2.0),
            budget: budget.to_vec(),
            metrics: BTreeMap::from([
                ("energy_j".to_owned(), joules),
                ("energy_j_per_message".to_owned(), joules / 1e4),
                ("energy_above_idle_j_per_message".to_owned(), joules / 2e4),
            ]),
            ..EnergyMeasured::default()
        })));
        events.extend(own);
    }
    events.extend(late);
    events
}

fn cell(events: &[Event]) -> Cell {
    Summary::from_events(events).unwrap().cells.remove(0)
}

#[test]
fn the_meters_uncertainty_is_added_to_that_of_the_repetitions_as_squares() {
    let plain = cell(&run(&[]));
    let budget = [line("meter gain", 3.0, true), line("sampling", 4.0, false)];
    let widened = cell(&run(&budget));
    for (name, scale) in [("energy_j", 1.0), ("energy_j_per_message", 1e4)] {
        let (plain, widened) = (&plain.metrics[name], &widened.metrics[name]);
        assert_eq!((plain.value, plain.n), (Some(100.0 / scale), 5), "{name}");
        // What is independent from trial to trial is less by the root of 5.
        let meter: f64 = 2.0 * (9.0 + 16.0 / 5.0_f64).sqrt() / scale;
        let half = plain.value.unwrap() - plain.low.unwrap();
        let expected = half.hypot(meter);
        let found = widened.value.unwrap() - widened.low.unwrap();
        assert!((found / expected - 1.0).abs() < 1e-3, "{name}: {found}, not {expected}");
        let sources: Vec<&str> = widened.budget.iter().map(|own| own.source.as_str()).collect();
        assert_eq!(sources, ["meter gain", "sampling", "repetitions"], "the largest first");
        let gain = widened.budget[0].standard_uncertainty * scale;
        assert!((gain - 3.0).abs() < 1e-9, "{gain}");
        assert!(widened.method.as_ref().unwrap().ends_with("widened by the meter's budget"));
        assert!(plain.method.as_ref().unwrap().ends_with("skewness"), "{plain:?}");
    }
    let above = &widened.metrics["energy_above_idle_j_per_message"];
    assert!((above.budget[0].standard_uncertainty - 1.5 / 1e4).abs() < 1e-9, "{above:?}");
}

#[test]
fn measured_energies_have_columns_notes_and_definitions() {
    let summary = Summary::from_events(&run(&[line("meter gain", 3.0, true)])).unwrap();
    let table = render(&summary, Style::plain(200));
    for words in
        ["measured", "J/msg", "above idle", "measured by log power.csv", "meter gain, 3.0 %"]
    {
        assert!(table.contains(words), "{words} is not in\n{table}");
    }
    assert!(!table.contains("modelled") && !table.contains("mAh"), "{table}");
    let html = page(&summary, &run(&[]), &Provenance::default());
    for words in ["measured by log power.csv", "Joules above idle, divided by delivered messages."]
    {
        assert!(html.contains(words), "{words}");
    }
}

#[test]
fn where_a_log_was_refused_every_trial_says_so() {
    let mut events = run(&[]);
    for event in &mut events {
        if let Event::EnergyMeasured(own) = event {
            let trial = own.trial.clone();
            let absent = Some("it has not been read".to_owned());
            **own = EnergyMeasured { trial, absent, ..EnergyMeasured::default() };
        }
    }
    events.push(Event::LogAligned(Box::new(LogAligned {
        refused: Some("power.csv, line 7: no number".to_owned()),
        ..LogAligned::default()
    })));
    let cell = cell(&events);
    assert!(!cell.metrics.contains_key("energy_j"));
    let absent = |warning: &&WarningRecord| warning.code == "energy-absent";
    let warnings: Vec<&WarningRecord> = cell.warnings.iter().filter(absent).collect();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].text.contains("power.csv, line 7"), "{warnings:?}");
}
