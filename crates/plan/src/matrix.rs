//! Converts typed cases to the words of plans and journals, and back: keys that all cases share are
//! once in the plan's load and background, the others are in the cases.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use weigh_model::Load;
use weigh_model::body::BodySource;
use weigh_model::plan::Plan;
use weigh_model::protocol::Invalid;
use weigh_model::seal::Seal;
use weigh_model::trial::Point;

use crate::background;
use crate::background_keys::is_own;
use crate::case::{Case, map};

/// Returns the load that `cases` share, and the keys of each.
///
/// # Errors
/// A load or a case that cannot be written.
pub fn matrix(cases: &[Case]) -> Result<(Load, Vec<Point>), Invalid> {
    let mut loads = cases.iter().map(|case| table(&case.load)).collect::<Result<Vec<_>, _>>()?;
    tell_seals(&mut loads);
    let all: BTreeSet<&String> = loads.iter().flat_map(Map::keys).collect();
    let is_shared = |key: &str| {
        let mut values = loads.iter().map(|load| load.get(key));
        let first = values.next();
        values.all(|value| Some(value) == first)
    };
    let varying: Vec<&String> = all.into_iter().filter(|key| !is_shared(key)).collect();
    let mut base = loads.first().cloned().unwrap_or_default();
    // A case cannot remove a key of the base, so a key that some cases lack is not in it.
    base.retain(|key, _| loads.iter().all(|load| load.contains_key(key)));
    // An unencrypted body does not affect the seal that the others share.
    let sealed = loads.iter().filter_map(|load| load.get(RECIPIENTS));
    let sealed = sealed.max_by_key(|recipients| recipients.as_i64());
    base.extend(sealed.map(|recipients| (RECIPIENTS.to_owned(), recipients.clone())));
    // Requests have no subscribers, so cases without them need not record their number.
    let without = cases.iter().position(|case| !case.load.delivers());
    for key in OF_DELIVER {
        let value = without.and_then(|index| loads[index].get(key));
        base.extend(value.map(|value| (key.to_owned(), value.clone())));
    }
    let background = background::points(cases)?;
    let keys = cases.iter().zip(&loads).zip(background).map(|((case, load), background)| {
        let mut keys = keys(case, load, &varying)?;
        keys.extend(background);
        Ok(keys)
    });
    let keys = keys.collect::<Result<_, _>>()?;
    Ok((load(base)?, keys))
}

/// Reads a case of a resolved plan.
///
/// # Errors
/// An unknown key of `load` or of a background, or an invalid value.
pub fn case_of(plan: &Plan, point: &Point) -> Result<Case, Invalid> {
    let mut merged = table(&plan.load)?;
    let mut own = Map::new();
    for (key, value) in point.iter().filter(|(key, _)| !is_own(key)) {
        match key.strip_prefix(LOAD) {
            Some(key) => merged.insert(key.to_owned(), value.clone()),
            None => own.insert(key.clone(), value.clone()),
        };
    }
    let (load, background) = (load(merged)?, background::of(plan, point)?);
    Ok(Case { load, background, ..Case::of_words(own)? })
}

fn keys(case: &Case, load: &Map<String, Value>, varying: &[&String]) -> Result<Point, Invalid> {
    let mut keys: Point = map(case, "case")?.into_iter().collect();
    for (key, value) in load {
        let delivers = case.load.delivers();
        let is_told = if OF_DELIVER.contains(&key.as_str()) {
            delivers && (key == "subscribers" || varying.contains(&key))
        } else {
            ALWAYS_TOLD.contains(&key.as_str()) || varying.contains(&key)
        };
        if is_told {
            keys.insert(format!("{LOAD}{key}"), value.clone());
        }
    }
    Ok(keys)
}

fn table(load: &Load) -> Result<Map<String, Value>, Invalid> {
    let mut table = map(load, "load")?;
    if let Some(seal) = load.body.seal() {
        table.insert(BODY.to_owned(), load.body.content().to_string().into());
        let plain = seal_keys(Seal { recipients: 0, ..Seal::default() });
        let own = seal_keys(seal).into_iter().zip(plain).filter(|(own, plain)| own != plain);
        table.extend(own.map(|((key, value), _)| (key.to_owned(), value)));
    }
    Ok(table)
}

