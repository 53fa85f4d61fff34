//! Meters over files that look like the kernel's, whose joules are known before: counters that go
//! round, looks at uneven moments, meters that go away, units that are off by 1000.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use weigh_model::MeterChoice;
use weigh_model::energy::Span;
use weigh_observe::energy::attribution::{Counts, Phases, measured};
use weigh_observe::energy::{
    Meter, MeterError, MeterWatch, Reading, Refused, Sources, Track, Value, supplies, survey,
};
use weigh_observe::host::Roots;
use weigh_stats::random::Random;

/// A folder that stands for `/sys`.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Tree {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("meters-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Tree(path)
    }

    fn put(&self, path: &str, text: impl ToString) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.to_string() + "\n").unwrap();
    }

    fn zone(&self, id: &str, name: &str, wraps_at: u64) {
        let folder = format!("class/powercap/{id}");
        self.put(&format!("{folder}/name"), name);
        self.put(&format!("{folder}/max_energy_range_uj"), wraps_at);
        self.put(&format!("{folder}/energy_uj"), 0);
    }

    fn sources(&self) -> Sources {
        Sources::of(Roots { proc: "/proc".into(), sys: self.0.clone() })
    }

    fn open(&self, choice: &str) -> Result<Meter, MeterError> {
        Meter::open(&choice.parse::<MeterChoice>().unwrap(), &self.sources())
    }

    fn refusal(&self, choice: &str) -> String {
        match self.open(choice) {
            Ok(meter) => panic!("{} was opened", meter.facts().name),
            Err(error) => error.to_string(),
        }
    }
}

const SECOND: u64 = 1_000_000_000;

/// A reading as if it had been made at this moment.
fn at(at_ns: u64, value: Value) -> Reading {
    Reading { at_ns, value }
}

/// Two packages, each with its cores, one with memory; and views of the same energy beside them.
fn two_packages(name: &str, wraps_at: u64) -> Tree {
    let tree = Tree::new(name);
    tree.put("class/powercap/intel-rapl/enabled", 1);
    tree.zone("intel-rapl:0", "package-0", wraps_at);
    tree.zone("intel-rapl:0/intel-rapl:0:0", "core", wraps_at);
    tree.zone("intel-rapl:0/intel-rapl:0:1", "dram", wraps_at);
    tree.zone("intel-rapl:1", "package-1", wraps_at);
    tree.zone("intel-rapl:1:0", "core", wraps_at);
    tree.zone("intel-rapl:2", "psys", wraps_at);
    tree.zone("intel-rapl-mmio:0", "package-0", wraps_at);
    tree
}

#[test]
fn an_hour_of_uneven_looks_at_counters_that_go_round_is_exact_to_the_last_count() {
    let wraps_at = 60_000_007;
    let tree = two_packages("hour", wraps_at);
    let mut meter = tree.open("rapl").unwrap();
    assert_eq!(meter.facts().name, "rapl package-0 package-1");
    let files = [
        ("intel-rapl:0", 50_000_000),
        ("intel-rapl:0/intel-rapl:0:0", 30_000_000),
        ("intel-rapl:0/intel-rapl:0:1", 9_000_000),
        ("intel-rapl:1", 55_000_000),
        ("intel-rapl:1:0", 20_000_000),
    ];
    let mut random = Random::new(15);
    let mut totals: Vec<Vec<u64>> = vec![vec![59_999_999; files.len()]];
    let (mut readings, mut at_ns) = (Vec::new(), 7 * SECOND);
    while at_ns < 3_607 * SECOND {
        let last = totals.last().unwrap().clone();
        let grown = |(own, (_, most)): (&u64, &(&str, u64))| own + random.below(*most);
        let now: Vec<u64> = last.iter().zip(&files).map(grown).collect();
        for ((file, _), total) in files.iter().zip(&now) {
            tree.put(&format!("class/powercap/{file}/energy_uj"), total % wraps_at);
        }
        totals.push(now);
        at_ns += SECOND / 2 + random.below(SECOND);
        readings.push(at(at_ns, meter.read().unwrap().value));
    }
    totals.remove(0);
    let rounds = totals.last().unwrap()[0] / wraps_at;
    assert!(rounds > 1_000, "{rounds}");
    let track = Track::new(meter.facts().clone(), &readings, None);
    let sum = |at: usize| totals[at][0] + totals[at][3];
    for (from, to) in [(0, readings.len() - 1), (1, 2), (10, 11), (500, 2_900)] {
        let drawn = track.window(readings[from].at_ns, readings[to].at_ns).unwrap();
        assert_eq!((drawn.energy_j * 1e6).round() as u64, sum(to) - sum(from), "{from} {to}");
        for (name, place) in [("package-0/dram", 2), ("package-1/core", 4), ("package-1", 3)] {
            let counted = (drawn.domains[name] * 1e6).round() as u64;
            assert_eq!(counted, totals[to][place] - totals[from][place], "{name}");
        }
    }
    // Between two looks a counter is taken to grow evenly.
    let (left, right) = (readings[40].at_ns, readings[41].at_ns);
    let quarter = left + (right - left) / 4;
    let whole = track.window(left, right).unwrap().energy_j;
    let part = track.window(left, quarter).unwrap().energy_j;
    assert!((part / whole - 0.25).abs() < 1e-6, "{part} {whole}");
}

