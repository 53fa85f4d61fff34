//! Resolves the background of a plan.

use serde_json::{Map, Value};
use weigh_model::Protocol;
use weigh_model::background::{Background, SAME, TargetCores};
use weigh_model::plan::Plan;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Point;
use weigh_model::units::parse_duration;
use weigh_model::{Nanos, Pattern};

pub use crate::background_keys::{OFF, ON, PREFIX, STATE};
use crate::case::{BackgroundChoice, Case, map, word};

use crate::load::LoadWords;
use crate::problem::{Problem, Problems};
use crate::row::{Given, Row, below, told};
use crate::world::{REFERENCE, World};

/// Rows with the background and, as its baseline, without; each with a flag whether it may exist
/// already.
pub(crate) fn states(row: Row, has_baseline: bool) -> Vec<(Row, bool)> {
    let first = row.iter().find(|(key, _)| key.starts_with(PREFIX));
    let place = first.map(|(_, given)| given.place.clone());
    let off = |row: &Row| -> Row {
        let rest = row.iter().filter(|(key, _)| !key.starts_with(PREFIX));
        rest.map(|(key, given)| (key.clone(), given.clone())).collect()
    };
    match (row.get(STATE).map(|given| given.value.as_str() == Some(OFF)), place) {
        (Some(true), _) => vec![(off(&row), true)],
        (Some(false), _) | (None, None) => vec![(row, false)],
        (None, Some(place)) => {
            let with = |mut row: Row, word: &str| {
                let given = Given { value: word.into(), place: place.clone() };
                row.insert(STATE.to_owned(), given);
                row
            };
            let baseline = has_baseline.then(|| (with(off(&row), OFF), true));
            baseline.into_iter().chain([(with(row.clone(), ON), false)]).collect()
        }
    }
}

/// The background in `row` for a lane of `protocol` at `target`; `None` after an error.
pub(crate) fn decide(
    row: &Row,
    (protocol, target): (&dyn Protocol, &str),
    world: &dyn World,
    problems: &mut Problems,
) -> Option<BackgroundChoice> {
    let Some(state) = row.get(STATE) else { return Some(BackgroundChoice::Unasked) };
    if state.value.as_str() == Some(OFF) {
        return Some(BackgroundChoice::Off);
    }
    let asked = Asked { row, state, world };
    match asked.whole(protocol, target) {
        Ok(background) => Some(BackgroundChoice::On(Box::new(background))),
        Err(wrong) => {
            wrong.into_iter().for_each(|problem| problems.add(problem));
            None
        }
    }
}

/// The background's keys in a row.
struct Asked<'a> {
    row: &'a Row,
    state: &'a Given,
    world: &'a dyn World,
}

