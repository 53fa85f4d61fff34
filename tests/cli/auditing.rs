//! `weigh audit`: what ends with 0, with 99 and with 2.

use crate::rig::Place;

const COMPLETE: &str = include_str!("../../crates/study/tests/samples/complete.csv");
const WRK: &str = include_str!("../../crates/study/tests/samples/wrk.txt");

#[test]
fn a_complete_table_ends_with_0_and_a_fault_with_99() {
    let place = Place::new("audit");
    place.write("complete.csv", COMPLETE);
    let text = place.weigh(&["audit", "complete.csv"]).with(0).stdout;
    assert!(text.contains("no finding") && !text.contains("not asked"), "{text}");
    place.write("faulty.csv", &COMPLETE.replace("8.5,percent", "8.51,percent"));
    let text = place.weigh(&["audit", "faulty.csv"]).with(99).stdout;
    assert!(text.contains("INVALID L06") && text.contains("425.5 messages"), "{text}");
    place.weigh(&["audit", "faulty.csv", "--rule", "L05"]).with(0);
    let json = place.weigh(&["audit", "faulty.csv", "--json", "--rule", "l6"]).with(99).json();
    assert_eq!(
        (&json["schema"], &json["findings"][0]["code"]),
        (&"weigh/audit/1".into(), &"L06".into())
    );
}

#[test]
fn facts_about_a_figure_are_read_from_a_file() {
    let place = Place::new("audit-facts");
    place.write("wrk.txt", WRK);
    let text = place.weigh(&["audit", "wrk.txt"]).with(99).stdout;
    assert!(text.contains("L19 a generator that was not ruled out"), "{text}");
    place.write("beside.toml", "[[about]]\ngenerator = \"65%\"\n");
    let text = place.weigh(&["audit", "wrk.txt", "--facts", "beside.toml"]).with(99).stdout;
    assert!(!text.contains("L19") && text.contains("L01"), "{text}");
    place.write("wrong.toml", "[[about]]\ngenerater = \"65%\"\n");
    place.weigh(&["audit", "wrk.txt", "--facts", "wrong.toml"]).with(2).saying(&[
        "wrong.toml",
        "generater",
        "use one of table",
    ]);
}

#[test]
fn what_cannot_be_audited_ends_with_2() {
    let place = Place::new("audit-unreadable");
    place.weigh(&["audit"]).with(2);
    place
        .weigh(&["audit", "nowhere.csv"])
        .with(2)
        .saying(&["nowhere.csv", "there is no such file, and no such run below runs"]);
    place.write("letter.txt", "Dear reader,\n");
    place.weigh(&["audit", "letter.txt"]).with(2).saying(&["Dear reader", "autocannon"]);
    place.weigh(&["audit", "letter.txt", "--rule", "L22"]).with(2).saying(&["L01 to L21"]);
}

#[test]
fn a_run_of_our_own_is_audited_by_folder_id_and_summary() {
    let place = Place::new("audit-run");
    place.compare(&["tcp", "-n", "200"]).with(0);
    let id = place.run().file_name().expect("a name").to_string_lossy().into_owned();
    // One repetition: too few to compare.
    for name in [id.clone(), format!("runs/{id}"), format!("runs/{id}/summary.json")] {
        let text = place.weigh(&["audit", &name]).with(99).stdout;
        assert!(text.contains("\nL13 [tcp on reference]"), "{text}");
    }
    let json = place.weigh(&["audit", &id, "--json"]).with(99).json();
    let codes: Vec<&str> = json["findings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|finding| finding["code"].as_str())
        .collect();
    assert!(codes.contains(&"L13"), "{codes:?}");
    place.weigh(&["audit", &id, "--rule", "L07"]).with(0);
}

#[test]
fn published_figures_of_a_study_are_audited_and_make_a_page() {
    let place = Place::new("audit-study");
    let text = place.weigh(&["audit", "--study", "hydroponics", "--page", "one.html"]);
    let text = text.with(99).stdout;
    assert!(text.contains("studies/hydroponics/published.csv:147 [Table 16]"), "{text}");
    let html = read(&place, "one.html");
    assert!(html.contains("whole multiples of 1 s plus 343.5 ms") && html.contains("Table 16"));
    assert!(html.contains("weigh audit --study hydroponics --page one.html"));
    assert!(html.contains("default-src 'none'"), "nothing is loaded");
    assert!(!html.contains("<link") && !html.contains("<script src"), "nothing is named to load");
    let all = place.weigh(&["audit", "--study", "all", "--json", "--page", "all.html"]);
    let all = all.with(99).json();
    let rules: std::collections::BTreeSet<&str> =
        all["findings"].as_array().unwrap().iter().filter_map(|one| one["code"].as_str()).collect();
    // Every rule but those of quantiles beyond the data and of durability is broken in one of the
    // five.
    assert_eq!(rules.len(), 19, "{rules:?}");
    assert!(!rules.contains("L17"));
    assert_eq!(read(&place, "all.html").matches("<dt id=\"rule-L").count(), 21);
    place.weigh(&["audit", "--study", "hydroponic"]).with(2).saying(&["did you mean hydroponics"]);
    place.weigh(&["audit", "a.csv", "--study", "all"]).with(2);
    place
        .weigh(&["audit", "--study", "flespi", "--page", "nowhere/a.html"])
        .with(4)
        .saying(&["nowhere/a.html", "--page"]);
}

fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.folder().join(name)).expect("the page was written")
}