#[test]
fn one_wrap_is_one_wrap() {
    let tree = Tree::new("once");
    tree.zone("intel-rapl:0", "package-0", 1_000_000);
    let meter = tree.open("auto").unwrap();
    let counts = [900_000, 999_999, 3, 600_000];
    let readings: Vec<Reading> =
        (1..).zip(counts).map(|(s, count)| at(s * SECOND, Value::Energy(vec![count]))).collect();
    let track = Track::new(meter.facts().clone(), &readings, None);
    let drawn = track.window(SECOND, 4 * SECOND).unwrap();
    assert_eq!((drawn.energy_j * 1e6).round(), 700_000.0);
    assert_eq!(drawn.readings, 4);
}

#[test]
fn a_wrap_that_nobody_can_have_seen_is_no_figure() {
    let tree = Tree::new("unseen");
    tree.zone("intel-rapl:0", "package-0", 1_000_000_000);
    let facts = tree.open("rapl").unwrap().facts().clone();
    let look = |s: u64| at(s * SECOND, Value::Energy(vec![s * 20_000_000 % 1_000_000_000]));
    let readings: Vec<Reading> = (0..30).chain(90..120).map(look).collect();
    let track = Track::new(facts, &readings, None);
    assert_eq!(track.window(5 * SECOND, 25 * SECOND).unwrap().energy_j, 400.0);
    let refused = track.window(5 * SECOND, 100 * SECOND).unwrap_err();
    assert!(matches!(refused, Refused::Unseen(_)), "{refused}");
}

#[test]
fn domains_can_be_asked_for_and_are_never_summed_twice() {
    let tree = two_packages("domains", 1_000_000);
    let summed = |choice: &str| -> Vec<String> {
        let meter = tree.open(choice).unwrap();
        let domains = meter.facts().domains.iter().filter(|own| own.is_summed);
        domains.map(|own| own.name.clone()).collect()
    };
    assert_eq!(summed("rapl"), ["package-0", "package-1"]);
    assert_eq!(summed("rapl:psys"), ["psys"]);
    assert_eq!(summed("rapl:dram"), ["package-0/dram"]);
    assert_eq!(summed("rapl:package-1"), ["package-1"]);
    assert!(tree.refusal("rapl:gpu").contains("package-0/core, "));
    let meter = tree.open("rapl").unwrap();
    assert_eq!(meter.facts().domains.len(), 6, "the mapped view of package-0 is the same one");
}

#[test]
fn a_meter_that_vanishes_leaves_no_part_of_a_figure() {
    let tree = two_packages("vanish", 1_000_000_000);
    let mut meter = tree.open("rapl").unwrap();
    let count = |value: u64| {
        for zone in ["intel-rapl:0", "intel-rapl:1"] {
            tree.put(&format!("class/powercap/{zone}/energy_uj"), value);
        }
    };
    let mut readings = Vec::new();
    for second in 0..5 {
        count(second * 10_000_000);
        readings.push(at(second * SECOND, meter.read().unwrap().value));
    }
    fs::remove_file(tree.0.join("class/powercap/intel-rapl:1/energy_uj")).unwrap();
    let lost = meter.read().unwrap_err();
    assert!(matches!(lost, MeterError::Vanished { .. }), "{lost}");
    let track = Track::new(meter.facts().clone(), &readings, Some(lost));
    assert_eq!(track.window(SECOND, 3 * SECOND).unwrap().energy_j, 40.0);
    let refused = track.window(SECOND, 5 * SECOND).unwrap_err();
    assert!(matches!(refused, Refused::Vanished(_)), "{refused}");
    let window = Span { from_ns: SECOND, to_ns: 5 * SECOND };
    let phases = Phases { window, ..Phases::default() };
    let counts = Counts { delivered: Some(10), sessions: None };
    let told = measured("t", &track, phases, counts, 0);
    assert_eq!((told.energy_j, told.metrics.len()), (None, 0));
    assert!(told.absent.unwrap().contains("vanished"));
    assert_eq!(told.warnings[0].code, "energy-absent");
}

