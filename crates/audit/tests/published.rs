//! The five published studies: the rules that the methodology finds broken in each must be found,
//! and no others. Nothing in the audit knows a study; only the figures decide.

use std::path::Path;

use weigh_audit::{Audit, Source, audit, facts};

#[test]
fn every_broken_rule_of_a_published_study_is_found_and_no_other() {
    for (study, figures, broken) in [
        ("000-hydroponics", &["000-hydroponics"][..], "L05 L06 L07 L08 L09 L10"),
        ("001-flespi", &["001-flespi"], "L13 L16 L20"),
        ("002-tcp-icto", &["002-tcp-icto"], "L14 L18"),
        ("003-rpc-lab", &["003-rpc-lab", "003-rpc-lab-upstream"], "L01 L02 L03 L11 L13 L15"),
        (
            "004-jmeter-lab",
            &["004-jmeter-lab", "004-jmeter-lab-upstream"],
            "L01 L04 L08 L12 L13 L15 L19",
        ),
    ] {
        let audit = audited(figures, Some(study));
        assert_eq!(codes(&audit), broken, "{study}\n{}", audit.to_text());
    }
}

/// Without what the authors' code and text say beside the tables, less can be told.
#[test]
fn the_tables_alone_show_most_of_it() {
    for (figures, broken) in [
        ("000-hydroponics", "L05 L06 L07 L08 L09 L10"),
        ("001-flespi", "L13 L20"),
        ("002-tcp-icto", "L18"),
        ("003-rpc-lab", "L02 L11 L13"),
        ("004-jmeter-lab", "L01 L04 L08 L13 L19"),
    ] {
        let audit = audited(&[figures], None);
        assert_eq!(codes(&audit), broken, "{figures}\n{}", audit.to_text());
    }
}

/// The arithmetic of the findings is that of the methodology.
#[test]
fn findings_say_what_was_seen() {
    let text = audited(&["000-hydroponics"], None).to_text();
    for seen in [
        "all 11 times along messages are whole multiples of 1 s plus 343.5 ms (deviation 12.71 ms)",
        "8.51 percent of the stated 5,000 would be 425.5 messages",
        "of the 5,040 in Table 2 it is 429",
        "the maximum is 22.7 percent (Table 15), below the mean of 28.35 percent (Table 13)",
        "all well at 1,625 messages, 6.67 percent at 1,750: a step of 7.143 %",
    ] {
        assert!(text.contains(seen), "{seen}\n{text}");
    }
    let text = audited(&["003-rpc-lab", "003-rpc-lab-upstream"], Some("003-rpc-lab")).to_text();
    for seen in [
        "10 clients / (513.8 us mean) gives 19,463/s, the table says 1,946/s: 0.1x",
        "1,000 clients, each every 100 ms, offers 10,000/s, 9,985/s was reached: 99.85 %",
        "the background was on for 35.03 % of the window",
        "47.8 us against 55.2 us is -13.4 %",
    ] {
        assert!(text.contains(seen), "{seen}\n{text}");
    }
    let text = audited(&["004-jmeter-lab"], None).to_text();
    assert!(text.contains("a ramp of 100 s to 100 clients, 100 % of the window"), "{text}");
    assert!(text.contains("100 clients / (74 ms mean) gives 1,351/s"), "{text}");
}

fn audited(figures: &[&str], study: Option<&str>) -> Audit {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/published");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let sources: Vec<Source> = figures
        .iter()
        .map(|name| Source { name: format!("{name}.csv"), text: read(&format!("{name}.csv")) })
        .collect();
    let name = format!("{}.facts.toml", study.unwrap_or("none"));
    let beside = facts::read(&name, &read(&name)).unwrap();
    audit(&sources, &beside).unwrap()
}

fn codes(audit: &Audit) -> String {
    let codes: Vec<&str> = audit.rules().into_iter().map(|rule| rule.code()).collect();
    codes.join(" ")
}
