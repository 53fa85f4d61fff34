//! Every slip of a study is named at its place, with the fix, before anything starts.

use weigh_study::{Scale, Study};

use crate::fixture::{TestWorld, outcome, replace, runs, study, texts, wrong};

#[test]
fn the_fixture_is_read_as_it_is_written() {
    let study = study();
    assert_eq!((study.experiments.len(), study.claims.len(), study.figures.len()), (3, 8, 1));
    let clients = study.experiment("clients").unwrap();
    assert_eq!(clients.published, ["published/clients"]);
    assert_eq!(clients.right, ["right/cost", "right/beneath"]);
    assert_eq!(study.published.cells.len(), 14);
    assert!(study.experiment("battery").unwrap().published.is_empty());
}

/// What `study.toml` says after one change of it.
fn after(old: &str, new: &str) -> String {
    wrong(|texts| replace(&mut texts.study, old, new))
}

#[test]
fn slips_of_claims() {
    for (old, new, said) in CLAIMS {
        let told = after(old, new);
        assert!(told.contains(said), "{new}\nshould say {said:?}:\n{told}");
        assert!(told.contains("studies/fixture/study.toml:"), "{new} has no place:\n{told}");
    }
}

#[test]
fn slips_of_experiments_and_figures() {
    for (old, new, said) in [
        ("name = \"fixture\"", "name = \"fixtures\"", "another name, \"fixture\""),
        ("id = \"burst\"\ntitle", "id = \"clients\"\ntitle", "duplicate experiment"),
        ("right = [\"burst-limit\"]", "right = [\"burst-limits\"]", "did you mean burst-limit"),
        ("not_run = \"It takes a battery.\"", "", "has no plan"),
        ("tables = [\"Table 4\"]", "tables = [\"Table 44\"]", "no published figure is in"),
        ("series = \"protocol=HTTP;stat=average_cpu\"\n", "series = \"none\"\n", "no figure in"),
        (
            "over = \"load.connections\"\n\n[[parameter]]",
            "over = \"load.pattern\"\n\n[[parameter]]",
            "is not a number",
        ),
        ("question = ", "qestion = ", "unknown field"),
        ("x = 20000\nprinted", "x = 20001\nprinted", "published.csv has no figure"),
    ] {
        let told = after(old, new);
        assert!(told.contains(said), "{new}\nshould say {said:?}:\n{told}");
        assert!(told.contains("studies/fixture/study.toml:"), "{new} has no place:\n{told}");
    }
    let text =
        "[[figure]]\nid = \"empty\"\ntitle = \"\"\nx = { label = \"\" }\ny = { label = \"\" }\n";
    assert!(wrong(|texts| texts.study.push_str(text)).contains("has no series"));
}

/// Two figures of two series make one line, and one without a place stands where it is put.
#[test]
fn printed_figures_of_several_series_and_of_no_place_are_drawn() {
    let mut texts = texts();
    texts.published += SCATTERED;
    texts.study += FIGURE;
    let study = Study::read(&texts, &TestWorld)
        .unwrap_or_else(|wrong| panic!("{}", wrong.render(&texts, false)));
    let drawn = &outcome(&study, &runs(), Scale::Full).figures[1].series;
    let places = |series: usize| {
        let points = drawn[series].points.iter();
        points.map(|point| (point.x, point.y)).collect::<Vec<_>>()
    };
    assert_eq!(places(0), [(1.0, 10.0), (2.0, 12.0)]);
    assert_eq!(places(1), [(3.0, 11.0)]);
    // Two points make no trend.
    assert!(drawn.iter().all(|series| series.trend.is_none()));
    let told = wrong(|texts| {
        texts.published += &SCATTERED.replace(",2,run", ",1,run");
        texts.study += FIGURE;
    });
    assert!(told.contains("has two figures at x = 1"), "{told}");
    let told = wrong(|texts| {
        texts.published += SCATTERED;
        texts.study += &FIGURE.replace("commit=c", "commit=a");
    });
    assert!(told.contains("no figure in"), "{told}");
}

const SCATTERED: &str = "900-fixture,Table 5,commit=a;stat=mean_rtt,1,run,10,us\n\
    900-fixture,Table 5,commit=b;stat=mean_rtt,2,run,12,us\n\
    900-fixture,Table 5,commit=c;stat=mean_rtt,,,11,us\n";

const FIGURE: &str = "\n[[figure]]\nid = \"table-5\"\ntitle = \"\"\ntrend = \"linear\"\n\
    x = { label = \"runs\" }\ny = { label = \"time\", unit = \"us\" }\n\
    [[figure.theirs]]\nlabel = \"all\"\ntable = \"Table 5\"\nseries = \"commit=*;stat=mean_rtt\"\n\
    [[figure.theirs]]\nlabel = \"last\"\ntable = \"Table 5\"\n\
    series = \"commit=c;stat=mean_rtt\"\nx = 3\n";

#[test]
fn slips_of_published_figures_are_told_at_their_line() {
    let told = wrong(|texts| replace(&mut texts.published, "35.0,percent", "35.0,"));
    assert!(told.contains("35.0 has no unit"), "{told}");
    assert!(told.contains("studies/fixture/published.csv:3:"), "{told}");
}

#[test]
fn a_slip_in_the_facts_is_told() {
    let told = wrong(|texts| texts.facts = Some("[[about]]\ncolour = 1\n".to_owned()));
    assert!(told.contains("facts.toml") && told.contains("colour"), "{told}");
}