#[test]
fn a_thread_reads_a_meter_until_it_goes_away() {
    let tree = Tree::new("thread");
    tree.zone("intel-rapl:0", "package-0", 1_000_000_000);
    let meter = tree.open("rapl").unwrap();
    let watch = MeterWatch::start(meter, Duration::ZERO, || {}).unwrap();
    watch.look();
    tree.put("class/powercap/intel-rapl:0/energy_uj", 123);
    watch.look();
    let (meter, track) = watch.stop().unwrap();
    let whole = track.whole().unwrap();
    let drawn = track.window(whole.from_ns, whole.to_ns).unwrap();
    assert_eq!((drawn.energy_j * 1e6).round(), 123.0);
    let watch = MeterWatch::start(meter, Duration::ZERO, || {}).unwrap();
    watch.look();
    fs::remove_dir_all(tree.0.join("class/powercap/intel-rapl:0")).unwrap();
    watch.look();
    let (_, track) = watch.stop().unwrap();
    let refused = track.window(whole.to_ns + 1, u64::MAX).unwrap_err();
    assert!(matches!(refused, Refused::Vanished(_)), "{refused}");
}

fn shunt(name: &str, files: &[(&str, i64)]) -> Tree {
    let tree = Tree::new(name);
    tree.put("class/hwmon/hwmon0/name", "cpu_thermal");
    tree.put("class/hwmon/hwmon3/name", "ina226");
    tree.put("class/hwmon/hwmon3/shunt_resistor", 10_000);
    tree.put("class/hwmon/hwmon3/update_interval", 2);
    for (file, value) in files {
        tree.put(&format!("class/hwmon/hwmon3/{file}"), value);
    }
    tree
}

const BOARD: [(&str, i64); 3] =
    [("in1_input", 5_000), ("curr1_input", 500), ("power1_input", 2_500_000)];

#[test]
fn a_shunt_is_read_in_the_units_of_its_driver() {
    let tree = shunt("shunt", &BOARD);
    let mut meter = tree.open("auto").unwrap();
    assert_eq!(meter.facts().name, "ina226 at hwmon3");
    assert_eq!(meter.facts().period, Duration::from_millis(2));
    let expected = Value::Power { power_w: 2.5, voltage_v: Some(5.0), current_a: Some(0.5) };
    assert_eq!(meter.read().unwrap().value, expected);
    // 10 µV at 10 milliohm are 1 mA at 5 V.
    assert!((meter.facts().accuracy.offset_w - 0.005).abs() < 1e-12);
    let without_power = shunt("product", &BOARD[..2]);
    assert_eq!(without_power.open("ina226:hwmon3").unwrap().read().unwrap().value, expected);
    for choice in ["ina219", "ina226:hwmon0"] {
        assert!(tree.refusal(choice).contains("ina226:hwmon3"), "{choice}");
    }
    tree.put("class/hwmon/hwmon4/name", "ina260");
    assert!(tree.refusal("ina2xx").contains("several chips: ina226:hwmon3, ina260:hwmon4"));
}

#[test]
fn a_unit_that_is_off_by_1000_is_refused_with_the_fix() {
    for (name, files, words) in [
        ("volts-up", [("in1_input", 5_000_000), BOARD[1], BOARD[2]], "in1_input is 5000 V"),
        ("volts-down", [("in1_input", 5), BOARD[1], BOARD[2]], "in1_input is 0.005 V"),
        ("amperes-up", [BOARD[0], ("curr1_input", 500_000), BOARD[2]], "curr1_input is 500 A"),
        ("watts-down", [BOARD[0], BOARD[1], ("power1_input", 2_500)], "power1_input is 0.0025 W"),
        ("watts-up", [BOARD[0], BOARD[1], ("power1_input", 2_500_000_000)], "is 2500 W"),
    ] {
        let said = shunt(name, &files).refusal("ina226");
        assert!(said.contains(words) && said.contains("multimeter"), "{name}: {said}");
    }
}

