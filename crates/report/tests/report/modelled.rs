//! Modelled energy in a report: from the journal alone, apart from everything that was measured,
//! and absent with a reason where it cannot be told.

use weigh_model::event::Event;
use weigh_model::modelled::{Activity, EnergyBasis, EnergyPart};
use weigh_report::page::{Provenance, page};
use weigh_report::table::render;
use weigh_report::{Style, Summary};

use crate::story::{Told, started};

/// A device that idles at 1 W with a radio that takes 12.5 J for 50 KB after a pause, as the 3G of
/// 2009; its battery holds 36 kJ.
fn basis() -> EnergyBasis {
    let coefficient = |value: f64| {
        serde_json::json!({
            "value": value, "published": value.to_string(), "uncertainty": "10 %", "factor": 1.1,
            "basis": "a test", "source": "a test", "verification": "none",
        })
    };
    let part = |name: &str, coefficients: &[(&str, f64)]| -> EnergyPart {
        let coefficients: serde_json::Map<String, serde_json::Value> = coefficients
            .iter()
            .map(|(key, value)| ((*key).to_owned(), coefficient(*value)))
            .collect();
        let part = serde_json::json!({
            "name": name, "title": format!("The {name}"), "about": "", "volts": 5.0, "cores": 1,
            "correlation": 0.0, "path": (name == "radio").then_some("3g"),
            "coefficients": coefficients,
        });
        serde_json::from_value(part).unwrap()
    };
    let radio =
        [("ramp", 3.5), ("up", 25e-6), ("down", 25e-6), ("tail_power", 0.62), ("tail_time", 12.5)];
    EnergyBasis {
        device: part("device", &[("idle", 1.0), ("load", 2.0), ("cpu_scale", 10.0)]),
        radio: Some(part("radio", &radio)),
        battery: Some("2000mAh@5V".parse().unwrap()),
        every: weigh_model::Nanos::from_secs(60),
        cpu: Default::default(),
    }
}

/// Two lanes, three repetitions each: sessions of 50 KB one after the other, a second each in the
/// first lane and two in the second.
fn run() -> Vec<Event> {
    let mut first = started("closed");
    if let Event::RunStarted(started) = &mut first {
        started.energy = Some(Box::new(basis()));
    }
    let mut events = vec![first];
    for (protocol, seconds) in [("http1", 1), ("tcp", 2)] {
        for repetition in 0..3 {
            let metrics = &[("generator_cpu_us_per_message", 0.0), ("wire.packets", 1.0)];
            let told = Told { repetition, metrics, ..Told::new(protocol, None, "reference") };
            let [begun, _, finished] = told.events();
            let Event::TrialFinished(trial) = &finished else { panic!("it ends with its end") };
            let activity = Activity {
                trial: trial.trial.clone(),
                devices: 1,
                connections: 10,
                messages: 10,
                down_bytes: 500_000,
                message_down_bytes: 500_000,
                down_packets: 400,
                span_ns: 10 * seconds * 1_000_000_000 + u64::from(repetition),
                connected_ns: 0,
                ..Activity::default()
            };
            events.extend([begun, Event::Activity(Box::new(activity)), finished]);
        }
    }
    events
}

fn figure(summary: &Summary, cell: usize, name: &str) -> f64 {
    summary.cells[cell].metrics[name].value.unwrap()
}

#[test]
fn figures_are_those_of_the_published_case() {
    let summary = Summary::from_events(&run()).unwrap();
    let near = |name: &str, cell: usize, expected: f64| {
        let found = figure(&summary, cell, name);
        assert!((found / expected - 1.0).abs() < 1e-6, "{name}: {found}, not {expected}");
    };
    // Ramp, bytes and tail; idling apart.
    near("modelled_wake_j_per_message", 0, 12.5);
    near("modelled_wake_j_per_message", 1, 12.5);
    // A second of idling and the bytes, while the radio never sleeps.
    near("modelled_energy_j_per_message", 0, 1.0 + 1.25);
    near("modelled_energy_j_per_message", 1, 2.0 + 1.25);
    near("modelled_energy_mah_per_session", 0, 2.25 / 18.0);
    // Ramp and last tail are paid once per charge.
    near("modelled_sessions_per_charge", 0, (36_000.0 - 11.25) / 2.25);
    near("modelled_lifetime_s", 1, (36_000.0 - 11.25) / 3.25 * 2.0);
    near("modelled_days_per_charge", 0, (36_000.0 - 11.25) / 72.5 * 60.0 / 86_400.0);
    let metric = &summary.cells[0].metrics["modelled_wake_j_per_message"];
    let (low, high) = (metric.low.unwrap(), metric.high.unwrap());
    // Ramp and bytes once, the tail by its power and by its time, each by a factor of 1.1.
    let half = 1.1f64.ln() * (3.5f64.powi(2) + 1.25f64.powi(2) + 2.0 * 7.75f64.powi(2)).sqrt();
    assert!(((high - low) / 2.0 / half - 1.0).abs() < 0.06, "{low} to {high}, not ± {half}");
    let cell = &summary.modelled.as_ref().unwrap().cells[0];
    assert!(cell.duty_budget[0].name.contains("tail"), "{:?}", cell.duty_budget);
    assert!((cell.weighed_j["idle"] - 1.0).abs() < 1e-6 && cell.duty_j["connect"] == 3.5);
}

