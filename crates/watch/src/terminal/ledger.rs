//! Ledgers as lines: of all finished trials, and of one.

use weigh_model::Ledger;
use weigh_model::numbers::count;

use super::line::{Lines, Mood, unknown};
use super::shown::Shown;

/// The ledger of all finished trials.
pub fn ledger(shown: &Shown<'_>) -> Lines {
    let done = shown.state.done();
    let Some(ledger) = &shown.state.ledger else { return Vec::new() };
    let trials =
        if done == 1 { "1 trial".to_owned() } else { format!("{} trials", count(done as u64)) };
    vec![ledger_line(&format!("{trials}: "), ledger)]
}

/// A ledger behind these words.
pub fn ledger_line(before: &str, ledger: &Ledger) -> (Mood, String) {
    let known = |number: Option<u64>| number.map_or_else(unknown, count);
    let causes = causes(ledger);
    let text = format!(
        "{before}scheduled {}, sent {}, delivered {}, late {}, lost {}{causes}",
        count(ledger.scheduled),
        count(ledger.sent),
        known(ledger.delivered),
        count(ledger.late),
        known(ledger.lost),
    );
    let is_lossy = ledger.lost > Some(0) || ledger.not_sent > 0;
    (if is_lossy { Mood::Bad } else { Mood::Plain }, text)
}

/// ` (timeout 2), not sent 5 (window full)`.
fn causes(ledger: &Ledger) -> String {
    let lost = ledger.causes.iter().filter(|(_, number)| **number > 0);
    let lost: Vec<String> =
        lost.map(|(cause, number)| format!("{} {}", cause.words(), count(*number))).collect();
    let mut text = match lost.is_empty() {
        true => String::new(),
        false => format!(" ({})", lost.join(", ")),
    };
    if ledger.not_sent > 0 {
        let causes: Vec<String> = ledger.not_sent_causes.keys().map(|own| own.words()).collect();
        text += &format!(", not sent {} ({})", count(ledger.not_sent), causes.join(", "));
    }
    text
}
