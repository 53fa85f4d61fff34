//! Whatever stands in a file, an audit ends with findings or with an error, and never with a
//! panic.

use std::path::Path;

use weigh_study::audit::{Source, audit};

#[test]
fn torn_and_damaged_files_end_well() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let step = (text.len() / 60).max(1);
        for cut in (0..text.len()).step_by(step).filter(|cut| text.is_char_boundary(*cut)) {
            ends_well(&text[..cut]);
            ends_well(&text[cut..]);
            seen += 1;
        }
        for (from, to) in [
            ("0", "9".repeat(40).as_str()),
            ("1", "-1"),
            (".", ".."),
            (",", ""),
            (" ", "\u{a0}"),
            ("e", "\u{1F600}"),
            ("=", "=="),
            (":", ": -"),
            ("2", "nan"),
            ("3", "0"),
        ] {
            ends_well(&text.replace(from, to));
        }
    }
    assert!(seen > 500, "{seen}");
}

/// Large tables take no time that grows with their square.
#[test]
fn a_table_of_fifty_thousand_figures_is_audited() {
    let mut text = "study,table,series,x,x_unit,y,y_unit\n".to_owned();
    for x in 0..25_000 {
        for stat in ["mean_rtt", "p99_rtt"] {
            text += &format!("s,T,protocol=HTTP;stat={stat},{x},messages,{}.5,ms\n", x % 977);
        }
    }
    let found = audit(&[Source { name: "large.csv".to_owned(), text }], &[]).unwrap();
    assert!(!found.unasked.is_empty());
}

fn ends_well(text: &str) {
    let source = Source { name: "x".to_owned(), text: text.to_owned() };
    if let Ok(audit) = audit(&[source], &[]) {
        assert!(!audit.to_text().is_empty() && audit.to_json().starts_with('{'));
    }
}
