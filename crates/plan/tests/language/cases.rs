//! Which cases a plan means.

use weigh_model::{Nanos, Pattern};
use weigh_plan::matrix;

use crate::world::{TestWorld, lines, resolve, resolved};

#[test]
fn lists_are_multiplied_in_the_order_of_the_file() {
    let text = r#"
        protocol = "tcp"
        [vary]
        load.size = ["64B", "1KiB"]
        load.connections = [1, 2]
    "#;
    assert_eq!(
        lines(text),
        [
            "load.connections=1 load.size=64B protocol=tcp",
            "load.connections=2 load.size=64B protocol=tcp",
            "load.connections=1 load.size=1024B protocol=tcp",
            "load.connections=2 load.size=1024B protocol=tcp",
        ]
    );
}

#[test]
fn an_axis_of_one_protocol_does_not_multiply_another() {
    let text = r#"
        [vary]
        protocol = ["mqtt", "http"]
        mqtt.qos = [0, 1, 2]
        load.connections = "1..3 step 1"
        [load]
        pattern = "publish"
    "#;
    let lines = lines(text);
    let of = |protocol: &str| lines.iter().filter(|line| line.ends_with(protocol)).count();
    assert_eq!((of("protocol=mqtt"), of("protocol=http1")), (9, 3));
    assert!(lines.iter().all(|line| line.contains("mqtt.qos") != line.contains("http1")));
}

#[test]
fn targets_and_protocols_are_paired_where_they_fit() {
    let text = r#"
        [vary]
        protocol = ["mqtt", "http"]
        target = ["reference", "mosquitto", "nginx"]
        [target]
    "#;
    let text = text.replace("        [target]\n", "");
    let plan = resolved(&text).plan;
    let pairs: Vec<(String, String)> = plan
        .cases
        .iter()
        .map(|case| (case["protocol"].to_string(), case["target"].to_string()))
        .collect();
    let expected =
        [("mqtt", "reference"), ("mqtt", "mosquitto"), ("http1", "reference"), ("http1", "nginx")];
    let quoted = |word: &str| format!("{word:?}");
    assert_eq!(pairs, expected.map(|(left, right)| (quoted(left), quoted(right))));
}

#[test]
fn a_real_target_names_its_protocol() {
    assert_eq!(lines("target = \"mosquitto@no-limits\"").len(), 1);
    let case = &resolved("[vary]\ntarget = [\"nginx\", \"mosquitto\"]").plan.cases[1];
    assert_eq!(case["protocol"].as_str(), Some("mqtt"));
}

#[test]
fn zipped_axes_advance_together_and_multiply_the_rest() {
    let text = r#"
        protocol = "mqtt"
        zip = [["load.connections", "load.rate"]]
        [vary]
        load.connections = [1, 2]
        mqtt.qos = [0, 1]
        load.rate = "100/s..200/s step 100/s"
    "#;
    let lines = lines(text);
    assert_eq!(
        lines,
        [
            "load.connections=1 load.rate=100/s load.subscribers=1 mqtt.qos=0 protocol=mqtt",
            "load.connections=1 load.rate=100/s load.subscribers=1 mqtt.qos=1 protocol=mqtt",
            "load.connections=2 load.rate=200/s load.subscribers=1 mqtt.qos=0 protocol=mqtt",
            "load.connections=2 load.rate=200/s load.subscribers=1 mqtt.qos=1 protocol=mqtt",
        ]
    );
}

