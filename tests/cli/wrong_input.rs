//! What is typed by mistake, and what comes from outside that should not: it is refused with what
//! to type, before memory or time is lost, and never obeyed by the terminal.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::rig::{Ended, Place, signal, until, wait};
use crate::serving::Server;

/// Fails unless `line` ends with `code` and says all `parts`, and with less than 1 GiB of memory.
#[track_caller]
fn check(place: &Place, line: &str, code: i32, parts: &[&str]) -> Ended {
    let limited = format!("ulimit -v 4194304; exec '{}' {line}", env!("CARGO_BIN_EXE_weigh"));
    let mut command = Command::new("sh");
    command.args(["-c", &limited]).current_dir(place.folder()).stdin(Stdio::null());
    command.env("LC_ALL", "C.UTF-8").env("COLUMNS", "1000").env_remove("WEIGH_PASSWORD");
    let ended = Ended::from(command.output().expect("a shell"));
    assert_eq!(ended.code, Some(code), "{line}: {}{}", ended.stdout, ended.stderr);
    for part in parts {
        assert!(ended.stderr.contains(part), "{line}: {part:?} is not in\n{}", ended.stderr);
    }
    ended
}

/// Rates, sizes, windows, files and repetitions without end: refused while little memory is used.
#[test]
fn what_has_no_end_is_refused_before_memory_grows() {
    let place = Place::new("endless");
    std::os::unix::fs::symlink("/dev/zero", place.folder().join("zero.toml")).expect("a link");
    for (line, parts) in [
        ("compare tcp -R 1e9/s", &["-R", "at most -R 100M/s"][..]),
        ("compare tcp -R 1e300/s --dry", &["-R", "at most -R 100M/s"]),
        ("compare tcp -c 1000 -R 1M/s/client", &["of all clients together"]),
        ("compare tcp --arrival steps:1e9/s@1s", &["--arrival steps", "100M/s of all clients"]),
        ("compare tcp --window 4000000000", &["--window", "16777216"]),
        ("compare http -s 3GB", &["-s", "256 MiB", "transfer"]),
        ("compare tcp --body file:/dev/zero", &["--body", "/dev/zero", "more than 256 MiB"]),
        ("compare tcp --body lines:/dev/zero", &["--body", "more than 256 MiB"]),
        ("compare tcp --arrival trace:/dev/zero", &["--arrival", "more than 256 MiB"]),
        ("compare http -H @/dev/zero", &["-H @/dev/zero", "more than 16 MiB"]),
        ("compare tcp --path ./zero.toml --dry", &["more than 16 MiB"]),
        ("compare tcp --abilities /dev/zero", &["/dev/zero", "more than 16 MiB"]),
        ("compare tcp --user a --password-file /dev/zero", &["--password-file", "16 MiB"]),
        ("run /dev/zero", &["/dev/zero", "more than 16 MiB"]),
        ("run zero.toml", &["zero.toml", "more than 16 MiB"]),
        ("audit /dev/zero", &["/dev/zero", "more than 256 MiB"]),
        ("stats /dev/zero", &["/dev/zero", "more than 256 MiB"]),
        ("compare tcp --reps 1000000000", &["1,000,000,000 trials", "--dry", "--yes"]),
    ] {
        check(&place, line, 2, parts);
    }
    let predicted =
        check(&place, "compare tcp -n 10 -R 10/s --reps 1000000000 --dry", 0, &[]).stdout;
    assert!(predicted.contains("1,000,000,000 trials"), "{predicted}");
    assert!(predicted.contains("at most more than 100 years"), "{predicted}");
    assert!(place.runs().is_empty(), "nothing was run");
}

