//! How many units a server carries: a recorded run whole, and runs whose costs are made up, so
//! that the answer is known before.

use serde_json::Value;
use weigh_report::Summary;
use weigh_report::summary::Cell;
use weigh_study::carry::{self, Asked, Carried, CarryOutcome, Reach};
use weigh_study::{RunMade, RunState, Runs};

#[test]
fn a_recorded_run_is_answered_line_by_line() {
    let outcome = carry::answer(&asked(), &recorded());
    let table = carry::table(&outcome, 200);
    println!("{table}");
    for family in &outcome.families {
        family.terms.iter().for_each(|term| println!("{term:?}"));
        for cell in family.held_out.iter().chain(&family.checked) {
            let (measured, predicted) = (cell.measured_percent, cell.predicted_percent);
            println!("{measured:6.2} {predicted:6.2?} {}", cell.link.cell);
        }
    }
    assert!(outcome.lanes.len() == 10 && outcome.missing.is_empty(), "{:?}", outcome.missing);
    let search = outcome.lanes[0].search.as_ref().expect("HTTP was searched");
    assert_eq!(search.low_devices, Some(300_000.0), "5,000/s is a reading a minute of so many");
    assert!(outcome.lanes[1].search.is_none(), "a connection each was not");
    for lane in &outcome.lanes {
        assert_eq!(lane.refused, None, "{}", lane.label);
        let floor = lane.floor.as_ref().expect("every lane met its goals somewhere");
        assert_eq!(floor.units, (floor.devices / 60.0).floor());
        assert_eq!(lane.carried.len(), 2);
        for carried in &lane.carried {
            let [low, devices, high] = bounds(carried);
            assert!(low <= devices && devices <= high, "{}: {carried:?}", lane.label);
        }
        let [some, all] = [&lane.carried[0], &lane.carried[1]];
        assert!(bounds(some)[1] <= bounds(all)[1], "{}", lane.label);
        let expected = if lane.is_per_connection { "processor" } else { "memory" };
        assert_eq!(all.binds, expected, "{}", lane.label);
        assert!(lane.line.windows(2).all(|two| two[0].percent <= two[1].percent));
    }
    assert!(table.contains("at least 1,666"), "100,000 devices are 1,666 farms of 60:\n{table}");
    for said in [
        "~ HTTP, a connection each: the rate of ",
        "p99 at most ",
        "ports",
        "highest rate not searched: HTTP, a connection each; ",
    ] {
        assert!(table.contains(said), "{said}:\n{table}");
    }
}

/// The generator of the recorded run was late: its p99 is an upper bound. Without the warning it is
/// exact; if no repetition has one, or too few were answered for one, there is none.
#[test]
fn a_p99_with_the_generators_lag_in_it_is_an_upper_bound() {
    let floor = |change: &dyn Fn(&mut Cell)| {
        let mut runs = recorded();
        for state in runs.values_mut() {
            let RunState::Made(made) = state else { continue };
            made.summary.cells.iter_mut().for_each(change);
        }
        carry::answer(&asked(), &runs).lanes.remove(0).floor
    };
    let late = floor(&|_| {}).expect("10,000 connections");
    assert!(late.p99_has_lag && late.p99_in_words().contains("at most"), "{late:?}");
    let sound = floor(&|cell| cell.warnings.clear()).expect("the same");
    assert!(!sound.p99_has_lag && !sound.p99_in_words().contains("at most"), "{sound:?}");
    assert_eq!(sound.p99_ns, late.p99_ns);
    let without = |cell: &mut Cell| {
        for (name, metric) in &mut cell.metrics {
            if name.ends_with(".p99") {
                metric.values.clear();
            }
        }
    };
    assert_eq!(floor(&without), None, "no value of any repetition");
    let none = |cell: &mut Cell| cell.metrics.retain(|name, _| !name.ends_with(".p99"));
    assert_eq!(floor(&none), None, "answered, and no p99");
}

