//! From typed cases to the words that plans and journals hold, and back: what all cases share
//! stands once in the plan's load and background, what differs stands in the case.

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

/// The load that `cases` share, and the keys of each.
///
/// # Errors
/// If a load or a case cannot be written.
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
    // A key that some cases are without cannot be taken away by a case: it stands in none.
    base.retain(|key, _| loads.iter().all(|load| load.contains_key(key)));
    // A body in the clear says nothing of the seal that the others share.
    let sealed = loads.iter().filter_map(|load| load.get(RECIPIENTS));
    let sealed = sealed.max_by_key(|recipients| recipients.as_i64());
    base.extend(sealed.map(|recipients| (RECIPIENTS.to_owned(), recipients.clone())));
    // Nobody asks how many subscribers a request has: cases without them need not tell it.
    let without = cases.iter().position(|case| !case.load.delivers());
    for key in OF_DELIVER {
        let value = without.and_then(|index| loads[index].get(key));
        base.extend(value.map(|value| (key.to_owned(), value.clone())));
    }
    let beneath = background::points(cases)?;
    let keys = cases.iter().zip(&loads).zip(beneath).map(|((case, load), beneath)| {
        let mut keys = keys(case, load, &varying)?;
        keys.extend(beneath);
        Ok(keys)
    });
    let keys = keys.collect::<Result<_, _>>()?;
    Ok((load(base)?, keys))
}

/// The case of a resolved plan that is written so.
///
/// # Errors
/// If it has a key of `load` or of a background that there is not, or a value that the key does
/// not take.
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

/// The keys of a seal, so that cases can differ in each: in a load they are one text.
fn seal_keys(seal: Seal) -> [(&'static str, Value); 4] {
    [
        (RECIPIENTS, seal.recipients.into()),
        (CIPHER, seal.cipher.name().into()),
        (SIGNED, seal.is_signed.into()),
        (POLICY, seal.has_policy.into()),
    ]
}

/// What one case says of its seal all others say too. A body in the clear has 0 recipients, and
/// differs in nothing else from sealed ones that are all made in the same way.
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

/// Puts the keys of a seal back into the text of the body.
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

/// What a body is made of, and how it is sealed.
const BODY: &str = "body";
const RECIPIENTS: &str = "body.recipients";
const CIPHER: &str = "body.cipher";
const SIGNED: &str = "body.signed";
const POLICY: &str = "body.policy";

/// What the keys of a load begin with.
const LOAD: &str = "load.";

/// Keys of the load that every point has, so that points of different runs can be put side by
/// side.
const ALWAYS_TOLD: [&str; 4] = ["pattern", "connections", "arrival", "rate"];

/// Keys that mean something where there are subscribers only.
const OF_DELIVER: [&str; 2] = ["subscribers", "topology"];
