//! Wrong on purpose: nothing is started, the code is 2, and the message says what to type.

use crate::rig::Place;

#[test]
fn what_is_wrong_is_named_with_what_to_type() {
    let place = Place::new("wrong");
    place.write("short.txt", "0\nsoon\n");
    for (line, parts) in [
        ("mqt", &["unknown protocol \"mqt\"", "did you mean mqtt?"][..]),
        ("mosqito", &["did you mean mosquitto?"]),
        ("mosquitto@huge", &["mosquitto@defaults or mosquitto@no-limits"]),
        ("ftp://127.0.0.1", &["\"ftp\"", "type mqtt://, http://, tcp://, coap://"]),
        ("tcp://127.0.0.1", &["no port", "tcp://127.0.0.1:PORT"]),
        ("mqtt --ratte 5/s", &["--ratte", "--rate"]),
        ("mqtt -R 1000", &["type 1000/s"]),
        ("mqtt -s 64", &["type 64B"]),
        ("mqtt -d 10", &["type 10s"]),
        ("mqtt --warmup 1", &["type 1s"]),
        ("mqtt --timeout 0s", &["--timeout 0s", "type for example --timeout 5s"]),
        ("mqtt -R 10/s --arrival closed", &["-R", "closed", "leave -R out"]),
        ("mqtt -R 10/s --arrival burst -n 5", &["-R", "burst"]),
        ("mqtt --arrival poisson", &["needs a rate", "add -R 1000/s"]),
        ("mqtt --arrival burst", &["needs a total", "-n 10000"]),
        ("mqtt --arrival burst -n 5 --warmup 1s", &["--warmup", "leave it out"]),
        ("mqtt --arrival trace:none.txt", &["none.txt", "cannot be read"]),
        ("mqtt --arrival trace:short.txt", &["short.txt:2", "\"soon\""]),
        ("mqtt --arrival often", &["often"]),
        ("mqtt --think 1s -R 10/s", &["--think", "leave --think out, or -R for a closed loop"]),
        ("mqtt --body lines:none.csv", &["none.csv", "cannot be read"]),
        ("mqtt --body nonsense", &["nonsense"]),
        ("mqtt -s 4B --body template:{seq}-is-long", &["more than the size of 4", "type -s"]),
        (
            "http --pattern deliver",
            &[
                "http1 has no pattern deliver",
                "request, publish, poll, batch, session, transfer, hold",
            ],
        ),
        ("http --pattern dance", &["\"dance\"", "type one of"]),
        ("http -y 3", &["-y", "--pattern deliver"]),
        ("mqtt -y 0", &["-y 0", "--pattern publish"]),
        ("mqtt --topology pairs -x 2 -y 3", &["make -c and -y equal"]),
        ("mqtt -x 2 -c 3", &["--connections", "multiple times"]),
        ("mqtt -n 5 -d 5s", &["-d 5s", "leave -d or -n out"]),
        ("mqtt -c 0", &["--connections", "at least 1"]),
        ("mqtt -n 0", &["--messages", "at least 1"]),
        ("mqtt -d 0s", &["-d 0s"]),
        ("mqtt --reps 0", &["--reps"]),
        ("mqtt --window 0", &["--window"]),
        ("mqtt -q 3", &["--qos"]),
        ("http -q 1", &["-q", "name mqtt"]),
        ("http --overload unlimited", &["--overload", "name mqtt"]),
        ("mqtt --overload none", &["unlimited, drop-newest:N"]),
        ("mqtt --set qos", &["type --set KEY=VALUE"]),
        ("mqtt --set colour=red", &["there is no such key", "weigh targets list --settings"]),
        ("mqtt --set mqtt.colour=red", &["--set mqtt.colour=red", "the keys of mqtt are"]),
        ("mqtt --set mqtt.vers=5", &["--set mqtt.vers=5", "did you mean mqtt.version?"]),
        ("mqtt --set mqtt.qos=5", &["mqtt.qos", "0 to 2"]),
        ("mqtt --set mqtt.share=group -y 3", &["mqtt.share", "--topology shared"]),
        ("mqtt --pattern hold -n 5", &["hold", "-d"]),
        ("mqtt --name ../x", &["would be a path", "without slashes"]),
        ("mqtt --name ..", &["is not a name"]),
        ("mqtt --arrival steps:100", &["type 100/s@5s"]),
        ("mqtt --data nowhere", &["nowhere"]),
        ("mqtt --user me", &["--user", "mqtt://HOST:PORT"]),
        ("mqtt://192.0.2.1", &["not this machine", "--i-may-load-this"]),
        ("mqtt -c 2000000", &["descriptors"]),
    ] {
        check_refused(&place, line, parts);
    }
    assert!(place.runs().is_empty(), "nothing was run, so nothing is kept");
    place.nobody_is_left();
}

/// Compares as `line` says, which must be refused in words that hold all `parts`.
fn check_refused(place: &Place, line: &str, parts: &[&str]) {
    let mut words = vec!["compare"];
    words.extend(line.split(' '));
    let ended = place.weigh(&words);
    assert_eq!(ended.code, Some(2), "{line}: {}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.stdout, "", "{line}");
    for part in parts {
        assert!(ended.stderr.contains(part), "{line}: {part:?} is not in\n{}", ended.stderr);
    }
}

#[test]
fn other_commands_say_what_to_type_too() {
    let place = Place::new("wrong-commands");
    for folder in ["kept/nothing", "kept/empty"] {
        std::fs::create_dir_all(place.folder().join(folder)).expect("a folder");
    }
    place.write("kept/empty/journal.jsonl", "");
    for (line, parts) in [
        ("", &["compare", "doctor"][..]),
        ("comapre", &["compare"]),
        ("report", &["<RUN>"]),
        ("run", &["run PLAN.toml", "run --resume RUN"]),
        ("report kept/nothing", &["kept/nothing: the folder has no journal.jsonl"]),
        ("audit kept/nothing", &["the folder has no journal.jsonl"]),
        ("report kept/empty", &["kept/empty/journal.jsonl: ", "run_started", "another run"]),
        ("audit kept/empty", &["kept/empty/journal.jsonl: ", "run_started", "another run"]),
        (
            "report nothing",
            &[
                "nothing: there is no such run, and the folder runs has none either",
                "check the path",
            ],
        ),
        ("serve ftp", &["unknown protocol \"ftp\"", "mqtt, http1 (or http), tcp"]),
        ("serve mqtt --listen 127.0.0.1", &["type 127.0.0.1:1883"]),
        ("serve mqtt --set http1.keep_alive=true", &["not a key of mqtt"]),
        ("serve http --overload unlimited", &["not a key of http1"]),
        (
            "targets start apache",
            &["unknown target \"apache\"", "nanomq or nats-mqtt or nats-server or nginx"],
        ),
        ("targets install apache", &["unknown target \"apache\""]),
        ("doctor -c many", &["--connections"]),
    ] {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let ended = place.weigh(&words);
        assert_eq!(ended.code, Some(2), "{line}: {}{}", ended.stdout, ended.stderr);
        for part in parts {
            assert!(ended.stderr.contains(part), "{line}: {part:?} is not in\n{}", ended.stderr);
        }
    }
}