/// The driver's figures follow from the shunt that it was told, so that they agree with each other
/// and with its limits: a board of 0.5 A at 10 and at 100 milliohm, told 1000 times too little or
/// too much.
#[test]
fn a_shunt_that_is_off_by_1000_is_refused_though_all_figures_agree() {
    for (name, told_uohm, milliamperes, says) in [
        ("shunt-10-down", 10, 500_000, "is 0.01 milliohm"),
        ("shunt-100-down", 100, 500_000, "is 0.1 milliohm"),
        ("shunt-10-up", 10_000_000, 1, "is 10000 milliohm"),
        ("shunt-100-up", 100_000_000, 1, "is 100000 milliohm"),
        ("shunt-none", 0, 500, "is 0 milliohm"),
        ("shunt-below", -10_000, 500, "is -10 milliohm"),
    ] {
        let files = [
            ("in1_input", 5_000),
            ("curr1_input", milliamperes),
            ("power1_input", milliamperes * 5_000),
            ("shunt_resistor", told_uohm),
        ];
        let said = shunt(name, &files).refusal("ina226");
        assert!(said.contains(says) && said.contains("R100 is 100000"), "{name}: {said}");
    }
    for told_uohm in [500, 2_000, 100_000, 2_000_000] {
        let files = [
            BOARD[0],
            ("curr1_input", 30),
            ("power1_input", 150_000),
            ("shunt_resistor", told_uohm),
        ];
        let (_, most) = shunt("shunt-right", &files).open("ina226").unwrap().facts().plausible_w;
        assert!(most <= 500.0, "{told_uohm}: {most}");
    }
    // 0.5 milliohm lets 164 A through; no machine behind such a chip takes 36 V of them.
    let files = [
        ("in1_input", 36_000),
        ("curr1_input", 150_000),
        ("power1_input", 5_400_000_000),
        ("shunt_resistor", 500),
    ];
    let said = shunt("shunt-much", &files).refusal("ina226");
    assert!(said.contains("shows 5400 W") && said.contains("at most 500 W"), "{said}");
    // Its shunt is inside: what the file says is of no meaning.
    let inside = shunt("shunt-inside", &[BOARD[0], BOARD[1], BOARD[2], ("shunt_resistor", 1)]);
    inside.put("class/hwmon/hwmon3/name", "ina260");
    assert_eq!(inside.open("ina260").unwrap().facts().name, "ina260 at hwmon3");
}

#[test]
fn powers_at_uneven_moments_are_integrated_by_their_own_times() {
    let facts = shunt("uneven", &BOARD).open("ina226").unwrap().facts().clone();
    // Power grows evenly, so that the trapezoidal rule has no error.
    let watts = |at_ns: u64| 1.0 + at_ns as f64 / 1e9 / 10.0;
    let mut random = Random::new(3);
    let (mut readings, mut at_ns) = (Vec::new(), 0);
    while at_ns < 20 * SECOND {
        let power_w = watts(at_ns);
        let value = Value::Power { power_w, voltage_v: Some(5.0), current_a: Some(power_w / 5.0) };
        readings.push(at(at_ns, value));
        at_ns += random.below(SECOND / 3) + 1;
    }
    let track = Track::new(facts.clone(), &readings, None);
    let (from, to) = (3 * SECOND + 17, 15 * SECOND + 4);
    let drawn = track.window(from, to).unwrap();
    let expected = (watts(from) + watts(to)) / 2.0 * (to - from) as f64 / 1e9;
    assert!((drawn.energy_j - expected).abs() < 1e-9, "{} {expected}", drawn.energy_j);
    let charge_mah = expected / 5.0 / 3.6;
    assert!((drawn.charge_mah.unwrap() - charge_mah).abs() < 1e-9);
    assert!((drawn.voltage_v.unwrap() - 5.0).abs() < 1e-12);
    assert!(drawn.sampling_j < 1e-9, "what goes evenly is sampled well");
    assert!(matches!(track.window(from, 21 * SECOND), Err(Refused::Uncovered(_))));
    let silent: Vec<Reading> =
        readings.iter().filter(|own| !(6..9).contains(&(own.at_ns / SECOND))).cloned().collect();
    let refused = Track::new(facts, &silent, None).window(from, to).unwrap_err();
    assert!(matches!(refused, Refused::Silent(seconds) if seconds > 3.0), "{refused}");
}

