//! Formulas 1 and 2 of the hydroponics paper, by which its MQTT totals are rounded up: each client
//! sends ceil(messages / clients), all together that times the clients. The same code splits the
//! load of a trial.

use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};
use weigh_model::Split;
use weigh_study::StudyTexts;
use weigh_study::published::Published;

fn published() -> Published {
    let texts = StudyTexts::built_in();
    let found = texts.into_iter().find(|texts| texts.name == "hydroponics");
    let found = found.expect("the study hydroponics is not there");
    Published::read(&found.published, "000-hydroponics").expect("its figures can be read")
}

/// The number behind `key=` in a series.
fn number(series: &str, key: &str) -> u32 {
    let part = series.split(';').find_map(|part| part.strip_prefix(key)?.strip_prefix('='));
    part.and_then(|part| part.parse().ok()).unwrap_or_else(|| panic!("{series} has no {key}"))
}

#[test]
fn table_2_is_reproduced_cell_for_cell() {
    let published = published();
    let of_table = published.cells.iter().filter(|cell| cell.table == "Table 2");
    let mut count = 0;
    for cell in of_table {
        let clients = number(&cell.series, "clients");
        let messages = cell.x_value().expect("a number of messages") as u64;
        let expected = match cell.series.rsplit_once("stat=") {
            Some((_, "payloads_per_client")) => Split::Ceil.share(messages, clients, 0),
            Some((_, "payloads_rounded")) => Split::Ceil.total(messages, clients),
            _ => panic!("{} is neither", cell.series),
        };
        assert_eq!(cell.value, expected as f64, "{} at {messages}", cell.series);
        count += 1;
    }
    assert_eq!(count, TABLE_2_CELLS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn formula_1_and_2_hold_of_every_load(messages in 1u64..10_000_000, clients in 1u32..100_000) {
        let whole = u64::from(clients);
        let share = messages / whole + u64::from(messages % whole > 0);
        for index in [0, clients / 2, clients - 1] {
            prop_assert_eq!(Split::Ceil.share(messages, clients, index), share);
        }
        let total = Split::Ceil.total(messages, clients);
        prop_assert_eq!(total, share * whole);
        // Rounding up adds less than one message a client, and takes none away.
        prop_assert!(total >= messages && total - messages < whole);
        let few = clients.min(500);
        let sum: u64 = (0..few).map(|at| Split::Ceil.share(messages, clients, at)).sum();
        prop_assert_eq!(sum, share * u64::from(few));
    }
}

/// Five totals, each a client's share and the sum.
const TABLE_2_CELLS: usize = 10;
