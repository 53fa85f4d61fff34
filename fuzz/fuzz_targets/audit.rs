//! What other tools print, and tables of published figures: findings, or an error with its place.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_study::audit::{Source, audit, facts};
use weigh_study::expression::{Bound, Condition, Expression};
use weigh_study::published::Published;
use weigh_study::tools::{Prints, figures_in};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data).into_owned();
    for prints in [Prints::Nothing, Prints::Autocannon, Prints::MqttStresser, Prints::Jmeter] {
        if let Ok(figures) = figures_in(prints, &text) {
            assert!(figures.values().all(|value| !value.is_nan()), "{figures:?}");
        }
    }
    let _ = Published::read(&text, "x");
    let _ = facts::read("facts.toml", &text);
    if let Some(line) = text.lines().next().filter(|line| line.len() < 200) {
        let _ = (Condition::read(line), Bound::read(line));
        if let Ok(expression) = Expression::read(line) {
            let values: Vec<f64> = expression.names().iter().map(|_| 1.5).collect();
            let _ = expression.value(&values);
        }
    }
    if let Ok(audit) = audit(&[Source { name: "x".to_owned(), text }], &[]) {
        assert!(!audit.to_text().is_empty() && audit.to_json().starts_with('{'));
    }
});