#[test]
fn a_plan_that_nobody_names_is_told_in_its_file() {
    let told = after("right = [\"cost\", \"beneath\"]", "right = [\"beneath\"]");
    assert!(told.contains("no experiment names the plan cost"), "{told}");
    assert!(told.contains("plan-right.toml:"), "{told}");
}

/// What is changed in a claim, and what is said then.
const CLAIMS: &[(&str, &str, &str)] = &[
    (
        "run = \"published/burst\", metric",
        "run = \"published/brust\", metric",
        "did you mean published/burst",
    ),
    (
        "metric = \"acceptance_ratio\"",
        "metric = \"acceptance_rato\"",
        "did you mean acceptance_ratio",
    ),
    ("at = { \"load.messages\" = 20000 }", "at = { \"load.mesages\" = 20000 }", "load.mesages"),
    ("at = { \"load.messages\" = 20000 }", "at = { \"load.messages\" = 20001 }", "no cell matches"),
    ("at = { \"load.messages\" = 20000 }", "at = { \"mqtt.qos\" = 0 }", "3 cells match"),
    (
        "at = { \"load.messages\" = 20000 }",
        "at = { \"load.window\" = 1 }",
        "no case of published/burst has load.window",
    ),
    ("capacity < 20000", "capacty < 20000", "capacty is not a quantity"),
    ("capacity < 20000", "capacity <", "is not a number"),
    ("\"capacity < 20000\", ", "\"capacity < 20000\", \"1 > 0\", ", "1 > 0 does not depend"),
    (
        "finding = \"L05\", series = \"Table 4\"",
        "finding = \"L05\", series = \"Tabl\"",
        "no published table",
    ),
    ("\"capacity < 20000\", ", "", "nothing uses capacity"),
    (
        "limit = \"capacity_burst\"",
        "limit = \"capacity_per_s\"",
        "does not find \"capacity_per_s\"",
    ),
    (
        "run = \"right/burst-limit\", limit = \"capacity_burst\"",
        "run = \"right/cost\", limit = \"capacity_burst\"",
        "searches no limit",
    ),
    ("goal = \"loss <= 0\"", "goal = \"loss <= 1\"", "has no goal"),
    (
        "series = \"protocol=MQTT;stat=accepted\", x = 20000",
        "series = \"protocol=MQTT;stat=acepted\", x = 20000",
        "published.csv has no figure",
    ),
    ("experiments = [\"burst\"]", "experiments = [\"brust\"]", "unknown experiment \"brust\""),
    ("id = \"C02\"", "id = \"C01\"", "duplicate claim \"C01\""),
    ("not_replayed = \"It takes a battery.\"", "", "neither replayed nor not_replayed"),
    ("same = \"the reference server", "stand_in = \"x\"\nsame = \"the", "both stand_in and same"),
    ("same = \"the reference server, which the paper names\"\n", "", "does not name the software"),
    (
        "not_replayed = \"Their tool",
        "replayed = [\"grid > 0\"]\nnot_replayed = \"Their tool",
        "remove one",
    ),
    (
        "printed = [\"cost",
        "stand_in = \"x\"\nreplayed = [\"grid > 0\"]\nprinted = [\"cost",
        "uses no run",
    ),
    ("vary = \"more\"", "vary = \"less\"", "less is not in"),
    ("vary = \"more\"", "vary = \"http\"", "http is a quantity of this claim"),
    ("within = [0, 1000]", "within = [1000, 0]", "is not a range"),
    ("theirs = \"printed_many\"", "theirs = \"accepted_many\"", "is not a published quantity"),
    (
        "replayed = [\"lost > 0\"",
        "printed = [\"lost > 0\"]\nreplayed = [\"lost > 0\"",
        "uses the run",
    ),
    ("series = \"*\"", "series = \"nothing*\"", "published.csv has no figure"),
    ("scale = \"full\"", "", "scale quick"),
    ("ledger = \"lost\"", "ledger = \"lots\"", "did you mean lost"),
    ("fit = \"slope\" }\nfit", "fit = \"slop\" }\nfit", "unknown variant"),
    ("first = \"< 1\"", "first = \"1\"", "is not a bound"),
    (
        "finding = \"L05\", series = \"Table 4\"",
        "finding = \"L99\", series = \"Table 4\"",
        "not a rule of the audit",
    ),
    (
        "finding = \"L05\", series = \"Table 4\"",
        "finding = \"L05\", series = \"Table 7\"",
        "no published table",
    ),
    (
        "because = \"The tool ends on its own tick.\"",
        "",
        "conditions on a cause that it does not name",
    ),
    (
        "limit = \"capacity_burst\" }",
        "limit = \"capacity_burst\", metric = \"lost\" }",
        "metric cannot be combined",
    ),
    (
        "interference = \"service_time_ns.mean\" }",
        "interference = \"service_time_ns.mean\", even_limited = true }",
        "even_limited cannot be combined",
    ),
    (
        "first = \"< 1\" }",
        "first = \"< 1\", even_limited = true }",
        "even_limited cannot be combined",
    ),
    ("statistic = \"sd\" }", "statistic = \"sd\", fit = \"slope\" }", "fit cannot be combined"),
    (
        "statistic = \"sd\"",
        "statistic = \"sd\", over = \"load.connections\"",
        "not name what is computed over",
    ),
];
