//! Every row of the published table is one of our coefficients, or the folder's page says why not.

use std::fs;
use std::path::Path;

use weigh_energy::Catalogue;
use weigh_energy::keys::Kind;
use weigh_model::modelled::Coefficient;

#[test]
fn every_row_is_a_coefficient_or_explained() {
    let catalogue = Catalogue::load(&[]).unwrap();
    let files = [Kind::Device, Kind::Radio].into_iter().flat_map(|kind| catalogue.of(kind));
    let all: Vec<&Coefficient> = files.flat_map(|file| file.part.coefficients.values()).collect();
    let pages: String = ["devices", "radios"].map(page).concat();
    let mut rows =
        csv::Reader::from_path(root().join("crates/energy/tests/published.csv")).unwrap();
    let (mut taken, mut explained) = (0, 0);
    for row in rows.records() {
        let row = row.unwrap();
        let name = format!("{}: {}", &row[0], &row[1]);
        let own: Vec<&&Coefficient> =
            all.iter().filter(|known| known.row.as_deref() == Some(&*name)).collect();
        if own.is_empty() {
            assert!(pages.contains(&format!("| {name} |")), "{name}: in no file, on no page");
            explained += 1;
            continue;
        }
        for coefficient in own {
            let (value, unit) = coefficient.published.split_once(' ').unwrap();
            let unit = if row[3] == *"mC" && unit == "mC/h" { "mC" } else { unit };
            assert_eq!(unit, &row[3], "{name}");
            let published: f64 = row[2].parse().unwrap();
            assert_eq!(value.parse::<f64>().unwrap(), published, "{name}");
            assert!(coefficient.source.contains(&row[5]) || row[6] == *"derived", "{name}");
        }
        taken += 1;
    }
    assert!(taken >= 35 && explained >= 15, "{taken} taken, {explained} explained");
}

/// What a page says of rows that are not there would mislead.
#[test]
fn pages_explain_rows_that_exist() {
    let table = fs::read_to_string(root().join("crates/energy/tests/published.csv")).unwrap();
    for line in ["devices", "radios"].map(page).concat().lines() {
        let Some((row, _)) = line.strip_prefix("| ").and_then(|rest| rest.split_once(" | ")) else {
            continue;
        };
        let Some((_, name)) = row.split_once(": ") else { continue };
        assert!(table.contains(name), "{row}");
    }
}

fn page(folder: &str) -> String {
    fs::read_to_string(root().join(folder).join("README.md")).unwrap()
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