/// The body in the clear differs from sealed ones in one key, so that they can be compared.
#[test]
fn recipients_of_sealed_bodies_are_an_axis() {
    let text = r#"
        protocol = "tcp"
        [load]
        body = { sealed = "filler", signed = false, cipher = "aes-256-gcm" }
        size = "64B"
        [vary]
        load.body.recipients = [0, 3]
    "#;
    assert_eq!(
        lines(text),
        [
            "load.body.recipients=0 load.connections=2 protocol=tcp",
            "load.body.recipients=3 load.connections=2 protocol=tcp",
        ]
    );
    let bodies = |text: &str| -> Vec<String> {
        let plan = resolved(text).plan;
        let load = |case| matrix::case_of(&plan, case).unwrap().load.body.to_string();
        plan.cases.iter().map(load).collect()
    };
    let sealed = "sealed,recipients=3,cipher=aes-256-gcm,unsigned:filler";
    assert_eq!(bodies(text), ["filler", sealed]);
    assert_eq!(bodies(&toml::to_string(&resolved(text).plan).unwrap()), ["filler", sealed]);
    let as_text = format!("protocol = \"tcp\"\nload.size = \"64B\"\nload.body = {sealed:?}");
    assert_eq!(bodies(&as_text), [sealed]);
    let ciphers = text
        .replace(", cipher = \"aes-256-gcm\"", "")
        .replace("recipients = [0, 3]", "cipher = [\"aes-128-gcm\", \"chacha20-poly1305\"]");
    let both = ["sealed,unsigned:filler", "sealed,cipher=chacha20-poly1305,unsigned:filler"];
    assert_eq!(bodies(&ciphers), both);
    let plain = "protocol = \"tcp\"\n[vary]\nload.body.recipients = [0, 1]";
    assert_eq!(bodies(plain), ["readings", "sealed:readings"]);
}

#[test]
fn a_zip_with_a_key_of_one_protocol_leaves_no_duplicates_to_the_other() {
    let text = r#"
        zip = [["mqtt.qos", "mqtt.version"]]
        [load]
        pattern = "publish"
        [vary]
        protocol = ["mqtt", "http"]
        mqtt.qos = [0, 1, 2]
        mqtt.version = [5, "3.1.1", 5]
    "#;
    assert_eq!(lines(text).len(), 4);
}

#[test]
fn a_case_comes_before_what_stands_above_it() {
    let text = r#"
        [load]
        connections = 8
        duration = "1s"
        pattern = "publish"
        [[case]]
        protocol = "mqtt"
        [[case]]
        protocol = "http"
        "load.connections" = 2
        [[case]]
        protocol = "tcp"
        load.messages = 100
        load.duration = "1s"
    "#;
    let wrong = resolve(text).unwrap_err();
    assert!(wrong.iter().next().unwrap().text.contains("not both"), "{wrong:?}");
    let text =
        text.replace("        duration = \"1s\"\n", "").replace("load.duration = \"1s\"", "");
    let plan = resolved(&text).plan;
    let loads: Vec<_> =
        plan.cases.iter().map(|case| matrix::case_of(&plan, case).unwrap().load).collect();
    assert_eq!(loads.iter().map(|load| load.connections).collect::<Vec<_>>(), [8, 2, 8]);
    assert_eq!(loads[0].duration, Some(Nanos::from_secs(2)), "the default");
    assert_eq!((loads[2].duration, loads[2].messages), (None, Some(100)));
    assert_eq!(plan.load.duration, None, "what one case is without stands in none of the others");
}

#[test]
fn the_overload_policy_goes_to_reference_brokers_alone() {
    let text = r#"
        target = { name = "reference", overload = "drop-newest:5" }
        protocol = "mqtt"
    "#;
    assert_eq!(
        lines(text)[0],
        "load.connections=2 load.subscribers=1 mqtt.overload=drop-newest:5 protocol=mqtt"
    );
    let text = r#"
        [vary]
        target.name = ["reference", "mosquitto"]
        target.overload = ["unlimited", "drop-oldest:5"]
        protocol = ["mqtt", "http"]
    "#;
    let lines = lines(text);
    assert_eq!(lines.iter().filter(|line| line.contains("overload")).count(), 2);
    assert_eq!(lines.len(), 4, "{lines:?}");
}

#[test]
fn defaults_are_those_of_compare() {
    let plan = resolved("protocol = \"http\"").plan;
    assert_eq!((plan.name.as_str(), plan.seed, plan.repeat.at_least), ("unnamed", 1, 3));
    let load = &plan.load;
    assert_eq!((load.pattern, load.connections), (Pattern::Request, 2));
    assert_eq!(load.warmup, Nanos::from_millis(500));
}

