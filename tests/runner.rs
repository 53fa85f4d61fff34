//! The library without the command line: the example of `crates/runner/src/lib.rs`, carried out.

use std::path::PathBuf;

use weigh_runner::exit::Exit;
use weigh_runner::runner::Runner;

/// A folder that is removed when the test is over.
struct Runs(PathBuf);

impl Drop for Runs {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_plan_of_two_cases_runs_from_rust() {
    let runs = Runs(std::env::temp_dir().join(format!("weigh-from-rust-{}", std::process::id())));
    let plan = r#"
        vary.protocol = ["tcp", "mqtt"]
        load = { pattern = "publish", messages = 1000, warmup = "0s" }
        mqtt.qos = 1
        repeat.at_least = 1
        repeat.at_most = 1
    "#;
    let runner = Runner::new(env!("CARGO_BIN_EXE_weigh"), &runs.0).unwrap();
    let finished = runner.run("two-cases", plan).unwrap();
    let cells = &finished.summary.cells;
    let protocols: Vec<_> = cells.iter().map(|cell| cell.point["protocol"].as_str()).collect();
    assert_eq!(protocols, [Some("tcp"), Some("mqtt")]);
    for cell in cells {
        assert_eq!((cell.ledger.sent, cell.ledger.acknowledged), (1000, 1000), "{:?}", cell.point);
        assert_eq!(cell.ledger.lost, Some(0), "{:?}", cell.point);
        assert!(cell.target.contains("reference"), "{}", cell.target);
    }
    assert_eq!(finished.exit(), Exit::Done);
    let written = std::fs::read_to_string(finished.folder.path().join("summary.json")).unwrap();
    assert_eq!(written.trim_end(), finished.summary.to_json().trim_end());
}

#[test]
fn what_is_wrong_with_a_plan_is_an_error_and_starts_nothing() {
    let runner = Runner::new(env!("CARGO_BIN_EXE_weigh"), "no-such-folder").unwrap();
    let stop = runner.run("wrong", "load.messages = \"five\"").err().unwrap();
    assert_eq!(stop.exit(), Exit::Usage);
    assert!(stop.to_string().contains("load.messages"), "{stop}");
    assert!(!PathBuf::from("no-such-folder").exists());
}
