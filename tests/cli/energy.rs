//! Energy as a user sees it: meters below `WEIGH_SYSFS` whose power is known, one that goes away,
//! one whose unit is off by 1000, none at all, and the log of a meter outside.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::rig::{Ended, Place, cells, figure, until, wait, warnings};

/// A board at 5 V and 0.5 A.
fn board(place: &Place) -> PathBuf {
    let sys = place.folder().join("sys");
    put(&sys, "ina226", "name");
    for (file, value) in [
        ("in1_input", "5000"),
        ("curr1_input", "500"),
        ("power1_input", "2500000"),
        ("update_interval", "2"),
        ("shunt_resistor", "10000"),
    ] {
        put(&sys, value, file);
    }
    sys
}

fn put(sys: &std::path::Path, text: &str, file: &str) {
    let folder = sys.join("class/hwmon/hwmon3");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(file), text).unwrap();
}

/// The program over that tree.
fn with(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command(arguments);
    command.env("WEIGH_SYSFS", place.folder().join("sys"));
    command
}

fn weigh(place: &Place, arguments: &[&str]) -> Ended {
    Ended::from(with(place, arguments).output().expect("the program starts"))
}

#[test]
fn a_known_power_becomes_the_energy_of_messages_and_sessions() {
    let place = Place::new("energy");
    board(&place);
    let load = ["-n", "200", "-c", "2", "--pattern", "session", "--reps", "3", "--warmup", "0s"];
    let mut words = vec!["compare", "tcp", "--idle", "300ms", "--meter", "ina226:hwmon3", "-Q"];
    words.extend(load);
    let table = weigh(&place, &words).with(0).stdout;
    assert!(table.contains("measured by ina226 at hwmon3"), "{table}");
    let wide = place.weigh(&["report", "latest", "--wide"]).with(0).stdout;
    assert!(wide.contains("mAh/session"), "{wide}");
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    let near = |metric: &str, expected: f64| {
        let value = figure(cell, metric);
        assert!((value / expected - 1.0).abs() < 1e-6, "{metric}: {value}, not {expected}");
    };
    near("energy_power_w", 2.5);
    near("energy_idle_power_w", 2.5);
    near("energy_voltage_v", 5.0);
    let joules = figure(cell, "energy_j");
    near("energy_j_per_session", joules / 200.0);
    near("energy_j_per_message", joules / 200.0);
    near("energy_mah_per_session", joules / 200.0 / 5.0 / 3.6);
    assert_eq!(figure(cell, "energy_above_idle_j"), 0.0);
    assert!(warnings(cell).contains(&"energy-idle-short"), "{:?}", warnings(cell));
    let metric = &cell["metrics"]["energy_j_per_message"];
    assert!(metric["method"].as_str().unwrap().contains("widened"), "{metric}");
    let sources: Vec<&str> =
        metric["budget"].as_array().unwrap().iter().filter_map(|l| l["source"].as_str()).collect();
    assert!(["meter gain", "shunt", "repetitions"].iter().all(|own| sources.contains(own)));
    // What the journal says of the window is what the joules are of.
    let told = place.of_kind("energy_measured");
    assert_eq!(told.len(), 3);
    for own in &told {
        let seconds = seconds(&own["window"]);
        assert!((own["energy_j"].as_f64().unwrap() / (2.5 * seconds) - 1.0).abs() < 1e-6, "{own}");
        assert!(seconds_of_idle(own, "idle_before") >= 0.3);
        assert!(seconds_of_idle(own, "idle_after") >= 0.3);
    }
    place.nobody_is_left();
}

fn seconds(span: &Value) -> f64 {
    let of = |key: &str| span[key].as_u64().expect("a moment");
    (of("to_ns") - of("from_ns")) as f64 / 1e9
}

fn seconds_of_idle(own: &Value, phase: &str) -> f64 {
    seconds(&own[phase]["span"])
}

#[test]
fn a_meter_that_goes_away_in_the_middle_takes_its_figures_with_it() {
    let place = Place::new("vanish");
    let sys = board(&place);
    let mut words = vec!["compare", "tcp", "-d", "1500ms", "-R", "200/s", "--warmup", "1s"];
    words.extend(["--reps", "1", "--meter", "auto", "--idle", "0s", "-Q"]);
    let mut command = with(&place, &words);
    let program = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    until("the trial begins", || {
        !place.runs().is_empty()
            && std::fs::read_to_string(place.run().join("journal.jsonl"))
                .is_ok_and(|text| text.contains("trial_started"))
    });
    std::fs::remove_dir_all(sys).unwrap();
    wait(program).with(0);
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    assert!(cell["metrics"]["energy_j"].is_null(), "{cell}");
    assert!(warnings(cell).contains(&"energy-absent"), "{:?}", warnings(cell));
    assert!(figure(cell, "throughput_out_per_s") > 0.0, "the rest stands");
}

#[test]
fn what_cannot_be_a_meter_is_refused_before_anything_starts() {
    let place = Place::new("refused");
    let sys = board(&place);
    let compare =
        |meter: &str| weigh(&place, &["compare", "tcp", "-n", "10", "--meter", meter]).with(2);
    compare("ina260").saying(&["ina226:hwmon3"]);
    compare("rapl").saying(&["class/powercap"]);
    compare("ina22").saying(&["csv:FILE"]);
    put(&sys, "5000000", "in1_input");
    compare("ina226").saying(&["in1_input is 5000 V", "multimeter"]);
    place.write(
        "plan.toml",
        "protocol = \"tcp\"\n[load]\nmessages = 10\n[observe]\nmeter = \"x\"\n",
    );
    weigh(&place, &["run", "plan.toml"]).with(2).saying(&["plan.toml:5", "unknown meter"]);
    assert!(place.runs().is_empty(), "{:?}", place.runs());
}