/// The first signal ends a load that the generator is far behind, with all of it accounted for.
#[test]
fn one_interrupt_is_enough_however_far_behind_the_generator_is() {
    for words in [
        &["tcp", "-R", "100M/s", "--warmup", "0s"][..],
        &["tcp", "-c", "4", "-R", "20M/s/client"],
        &["mqtt", "-q", "0", "-R", "10M/s"],
        &["http", "-c", "2", "-R", "10M/s", "--arrival", "poisson"],
    ] {
        let place = Place::new("behind");
        let all = [&["compare"], words, &["-d", "60s", "--reps", "1", "--json"]].concat();
        let program = place.spawn(&all);
        let id = program.id();
        until("the trial begins", || {
            let journals = place.runs().into_iter().map(|run| run.join("journal.jsonl"));
            let mut texts = journals.filter_map(|journal| std::fs::read_to_string(journal).ok());
            texts.any(|text| text.contains("\"trial_started\"")) || place.processes().is_empty()
        });
        // So that there is something to be behind with.
        std::thread::sleep(Duration::from_millis(1_500));
        assert!(peak_kib(id) < 1_500_000, "{words:?}: {} KiB", peak_kib(id));
        signal("INT", id);
        let ended = wait(program).with(130);
        assert_eq!(ended.stderr.matches("interrupted").count(), 1, "{words:?}: {}", ended.stderr);
        let ledger = &ended.json()["cells"][0]["ledger"];
        let count = |key: &str| ledger[key].as_u64().unwrap_or(0);
        assert_eq!(count("sent") + count("not_sent"), count("messages"), "{words:?}: {ledger}");
        place.nobody_is_left();
    }
}

