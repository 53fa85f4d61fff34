//! Every way to be wrong: the place, what is wrong, and what to type instead.

use std::fmt::Write;

use crate::world::resolve;

/// What a user sees of these plans, one after the other.
fn seen(plans: &[&str]) -> String {
    let mut all = String::new();
    for plan in plans {
        let plan: Vec<&str> = plan.lines().map(str::trim_start).collect();
        let text = plan.join("\n");
        let problems = resolve(&text).expect_err(&text);
        let _ = writeln!(
            all,
            "{}\n\
         {}",
            problems.render("plan.toml", &text, false),
            "-".repeat(60)
        );
    }
    all
}

fn snapshot(name: &str, plans: &[&str]) {
    let seen = seen(plans);
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(name, seen) });
}

#[test]
fn keys() {
    snapshot(
        "keys",
        &[
            "protocol = \"mqtt\"\nnme = \"x\"",
            "protocol = \"mqtt\"\nconnections = 5",
            "protocol = \"mqtt\"\n[load]\nconections = 5",
            "protocol = \"mqtt\"\n[load]\ncolour = \"red\"",
            "protocol = \"mqtt\"\n[mqtt]\nqso = 1",
            "protocol = \"mqtt\"\nload = 5",
            "protocol = \"mqtt\"\n[path]\ndelya = \"30ms\"",
            "protocol = \"mqtt\"\npath = \"internt\"",
            "protocol = \"mqtt\"\n[path]\nloss = 0.01",
            "protocol = \"mqtt\"\n[path]\nrate = \"10MB/s\"",
            "protocol = \"mqtt\"\n[background]\nload = \"x\"",
            "protocol = \"mqtt\"\ntls = \"1.3\"",
            "protocol = \"mqtt\"\n[zigbee]\nqos = 1",
            "protocol = \"mqtt\"\n[repeat]\natleast = 5",
            "protocol = \"mqtt\"\nload.connections = 5\n\"load.publishers\" = 6",
            "protocol = \"mqtt\"\nload.connections = 5\nload.connections = 6",
            "protocol = \"mqtt",
        ],
    );
}

#[test]
fn values() {
    snapshot(
        "values",
        &[
            "protocol = \"mqtt\"\n[load]\nsize = 64",
            "protocol = \"mqtt\"\n[load]\nsize = \"64s\"",
            "protocol = \"mqtt\"\n[load]\nduration = 10",
            "protocol = \"mqtt\"\n[load]\nduration = \"10B\"",
            "protocol = \"mqtt\"\n[load]\nrate = 1000",
            "protocol = \"mqtt\"\n[load]\nrate = \"1000/parsec\"",
            "protocol = \"mqtt\"\n[load]\nconnections = \"5\"",
            "protocol = \"mqtt\"\n[load]\nconnections = 0",
            "protocol = \"mqtt\"\n[load]\nconnections = 2.5",
            "protocol = \"mqtt\"\n[load]\nconnections = 5000000000",
            "protocol = \"mqtt\"\n[load]\nconnections = [1, 2]",
            "protocol = \"mqtt\"\n[load]\nconnections = \"1..5 step 1\"",
            "target = [\"mqtt\"]",
            "protocol = \"mqtt\"\ntarget = [\"mosquitto\"]",
            "protocol = \"mqtt\"\n[[target]]\nname = \"reference\"",
            "protocol = \"mqtt\"\n[load]\npattern = \"dance\"",
            "protocol = \"mqtt\"\n[load]\npattern = 5",
            "protocol = \"mqtt\"\n[load]\narrival = \"often\"",
            "protocol = \"mqtt\"\n[load]\nbody = \"nonsense\"",
            "protocol = \"mqtt\"\n[mqtt]\nqos = 3",
            "protocol = \"mqtt\"\n[mqtt]\nversion = 4",
            "protocol = \"mqtt\"\n[mqtt]\nclean = \"yes\"",
            "protocol = \"mqtt\"\nseed = -1",
            "protocol = \"mqtt\"\nname = 5",
            "protocol = \"mqtt\"\n[repeat]\ntarget = \"old\"",
            "protocol = \"mqtt\"\n[load]\nsize = \"2MiB\"",
        ],
    );
}

#[test]
fn protocols_and_targets() {
    snapshot(
        "protocols_and_targets",
        &[
            "",
            "target = \"reference\"",
            "protocol = \"mqt\"",
            "protocol = \"mosquitto\"",
            "target = \"mosqito\"",
            "protocol = \"http\"\ntarget = \"mosquitto\"",
            "protocol = \"http\"\nmqtt.qos = 1",
            "[vary]\nprotocol = [\"http\", \"tcp\"]\nmqtt.qos = [0, 1]",
            "[vary]\nprotocol = [\"http\", \"tcp\"]\ntarget = [\"reference\", \"mosquitto\"]",
            "protocol = \"http\"\ntarget.overload = \"unlimited\"",
            "[[case]]\nprotocol = \"http\"\ntarget = \"mosquitto\"",
        ],
    );
}

