//! The published cells are those of the papers: by count and digest everywhere, and value by value
//! where WEIGH_PUBLISHED names the folder with the tables that were checked against the papers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sha2::{Digest, Sha256};
use weigh_study::StudyTexts;

/// Rows of `published.csv` by the first column: how many, and the digest of their columns, joined
/// by `|`, a line each.
const TABLES: [(&str, &str, usize, &str); 7] = [
    (
        "hydroponics",
        "000-hydroponics",
        250,
        "168db8b99aef4384586d03f2c98f8d80b9c061dc990260ab5bf32cd804be1bd8",
    ),
    (
        "flespi",
        "001-flespi",
        16,
        "f9d5bc6932bb76b0cfb9db1a275ed7d80765c515b97ad9fbb957e10565b5038c",
    ),
    (
        "tcp-mqtt",
        "002-tcp-icto",
        13,
        "874142b3cc2627561a5c824c232a236d16fda232a7d6590e683aa3088b020d23",
    ),
    (
        "rpc-lab",
        "003-rpc-lab",
        49,
        "16e57ddc9654fb3d67f18d7cb9a97121ac10cc63631e1a2040a52072f1a0f38f",
    ),
    (
        "jmeter-lab",
        "004-jmeter-lab",
        37,
        "0af2969373edd95a1de9d344c3b2e1712b0ca2d8b1b7b43ce9ba3d0018cb210b",
    ),
    (
        "rpc-lab",
        "003-rpc-lab-upstream",
        65,
        "c5758e597c5a02fec1077318e000f71103380aa895a73934c64825fbe60a6f5a",
    ),
    (
        "jmeter-lab",
        "004-jmeter-lab-upstream",
        57,
        "8d8ef5efb18f46cfb5930287ccb78d69d54ba798c8eb3448a11835b6a25d8d26",
    ),
];

/// Rows by the first column.
fn rows(text: &str) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut rows: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    for record in reader.records() {
        // The column printed is Weighbridge's; the tables that were checked have seven.
        let row: Vec<String> = record.expect("a row").iter().take(7).map(str::to_owned).collect();
        rows.entry(row[0].clone()).or_default().push(row);
    }
    rows
}

fn published(study: &str) -> BTreeMap<String, Vec<Vec<String>>> {
    let texts = StudyTexts::built_in();
    let found = texts.iter().find(|texts| texts.name == study);
    rows(&found.unwrap_or_else(|| panic!("the study {study} is not there")).published)
}

#[test]
fn not_a_digit_of_a_published_cell_was_changed() {
    for (study, source, count, digest) in TABLES {
        let own = published(study).remove(source).unwrap_or_default();
        assert_eq!(own.len(), count, "{source}");
        let mut hash = Sha256::new();
        for row in &own {
            hash.update(row.join("|"));
            hash.update("\n");
        }
        let seen: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(seen, digest, "a cell of {source} is not the published one");
    }
    let papers = TABLES.iter().filter(|(_, source, ..)| !source.ends_with("-upstream"));
    assert_eq!(papers.map(|(_, _, count, _)| count).sum::<usize>(), 365);
}

#[test]
fn every_published_cell_is_the_one_of_the_original_table() {
    let Some(folder) = std::env::var_os("WEIGH_PUBLISHED").map(PathBuf::from) else {
        // The digests above say the same everywhere.
        println!("SKIPPED: nobody says where the original tables are: WEIGH_PUBLISHED=DIR");
        return;
    };
    for (study, source, ..) in TABLES {
        let file = folder.join(format!("{source}.csv"));
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{error}"));
        let original = rows(&text).remove(source).unwrap_or_default();
        let own = published(study).remove(source).unwrap_or_default();
        for (own, original) in own.iter().zip(&original) {
            assert_eq!(own[..5], original[..5], "{source}");
            let value = |row: &[String]| row[5].parse::<f64>().expect("a number");
            assert!(value(own) == value(original), "{source}: {own:?} is not {original:?}");
            assert_eq!(own[6], original[6], "{source}: the unit of {own:?}");
        }
        assert_eq!(own.len(), original.len(), "{source}");
    }
}

/// All 365 figures of the papers and the 122 of their authors' result files are used: in a claim,
/// in a picture, or named as a parameter.
#[test]
fn every_published_figure_is_accounted_for() {
    let mut counts = (0, 0);
    for study in crate::world::studies() {
        let cells = &study.published.cells;
        let upstream = cells.iter().filter(|cell| cell.study.ends_with("-upstream")).count();
        counts = (counts.0 + cells.len() - upstream, counts.1 + upstream);
        let unused = study.unused_cells();
        let named: Vec<String> = unused
            .iter()
            .map(|at| format!("{}, {} at {:?}", cells[*at].table, cells[*at].series, cells[*at].x))
            .collect();
        assert!(named.is_empty(), "{}: used nowhere:\n{}", study.name, named.join("\n"));
    }
    assert_eq!(counts, (365, 122));
}

/// What is printed is the value that is used, digits kept, but where a flag says that the print is
/// damaged and what it is read as.
#[test]
fn printed_digits_are_those_of_the_value_or_flagged() {
    let mut with_zeros = 0;
    for study in crate::world::studies() {
        for cell in &study.published.cells {
            let plain = cell.printed.trim_end_matches('%').replace(',', "");
            // "2h 39min" and "100 Kbytes" are printed in units of their own.
            if plain.chars().any(char::is_alphabetic) {
                continue;
            }
            with_zeros += usize::from(plain.contains('.') && plain.ends_with('0'));
            if plain.parse() == Ok(cell.value) {
                continue;
            }
            let is_flagged = study.flags.iter().any(|flag| {
                flag.table == cell.table && flag.series == cell.series && flag.x == cell.x
            });
            let place = format!("{} {} {} {}", study.name, cell.table, cell.series, cell.x);
            assert!(is_flagged, "{place}: printed {} and read as {}", cell.printed, cell.value);
        }
    }
    // 50 figures lost printed zeros before the column was there.
    assert!(with_zeros >= 50, "{with_zeros} figures end in a zero after the point");
}
