//! A battery run down on loopback: killed at any moment, on a full card, on a charger. Nothing here
//! has a battery: the kernel's files are the test's, or it says that there is no gauge.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command};

use serde_json::Value;

use crate::rig::{Ended, Place, signal, skip, until, wait};

/// A place with a plan of two lanes.
fn tank(name: &str) -> Place {
    let place = Place::new(name);
    place.write("tank.toml", PLAN);
    place
}

fn read(place: &Place) -> Value {
    place.weigh(&["energy", "rundown", "--read", "--json"]).with(0).json()
}

fn part(place: &Place, number: u32) -> PathBuf {
    place.folder().join(format!("rundown/discharge-{number:04}/part-0001.log"))
}

/// The last count that stands in the log.
fn counted(place: &Place, number: u32) -> u64 {
    let text = fs::read_to_string(part(place, number)).unwrap_or_default();
    let last = text.lines().rfind(|line| line.contains("\"standing\""));
    let json = last.and_then(|line| serde_json::from_str::<Value>(line.get(9..)?).ok());
    json.and_then(|value| value["acknowledged"].as_u64()).unwrap_or(0)
}

#[test]
fn practice_counts_sessions_and_says_that_it_counts_for_nothing() {
    let place = tank("practice");
    let words =
        ["energy", "rundown", "tank.toml", "--no-gauge", "--for", "2s", "--battery", "2000mAh@5V"];
    let ended = place.weigh(&words).with(0).saying(&["1 of 2 lanes", "gauge is not read"]);
    let sessions: u64 =
        ended.stdout.split(' ').next().and_then(|n| n.parse().ok()).expect("a count");
    assert!(sessions > 0);
    let report = read(&place);
    let discharge = &report["discharges"][0];
    assert_eq!(
        (discharge["sessions"].as_u64(), &discharge["complete"]),
        (Some(sessions), &false.into())
    );
    assert_eq!(discharge["ended"], "time over");
    let mah = discharge["rated_mah_per_session"].as_f64().expect("mAh per session");
    assert!((mah * sessions as f64 - 2000.0).abs() < 1e-6, "{mah}");
    assert_eq!(report["lanes"], Value::Array(Vec::new()));
    let text = place.weigh(&["energy", "rundown", "--read"]).with(0).stdout;
    assert!(text.contains("0 of 1 discharges count") && text.contains("time over"), "{text}");
    place.nobody_is_left();
}

/// Killed three times at some moment: whatever was in the log before it was killed is in what is
/// read afterwards, and no more than the server saw.
#[test]
fn what_is_killed_keeps_what_was_written() {
    let place = tank("killed-rundown");
    let mut server = place.spawn(&["serve", "tcp"]);
    let mut lines = BufReader::new(server.stdout.take().expect("its stdout")).lines();
    let url = lines.next().expect("a line").expect("text").replace("listening on ", "");
    place.write("tank.toml", &format!("{SESSIONS}[target]\nname = \"{url}\"\n"));
    let mut known = 0;
    for number in 1..=3u32 {
        let child = place.spawn(&["energy", "rundown", "tank.toml", "--no-gauge"]);
        until("sessions are counted", || counted(&place, number) > u64::from(number));
        let before = counted(&place, number);
        signal("KILL", child.id());
        assert_eq!(wait(child).code, None);
        let report = read(&place);
        let discharge = &report["discharges"][number as usize - 1];
        let sessions = discharge["sessions"].as_u64().expect("sessions");
        assert!(sessions >= before, "{sessions} of {before}");
        known += sessions;
        assert_eq!(discharge["ended"], "program killed", "the machine was not off");
    }
    signal("TERM", server.id());
    let told = lines.map_while(Result::ok).collect::<Vec<_>>().join("\n");
    wait(server);
    let served: Value = serde_json::from_str(&told).expect("what the server counted");
    let connections = served["connections"].as_u64();
    assert!(connections >= Some(known), "{known} sessions, and it saw {told}");
    place.nobody_is_left();
}