#[test]
fn modelled_and_measured_meet_in_no_ratio_and_no_column() {
    let summary = Summary::from_events(&run()).unwrap();
    assert!(summary.comparisons.iter().all(|own| !own.metric.contains("modelled")));
    let modelled = summary.modelled.as_ref().unwrap();
    assert!(modelled.comparisons.iter().all(|own| own.metric.starts_with("modelled_")));
    assert!(!modelled.comparisons.is_empty());
    let text = render(&summary, Style::plain(400));
    let (measured, own) = text.split_once("modelled, not measured").unwrap();
    let is_warning = |line: &str| line.contains("modelled-without-path");
    assert!(measured.lines().all(|line| !line.contains("modelled") || is_warning(line)), "{text}");
    // (36,000 J − 11.25 J) / 72.5 J a minute, for both lanes: what they differ in is not slept.
    let first = text.lines().find(|line| line.contains("Battery life by the model")).unwrap();
    assert!(first.contains("a message every 1 min: ") && first.contains("0.345 days"), "{first}");
    assert!(own.contains("The device over The radio") && own.contains("12.5 ±"), "{text}");
    assert!(text.contains("measure with --path 3g"), "{text}");
    let html = page(&summary, &run(), &Provenance { journal_sha256: None });
    assert!(html.contains("Modelled, not measured.") && html.contains("modelled-duty"));
}

/// After a pause both lanes take 12.5 J: no ratio of 1.0000 and no "lower", but that nothing can be
/// told. As weighed one takes longer, and its ratio stands there.
#[test]
fn lanes_that_the_model_cannot_tell_apart_get_no_ratio() {
    let summary = Summary::from_events(&run()).unwrap();
    let text = render(&summary, Style::plain(300));
    let said = "J/message, every 1 min: the model cannot distinguish http1 on reference and \
                tcp on reference: the ratio is 1.00 to 1.00";
    assert!(text.contains(said), "{text}");
    assert!(!text.contains("1.0000"), "{text}");
    let told = "mAh/session, no pause: http1 on reference has 0.69 times (";
    assert!(text.contains(told) && text.contains(") the value of tcp on"), "{text}");
    assert!(text.contains("no pause: the device sends as the trial did"), "{text}");
}

/// A lane whose connection is kept and pinged: how much that takes, and what to change.
#[test]
fn keep_alives_of_a_kept_connection_are_told() {
    let mut events = run();
    for event in &mut events {
        let Event::Activity(activity) = event else { continue };
        (activity.connections, activity.keep_alive_ns) = (1, 20_000_000_000);
        (activity.keep_alive_up_bytes, activity.keep_alive_down_bytes) = (106, 54);
    }
    let summary = Summary::from_events(&events).unwrap();
    let cell = &summary.modelled.as_ref().unwrap().cells[0];
    // Two in a minute, each with ramp, tail and 160 bytes of 25 uJ.
    let each = 3.5 + 0.62 * 12.5 + 160.0 * 25e-6;
    assert!((cell.duty_j["keep-alive"] - 2.0 * each).abs() < 1e-9, "{:?}", cell.duty_j);
    let text = render(&summary, Style::plain(300));
    assert!(text.contains("keep-alives between two messages take 22.5 J"), "{text}");
    assert!(text.contains("the protocol's keep-alive of 20 s"), "{text}");
}

#[test]
fn what_cannot_be_modelled_says_why() {
    let events: Vec<Event> =
        run().into_iter().filter(|event| !matches!(event, Event::Activity(_))).collect();
    let summary = Summary::from_events(&events).unwrap();
    let reason = |summary: &Summary| summary.modelled.as_ref().unwrap().cells[0].absent.clone();
    assert!(reason(&summary).unwrap().contains("10,000"));
    let unheard: Vec<Event> = events
        .into_iter()
        .map(|event| match event {
            Event::TrialFinished(mut trial) => {
                trial.metrics.remove("wire.packets");
                Event::TrialFinished(trial)
            }
            other => other,
        })
        .collect();
    let summary = Summary::from_events(&unheard).unwrap();
    assert!(reason(&summary).unwrap().contains("add --wire"));
    assert!(summary.cells[0].metrics.keys().all(|name| !name.starts_with("modelled")));
    assert!(
        render(&summary, Style::plain(100)).contains("not modelled: there was no packet capture")
    );
}

#[test]
fn the_journal_keeps_what_figures_rest_on() {
    let lines: Vec<String> =
        run().iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    let read: Vec<Event> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, run());
    let [live, replayed] = [run(), read].map(|events| Summary::from_events(&events).unwrap());
    assert_eq!(live.to_json(), replayed.to_json());
}
