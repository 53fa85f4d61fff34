//! The plan files of a study: what is run at each scale, what is needed, what is searched.

use weigh_study::{Scale, StudyTexts};

use crate::fixture::{replace, study, wrong};

fn published(change: impl FnOnce(&mut String)) -> String {
    wrong(|texts: &mut StudyTexts| change(&mut texts.plan_published))
}

#[test]
fn each_scale_has_its_own_cells() {
    let study = study();
    let plan = study.plan("published/clients").unwrap();
    let clients = |scale| -> Vec<i64> {
        let cases = &plan.at(scale).resolved.plan.cases;
        cases.iter().map(|case| case["load.connections"].as_i64().unwrap()).collect()
    };
    assert_eq!(clients(Scale::Full), [2, 4, 8, 16]);
    assert_eq!(clients(Scale::Quick), [2, 4, 8]);
    assert_eq!(clients(Scale::Mini), [2, 8]);
    let repeat = |scale: Scale| plan.at(scale).resolved.plan.repeat.at_least;
    assert_eq!((repeat(Scale::Full), repeat(Scale::Mini)), (3, 2));
    assert_eq!(plan.at(Scale::Full).resolved.plan.name, "fixture-clients");
}

#[test]
fn a_search_is_read_and_its_lane_offers_the_smallest_load() {
    let study = study();
    let planned = study.plan("right/burst-limit").unwrap().at(Scale::Full);
    let search = planned.search.as_ref().unwrap();
    assert_eq!((search.axis.min(), search.axis.max()), (125.0, 20_000.0));
    assert_eq!(planned.resolved.plan.load.messages, Some(125));
    assert_eq!(planned.resolved.plan.cases.len(), 1);
    let mini = study.plan("right/burst-limit").unwrap().at(Scale::Mini);
    assert!(mini.search.as_ref().unwrap().budget.unwrap().as_secs_f64() <= 3.0);
}

#[test]
fn what_a_plan_needs_is_told_and_seen() {
    let told = published(|text| {
        replace(text, "protocol = \"http\"", "protocol = \"http\"\nneeds = [\"mosqitto\"]");
    });
    assert!(told.contains("\"mosqitto\" is not a possible need of a plan"), "{told}");
    assert!(told.contains("plan-published.toml:9:"), "{told}");
    let mut texts = crate::fixture::texts();
    replace(&mut texts.plan_published, "[burst]\n", "[burst]\ntarget = \"mosquitto\"\n");
    replace(&mut texts.plan_published, "target.overload = \"disconnect:1000\"\n", "");
    replace(&mut texts.plan_published, "[burst.vary]", "observe.wire = true\n[burst.vary]");
    let read = weigh_study::Study::read(&texts, &crate::fixture::TestWorld);
    let study = read.unwrap_or_else(|wrong| panic!("{}", wrong.render(&texts, false)));
    assert_eq!(study.plan("published/burst").unwrap().needs, ["wire", "mosquitto"]);
    assert!(study.plan("published/clients").unwrap().needs.is_empty());
}

#[test]
fn slips_of_plans_are_told_at_their_place_in_the_whole_file() {
    for (old, new, said) in [
        ("load.messages = 2000", "load.mesages = 2000", "did you mean load.messages"),
        ("[clients.quick]\nvary", "[clients.quick]\nvray", "vray"),
        ("[shared]\n", "seed = 1\n[shared]\n", "is not in a plan"),
        ("vary.load.connections = [2, 4, 8]\n", "load.timeout = \"5\"\n", "load.timeout"),
        ("[clients.quick]", "[clients]\nx = 1\n[clients.quick]", "duplicate key"),
    ] {
        let told = published(|text| replace(text, old, new));
        assert!(told.contains(said), "{new}\nshould say {said:?}:\n{told}");
        assert!(told.contains("studies/fixture/plan-published.toml:"), "{new}:\n{told}");
    }
    let told = published(|text| {
        replace(text, "vary.load.connections = [2, 4, 8]\n", "load.timeout = \"5\"\n");
    });
    assert!(told.contains("clients at scale quick"), "{told}");
    let right = |old: &str, new: &str| wrong(|texts| replace(&mut texts.plan_right, old, new));
    let told = right("load.connections = 20", "load.connections = 20\nload.messages = 5");
    assert!(told.contains("load.messages is set by the search"), "{told}");
    let told = right("axis = \"burst\"", "axis = \"bursts\"");
    assert!(told.contains("unknown axis of a limit"), "{told}");
}