/// A card that is full before the begin is told before anything starts; one that becomes full finds
/// the room taken already.
#[test]
fn a_full_card_is_noticed_before_the_begin_and_harms_nothing_later() {
    let place = tank("full-card");
    let words = LOGGING;
    let Some(none) = on_a_card(&place, "64k", &format!("exec \"$weigh\" {words} 384KiB")) else {
        return;
    };
    none.with(4).saying(&["no room", "--log"]);
    let script = filling(&format!("{words} 192KiB --for 3s"), "|| exit $?");
    let ended = on_a_card(&place, "256k", &script).expect("a second card").with(0);
    let report = ended.json();
    assert_eq!(report["discharges"][0]["ended"], "time over", "{report}");
    assert!(report["discharges"][0]["sessions"].as_u64() > Some(0));
}

/// Where the next part of the log finds no room the discharge ends, says so in the log, and what is
/// there can be read.
#[test]
fn a_card_that_is_full_at_the_next_part_ends_the_discharge() {
    let place = tank("full-part");
    // Parts of 3 KiB hold some ten lines.
    let script = filling(&format!("{LOGGING} 9KiB"), "; echo ended with $? >&2");
    let Some(ended) = on_a_card(&place, "64k", &script) else { return };
    let ended = ended.with(0).saying(&["ended with 4", "no room"]);
    let report = ended.json();
    assert_eq!(report["discharges"][0]["ended"], "card full", "{report}");
    assert!(report["discharges"][0]["sessions"].as_u64() > Some(0));
}

/// A rundown in whose middle somebody fills the card; afterwards what is there is read.
fn filling(words: &str, at_its_end: &str) -> String {
    format!(
        "\"$weigh\" {words} >/dev/null & child=$!\n\
         first=card/log/discharge-0001/part-0001.log\n\
         until grep -q standing $first 2>/dev/null; do sleep 0.05; done\n\
         cat /dev/zero >card/filler 2>/dev/null\n\
         wait $child {at_its_end}\n\
         \"$weigh\" energy rundown --read card/log --json"
    )
}

/// Runs a script in a mount namespace of its own where `card` is a file system of this size;
/// `None`, and said, where the machine forbids that.
fn on_a_card(place: &Place, size: &str, script: &str) -> Option<Ended> {
    let mount = format!("mkdir -p card && mount -t tmpfs -o size={size} card card\n{script}");
    let run = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.current_dir(place.folder()).env("weigh", env!("CARGO_BIN_EXE_weigh"));
        Ended::from(command.output().expect("unshare of util-linux"))
    };
    if run("mkdir -p card && mount -t tmpfs card card").code == Some(0) {
        return Some(run(&mount));
    }
    skip("this machine forbids mount namespaces");
    None
}

/// The files of a laptop: a battery that is discharging, and a charger.
fn laptop(place: &Place, online: u32, charge_uah: u64) {
    let supply = |path: &str, text: String| {
        let file = place.folder().join("sys/class/power_supply").join(path);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        // Replaced as a whole, as the kernel would.
        fs::write(file.with_extension("new"), text + "\n").expect("a file");
        fs::rename(file.with_extension("new"), file).expect("a file");
    };
    supply("AC/type", "Mains".to_owned());
    supply("AC/online", online.to_string());
    supply("BAT0/type", "Battery".to_owned());
    supply("BAT0/status", "Discharging".to_owned());
    supply("BAT0/charge_now", charge_uah.to_string());
    supply("BAT0/charge_full", "2000000".to_owned());
    supply("BAT0/voltage_now", "3700000".to_owned());
}

fn on_the_laptop(place: &Place, words: &[&str]) -> Child {
    let mut command = place.command(words);
    command.env("WEIGH_SYSFS", place.folder().join("sys"));
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command.spawn().expect("the program starts")
}

