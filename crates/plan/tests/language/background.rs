//! The second workload of a plan: twins, axes below it, what is refused, and that it comes back.

use weigh_model::background::Background;
use weigh_model::background::TargetCores;
use weigh_model::plan::Plan;
use weigh_model::trial::Point;
use weigh_plan::case::BackgroundChoice;
use weigh_plan::keys::Keys;
use weigh_plan::{background, matrix};

use crate::world::{lines, resolve, resolved};

const PLAN: &str = "protocol = \"http\"\n[background]\nprotocol = \"mqtt\"\n\
                    target = \"mosquitto\"\n\
                    mqtt.qos = 1\nload = { publishers = 1000, rate = \"10/s/client\", \
                    pattern = \"publish\", arrival = \"periodic\", size = \"64B\" }\n";

/// The background of a case of a plan.
fn background_of(plan: &Plan, point: &Point) -> Option<Background> {
    match matrix::case_of(plan, point).unwrap().background {
        BackgroundChoice::On(background) => Some(*background),
        _ => None,
    }
}

#[test]
fn every_case_has_a_baseline_unless_the_plan_says_otherwise() {
    let given = lines(PLAN);
    assert_eq!(
        given,
        [
            "background=off load.connections=2 protocol=http1",
            "background=on load.connections=2 protocol=http1"
        ]
    );
    let alone = PLAN.replace("mqtt.qos", "baseline = false\nmqtt.qos");
    assert_eq!(lines(&alone), ["background=on load.connections=2 protocol=http1"]);
}

#[test]
fn it_is_decided_like_a_load_and_has_no_end() {
    let plan = resolved(PLAN).plan;
    let found = background_of(&plan, &plan.cases[1]).unwrap();
    assert_eq!((found.protocol.as_str(), found.target.as_str()), ("mqtt", "mosquitto"));
    assert_eq!((found.target_cores, found.lead), (TargetCores::Target, background::LEAD));
    assert_eq!((found.load.connections, found.load.duration, found.load.warmup.0), (1000, None, 0));
    assert_eq!(found.settings["mqtt"]["qos"].as_i64(), Some(1));
    assert_eq!(found.offered_per_s(), Some(10_000.0));
    assert_eq!(background_of(&plan, &plan.cases[0]), None);
}

/// Two rates and two connections: four loaded cases, and two baselines that both rates share.
#[test]
fn an_axis_below_it_multiplies_the_loaded_cases_and_no_baseline() {
    let text = "protocol = \"tcp\"\nbackground.protocol = \"http\"\n[vary]\n\
                load.connections = [1, 2]\nbackground.load.rate = [\"100/s\", \"200/s\"]\n";
    let given = lines(text);
    assert_eq!(given.len(), 6);
    assert_eq!(given.iter().filter(|line| line.starts_with("background=off")).count(), 2);
    let plan = resolved(text).plan;
    let rate = |case| {
        let found = background_of(&plan, case);
        found.map(|own| own.offered_per_s().unwrap())
    };
    let rates: Vec<Option<f64>> = plan.cases.iter().map(rate).collect();
    let (low, high) = (Some(100.0), Some(200.0));
    assert_eq!(rates, [None, low, high, None, low, high]);
}

#[test]
fn off_may_be_a_place_of_an_axis() {
    let text = "protocol = \"tcp\"\nbackground.protocol = \"http\"\n[vary]\n\
                background = [\"off\", \"on\"]\n";
    assert_eq!(lines(text).len(), 2);
}