#[test]
fn axes() {
    snapshot(
        "axes",
        &[
            "protocol = \"mqtt\"\n[vary]\nload.connections = []",
            "protocol = \"mqtt\"\n[vary]\nload.connections = 5",
            "protocol = \"mqtt\"\n[vary]\nload.connections = [5, 6, 5]",
            "protocol = \"mqtt\"\n[vary]\nload.size = [\"1KiB\", \"1024B\"]",
            "protocol = \"mqtt\"\n[vary]\nload.connections = \"5..60 step 7\"",
            "protocol = \"mqtt\"\n[vary]\nload.connections = \"60..5 step 5\"",
            "protocol = \"mqtt\"\n[vary]\nload.connections = \"5..60\"",
            "protocol = \"mqtt\"\n[vary]\nload.size = \"64..128 step 64\"",
            "protocol = \"mqtt\"\n[vary]\nload.pattern = \"a..b step c\"",
            "protocol = \"mqtt\"\n[vary]\nseed = [1, 2]",
            "protocol = \"mqtt\"\n[load]\nconnections = 5\n[vary]\nload.connections = [5, 6]",
            "protocol = \"mqtt\"\nvary = 5",
            "protocol = \"mqtt\"\nzip = [\"load.connections\"]\n[vary]\n\
             load.connections = [1, 2]",
            "protocol = \"mqtt\"\nzip = [[\"load.connections\", \"load.size\"]]\n[vary]\n\
         load.connections = [1, 2]\nload.size = [\"64B\"]",
            "protocol = \"mqtt\"\nzip = [[\"load.connections\", \"load.size\"]]\n[vary]\n\
         load.connections = [1, 2]",
            "[[case]]\nprotocol = \"mqtt\"\n[[case]]\nprotocol = \"mqtt\"",
            "case = 5",
            "[vary]\nprotocol = [\"mqtt\"]\n[[case]]\nprotocol = \"mqtt\"",
            "protocol = \"mqtt\"\n[vary]\nmqtt.broker_password = [\"a\", \"b\"]",
        ],
    );
}

#[test]
fn sentences() {
    snapshot(
        "sentences",
        &[
            "protocol = \"mqtt\"\nthresholds = [\"response_time < 5ms\"]",
            "protocol = \"mqtt\"\nthresholds = [\"response_time p(95) < 500\"]",
            "protocol = \"mqtt\"\nthresholds = [\"respnse_time p(95) < 500ms\"]",
            "protocol = \"mqtt\"\nthresholds = [\"response_time_ns.min < 500ms\"]",
            "protocol = \"mqtt\"\nthresholds = [\"target_memory > 5\"]",
            "protocol = \"mqtt\"\nthresholds = [\"response_time p(95) > +5%\"]",
            "protocol = \"mqtt\"\nthresholds = [\"nonsense\", 5]",
            "protocol = \"mqtt\"\nthresholds = [\"first loss\"]",
            "protocol = \"mqtt\"\n[stop]\nload.connections = \"first loss\"",
            "protocol = \"mqtt\"\n[vary]\nload.connections = [1, 2]\n[stop]\n\
             load.conections = \"first loss\"",
            "protocol = \"mqtt\"\nzip = [[\"load.connections\", \"load.window\"]]\n[vary]\n\
             load.connections = [1, 2]\nload.window = [1, 2]\n[stop]\n\
              load.connections = \"first loss\"",
            "[vary]\nprotocol = [\"mqtt\", \"tcp\"]\n[stop]\nprotocol = \"first loss\"",
            "protocol = \"mqtt\"\nstop = \"first loss\"",
            "protocol = \"mqtt\"\n[vary]\nload.window = [1, 2]\n[stop]\nload.window = []",
            "protocol = \"mqtt\"\n[repeat]\nat_least = 5\nat_most = 3",
            "protocol = \"mqtt\"\n[repeat]\nat_most = 20",
            "protocol = \"mqtt\"\n[repeat]\nuntil = \"p99 within 5 %\"",
            "protocol = \"mqtt\"\n[repeat]\nat_most = 9\nuntil = \"p99 is 5\"",
        ],
    );
}

/// Where no case is right there is no load to be put together, and nothing to be said of it.
#[test]
fn the_only_case_is_wrong_once() {
    for wrong in ["load.pattern = \"deliver\"", "load.rate = \"5/s\"\nload.arrival = \"closed\""] {
        let plan = format!("protocol = \"http\"\n{wrong}");
        let problems = resolve(&plan).expect_err(&plan);
        let texts: Vec<&str> = problems.iter().map(|problem| problem.text.as_str()).collect();
        assert!(texts.len() == 1 && !texts[0].contains("missing field"), "{texts:?}");
    }
}

