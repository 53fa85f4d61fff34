//! All energy meters of this machine, and what each of them needs.

use serde::Serialize;
use weigh_model::MeterChoice;

use super::hwmon;
use super::meter::{BEST_FIRST, Meter, Sources};
use super::power_supply::supplies;
use super::readings::MeterError;

/// Result for one kind of meter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// What to type after `--meter`.
    pub choice: String,
    /// Its name; empty if there is none.
    pub name: String,
    /// What it measures; empty if there is none.
    pub covers: String,
    /// True if it can be used as it is.
    pub is_usable: bool,
    /// Why it cannot be used, and what it needs; empty if it can.
    pub needs: String,
}

/// All kinds of meters, the best first.
pub fn survey(sources: &Sources) -> Vec<Candidate> {
    let mut choices: Vec<MeterChoice> = Vec::new();
    for kind in BEST_FIRST {
        let several: Vec<MeterChoice> = match kind {
            "ina2xx" => hwmon::places(&sources.roots)
                .into_iter()
                .map(|own| MeterChoice::Shunt { chip: Some(own.chip), place: Some(own.place) })
                .collect(),
            "battery" => supplies(&sources.roots)
                .into_iter()
                .filter(|supply| supply.is_battery())
                .map(|supply| MeterChoice::Battery(Some(supply.name)))
                .collect(),
            _ => Vec::new(),
        };
        match several.is_empty() {
            true => choices.extend(kind.parse::<MeterChoice>()),
            false => choices.extend(several),
        }
    }
    choices.iter().map(|choice| candidate(choice, sources)).collect()
}

fn candidate(choice: &MeterChoice, sources: &Sources) -> Candidate {
    let (name, covers, needs) = match Meter::open(choice, sources) {
        Ok(meter) => (meter.facts().name.clone(), meter.facts().covers.clone(), String::new()),
        Err(MeterError::Unusable { meter, reason, fix }) => {
            (meter, String::new(), format!("{reason}; {fix}"))
        }
        Err(error) => (String::new(), String::new(), error.to_string()),
    };
    let is_usable = needs.is_empty();
    Candidate { choice: choice.to_string(), name, covers, is_usable, needs }
}