/// Every other reading does not reach both ends of a window; the uncertainty of reading now and
/// then is not 0 for that.
#[test]
fn few_powers_have_an_uncertainty_or_are_no_figure() {
    let facts = shunt("few", &BOARD).open("ina226").unwrap().facts().clone();
    let track = |watts: &[f64]| {
        let power =
            |power_w: &f64| Value::Power { power_w: *power_w, voltage_v: None, current_a: None };
        let readings: Vec<Reading> =
            (0..).zip(watts).map(|(number, own)| at(number * SECOND / 2, power(own))).collect();
        Track::new(facts.clone(), &readings, None)
    };
    // Every other reading sees 2 W from 0 to 1 s, or 4 W from 0.5 to 1.5 s, where 3 W were drawn.
    let drawn = track(&[2.0, 4.0, 2.0, 4.0]).window(SECOND / 10, 14 * SECOND / 10).unwrap();
    assert!(drawn.sampling_j > 1.0, "{drawn:?}");
    let drawn = track(&[2.0, 4.0, 2.0]).window(0, SECOND).unwrap();
    assert!((drawn.sampling_j - 1.0).abs() < 1e-9, "{drawn:?}");
    let refused = track(&[2.0, 4.0]).window(0, SECOND / 2).unwrap_err();
    assert!(matches!(refused, Refused::Sparse(2)), "{refused}");
}

#[test]
fn what_lies_above_idle_has_a_budget() {
    let facts = shunt("budget", &BOARD).open("ina226").unwrap().facts().clone();
    // 60 s at 2.0 W, 100 s at 3 W, 60 s at 2.2 W.
    let watts = |s: u64| match s {
        0..60 => 2.0,
        60..160 => 3.0,
        _ => 2.2,
    };
    let mut readings = Vec::new();
    for step in 0..=2_200u64 {
        let power_w = watts(step / 10);
        let value = Value::Power { power_w, voltage_v: Some(5.0), current_a: Some(power_w / 5.0) };
        readings.push(at(step * SECOND / 10, value));
    }
    let track = Track::new(facts, &readings, None);
    let span = |from: u64, to: u64| Span { from_ns: from * SECOND, to_ns: to * SECOND };
    let phases =
        Phases { before: Some(span(0, 59)), window: span(60, 160), after: Some(span(161, 220)) };
    let counts = Counts { delivered: Some(1_000), sessions: Some(500) };
    let told = measured("t", &track, phases, counts, 5);
    let near = |name: &str, expected: f64| {
        let value = told.metrics[name];
        assert!((value / expected - 1.0).abs() < 0.001, "{name}: {value}");
    };
    near("energy_j", 300.0);
    near("energy_idle_power_w", 2.1);
    near("energy_above_idle_j", 90.0);
    near("energy_j_per_message", 0.3);
    near("energy_above_idle_j_per_session", 0.18);
    near("energy_mah_per_session", 300.0 / 5.0 / 3.6 / 500.0);
    assert_eq!(told.window.from_ns, 60 * SECOND + 5);
    let line = |source: &str| told.budget.iter().find(|line| line.source == source).unwrap();
    let root = 3.0_f64.sqrt();
    assert!((line("shunt").energy_j - 3.0 / root).abs() < 0.01);
    assert!((line("meter offset").energy_j - 0.5 / root).abs() < 1e-6);
    assert_eq!(line("meter offset").above_idle_j, 0.0);
    assert!((line("idle drift").above_idle_j - 10.0 / root).abs() < 0.01);
    let codes: Vec<&str> = told.warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(codes, ["energy-idle-short", "energy-idle-drift"]);
    // One phase tells nothing of how idle power changed: no line of drift, and that is said.
    for (before, after) in [(phases.before, None), (phases.before, Some(span(400, 460)))] {
        let told = measured("t", &track, Phases { before, after, ..phases }, counts, 0);
        assert!(told.budget.iter().all(|line| line.source != "idle drift"));
        let warning =
            told.warnings.iter().find(|warning| warning.code == "energy-idle-unknown").unwrap();
        assert!(warning.text.contains("does not include the drift"), "{}", warning.text);
    }
    let none = measured("t", &track, Phases { before: None, after: None, ..phases }, counts, 0);
    assert_eq!((none.above_idle_j, none.warnings.len()), (None, 0));
}

fn battery(name: &str, files: &[(&str, &str)]) -> Tree {
    let tree = Tree::new(name);
    tree.put("class/power_supply/BAT0/type", "Battery");
    tree.put("class/power_supply/BAT0/status", "Discharging");
    for (file, value) in files {
        tree.put(&format!("class/power_supply/BAT0/{file}"), value);
    }
    tree
}