#[test]
fn values_that_mean_nothing_to_their_key() {
    for (wrong, parts) in [
        ("name = \"\"", ["is not a name", "letters or digits"]),
        ("name = \"../x\"", ["would be a path", "--runs DIR"]),
        ("observe.every = \"0s\"", ["longer than 0", "500ms"]),
    ] {
        let plan = format!("{wrong}\nprotocol = \"mqtt\"");
        let problems = resolve(&plan).expect_err(&plan).render("plan.toml", &plan, false);
        for part in parts {
            assert!(problems.contains(part), "{part}: {problems}");
        }
    }
}

#[test]
fn loads_that_contradict_themselves() {
    snapshot(
        "loads_that_contradict_themselves",
        &[
            "protocol = \"http\"\nload.pattern = \"deliver\"",
            "[vary]\nprotocol = [\"mqtt\", \"http\"]\nload.pattern = [\"publish\", \"deliver\"]",
            "protocol = \"mqtt\"\nload.rate = \"5/s\"\nload.arrival = \"closed\"",
            "protocol = \"mqtt\"\nload.arrival = \"poisson\"",
            "protocol = \"mqtt\"\nload.rate = \"5/s\"\nload.think = \"1s\"",
            "protocol = \"mqtt\"\nload.pattern = \"hold\"\nload.messages = 5",
            "protocol = \"mqtt\"\nload.duration = \"5s\"\nload.messages = 5",
            "protocol = \"http\"\nload.subscribers = 5",
            "protocol = \"http\"\nload.topology = \"shared\"",
            "protocol = \"mqtt\"\nload.subscribers = 0",
            "protocol = \"mqtt\"\nload.subscribers = 2\nload.connections = 3\n\
             load.topology = \"pairs\"",
            "protocol = \"mqtt\"\nload.arrival = \"burst\"",
            "protocol = \"mqtt\"\nload.arrival = \"burst\"\nload.messages = 5\n\
             load.warmup = \"1s\"",
            "protocol = \"mqtt\"\nload.join = \"100 every 1s\"",
            "protocol = \"mqtt\"\nload.join = \"100 every 1s\"\nload.messages = 500\n\
             load.warmup = \"1s\"",
            "protocol = \"mqtt\"\nload.join = \"1 every 1s\"\nload.pattern = \"hold\"\n\
             load.connections = 9\nload.duration = \"8s\"",
            "protocol = \"mqtt\"\nload.arrival = \"each-second\"\nload.rate = \"0.5/s/client\"",
            "protocol = \"mqtt\"\nload.arrival = \"each-second\"\nload.rate = \"5/s\"\n\
             load.connections = 6",
            "protocol = \"mqtt\"\nload.duration = \"0s\"",
            "protocol = \"mqtt\"\nload.timeout = \"0s\"",
        ],
    );
}

#[test]
fn all_of_a_file_at_once() {
    snapshot(
        "all_of_a_file_at_once",
        &[
            "nme = \"x\"\nprotocol = \"htp\"\n[load]\nsize = 64\nconections = 5\n[vary]\n\
             mqtt.qos = []",
            "protocol = \"mqtt\"\nload.arrival = \"burst\"\nload.rate = \"5/s\"\n\
             load.timeout = \"0s\"",
        ],
    );
}

#[test]
fn emulations() {
    snapshot(
        "emulations",
        &[
            "protocol = \"mqtt\"\n[observe]\nemulate = [\"htpo\"]",
            "protocol = \"mqtt\"\nload.warmup = \"0s\"\n[observe]\nemulate = [\"mqtt-stresser\"]",
            "protocol = \"http\"\n[observe]\nemulate = [\"htop\", \"autocannon\"]",
            "protocol = \"http\"\n[observe]\nemulate = [\"htop\", \"htop\"]",
            "protocol = \"http\"\nthresholds = [\"htop_cpu_percent < 50\"]",
        ],
    );
}

/// Of loads of several kinds one that fits is enough, and what fits is kept.
#[test]
fn emulations_that_one_case_can_have_are_kept() {
    let plan = "protocol = \"http\"\nload.messages = 100\nload.warmup = \"0s\"\n\
                vary.load.pattern = [\"request\", \"batch\"]\n\
                observe.emulate = [\"autocannon\", \"htop\"]\n\
                thresholds = [\"autocannon_time_s < 60s\", \"htop_cpu_percent.max < 101\"]";
    let resolved = resolve(plan).expect("it is a plan");
    let names: Vec<&str> = resolved.plan.observe.emulate.iter().map(|own| own.name()).collect();
    assert_eq!(names, ["autocannon", "htop"]);
}
