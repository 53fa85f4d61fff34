//! The back-test from end to end: two situations that are predicted, frozen, measured and scored by
//! the program itself. One prediction is replaced by a wrong one, and must be scored as a miss.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// `weigh` beside this program's own build; `None` where it was not built.
fn weigh() -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_BIN_EXE_xtask")).with_file_name("weigh");
    let must = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(file.exists() || !must, "{}: not built, and CI=true", file.display());
    if !file.exists() {
        eprintln!("SKIPPED: {} is not there: type cargo build", file.display());
    }
    file.exists().then_some(file)
}

struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        let place = std::env::temp_dir().join(format!("weigh-back-test-{}", std::process::id()));
        fs::create_dir_all(&place).expect("a folder");
        Place(place)
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("a file");
    }

    fn read(&self, name: &str) -> Value {
        let text = fs::read_to_string(self.0.join(name)).expect(name);
        serde_json::from_str(&text).expect("JSON")
    }

    /// Runs `xtask backtest` with these words: whether it succeeded, and what it printed.
    fn back_test(&self, weigh: &Path, words: &[&str]) -> (bool, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.args(["backtest", "--folder"]).arg(&self.0).arg("--weigh").arg(weigh).args(words);
        let output = command.output().expect("xtask starts");
        let both = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&both).into_owned())
    }

    fn measures(&self, weigh: &Path, words: &[&str]) -> String {
        let usual = ["--repetitions", "2", "--rounds", "1"];
        let (succeeded, text) = self.back_test(weigh, &[&usual[..], words].concat());
        assert!(succeeded, "{text}");
        text
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Removed even if the test failed; what is left is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn situation(option: &str, guarantee: &str) -> String {
    format!(
        "# inside\nschema = \"weigh/situation/1\"\noptions = [\"{option}\"]\n\
         matters = [\"server-cpu\"]\n[traffic]\ndevices = 25\nevery = \"100ms\"\nsize = \"72B\"\n\
         [network]\ntls = \"off\"\n[needs]\nguarantee = \"{guarantee}\"\n"
    )
}

/// Replaces the prediction of 02 by a wrong one: the dearer option, with an interval far below.
fn plant(place: &Place) {
    let mut wrong = place.read("02.json");
    wrong["advised"] = json!(["mqtt qos 2, one each"]);
    for own in wrong["options"].as_array_mut().expect("options") {
        own["figure"] = json!({ "low": 1e-9, "value": 2e-9, "high": 3e-9 });
    }
    place.put("02.json", &wrong.to_string());
}

/// Freezes it again, a while ago.
fn freeze_again(place: &Place) {
    let mut frozen = place.read("frozen.json");
    let bytes = fs::read(place.0.join("02.json")).expect("02.json");
    let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    frozen["sha256"]["02.json"] = json!(hash);
    frozen["unix_s"] = json!(frozen["unix_s"].as_u64().expect("a time") - 60);
    place.put("frozen.json", &frozen.to_string());
}

#[test]
fn predictions_are_measured_and_a_wrong_one_is_a_miss() {
    let Some(weigh) = weigh() else { return };
    let place = Place::new();
    let cells = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/cells/farms.json");
    fs::copy(cells, place.0.join("cells.json")).expect("cells");
    place.put("01.toml", &situation("http", "at least once"));
    place.put("02.toml", &situation("mqtt", "exactly once"));
    let (froze, text) = place.back_test(&weigh, &["--freeze"]);
    assert!(froze, "{text}");
    let (again, text) = place.back_test(&weigh, &["--freeze"]);
    assert!(!again && text.contains("frozen already"), "{text}");
    assert_eq!(place.read("01.json")["advised"], json!(["http1, kept"]));
    plant(&place);
    let (scored, text) = place.back_test(&weigh, &["--score"]);
    assert!(!scored && text.contains("02.json was changed after it was frozen"), "{text}");
    freeze_again(&place);

    // Without time nothing is measured; one situation after the other continues.
    let text = place.measures(&weigh, &["--minutes", "0"]);
    assert!(text.contains("2 situations left") && text.contains("| 0 of 0 |"), "{text}");
    let (known, text) = place.back_test(&weigh, &["--only", "07"]);
    assert!(!known && text.contains("there is no such situation"), "{text}");
    let text = place.measures(&weigh, &["--only", "01"]);
    assert!(text.contains("| weigh advise | 1 of 1 |"), "{text}");
    let text = place.measures(&weigh, &[]);
    assert!(!text.contains("01: server-cpu, round") && text.contains("02: server-cpu"), "{text}");

    // The right prediction covers the best option, and the planted one does not.
    assert!(text.contains("| weigh advise | 1 of 2 |"), "{text}");
    let row = |number: &str| {
        let start = format!("| {number} |");
        text.lines().find(|line| line.starts_with(&start)).expect(number).to_owned()
    };
    assert!(row("01").contains("| covered"), "{}", row("01"));
    assert!(row("02").contains("| MISS; outside of its interval"), "{}", row("02"));
    let advised = text.lines().find(|line| line.starts_with("| weigh advise |")).expect("a row");
    // Of the four figures the two of the planted situation are outside. Whether the others are
    // inside is up to the machine that measures them.
    let held = ["intervals hold 0 %", "intervals hold 25 %", "intervals hold 50 %"];
    assert!(held.iter().any(|own| text.contains(own)), "{text}");
    for goal in ["coverage", "regret at 95 %", "intervals"] {
        assert!(advised.contains(goal), "{goal}: {advised}");
    }
    assert!(text.contains("| decision tree |") && text.contains("| shuffled labels |"), "{text}");
    let text = place.measures(&weigh, &[]);
    assert!(text.contains("all situations are precise, or had 1 rounds"), "{text}");
}