/// Costs of our own making: what the model says must be what they say.
#[test]
fn made_up_costs_are_found_and_put_together() {
    let mut runs = recorded();
    let truth = Truth::default();
    set_costs(&mut runs, |cell| truth.cores(cell));
    let outcome = carry::answer(&asked(), &runs);
    for family in &outcome.families {
        let error = family.held_out_error.expect("cells were held out");
        assert!(family.is_predictive && error < 0.1, "{}: {error}", family.label);
        assert!(family.checked_error.expect("checked") < 0.1, "{family:?}");
        let awake_s = family.awake_s.expect("wake-ups were fitted");
        assert!((1e-4..=4e-4).contains(&awake_s), "{}: {awake_s}", family.label);
        let correction = family.correction.expect("cells were foretold");
        assert!((0.95..1.05).contains(&correction), "{}: {correction}", family.label);
    }
    let lane = |label: &str| outcome.lanes.iter().find(|lane| lane.label == label).expect("a lane");
    // A session is two arrivals, an opened connection and a message.
    let each = lane("HTTP, a connection each");
    let rate_at = |cores: f64| {
        let wakes = |rate: f64| 2.0 * rate / (1.0 + 2.0 * rate * truth.awake_s);
        let uses = |rate: f64| {
            truth.process + wakes(rate) * truth.wake + rate * (truth.opened + truth.message)
        };
        let mut rate = 0.0;
        while uses(rate) < cores {
            rate += 1.0;
        }
        rate
    };
    for (at, cores) in [0.75, 1.0].into_iter().enumerate() {
        let carried = &each.carried[at];
        let expected = rate_at(cores) * 60.0;
        let [low, devices, high] = bounds(carried);
        let apart = (devices / expected - 1.0).abs();
        assert!(apart < 0.05, "{carried:?}: {expected} devices");
        assert!(low < expected && expected < high, "{expected}");
        assert_eq!(carried.reach, Reach::Beyond, "1,500/s was the most: {carried:?}");
    }
    let kept = &lane("HTTP, connection kept").carried[1];
    assert_eq!(kept.binds, "memory");
}

/// Three times the cost where many connections stand: the model has no such thing.
#[test]
fn what_the_model_does_not_have_shows_in_what_was_held_out() {
    let mut runs = recorded();
    let truth = Truth::default();
    let many = |cell: &Cell| number(cell, "load.connections") > 1_000.0;
    set_costs(&mut runs, |cell| truth.cores(cell) * if many(cell) { 4.0 } else { 1.0 });
    let outcome = carry::answer(&asked(), &runs);
    for family in &outcome.families {
        assert!(!family.is_predictive, "{}: {:?}", family.label, family.held_out_error);
    }
    assert!(carry::table(&outcome, 200).contains("do not rely on it"));
}

#[test]
fn a_run_that_is_not_there_is_named_and_its_lanes_have_no_figure() {
    let mut runs = recorded();
    let why = "mosquitto is not installed: install it".to_owned();
    runs.insert("right/farms-http".to_owned(), RunState::Skipped(why));
    let outcome = carry::answer(&asked(), &runs);
    assert!(outcome.missing.iter().any(|text| text.contains("is not installed")));
    let http = outcome.lanes.iter().filter(|lane| lane.family == "http");
    for lane in http {
        assert!(lane.refused.is_some() && lane.carried.is_empty(), "{lane:?}");
        assert!(lane.floor.is_some(), "what other runs carried still stands");
    }
    assert!(outcome.lanes.iter().any(|lane| lane.family == "mqtt" && lane.refused.is_none()));
    assert!(carry::table(&outcome, 200).contains("no cell shows the cost of a message"));
}

#[test]
fn a_question_that_says_nonsense_is_told_what_to_type() {
    let wrong = |from: &str, to: &str| {
        let text = CARRY.replacen(from, to, 1);
        assert_ne!(text, CARRY, "{from}");
        let error = carry::read(&table(&text), &|_| true).expect_err(to);
        assert!(!error.fix.is_empty());
        error.text
    };
    assert!(wrong("sensors = 60", "sensors = 0").contains("sensors"));
    assert!(wrong("sensors = 60", "sensor = 60").contains("sensor"));
    assert!(wrong("headroom = [0.75, 1.0]", "headroom = [75.0]").contains("headroom"));
    assert!(wrong("family = \"http\"", "family = \"htp\"").contains("unknown family"));
    assert!(wrong("variant = \"0\"\n", "").contains("variant"));
    assert!(wrong("a = \"MQTT QoS 1\"", "a = \"MQTT QoS 3\"").contains("unknown lane"));
    let error = carry::read(&table(CARRY), &|name| name != "right/farms-many").expect_err("a plan");
    assert!(error.text.contains("right/farms-many"), "{error:?}");
}

#[test]
fn the_outcome_survives_its_document() {
    let outcome = carry::answer(&asked(), &recorded());
    let text = serde_json::to_string(&outcome).expect("numbers are finite");
    let read: CarryOutcome = serde_json::from_str(&text).expect("the same document");
    assert_eq!(serde_json::to_string(&read).expect("again"), text);
}

