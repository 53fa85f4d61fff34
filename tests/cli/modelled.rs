//! Energy as modelled, from the command line: what there is, what is refused, and a run of which
//! every figure follows from what it recorded.

use serde_json::Value;

use crate::rig::{Place, cells, figure, has_hosts};

#[test]
fn devices_and_radios_are_listed_with_their_sources() {
    let place = Place::new("devices");
    let ended = place.weigh(&["energy", "devices"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("pi-2b") && ended.stdout.contains("772 days modelled"));
    let ended = place.weigh(&["energy", "devices", "3g"]);
    assert!(ended.stdout.contains("source: Balasubramanian"), "{}", ended.stdout);
    let ended = place.weigh(&["energy", "devices", "--json"]);
    let all: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(all["radios"].as_array().unwrap().len() >= 8);
    for case in all["published_cases"].as_array().unwrap() {
        let of = |key: &str| case[key].as_f64().unwrap();
        // What is printed to a tenth of a year is met to that.
        let is_rough = case["source"].as_str().unwrap().ends_with("years");
        let off = (of("modelled") - of("published")).abs();
        let allowed = if is_rough { 0.1 * 365.25 } else { 0.005 * of("published") };
        assert!(off < allowed, "{case}");
    }
    let ended = place.weigh(&["energy", "devices", "pi2b"]);
    assert!(
        ended.code == Some(2) && ended.stderr.contains("did you mean pi-2b?"),
        "{}",
        ended.stderr
    );
}

#[test]
fn what_is_wrong_is_named_before_anything_starts() {
    let place = Place::new("modelled-refused");
    for (words, parts) in [
        (&["--device", "pi-2c"][..], &["--device", "did you mean pi-2b?"][..]),
        (&["--device", "pi-2b", "--radio", "4g"], &["--radio", "lte"]),
        (&["--device", "pi-2b", "--battery", "2000mAh"], &["--battery", "2000mAh@5V"]),
        (&["--device", "pi-2b", "--every", "0s"], &["--every 1m"]),
        (&["--radio", "3g"], &["--device"]),
    ] {
        let ended = place.compare(&[&["tcp"], words].concat());
        assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.stderr);
        for part in parts {
            assert!(ended.stderr.contains(part), "{words:?}: {}", ended.stderr);
        }
        assert!(!place.folder().join("runs").exists(), "{words:?} made a run");
    }
    let plan = place.folder().join("plan.toml");
    for (energy, part) in [
        ("device = \"pi-2c\"", "energy.device"),
        ("radio = \"3g\"", "without a device"),
        ("devise = \"pi-2b\"", "did you mean energy.device?"),
        ("device = \"pi-2b\"\nbattery = \"2000mAh\"", "plan.toml:4"),
    ] {
        std::fs::write(&plan, format!("protocol = \"tcp\"\n[energy]\n{energy}\n")).unwrap();
        let ended = place.weigh(&["run", "plan.toml"]);
        assert_eq!(ended.code, Some(2), "{energy}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{energy}: {}", ended.stderr);
    }
}

#[test]
fn a_file_of_ones_own_takes_the_place_of_what_is_built_in() {
    let place = Place::new("own-devices");
    let folder = place.folder().join("own/devices");
    std::fs::create_dir_all(&folder).unwrap();
    let coefficient = "value = 0.7\nunit = \"W\"\nuncertainty = \"5 %\"\nbasis = \"measured\"\n\
                       source = \"our bench\"\nverification = \"by us\"\n";
    let text = format!(
        "name = \"mine\"\ntitle = \"Mine\"\nabout = \"Ours.\"\nvolts = 5.0\ncorrelation = 0.5\n\
         [idle]\n{coefficient}"
    );
    std::fs::write(folder.join("mine.toml"), &text).unwrap();
    let ended = place.weigh(&["energy", "devices", "mine", "--data", "own"]);
    assert!(ended.stdout.contains("our bench"), "{}", ended.stderr);
    for (from, to, part) in [
        ("source", "sorce", "mine.toml:11:1: unknown key \"sorce\"\nhelp: did you mean source?"),
        ("source = \"our bench\"\n", "", "mine.toml:6:2: idle has no source"),
    ] {
        std::fs::write(folder.join("mine.toml"), text.replace(from, to)).unwrap();
        let ended = place.compare(&["tcp", "--device", "mine", "--data", "own"]);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
}

/// What stands in the summary is the published model of what the journal says was done: computed
/// here once more, by hand.
#[test]
fn figures_follow_from_what_was_recorded() {
    if !has_hosts("figures_follow_from_what_was_recorded") {
        return;
    }
    let place = Place::new("modelled");
    let ended = place.weigh(&WEIGHED);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    let (activities, finished) = (place.of_kind("activity"), place.of_kind("trial_finished"));
    assert_eq!((activities.len(), finished.len()), (3, 3));
    let (mut wake_j, mut session_j) = (0.0, 0.0);
    for (activity, finished) in activities.iter().zip(&finished) {
        assert_eq!(activity["trial"], finished["trial"]);
        let of = |key: &str| activity[key].as_f64().unwrap();
        let metric = |name: &str| finished["metrics"][name].as_f64().unwrap();
        assert_eq!((of("devices"), of("connections"), of("messages")), (1.0, 4.0, 4.0));
        let link = metric("wire.sent.layers.link_bytes");
        assert_eq!(of("up_bytes"), metric("wire.sent.bytes") - link);
        assert_eq!(of("up_packets") + of("down_packets"), metric("wire.packets"));
        let span_s = of("span_ns") / 1e9;
        // Four sessions over a path of 40 ms there and back: at least two round trips each.
        assert!(span_s > 0.32, "{span_s}");
        let cpu_s = metric("generator_cpu_us_per_message") / 1e6;
        let slower_s = cpu_s * 16.5;
        let bytes_j = 25e-6 * (of("up_bytes") + of("down_bytes")) / 4.0;
        let cpu_j = cpu_s * 17.5 * 0.25;
        let on_air_s = of("connected_ns") / 1e9 / 4.0 + slower_s;
        wake_j += (3.5 + 7.75 + 0.62 * on_air_s + bytes_j + cpu_j) / 3.0;
        session_j += ((span_s / 4.0 + slower_s) * (0.62 + 1.1) + bytes_j + cpu_j) / 3.0;
    }
    for (name, expected) in [
        ("modelled_wake_j_per_message", wake_j),
        ("modelled_energy_j_per_session", session_j),
        ("modelled_energy_mah_per_session", session_j / 18.0),
        ("modelled_sessions_per_charge", (36_000.0 - 11.25) / session_j),
    ] {
        let found = figure(cell, name);
        // The mean of three quotients is not quite the quotient of the means.
        assert!((found / expected - 1.0).abs() < 0.01, "{name}: {found}, not {expected}");
    }
    let metric = &cell["metrics"]["modelled_days_per_charge"];
    assert!(metric["low"].as_f64() < metric["value"].as_f64());
    assert!(metric["method"].as_str().unwrap().contains("Monte Carlo"), "{metric}");
    let csv = std::fs::read_to_string(place.run().join("cells.csv")).unwrap();
    assert!(csv.lines().next().unwrap().contains("modelled_energy_mah_per_session"), "{csv}");
}

const WEIGHED: [&str; 19] = [
    "compare",
    "tcp",
    "--pattern",
    "session",
    "-c",
    "1",
    "-n",
    "4",
    "--warmup",
    "0s",
    "-Q",
    "--path",
    "delay=20ms",
    "--device",
    "pi-2b",
    "--radio",
    "3g",
    "--battery",
    "2000mAh@5V",
];