#[test]
fn without_a_meter_energy_is_absent_and_the_reason_is_said_once() {
    let place = Place::new("absent");
    let words = ["compare", "tcp", "-n", "50", "--reps", "2", "--idle", "1s", "-Q"];
    let ended = weigh(&place, &words).with(0);
    assert_eq!(ended.stderr.matches("no energy meter").count(), 1, "{}", ended.stderr);
    assert!(ended.stdout.contains("energy: not measured"), "{}", ended.stdout);
    let summary = place.summary();
    assert!(summary["run"]["meter"]["absent"].as_str().unwrap().contains("no energy meter"));
    assert!(cells(&summary)[0]["metrics"]["energy_j"].is_null());
    let quiet = weigh(&place, &["compare", "tcp", "-n", "50", "--reps", "1", "-Q"]).with(0);
    assert!(!quiet.stderr.contains("energy") && !quiet.stdout.contains("energy"));
}

#[test]
fn meters_and_the_doctor_say_what_there_is() {
    let place = Place::new("survey");
    board(&place);
    let text = weigh(&place, &["energy", "meters"]).with(0).stdout;
    assert!(text.contains("usable   ina226:hwmon3") && text.contains("class/powercap"), "{text}");
    let found = weigh(&place, &["energy", "meters", "--json"]).with(0).json();
    assert_eq!(found[0]["is_usable"], true);
    assert!(found.as_array().unwrap().iter().any(|own| own["choice"] == "rapl"));
    let doctor = weigh(&place, &["doctor"]).stdout;
    assert!(doctor.contains("energy-meter") && doctor.contains("ina226 at hwmon3"), "{doctor}");
}

/// The meter's clock shows 1,000 s where the run's stands at its first pulse, and runs 50 ppm fast.
#[test]
fn the_log_of_a_meter_outside_is_laid_on_the_run() {
    let place = Place::new("outside");
    let words = ["compare", "tcp", "-n", "500", "--reps", "1", "--idle", "500ms", "-Q", "--meter"];
    let words: Vec<&str> = words.into_iter().chain(["csv:power.csv"]).collect();
    weigh(&place, &words).with(0).saying(&["power.csv", "weigh energy meters --log"]);
    let pulses = place.of_kind("load_pulses");
    assert_eq!(pulses.len(), 2);
    let waiting = place.of_kind("energy_measured")[0].clone();
    assert!(waiting["absent"].is_string(), "{waiting}");
    let spans: Vec<&Value> =
        pulses.iter().flat_map(|own| own["pulses"].as_array().unwrap()).collect();
    let moment = |span: &Value, key: &str| span[key].as_u64().unwrap();
    let (start, end) = (moment(spans[0], "from_ns"), moment(spans[5], "to_ns"));
    let mut log = "time_s,power_mW\n".to_owned();
    let step = Duration::from_millis(5).as_nanos() as u64;
    for at in (start - 1_500_000_000..end + 1_500_000_000).step_by(step as usize) {
        let inside = |span: &Value| moment(span, "from_ns") <= at && at < moment(span, "to_ns");
        let watts = match () {
            () if spans.iter().any(|span| inside(span)) => 6.0,
            () if inside(&waiting["window"]) => 4.0,
            () => 2.0,
        };
        let shown = 1_000.0 + (at as f64 - start as f64) / 1e9 * (1.0 + 50e-6);
        let _ = writeln!(log, "{shown:.6},{}", watts * 1e3);
    }
    place.write("power.csv", &log);
    let ended = place.weigh(&["energy", "meters", "--log", "power.csv", "--run", "latest"]).with(0);
    assert!(ended.stdout.contains("1 trials have energy figures"), "{}", ended.stdout);
    let aligned = place.of_kind("log_aligned").pop().unwrap();
    let bound_ns = aligned["bound_ns"].as_f64().unwrap();
    assert!(bound_ns < 20e6, "{aligned}");
    let span_s = (end - start) as f64 / 1e9;
    let drift_ppm = aligned["drift_ppm"].as_f64().unwrap();
    assert!((drift_ppm - 50.0).abs() < 2.0 * bound_ns / 1e3 / span_s, "{aligned}");
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    let window_s = seconds(&waiting["window"]);
    // Both ends may be off by the bound, and by a row.
    let off_j = 4.0 * 2.0 * (bound_ns / 1e9 + 0.005);
    assert!((figure(cell, "energy_j") - 4.0 * window_s).abs() <= off_j, "{cell}");
    assert!((figure(cell, "energy_above_idle_j") - 2.0 * window_s).abs() <= off_j, "{cell}");
    let budget = cell["metrics"]["energy_j"]["budget"].as_array().unwrap();
    assert!(budget.iter().any(|line| line["source"] == "alignment"), "{budget:?}");
    place.write("power.csv", "time_s,power\n0,1\n");
    let refused =
        place.weigh(&["energy", "meters", "--log", "power.csv", "--run", "latest"]).with(2);
    refused.saying(&["line 1", "power_W", "the run was not changed"]);
}