fn peak_kib(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let digits = line.and_then(|line| line.split_whitespace().next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Numbers may be short, and a wrong one is told what to type; words name what they are about.
#[test]
fn a_slip_is_named_where_it_was_made() {
    let place = Place::new("slips");
    for line in ["compare tcp -n 10k --dry", "compare tcp -c 1e3 -n 5m --dry"] {
        check(&place, line, 0, &[]);
    }
    for (line, parts) in [
        ("compare tcp -n 1.5", &["-n (--messages)", "not a whole number"][..]),
        ("compare tcp -c -1", &["-c -1", "negative", "type -c 1"]),
        ("compare tcp -d -5s", &["-d -5s", "negative", "type -d 5s"]),
        ("compare tcp -n 1e30", &["too large"]),
        ("compare tcp --body lines:/dev/null", &["--body", "lines:/dev/null", "has no lines"]),
        ("compare http --secret-header @keys.txt", &["--secret-header @keys.txt", "cannot be"]),
        ("compare tcp --body template:{foo}", &["--body", "{foo}", "type {seq}, {client}, {time}"]),
        ("compare tcp --body template:{cliant}", &["did you mean {client}?"]),
        ("compare 127.0.0.1:18091", &["http://127.0.0.1:18091", "mqtt://127.0.0.1:18091"]),
        ("compare localhost", &["http://localhost", "mqtt://localhost:PORT"]),
        ("compare 127.0.0.1:80/a", &["http://127.0.0.1:80/a", "tcp://127.0.0.1:80"]),
        ("compare ''", &["is empty", "type mqtt"]),
        ("compare tcp --target-cores 1024", &["--target-cores 1024", "this machine has"]),
        (
            "compare tcp --meter csv:/nonexistent/power.csv",
            &["--meter", "its folder does not exist"],
        ),
        ("audit /dev/null", &["/dev/null"]),
        ("compare tcp -q 3", &["-q (--qos)", "\"3\" is not a QoS", "0, 1 or 2"]),
        (
            "compare tcp --fail-if 'zzz > 5ms'",
            &["unknown figure \"zzz\"", "docs/guide/conditions.md"],
        ),
        (
            "compare tcp --fail-if 'p99 >> 50ms'",
            &["\">>\" is not a comparison", "help: type \"p99 > 50ms\""],
        ),
        (
            "compare tcp --path lunar",
            &["\"lunar\" is not a known path", "satellite", "delay=30ms,loss=5%"],
        ),
        ("compare tcp --fail-if 'p99 > 5'", &["--fail-if", "has no unit", "help: type 5ms or 5s"]),
        (
            "compare tcp --sys never",
            &["--sys", "unknown value \"never\"", "help: type auto, on or off"],
        ),
        (
            "compare tcp -n",
            &["-n (--messages)", "the value is missing", "help: type --messages <N>"],
        ),
        ("compare tcp --radio lte", &["--device", "is missing", "help: add --device"]),
        ("observe --pid 0", &["--pid", "0 is out of range", "at least 1"]),
        ("study run flepsi", &["study \"flepsi\": unknown study", "did you mean flespi?"]),
        ("like wrk -c many http://127.0.0.1:1/", &["--connections", "help: type"]),
        ("serve mqtt --listen nowhere.invalid:0", &["type 127.0.0.1:1883"]),
    ] {
        check(&place, line, 2, parts);
    }
    let zigbee = check(&place, "compare zigbee", 2, &["unknown protocol \"zigbee\""]);
    assert!(!zigbee.stderr.contains("did you mean"), "{}", zigbee.stderr);
    let audit = check(&place, "audit /dev/null", 2, &[]);
    assert!(!audit.stderr.contains("no such file"), "{}", audit.stderr);
    let line = "compare tcp --device nrf9160 --battery 1e300mAh@3V";
    let battery = check(&place, line, 2, &["1e300 mAh"]);
    assert!(battery.stderr.len() < 400, "{}", battery.stderr);
    let rate = check(&place, "compare tcp -R 1e300/s --dry", 2, &["-R 1e300/s"]);
    assert!(rate.stderr.len() < 400, "{}", rate.stderr);
    check(&place, "compare MQTT://127.0.0.1:9 -n 1", 3, &["refused"]);
    check(&place, "serve mqtt --listen 192.0.2.1:1883", 3, &["address of this machine"]);
    let said = check(&place, "compare tcp -n 5 --meter csv:power.csv --dry", 0, &[]).stderr;
    assert!(said.contains("power.csv does not exist yet"), "{said}");
}

/// A name is an address too, and a file that may not be read is not told where to write.
#[test]
fn a_server_listens_on_a_name() {
    let place = Place::new("names");
    let server = Server::start(&place, &["tcp", "--listen", "localhost:0"]);
    assert!(server.url.starts_with("tcp://127.0.0.1:"), "{}", server.url);
    server.end("TERM");
}

/// TLS where none is spoken: the server is there, and starting it again would change nothing.
#[cfg(feature = "tls")]
#[test]
fn tls_at_a_plain_port_is_named() {
    let place = Place::new("plain-port");
    for (protocol, plain, secure) in
        [("mqtt", "mqtt://", "mqtts://"), ("http", "http://", "https://")]
    {
        let server = Server::start(&place, &[protocol]);
        let url = server.url.replace(plain, secure);
        let ended = place.compare(&[&url, "-n", "4", "-c", "1", "--insecure"]).with(3);
        assert!(ended.stderr.contains("leave TLS out"), "{}", ended.stderr);
        assert!(!ended.stderr.contains("start the server"), "{}", ended.stderr);
        server.end("TERM");
    }
}

/// Sums of squares end somewhere, and 1,5 is not a group and its value.
#[test]
fn numbers_that_cannot_be_reckoned_with_are_refused() {
    let place = Place::new("numbers-wrong");
    place.write("large.txt", "1e308\n1e308\n1e308\n");
    place.weigh(&["stats", "large.txt"]).with(2).saying(&["1e308 is too large", "larger unit"]);
    place.write("comma.txt", "1,5\n1,6\n1,7\n");
    place.weigh(&["stats", "comma.txt"]).with(2).saying(&["1,5", "write 1.5", "group,value"]);
    place.weigh(&["stats", "comma.txt", "--levels"]).with(0);
    place.write("header.txt", "group,value\n1,5\n1,6\n1,7\n");
    place.weigh(&["stats", "header.txt"]).with(0);
}

/// What is set takes the place of what the plan says, and is held to the same rules.
#[test]
fn set_keys_take_the_place_of_those_of_a_plan() {
    let place = Place::new("set");
    place.write(
        "t.toml",
        "protocol = \"mqtt\"\nload.messages = 40\nload.warmup = \"0s\"\nrepeat.at_least = 1\n\
         mqtt.qos = 0\n",
    );
    let words = ["run", "t.toml", "--set", "mqtt.qos=2", "--set", "load.messages=2e1", "--json"];
    let cell = place.weigh(&words).with(0).json()["cells"][0].clone();
    assert_eq!(cell["point"]["mqtt.qos"], 2, "{cell}");
    assert_eq!(cell["ledger"]["messages"], 20, "{cell}");
    for (set, parts) in [
        ("foo=bar", &["--set foo=bar", "there is no key \"foo\""][..]),
        ("mqtt.qoss=1", &["--set mqtt.qoss=1", "did you mean mqtt.qos?"]),
        ("mqtt.qos=7", &["--set mqtt.qos=7", "7"]),
        ("load.rate=fast", &["--set load.rate=fast", "is not a rate"]),
        (
            "load.duration=1s",
            &[
                "--set load.duration=1s",
                "after a duration or after a number of \
                                                          messages",
            ],
        ),
        ("mqtt.qos", &["type --set KEY=VALUE"]),
    ] {
        let ended = place.weigh(&["run", "t.toml", "--dry", "--set", set]);
        assert_eq!(ended.code, Some(2), "{set}: {}{}", ended.stdout, ended.stderr);
        for part in parts {
            assert!(ended.stderr.contains(part), "{set}: {part:?} not in\n{}", ended.stderr);
        }
    }
    place.write(
        "axes.toml",
        "protocol = \"mqtt\"\nload.messages = 40\n[vary]\nmqtt.qos = [0, 1, 2]\n\
         load.connections = [1, 2]\n",
    );
    place.write(
        "cases.toml",
        "load.messages = 40\n[[case]]\nprotocol = \"mqtt\"\nmqtt.qos = 1\n[[case]]\n\
         protocol = \"mqtt\"\nmqtt.qos = 2\n",
    );
    for (plan, set, cases) in [
        ("axes.toml", "mqtt.qos=1", 2),
        ("axes.toml", "load.connections=3", 3),
        ("cases.toml", "mqtt.qos=0", 1),
        ("cases.toml", "load.messages=9", 2),
    ] {
        let words = ["run", plan, "--dry", "--json", "--set", set];
        let predicted = place.weigh(&words).with(0).json();
        let (key, value) = set.split_once('=').unwrap();
        let all = predicted["cases"].as_array().unwrap().clone();
        assert_eq!(all.len(), cases, "{plan} {set}: {all:?}");
        let differs = all.iter().any(|case| case[key] != *value && !case[key].is_null());
        let number: Option<f64> = value.parse().ok();
        let is_number = all.iter().all(|case| case[key].is_null() || case[key].as_f64() == number);
        assert!(!differs || is_number, "{plan} {set}: {all:?}");
    }
}

/// What is wrong with a target is shown in its own line, wherever that stands.
#[cfg(feature = "tls")]
#[test]
fn a_wrong_target_is_shown_in_its_own_line() {
    let place = Place::new("caret");
    let wrong = [("mqtts", "mqtt.tls = \"off\"\n"), ("wss", "mqtt.websocket = false\n")];
    for (scheme, more) in wrong {
        let text = format!("load.messages = 5\ntarget = \"{scheme}://127.0.0.1:9\"\n{more}");
        place.write("t.toml", &text);
        let ended = place.weigh(&["run", "t.toml", "--dry"]).with(2);
        let is_own = ["t.toml:2:", "t.toml:3:"].iter().any(|own| ended.stderr.contains(own));
        assert!(is_own && !ended.stderr.contains("t.toml:1:"), "{}", ended.stderr);
    }
}

/// A server of HTTP/1.1 that answers everything and notes the first lines of what it is asked.
fn noting() -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let (teller, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let teller = teller.clone();
            std::thread::spawn(move || {
                let mut buffer = vec![0; 65_536];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
                    let _ = teller.send(text.lines().next().unwrap_or_default().to_owned());
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                    if stream.write_all(answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (format!("http://{address}"), heard)
}

/// A bare URL is fetched, and said so; with something to send it is posted to. Fragments stay here.
#[test]
fn a_bare_url_is_fetched_and_one_with_a_body_posted_to() {
    let place = Place::new("fetched");
    let (url, heard) = noting();
    let load = ["-n", "4", "-c", "1", "--sys", "off"];
    for (more, first, says) in [
        (&["#frag"][..], "GET / HTTP/1.1", true),
        (&["/a?b=1#frag"], "GET /a?b=1 HTTP/1.1", true),
        (&["/a", "-s", "64B"], "POST /a HTTP/1.1", false),
        (&["/a", "--body", "text:hello"], "POST /a HTTP/1.1", false),
        (&["/a", "--method", "PUT"], "PUT /a HTTP/1.1", false),
        (&["/a", "--set", "http1.method=POST"], "POST /a HTTP/1.1", false),
        (&["/a", "--pattern", "publish"], "POST /a HTTP/1.1", false),
    ] {
        let url = format!("{url}{}", more[0]);
        let words = [&[&*url], &more[1..], &load[..]].concat();
        let ended = place.compare(&words).with(0);
        let asked: Vec<String> = heard.try_iter().collect();
        assert!(asked.iter().all(|line| line == first), "{more:?}: {asked:?}");
        assert_eq!(asked.len(), 4, "{more:?}");
        let said = ended.stderr.matches("GET requests are sent to").count();
        assert_eq!(said, usize::from(says), "{more:?}: {}", ended.stderr);
    }
    place.write(
        "get.toml",
        &format!(
            "target = \"{url}/p\"\nload.messages = 3\nrepeat.at_least = 1\nobserve.sys = \"off\"\n"
        ),
    );
    let words = ["run", "get.toml", "--save-plan", "resolved.toml"];
    place.weigh(&words).with(0).saying(&["GET requests are sent to"]);
    assert!(heard.try_iter().all(|line| line == "GET /p HTTP/1.1"));
    let saved = std::fs::read_to_string(place.folder().join("resolved.toml")).expect("the plan");
    assert!(saved.contains("GET"), "{saved}");
    let ended = place.weigh(&["run", "get.toml", "--set", "http1.method=POST"]).with(0);
    assert!(!ended.stderr.contains("is fetched"), "{}", ended.stderr);
    assert!(heard.try_iter().all(|line| line == "POST /p HTTP/1.1"));
}

/// Escape sequences in names, questions and words of servers are shown, and not obeyed.
#[test]
fn control_characters_never_reach_the_terminal() {
    let place = Place::new("escapes");
    place.write(
        "q.toml",
        "protocol = \"tcp\"\n\
         question = \"red \\u001b[31malert\\u0007 \\u009b2J \\u202etxt\\nsecond\"\n\
         load.messages = 20\nrepeat.at_least = 1\n",
    );
    let mut shown = vec![place.weigh(&["run", "q.toml"]).with(0)];
    let wrong = "protocol = \"tcp\"\nload.body = \"no \\u001b[31m\"\n# \u{1b}[2J\nfoo\u{1b} = 1\n";
    place.write("wrong.toml", wrong);
    for words in [
        &["runs"][..],
        &["runs", "--json"],
        &["report", "latest"],
        &["report", "latest", "--json"],
        &["run", "q.toml", "--dry"],
        &["run", "wrong.toml"],
        &["run", "\u{1b}[31mnone.toml"],
        &["compare", "\u{1b}[31m"],
        &["compare", "tcp", "--body", "file:\u{1b}[2J"],
        &["report", "\u{1b}]0;title\u{7}"],
        &["audit", "\u{1b}[31m"],
    ] {
        shown.push(place.weigh(words));
    }
    for ended in &shown {
        for text in [&ended.stdout, &ended.stderr] {
            let raw = text.chars().find(|c| {
                (c.is_control() && !matches!(c, '\n' | '\t'))
                    || matches!(c, '\u{202a}'..='\u{202e}')
            });
            assert_eq!(raw, None, "{text}");
        }
    }
    let runs = &shown[1].stdout;
    assert!(runs.contains("red \\u001b[31malert\\u0007"), "{runs}");
    assert_eq!(runs.lines().count(), 2, "one line a run: {runs}");
    assert!(shown[2].json().is_array(), "JSON stays JSON");
}

/// A mistake in the scheme of a URL is answered with the scheme that was meant, not with a list.
#[test]
fn a_mistake_in_a_scheme_is_recognised() {
    let place = Place::new("scheme");
    for (url, meant) in [("htp://127.0.0.1:80", "http://"), ("mqqt://127.0.0.1", "mqtt://")] {
        let help = format!("did you mean {meant}?");
        let ended = check(&place, &format!("compare {url} --dry"), 2, &["unknown scheme", &help]);
        assert!(!ended.stderr.contains("websocket://"), "{}", ended.stderr);
    }
}