/// Keys of a seal, so that cases can differ in each: in a load they are one text.
fn seal_keys(seal: Seal) -> [(&'static str, Value); 4] {
    [
        (RECIPIENTS, seal.recipients.into()),
        (CIPHER, seal.cipher.name().into()),
        (SIGNED, seal.is_signed.into()),
        (POLICY, seal.has_policy.into()),
    ]
}

/// Gives all cases the same keys of seals. An unencrypted body has 0 recipients, and is otherwise
/// equal to sealed ones.
fn tell_seals(loads: &mut [Map<String, Value>]) {
    for (key, usual) in seal_keys(Seal { recipients: 0, ..Seal::default() }) {
        if !loads.iter().any(|load| load.contains_key(key)) {
            continue;
        }
        if key == RECIPIENTS {
            loads.iter_mut().for_each(|load| {
                load.entry(key).or_insert(usual.clone());
            });
            continue;
        }
        let is_clear = |load: &Map<String, Value>| load.get(RECIPIENTS) == Some(&0.into());
        for load in loads.iter_mut().filter(|load| !is_clear(load)) {
            load.entry(key).or_insert(usual.clone());
        }
        let mut own = loads.iter().filter(|load| !is_clear(load)).map(|load| load.get(key));
        let first = own.next().flatten().cloned();
        let value = first.filter(|first| own.all(|other| other == Some(first))).unwrap_or(usual);
        for load in loads.iter_mut().filter(|load| is_clear(load)) {
            load.insert(key.to_owned(), value.clone());
        }
    }
}

/// Adds the keys of a seal to the text of the body again.
fn join_seal(table: &mut Map<String, Value>) -> Result<(), String> {
    let taken = [RECIPIENTS, CIPHER, SIGNED, POLICY].map(|key| table.remove(key));
    let body = table.get(BODY).and_then(Value::as_str).unwrap_or_default();
    let [recipients, cipher, signed, policy] = taken;
    let Some(recipients) = recipients else { return Ok(()) };
    let recipients =
        recipients.as_u64().ok_or_else(|| format!("{recipients} is not a number of recipients"))?;
    let body: BodySource = body.parse()?;
    let content = body.content().clone();
    let sealed = if recipients == 0 {
        content
    } else {
        let plain = Seal::default();
        let cipher = cipher.as_ref().and_then(Value::as_str).map(str::parse).transpose()?;
        let flag = |value: Option<Value>| value.as_ref().and_then(Value::as_bool);
        let seal = Seal {
            recipients: u32::try_from(recipients).map_err(|error| error.to_string())?,
            cipher: cipher.unwrap_or(plain.cipher),
            is_signed: flag(signed).unwrap_or(plain.is_signed),
            has_policy: flag(policy).unwrap_or(plain.has_policy),
        };
        BodySource::Sealed(seal, Box::new(content))
    };
    table.insert(BODY.to_owned(), sealed.to_string().into());
    Ok(())
}

fn load(mut table: Map<String, Value>) -> Result<Load, Invalid> {
    join_seal(&mut table).map_err(|said| {
        Invalid::new("load.body", said, "write body = { sealed = \"readings\" }")
    })?;
    serde_json::from_value(Value::Object(table)).map_err(|error| {
        Invalid::new("load", error.to_string(), "write the load as `weigh` itself writes it")
    })
}

/// The key of the body, with its seal.
const BODY: &str = "body";
const RECIPIENTS: &str = "body.recipients";
const CIPHER: &str = "body.cipher";
const SIGNED: &str = "body.signed";
const POLICY: &str = "body.policy";

/// Prefix of the keys of a load.
const LOAD: &str = "load.";

/// Keys of the load in every point, so that points of different runs can be compared.
const ALWAYS_TOLD: [&str; 4] = ["pattern", "connections", "arrival", "rate"];

/// Keys that apply only with subscribers.
const OF_DELIVER: [&str; 2] = ["subscribers", "topology"];