impl Asked<'_> {
    fn whole(&self, lane: &dyn Protocol, lane_target: &str) -> Result<Background, Vec<Problem>> {
        let (protocol, target) = self.party(lane, lane_target).map_err(|one| vec![one])?;
        let load = self.load(protocol)?;
        let text = |key: &str| self.row.get(key).and_then(|given| given.value.as_str());
        let target_cores = match text("background.beside") {
            Some("apart") => TargetCores::Apart,
            _ => TargetCores::Target,
        };
        let lead = text("background.lead").and_then(|text| parse_duration(text).ok());
        let settings = self.settings(protocol).map_err(|one| vec![one])?;
        let settings = match settings.is_empty() {
            true => Default::default(),
            false => [(protocol.name().to_owned(), settings)].into(),
        };
        let lead = lead.unwrap_or(LEAD);
        let protocol = protocol.name().to_owned();
        Ok(Background { protocol, target, target_cores, lead, load, settings })
    }

    /// Its protocol, and the name of its target.
    fn party(
        &self,
        lane: &dyn Protocol,
        lane_target: &str,
    ) -> Result<(&'static dyn Protocol, String), Problem> {
        let given = self.row.get("background.target");
        let word = given.and_then(|given| given.value.as_str()).unwrap_or(REFERENCE);
        let place = given.map_or(&self.state.place, |given| &given.place).clone();
        let looked_for = if word == SAME { lane_target } else { word };
        let found = self.world.target(looked_for).map_err(|said| {
            let (wrong, fix) = said.split_once(": ").unwrap_or((&said, ""));
            Problem::at(place.clone(), format!("background.target: {wrong}"), fix)
        })?;
        let speaks = match (word, found.speaks) {
            // A reference server supports one protocol.
            (SAME, None) => Some(vec![lane.name().to_owned()]),
            (_, speaks) => speaks,
        };
        let protocol = match (self.row.get("background.protocol"), &speaks) {
            (Some(given), _) => self.protocol(given)?,
            (None, Some(speaks)) if !speaks.is_empty() => self.known(&speaks[0], &place)?,
            _ => {
                let text = "the background has no protocol";
                return Err(Problem::at(place, text, "add background.protocol = \"mqtt\""));
            }
        };
        if speaks.as_ref().is_some_and(|all| !all.iter().any(|name| name == protocol.name())) {
            let text = match word {
                SAME => format!("the measured target does not speak {}", protocol.name()),
                _ => format!("{} does not speak {}", found.name, protocol.name()),
            };
            let speaks = speaks.unwrap_or_default().join(", ");
            let fix = format!("type one of {speaks}, or set another background.target");
            return Err(Problem::at(place, format!("background.target: {text}"), fix));
        }
        let name = if word == SAME { word.to_owned() } else { found.name };
        Ok((protocol, name))
    }

    fn protocol(&self, given: &Given) -> Result<&'static dyn Protocol, Problem> {
        self.known(given.value.as_str().unwrap_or_default(), &given.place)
    }

    fn known(
        &self,
        word: &str,
        place: &std::ops::Range<usize>,
    ) -> Result<&'static dyn Protocol, Problem> {
        let protocols = self.world.protocols();
        let is_it =
            |own: &&&'static dyn Protocol| own.name() == word || own.aliases().contains(&word);
        protocols.iter().find(is_it).copied().ok_or_else(|| {
            let names: Vec<&str> = protocols.iter().map(|own| own.name()).collect();
            let text = format!("background.protocol: unknown protocol {word:?}");
            Problem::at(place.clone(), text, format!("type one of {}", names.join(", ")))
        })
    }

    fn load(&self, protocol: &dyn Protocol) -> Result<weigh_model::Load, Vec<Problem>> {
        let place = || self.state.place.clone();
        let words = below(self.row, "background.load.").try_into();
        let words: LoadWords = words.map_err(|error: toml::de::Error| {
            vec![Problem::at(place(), error.to_string(), "change the load")]
        })?;
        let pattern = words
            .pattern
            .unwrap_or_else(|| protocol.patterns().first().copied().unwrap_or(Pattern::Request));
        let refused = words.arrival.as_ref().and_then(|own| Background::refusal(own, pattern));
        let refused =
            refused.or_else(|| Background::refusal(&weigh_model::Arrival::Closed, pattern));
        if let Some((text, fix)) = refused {
            let keys = ["background.load.arrival", "background.load.pattern"];
            let given = keys.iter().find_map(|key| self.row.get(*key));
            let place = given.map_or_else(place, |given| given.place.clone());
            return Err(vec![Problem::at(place, text, fix)]);
        }
        let decided = words.decide(protocol.name(), protocol.patterns());
        let mut load = decided.map_err(|wrong| -> Vec<Problem> {
            wrong.iter().map(|one| told(one, self.row, PREFIX)).collect()
        })?;
        (load.duration, load.warmup) = (None, Nanos(0));
        Ok(load)
    }

    /// The settings of its protocol, without the protocol's name.
    fn settings(&self, protocol: &dyn Protocol) -> Result<Point, Problem> {
        let mut settings = Point::new();
        for (key, given) in self.row {
            let Some(rest) = key.strip_prefix(PREFIX) else { continue };
            let Some((first, name)) = rest.split_once('.').filter(|(first, _)| *first != "load")
            else {
                continue;
            };
            let place = given.place.clone();
            if first != protocol.name() {
                let text = format!("{key}: {first} is not the protocol of the background");
                let fix = format!("leave it out, or make background.protocol {first}");
                return Err(Problem::at(place, text, fix));
            }
            let text = given.text();
            if self.world.is_secret(rest, &text) {
                let text = format!("{key}: a background cannot have secrets of its own");
                return Err(Problem::at(place, text, "leave it out, or name a server by its URL"));
            }
            settings.insert(name.to_owned(), word(&given.value));
        }
        Ok(settings)
    }
}