#[test]
fn a_charger_is_refused_and_ends_a_discharge_when_it_comes_back() {
    let place = tank("charger");
    laptop(&place, 1, 2_000_000);
    for words in
        [&["energy", "rundown", "tank.toml"][..], &["energy", "rundown", "tank.toml", "--no-gauge"]]
    {
        let ended = wait(on_the_laptop(&place, words)).with(2);
        ended.saying(&["the power supply AC is connected", "unplug it"]);
    }
    assert!(!place.folder().join("rundown").exists(), "nothing was begun");
    laptop(&place, 0, 1_990_000);
    let child =
        on_the_laptop(&place, &["energy", "rundown", "tank.toml", "--battery", "2000mAh@3.7V"]);
    until("sessions are counted", || counted(&place, 1) > 0);
    laptop(&place, 0, 1_980_000);
    let seen = || fs::read_to_string(part(&place, 1)).is_ok_and(|text| text.contains("1980000"));
    until("the gauge is read", seen);
    laptop(&place, 1, 1_980_000);
    wait(child).with(99);
    let report = read(&place);
    let discharge = &report["discharges"][0];
    assert_eq!(discharge["ended"], "charger came back");
    let mah = discharge["gauge_mah_per_session"].as_f64().expect("mAh by the gauge");
    let sessions = discharge["sessions"].as_u64().expect("sessions");
    assert!((mah * sessions as f64 - 10.0).abs() < 1e-9, "{report}");
    place.nobody_is_left();
}

#[test]
fn what_cannot_be_run_down_is_refused_with_the_fix() {
    let place = tank("refused-rundown");
    let empty = place.folder().join("empty");
    fs::create_dir_all(&empty).expect("a folder");
    let weigh = |words: &[&str]| {
        let mut command = place.command(words);
        Ended::from(command.env("WEIGH_SYSFS", &empty).output().expect("the program starts"))
    };
    weigh(&["energy", "rundown", "tank.toml"]).with(2).saying(&["no battery", "--no-gauge"]);
    weigh(&["energy", "rundown"]).with(2).saying(&["PLAN.toml"]);
    weigh(&["energy", "rundown", "--read"]).with(2).saying(&["rundown: cannot be read"]);
    weigh(&["energy", "rundown", "--read", "empty"]).with(2).saying(&["holds no discharge"]);
    let battery = ["energy", "rundown", "tank.toml", "--no-gauge", "--battery", "2000mAh"];
    weigh(&battery).with(2).saying(&["no voltage", "2000mAh@5V"]);
    place.write("burst.toml", "protocol = \"tcp\"\n[load]\narrival = \"burst\"\nmessages = 10\n");
    let burst = weigh(&["energy", "rundown", "burst.toml", "--no-gauge"]).with(2);
    burst.saying(&["load.arrival", "closed, constant"]);
    place.write("gone.toml", &format!("{SESSIONS}[target]\nname = \"tcp://127.0.0.1:1\"\n"));
    weigh(&["energy", "rundown", "gone.toml", "--no-gauge"]).with(3);
    assert_eq!(read(&place)["discharges"][0]["ended"], "target unreached");
    weigh(&["energy", "rundown", "tank.toml", "--no-gauge"])
        .with(2)
        .saying(&["another plan (gone)", "--log"]);
    place.nobody_is_left();
}

const LOGGING: &str = "energy rundown tank.toml --no-gauge --log card/log --log-max";

const SESSIONS: &str = "\
protocol = \"tcp\"

[load]
pattern = \"session\"
connections = 1
size = \"64B\"
think = \"5ms\"
duration = \"1s\"

";

const PLAN: &str = "\
[load]
pattern = \"session\"
connections = 1
size = \"64B\"
think = \"5ms\"
duration = \"1s\"

[mqtt]
qos = 1

[vary]
protocol = [\"mqtt\", \"http\"]
";