#[test]
fn units_are_kept_in_one_form() {
    let plan = resolved("protocol = \"tcp\"\n[load]\nsize = \"1KiB\"\nrate = \"600/m\"").plan;
    let text = toml::to_string(&plan).unwrap();
    assert!(text.contains("size = \"1024B\"") && text.contains("rate = \"10/s\""), "{text}");
}

#[test]
fn what_a_run_is_told_is_kept() {
    let text = r#"
        name = "n"
        question = "q?"
        seed = 7
        thresholds = "loss == 0"
        protocol = "tcp"
        [vary]
        load.connections = [1, 2]
        [stop]
        load.connections = ["first loss", "target_cpu_percent.mean >= 99"]
        [repeat]
        at_least = 5
        at_most = 20
        until = "p99 within 5 %"
        budget = "10m"
        cool_down = "1s"
        target = "kept"
        [observe]
        every = "100ms"
        messages = true
    "#;
    let plan = resolved(text).plan;
    assert_eq!((plan.name.as_str(), plan.question.as_deref(), plan.seed), ("n", Some("q?"), 7));
    assert_eq!(plan.thresholds.len(), 1);
    assert_eq!(plan.stop["load.connections"].len(), 2);
    assert_eq!((plan.repeat.at_least, plan.repeat.most()), (5, 20));
    assert_eq!(plan.repeat.until[0].metric, "response_time_ns.p99");
    assert_eq!(plan.repeat.budget, Some(Nanos::from_secs(600)));
    assert_eq!(plan.repeat.cool_down, Nanos::from_secs(1));
    assert_eq!(plan.repeat.target, weigh_model::plan::TargetLife::Kept);
    assert_eq!((plan.observe.every, plan.observe.messages), (Some(Nanos::from_millis(100)), true));
}

#[test]
fn a_secret_is_kept_out_of_the_plan() {
    let text = "protocol = \"mqtt\"\n[mqtt]\nbroker_user = \"me\"\nbroker_password = \"hush\"";
    let resolved = resolved(text);
    assert_eq!(resolved.secrets["mqtt.broker_password"], "hush");
    let written = toml::to_string(&resolved.plan).unwrap();
    assert!(written.contains("broker_user") && !written.contains("hush"), "{written}");
}

#[test]
fn a_million_trials_are_counted_before_they_are_made() {
    let text = r#"
        protocol = "tcp"
        [vary]
        load.connections = "1..100 step 1"
        load.window = "1..100 step 1"
        load.size = "100B..10000B step 100B"
        [repeat]
        at_least = 10
    "#;
    let draft = weigh_plan::read(text, &TestWorld).unwrap();
    assert_eq!((draft.cases(), draft.trials_max()), (1_000_000, 10_000_000));
    let problems = draft.resolve("x").unwrap_err();
    assert!(problems.iter().next().unwrap().text.contains("1000000 cases"), "{problems:?}");
}

#[test]
fn a_durability_is_set_for_reference_servers_and_stated_for_urls_alone() {
    let text = "protocol = \"mqtt\"\nmqtt.qos = 1\n[vary]\n\
                target.name = [\"reference\", \"mosquitto\", \"mqtt://127.0.0.1:1883\"]\n\
                target.durability = [\"memory\", \"fsync=100 ms\"]\n";
    let cases = lines(text);
    assert_eq!(cases.len(), 5, "{cases:#?}");
    let having = |words: &str| cases.iter().filter(|line| line.contains(words)).count();
    assert_eq!((having("durability=memory"), having("durability=fsync=100ms")), (2, 2));
    assert!(!cases.iter().any(|line| line.contains("mosquitto") && line.contains("durability")));
}

#[test]
fn a_durability_that_no_target_takes_is_refused() {
    let text = "target.name = \"mosquitto\"\ntarget.durability = \"fsync\"\n";
    let said = resolve(text).unwrap_err().render("plan", text, false);
    assert!(said.contains("durability of their profile"), "{said}");
    let text = "protocol = \"mqtt\"\ntarget.durability = \"disk\"\n";
    let said = resolve(text).unwrap_err().render("plan", text, false);
    assert!(said.contains("unknown durability") && said.contains("type memory"), "{said}");
}