#[test]
fn a_resolved_plan_comes_back_as_it_was() {
    let axis = "protocol = \"tcp\"\nbackground.protocol = \"mqtt\"\nbackground.beside = \"apart\"\n\
                background.load.body = { sealed = \"readings\" }\nbackground.load.pattern = \
                \"publish\"\n[vary]\nbackground.load.connections = [3, 5]\n\
                background.mqtt.qos = [1, 2]\n";
    let ends =
        "protocol = \"tcp\"\nbackground.protocol = \"http\"\nbackground.load.messages = 70\n";
    for text in [PLAN, axis, ends, include_str!("../../../../examples/under-load.toml")] {
        let first = resolved(text);
        let written = toml::to_string(&first.plan).unwrap();
        assert_eq!(resolved(&written), first, "{written}");
        let json = serde_json::to_string(&first.plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), first.plan);
    }
}

/// Place of an error: its line and column, and the fix.
#[test]
fn what_is_wrong_is_told_at_its_place() {
    let with = |line: &str| format!("protocol = \"tcp\"\n[background]\n{line}\n");
    for (line, place, said) in [
        ("protocol = \"mqtt\"\nload.duration = \"3s\"", "4:6", "lasts as long as"),
        ("protocol = \"mqtt\"\nload.rat = \"3/s\"", "4:6", "background.load.rate"),
        ("protocol = \"mqtt\"\nload.arrival = \"burst\"", "4:16", "closed, constant, poisson"),
        ("protocol = \"mqtt\"\nload.arrival = \"poisson\"", "4:16", "background.load.rate = "),
        ("protocol = \"mqtt\"\nload.pattern = \"transfer\"", "4:16", "an object"),
        ("protocol = \"mqtt\"\nload.pattern = \"poll\"", "4:16", "mqtt has no pattern poll"),
        ("protocol = \"mqtt\"\nhttp.keep_alive = true", "4:19", "http1 is not the protocol"),
        ("protocol = \"mqtt\"\ntarget = \"same\"", "4:10", "target does not speak mqtt"),
        ("protocol = \"mqtt\"\ntarget = \"nginx\"", "4:10", "nginx does not speak mqtt"),
        ("protocol = \"mqtt\"\ntarget = \"nginks\"", "4:10", "is no target"),
        ("protocol = \"mqqt\"", "3:12", "unknown protocol \"mqqt\""),
        ("lead = \"2s\"", "3:8", "has no protocol"),
        ("protocol = \"mqtt\"\nlead = 2", "4:8", "2s or 2ms"),
        ("protocol = \"mqtt\"\nbeside = \"elsewhere\"", "4:10", "target, apart"),
        ("protocol = \"mqtt\"\nmqtt.broker_password = \"x\"", "4:24", "cannot have secrets"),
    ] {
        let text = with(line);
        let problems = resolve(&text).expect_err(line);
        let shown = problems.render("plan", &text, false);
        assert!(shown.contains(&format!("plan:{place}")), "{line}: {shown}");
        assert!(shown.contains(said), "{line}: {shown}");
    }
    let text = "protocol = \"tcp\"\n[[background]]\nprotocol = \"mqtt\"\n";
    let shown = resolve(text).unwrap_err().render("plan", text, false);
    assert!(shown.contains("plan:2:3") && shown.contains("one background"), "{shown}");
}

/// Every key of a load but those of its time, and every setting of a protocol, can be said of a
/// background.
#[test]
fn its_keys_are_those_of_a_load_and_of_the_protocols() {
    let keys = Keys::new(weigh_protocols::PROTOCOLS);
    let first = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    for key in keys.iter().filter(|key| key.name.contains('.')) {
        let is_of_load = first(&key.name) == "load";
        let is_setting =
            weigh_protocols::PROTOCOLS.iter().any(|own| own.name() == first(&key.name));
        let ends = ["load.duration", "load.warmup"].contains(&key.name.as_str());
        let mirrored = keys.find(&format!("background.{}", key.name));
        assert_eq!(mirrored.is_ok(), (is_of_load || is_setting) && !ends, "{}", key.name);
        if let Ok(mirrored) = mirrored {
            assert_eq!(mirrored.kind, key.kind);
        }
    }
    assert!(keys.find("background.load.publishers").is_ok());
    assert!(keys.find("background.http.keep_alive").is_ok());
}
