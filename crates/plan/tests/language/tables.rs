//! Plans in tables of one document, over each other.

use toml::de::{DeTable, DeValue};
use weigh_plan::{Length, Problems, Resolved};

use crate::world::TestWorld;

/// The plan of the tables of these names, each over the one before.
fn plan(text: &str, names: &[&str], length: Length) -> Result<Resolved, Problems> {
    let document = weigh_plan::tables::parse(text)?;
    let layers: Vec<&DeTable<'_>> = names
        .iter()
        .map(|name| match document[*name].get_ref() {
            DeValue::Table(table) => table,
            _ => panic!("{name} is no table"),
        })
        .collect();
    weigh_plan::read_tables(&layers, length, &TestWorld)?.resolve("unnamed")
}

const TEXT: &str = r#"
[shared]
target.cores = 1
load.connections = 60
repeat.at_least = 10

[E1]
target = "mosquitto"
protocol = "mqtt"
[E1.load]
messages = 1000
[E1.vary]
load.publishers = "10..50 step 10"

[quick]
repeat.at_least = 3
vary.load.connections = [10, 50]
"#;

fn of(plan: &Resolved, key: &str) -> Vec<String> {
    plan.plan.cases.iter().map(|case| case[key].to_string()).collect()
}

#[test]
fn a_later_table_takes_the_place_of_an_earlier_one_key_by_key() {
    let full = plan(TEXT, &["shared", "E1"], Length::Whole).unwrap();
    assert_eq!(of(&full, "load.connections"), ["10", "20", "30", "40", "50"]);
    assert_eq!(of(&full, "target.cores")[0], "1");
    assert_eq!(of(&full, "target")[0], "\"mosquitto\"");
    assert_eq!(full.plan.repeat.at_least, 10);
}

#[test]
fn a_plan_alone_in_a_table_is_the_plan_alone_in_a_file() {
    let inner = "protocol = \"mqtt\"\nload.messages = 5\n[vary]\n\"load.connections\" = [1, 2]\n";
    let alone = weigh_plan::read(inner, &TestWorld).unwrap().resolve("unnamed").unwrap();
    let text = format!("[E]\n{}", inner.replace("[vary]", "[E.vary]"));
    assert_eq!(plan(&text, &["E"], Length::Whole).unwrap(), alone);
}

#[test]
fn a_fixed_key_ends_an_axis_and_an_axis_a_fixed_key() {
    let quick = plan(TEXT, &["shared", "E1", "quick"], Length::Whole);
    let quick = quick.unwrap_or_else(|wrong| panic!("{}", wrong.render("p", TEXT, false)));
    assert_eq!(of(&quick, "load.connections"), ["10", "50"]);
    assert_eq!(quick.plan.repeat.at_least, 3);
    let text = format!("{TEXT}\n[one]\nload.connections = 7\n");
    let one = plan(&text, &["shared", "E1", "one"], Length::Whole).unwrap();
    assert_eq!(of(&one, "load.connections"), ["7"]);
}

#[test]
fn a_miniature_has_the_ends_of_each_axis_and_short_trials() {
    let text = "[E]\nprotocol = \"mqtt\"\n[E.load]\nduration = \"10s\"\nwarmup = \"2s\"\n\
                [E.repeat]\nat_least = 10\n[E.vary]\nload.connections = \"5..60 step 5\"\n";
    let mini = plan(text, &["E"], Length::Miniature).unwrap();
    assert_eq!(of(&mini, "load.connections"), ["5", "60"]);
    assert_eq!((mini.plan.repeat.at_least, mini.plan.repeat.most()), (2, 2));
    let length = mini.plan.load.duration.unwrap();
    assert!(length.as_secs_f64() <= 0.3, "{length}");
}

#[test]
fn errors_keep_their_place_in_the_whole_document() {
    let text = format!("{TEXT}\n[wrong]\nload.conections = 5\n");
    let problems = plan(&text, &["shared", "E1", "wrong"], Length::Whole).unwrap_err();
    let said = problems.render("plan.toml", &text, false);
    let line = 1 + text.lines().position(|line| line.contains("conections")).unwrap();
    assert!(said.contains(&format!("plan.toml:{line}:")), "{said}");
    assert!(said.contains("load.connections"), "{said}");
    let twice = "[E]\nprotocol = \"mqtt\"\nload.messages = 5\n\"load.messages\" = 6\n";
    let said = plan(twice, &["E"], Length::Whole).unwrap_err().render("p", twice, false);
    assert!(said.contains("given before") && said.contains("p:4:"), "{said}");
}
