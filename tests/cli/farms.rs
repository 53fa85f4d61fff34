//! The question of study 000, farms of 60 sensors with a reading a minute: one command answers it,
//! and agrees with the recorded run at full scale (`crates/study/tests/carry`).

use serde_json::Value;
use weigh_report::Summary;
use weigh_study::carry::{self, Asked, CarryOutcome};
use weigh_study::{RunMade, RunState, Runs};

use crate::rig::{Ended, Place};

/// Farms of the situation: 60,000 sensors.
const FARMS: f64 = 1_000.0;

fn size(guarantee: &str, tls: &str) -> Value {
    let place = Place::new(&format!("farms-{guarantee}-{tls}"));
    let words = [
        "size",
        "mqtt",
        "http",
        "--devices",
        "60000",
        "--every",
        "1m",
        "-s",
        "72B",
        "--cores",
        "1",
        "--memory",
        "3.75GiB",
        "--headroom",
        "100%",
        "--guarantee",
        guarantee,
        "--tls",
        tls,
        "--json",
        "--no-run",
    ];
    let mut command = place.command(&words);
    command.env("XDG_CACHE_HOME", place.folder().join("cache"));
    Ended::from(command.output().expect("the program starts")).with(0).json()
}

/// Every lane of the study: its name there, the option here, and the guarantee that it needs.
const LANES: [(&str, &str, &str, &str); 10] = [
    ("HTTP, connection kept", "http1, kept", "at-least-once", "off"),
    ("HTTP, a connection each", "http1, one each", "at-least-once", "off"),
    ("MQTT QoS 0", "mqtt qos 0, kept", "at-most-once", "off"),
    ("MQTT QoS 1", "mqtt qos 1, kept", "at-least-once", "off"),
    ("MQTT QoS 2", "mqtt qos 2, kept", "exactly-once", "off"),
    ("HTTP, connection kept, TLS", "http1, kept, TLS", "at-least-once", "on"),
    ("HTTP, a connection each, TLS", "http1, one each, TLS", "at-least-once", "on"),
    ("MQTT QoS 0, TLS", "mqtt qos 0, kept, TLS", "at-most-once", "on"),
    ("MQTT QoS 1, TLS", "mqtt qos 1, kept, TLS", "at-least-once", "on"),
    ("MQTT QoS 2, TLS", "mqtt qos 2, kept, TLS", "exactly-once", "on"),
];

/// For all ten lanes: the number of farms on one server is within the study's interval, the
/// intervals meet, the study's resource ends it or may end it, and the number of servers follows.
/// The protocols have the same order.
#[test]
fn the_question_of_study_000_is_answered_as_its_full_scale_run_does() {
    let studied = carry::answer(&asked(), &recorded());
    let mut answers: Vec<((&str, &str), Value)> = Vec::new();
    let mut order: Vec<(f64, f64)> = Vec::new();
    for (label, option, guarantee, tls) in LANES {
        let wish = (guarantee, tls);
        if !answers.iter().any(|(known, _)| *known == wish) {
            answers.push((wish, size(guarantee, tls)));
        }
        let (_, answer) = answers.iter().find(|(known, _)| *known == wish).expect("an answer");
        let all = answer["options"].as_array().expect("options");
        let own = all.iter().find(|own| own["option"]["name"] == option);
        let carries = &own.unwrap_or_else(|| panic!("{option}: {answer:#}"))["carries"];
        let [low, farms, high] = ["low", "value", "high"]
            .map(|end| carries["devices"][end].as_f64().expect("devices") / 60.0);
        let [study_low, study_farms, study_high, servers] = of_study(&studied, label);
        assert!(
            (study_low..=study_high).contains(&farms),
            "{option}: {farms:.0} farms, and the study has {study_low:.0} to {study_high:.0}"
        );
        assert!(
            low <= study_high && study_low <= high,
            "{option}: {low:.0} to {high:.0} farms, and the study has {study_low:.0} to \
             {study_high:.0}"
        );
        let ends_at = carries["ends_at"].as_str().expect("a resource");
        let binds = binds(&studied, label);
        assert!(ends_at.split(" or ").any(|own| own == binds), "{option}: {ends_at}, not {binds}");
        assert_eq!(carries["servers"]["value"].as_f64(), Some(servers), "{option}");
        order.push((farms, study_farms));
    }
    // Which protocol: where the study's figures differ by a tenth, the order is the same.
    for (a, study_a) in &order {
        for (b, study_b) in &order {
            assert!(*study_a < 1.1 * study_b || a > b, "{a:.0} {b:.0}, {study_a:.0} {study_b:.0}");
        }
    }
}

/// Farms at all of the core: low, value, high; and the servers for the farms of the situation.
fn of_study(studied: &CarryOutcome, label: &str) -> [f64; 4] {
    let lane = studied.lanes.iter().find(|lane| lane.label == label).expect(label);
    let all = lane.carried.iter().find(|own| own.headroom == 1.0).expect("at 100 %");
    let [low, value, high] = [all.devices_low, all.devices, all.devices_high]
        .map(|own| own.map_or(f64::INFINITY, |own| own / 60.0));
    [low, value, high, (FARMS / value).ceil()]
}

fn binds(studied: &CarryOutcome, label: &str) -> String {
    let lane = studied.lanes.iter().find(|lane| lane.label == label).expect(label);
    let all = lane.carried.iter().find(|own| own.headroom == 1.0).expect("at 100 %");
    all.binds.clone()
}

/// The run at full scale, as it was recorded.
fn recorded() -> Runs {
    let texts = [
        ("right/farms-idle", include_str!("../../crates/study/tests/carry/idle.json")),
        ("right/farms-http", include_str!("../../crates/study/tests/carry/http.json")),
        ("right/farms-mqtt", include_str!("../../crates/study/tests/carry/mqtt.json")),
        ("right/farms-many", include_str!("../../crates/study/tests/carry/many.json")),
        ("right/farms-capacity", include_str!("../../crates/study/tests/carry/capacity.json")),
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
    let text = include_str!("../../crates/study/tests/carry/carry.toml");
    let whole: toml::Table = text.parse().expect("TOML");
    let own = whole["carry"][0].as_table().expect("a table");
    carry::read(own, &|_| true).expect("a sound question")
}