/// What costs what in the made-up runs, in cores and their seconds.
struct Truth {
    process: f64,
    wake: f64,
    awake_s: f64,
    message: f64,
    sealed: f64,
    opened: f64,
    handshake: f64,
}

impl Default for Truth {
    fn default() -> Truth {
        Truth {
            process: 3e-3,
            wake: 20e-6,
            awake_s: 2e-4,
            message: 6e-6,
            sealed: 2e-6,
            opened: 50e-6,
            handshake: 150e-6,
        }
    }
}

impl Truth {
    fn cores(&self, cell: &Cell) -> f64 {
        let word = |key: &str| {
            cell.point.get(key).map_or(String::new(), |value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })
        };
        // Connections that only stand send nothing.
        let rate = cell.metrics.get("throughput_in_per_s").and_then(|metric| metric.values[0]);
        let rate = rate.unwrap_or(0.0);
        let is_tls = word("http1.tls") == "on" || word("mqtt.tls") == "on";
        let is_session = word("load.pattern") == "session";
        let when = |is: bool, cost: f64| if is { cost } else { 0.0 };
        let arrivals = if word("mqtt.qos") == "2" { 2.0 } else { 1.0 };
        let arrivals = rate * (arrivals + when(is_session, 1.0));
        // A resumed handshake costs what a plain connection does.
        let count = |key: &str| cell.metrics.get(key).and_then(|m| m.values[0]).unwrap_or(0.0);
        let [full, resumed] = ["tls_handshakes_full", "tls_handshakes_resumed"].map(count);
        let share = if full > 0.0 { full / (full + resumed) } else { 0.0 };
        let each = self.message
            + when(is_tls, self.sealed)
            + when(is_session, self.opened + when(is_tls, share * self.handshake));
        self.process + rate * each + self.wake * arrivals / (1.0 + arrivals * self.awake_s)
    }
}

/// Gives every repetition of every cell the first one's rate and this cost, one percent up or down.
fn set_costs(runs: &mut Runs, cores: impl Fn(&Cell) -> f64) {
    let mut up = false;
    for state in runs.values_mut() {
        let RunState::Made(made) = state else { continue };
        // The cells of a search say nothing of costs.
        let is_search = !made.summary.limits.is_empty();
        for cell in made.summary.cells.iter_mut().filter(|_| !is_search) {
            let cost = cores(cell) * 100.0;
            for metric in cell.metrics.values_mut() {
                let first = metric.values[0];
                metric.values.fill(first);
            }
            for value in &mut cell.metrics.get_mut("target_cpu_percent.mean").unwrap().values {
                up = !up;
                *value = Some(cost * if up { 1.01 } else { 0.99 });
            }
        }
    }
}

/// The interval and the estimate in it; what has no bound is infinite.
fn bounds(carried: &Carried) -> [f64; 3] {
    let all = [carried.devices_low, carried.devices, carried.devices_high];
    all.map(|devices| devices.unwrap_or(f64::INFINITY))
}

fn number(cell: &Cell, key: &str) -> f64 {
    cell.point.get(key).and_then(Value::as_f64).unwrap_or(0.0)
}

/// A run at full scale on a quiet machine, recorded: 100,000 devices with a reading a minute. The
/// search is one at quick scale.
fn recorded() -> Runs {
    let texts = [
        ("right/farms-idle", include_str!("carry/idle.json")),
        ("right/farms-http", include_str!("carry/http.json")),
        ("right/farms-mqtt", include_str!("carry/mqtt.json")),
        ("right/farms-many", include_str!("carry/many.json")),
        ("right/farms-capacity", include_str!("carry/capacity.json")),
    ];
    let run = |(name, text): (&str, &str)| {
        let summary: Summary = serde_json::from_str(text).expect("a summary");
        let folder = name.replace('/', "-");
        let made = RunMade { folder, summary, trials: Default::default() };
        (name.to_owned(), RunState::Made(Box::new(made)))
    };
    texts.into_iter().map(run).collect()
}

fn asked() -> Asked {
    carry::read(&table(CARRY), &|_| true).expect("a sound question")
}

fn table(text: &str) -> toml::Table {
    let whole: toml::Table = text.parse().expect("TOML");
    whole["carry"][0].as_table().expect("a table").clone()
}

const CARRY: &str = include_str!("carry/carry.toml");