#[test]
fn a_coulomb_counter_gives_charge_to_the_count_and_energy_by_the_voltage() {
    let tree = battery("coulombs", &[("charge_counter", "2000000"), ("voltage_now", "4000000")]);
    let meter = tree.open("battery").unwrap();
    let left = |charge_uah: i64| Value::Left {
        charge_uah: Some(charge_uah),
        energy_uwh: None,
        voltage_v: Some(4.0),
    };
    let counts = [2_000_000, 1_999_000, 1_997_500, 1_996_500];
    let readings: Vec<Reading> =
        (0..).zip(counts).map(|(minute, count)| at(minute * 60 * SECOND, left(count))).collect();
    let track = Track::new(meter.facts().clone(), &readings, None);
    let drawn = track.window(0, 180 * SECOND).unwrap();
    assert_eq!(drawn.charge_mah, Some(3.5));
    assert!((drawn.energy_j - 3.5 * 3.6 * 4.0).abs() < 1e-9, "{}", drawn.energy_j);
    // A step of 1 mAh at 4 V are 14.4 J; it may be anywhere in it at both ends.
    assert!((drawn.sampling_j - 14.4 / 6.0_f64.sqrt()).abs() < 1e-9, "{}", drawn.sampling_j);
    let still = left(1_996_500);
    let held: Vec<Reading> = (0..4).map(|second| at(second * SECOND, still.clone())).collect();
    let held = Track::new(meter.facts().clone(), &held, None);
    assert!(matches!(held.window(0, 3 * SECOND), Err(Refused::Charged)));
    assert_eq!(held.idle(0, 3 * SECOND).unwrap().energy_j, 0.0, "less than a step");
    let rising: Vec<Reading> =
        readings.iter().rev().cloned().zip(0..).map(|(own, n)| at(n * SECOND, own.value)).collect();
    let refused = Track::new(meter.facts().clone(), &rising, None).window(0, 3 * SECOND);
    assert!(matches!(refused, Err(Refused::Charged)), "{refused:?}");
    let hours = battery("hours", &[("energy_now", "50000000"), ("voltage_now", "12000000")]);
    let value = hours.open("battery").unwrap().read().unwrap().value;
    let expected =
        Value::Left { charge_uah: None, energy_uwh: Some(50_000_000), voltage_v: Some(12.0) };
    assert_eq!(value, expected);
}

#[test]
fn batteries_that_cannot_measure_say_why() {
    let mut percents = vec![("capacity", "57")];
    let said = battery("percents", &percents).refusal("battery");
    assert!(said.contains("steps of 1 %") && said.contains("20 mAh"), "{said}");
    percents.extend([("current_now", "-400000"), ("voltage_now", "3700000")]);
    let value = battery("current", &percents).open("battery").unwrap().read().unwrap().value;
    let Value::Power { power_w, .. } = value else { panic!("{value:?}") };
    assert!((power_w - 1.48).abs() < 1e-12);
    let bare = battery("bare", &[("charge_now", "1500000")]);
    assert!(bare.refusal("battery").contains("no voltage"));
    let off = [("charge_now", "1500000"), ("voltage_now", "3700")];
    assert!(battery("volts", &off).refusal("battery").contains("0.0037 V"));
    let off = [("charge_now", "1500"), ("charge_full_design", "2000"), ("voltage_now", "3700000")];
    assert!(battery("charge", &off).refusal("battery").contains("2 mAh"));
    let fed = [("charge_now", "1500000"), ("voltage_now", "3700000"), ("status", "Charging")];
    let tree = battery("fed", &fed);
    assert!(tree.refusal("battery").contains("unplug"));
    tree.put("class/power_supply/AC/type", "Mains");
    tree.put("class/power_supply/AC/online", 1);
    let all = supplies(&tree.sources().roots);
    let fed: Vec<&str> =
        all.iter().filter(|own| own.feeds_from_mains()).map(|own| own.name.as_str()).collect();
    assert_eq!(fed, ["AC", "BAT0"]);
}

#[test]
fn a_machine_without_meters_says_what_was_looked_for() {
    let tree = Tree::new("nothing");
    assert!(tree.refusal("auto").contains("no energy meter"));
    let found = survey(&tree.sources());
    let choices: Vec<&str> = found.iter().map(|own| own.choice.as_str()).collect();
    assert_eq!(choices, ["ina2xx", "pmic", "rapl", "battery"]);
    assert!(found.iter().all(|own| !own.is_usable && !own.needs.is_empty()), "{found:?}");
    let found = survey(&shunt("survey", &BOARD).sources());
    assert_eq!((found[0].choice.as_str(), found[0].is_usable), ("ina226:hwmon3", true));
}
