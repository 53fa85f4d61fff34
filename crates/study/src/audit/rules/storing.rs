//! L21: on one side a confirmed message is on a disk, on another in a memory.

use weigh_model::{Durability, Rule};

use super::bench::Bench;
use crate::audit::figure::Figure;

/// Sides of one table whose confirmations mean different things.
pub(super) fn durability(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for table in evidence.tables() {
        let mut sides: Vec<(&String, String, &Figure)> = Vec::new();
        for figure in evidence.figures.iter().filter(|figure| figure.place.table == table) {
            for subject in &figure.subjects {
                let known = match figure.is_claim {
                    true => evidence.known_of(figure, subject, "durability"),
                    false => evidence.known(figure, "durability").map(|known| known.value),
                };
                let is_new = !sides.iter().any(|(known, ..)| known.eq_ignore_ascii_case(subject));
                if let Some(known) = known.filter(|_| is_new) {
                    sides.push((subject, in_words(known), figure));
                }
            }
        }
        let [(first, one, figure), others @ ..] = &sides[..] else { continue };
        if others.is_empty() {
            continue;
        }
        bench.ask(Rule::L21);
        if let Some((second, other, _)) = others.iter().find(|(_, other, _)| other != one) {
            let seen = format!(
                "a confirmation of {first} means {one}, of {second} {other}, and they are in one \
                 table"
            );
            bench.find(Rule::L21, figure, seen);
        }
    }
}

/// One spelling for each durability; other texts, such as `not stated`, as they are.
fn in_words(known: &str) -> String {
    known.parse::<Durability>().map_or_else(|_| known.to_lowercase(), Durability::words)
}