/// The keys that all backgrounds of these cases share; the others are in the cases.
///
/// # Errors
/// A number that is too large for TOML.
pub fn shared(cases: &[Case]) -> Result<Option<Background>, Invalid> {
    let flats = flats(cases)?;
    let Some(mut base) = flats.first().cloned() else { return Ok(None) };
    base.retain(|key, _| flats.iter().all(|flat| flat.contains_key(key)));
    whole(base).map(Some)
}

/// The background's keys in each of these cases.
pub(crate) fn points(cases: &[Case]) -> Result<Vec<Point>, Invalid> {
    let flats = flats(cases)?;
    let is_shared = |key: &str, value: &Value| flats.iter().all(|own| own.get(key) == Some(value));
    let point = |case: &Case| {
        let mut keys = Point::new();
        match &case.background {
            BackgroundChoice::Unasked => {}
            BackgroundChoice::Off => drop(keys.insert(STATE.to_owned(), OFF.into())),
            BackgroundChoice::On(background) => {
                keys.insert(STATE.to_owned(), ON.into());
                let own = flat(background)?.into_iter();
                let own = own.filter(|(key, value)| !is_shared(key, value));
                keys.extend(own.map(|(key, value)| (format!("{PREFIX}{key}"), value)));
            }
        }
        Ok(keys)
    };
    cases.iter().map(point).collect()
}

/// The background of a case of a resolved plan.
///
/// # Errors
/// A plan without a background, or with invalid keys of it.
pub(crate) fn of(plan: &Plan, point: &Point) -> Result<BackgroundChoice, Invalid> {
    match point.get(STATE).and_then(Value::as_str) {
        None => return Ok(BackgroundChoice::Unasked),
        Some(ON) => {}
        Some(_) => return Ok(BackgroundChoice::Off),
    }
    let base = plan.background.as_ref().ok_or_else(|| {
        Invalid::new(STATE, "the plan has no background", "write [background] above its keys")
    })?;
    let mut flat = flat(base)?;
    for (key, value) in point {
        if let Some(key) = key.strip_prefix(PREFIX) {
            flat.insert(key.to_owned(), value.clone());
        }
    }
    whole(flat).map(|whole| BackgroundChoice::On(Box::new(whole)))
}

fn flats(cases: &[Case]) -> Result<Vec<Map<String, Value>>, Invalid> {
    let of = |case: &Case| match &case.background {
        BackgroundChoice::On(background) => Some(flat(background)),
        _ => None,
    };
    cases.iter().filter_map(of).collect()
}

/// Its keys with dots, as in a plan after `background.`.
fn flat(background: &Background) -> Result<Map<String, Value>, Invalid> {
    let mut flat = Map::new();
    for (key, value) in map(background, STATE)? {
        match value {
            Value::Object(inner) => {
                let dotted = inner.into_iter();
                flat.extend(dotted.map(|(rest, value)| (format!("{key}.{rest}"), value)));
            }
            value => drop(flat.insert(key, value)),
        }
    }
    Ok(flat)
}

fn whole(flat: Map<String, Value>) -> Result<Background, Invalid> {
    let mut table = Map::new();
    for (key, value) in flat {
        match key.split_once('.') {
            None => drop(table.insert(key, value)),
            Some((first, rest)) => {
                let inner = table.entry(first).or_insert_with(|| Value::Object(Map::new()));
                inner[rest] = value;
            }
        }
    }
    serde_json::from_value(Value::Object(table)).map_err(|error| {
        Invalid::new(STATE, error.to_string(), "write it as `weigh` itself writes it")
    })
}

/// True if the keys of a plan ask for a background.
pub(crate) fn is_asked<'r>(rows: impl Iterator<Item = &'r Row>) -> bool {
    rows.flat_map(Row::keys).any(|key| key.starts_with(PREFIX))
}

/// Default time between its start and the window.
pub const LEAD: Nanos = Nanos::from_secs(1);
