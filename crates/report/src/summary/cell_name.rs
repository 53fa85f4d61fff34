//! Names of cells: the values of the keys that vary, in words.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use weigh_model::trial::Point;

/// The keys whose values differ between points of one protocol, and the pattern if it differs
/// between any: with the protocol they distinguish every two points.
pub(crate) fn varied_keys<'a>(points: &[&'a Point]) -> BTreeSet<&'a str> {
    let keys: BTreeSet<&str> =
        points.iter().flat_map(|point| point.keys().map(String::as_str)).collect();
    let is_varied = |key: &&str| {
        let mut first: BTreeMap<String, Option<&Value>> = BTreeMap::new();
        // Only some patterns have subscribers, and the pattern is in the name.
        let has_it = |point: &&&Point| *key != SUBSCRIBERS || point.contains_key(*key);
        points.iter().filter(has_it).any(|point| {
            let among = if *key == PATTERN { None } else { point.get("protocol") };
            let value = point.get(*key);
            *first.entry(among.map_or_else(String::new, plain)).or_insert(value) != value
        })
    };
    keys.into_iter().filter(is_varied).collect()
}

/// Names of the cells at `points`, in their order, as in tables and pages.
pub fn cell_names(points: &[&Point]) -> Vec<String> {
    let varied = varied_keys(points);
    points.iter().map(|point| name(point, &varied)).collect()
}

/// A point's name outside the table: `mqtt qos=1 on reference`.
pub(crate) fn point_name(point: &Point) -> String {
    name(point, &BTreeSet::new())
}

/// Protocol, the pattern if it varies, the protocol's own keys and other keys that vary in the run,
/// and the target: `mqtt deliver qos=1 on reference`.
pub(crate) fn name(point: &Point, varied: &BTreeSet<&str>) -> String {
    let protocol = point.get("protocol").map_or_else(|| "?".to_owned(), plain);
    let own = format!("{protocol}.");
    let mut name = protocol.clone();
    if let Some(pattern) = point.get(PATTERN).filter(|_| varied.contains(PATTERN)) {
        name += &format!(" {}", plain(pattern));
    }
    for (key, value) in point {
        let is_head = ["protocol", "target", PATTERN].contains(&key.as_str());
        if !is_head && (key.starts_with(&own) || varied.contains(key.as_str())) {
            if key == DURABILITY {
                name += &format!(" {}", plain(value));
                continue;
            }
            let short = key.strip_prefix(&own).or(key.strip_prefix("load.")).unwrap_or(key);
            name += &format!(" {short}={}", plain(value));
        }
    }
    name + " on " + &point.get("target").map_or_else(|| "reference".to_owned(), plain)
}

const SUBSCRIBERS: &str = "load.subscribers";

/// Keys whose values are clear without their names.
const DURABILITY: &str = "target.durability";
const PATTERN: &str = "load.pattern";

/// A value of a point as it is typed.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
