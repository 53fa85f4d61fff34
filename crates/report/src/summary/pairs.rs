//! Selects the cells that are compared: those that differ in one factor only. Reasons:
//! `docs/decisions/0011-which-cells-are-compared.md`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use weigh_model::trial::Point;

use super::cell::Cell;
use super::matrix::{is_quantity, point_key};

/// Two cells to be compared, by their indices, and the factor in which they differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    pub(crate) left: usize,
    pub(crate) right: usize,
    /// [`LANE`], or the keys of the axis.
    pub(crate) factor: String,
}

/// The factor of cells at one place of all axes: protocol, target, settings.
pub const LANE: &str = "lane";

/// The factor of a case with a background and without: its plan key.
pub const BACKGROUND: &str = "background";

/// The values of that key.
const ON: &str = "on";

const OFF: &str = "off";

/// All pairs: at every place of the axes lane against lane, then along the axes every lane's
/// neighbours.
pub(crate) fn pairs(cells: &[Cell]) -> Vec<Pair> {
    let axes = axes(cells);
    let mut pairs = Vec::new();
    for place in grouped(cells, |point| place(point, &axes)).values() {
        pairs.extend(lanes(cells, place));
    }
    pairs.extend(baselines(cells));
    for axis in &axes {
        let rest = |point: &Point| split(point, &BTreeSet::from([*axis])).1;
        for line in grouped(cells, rest).into_values() {
            pairs.extend(neighbours(cells, line, axis));
        }
    }
    pairs.extend(along_all_axes(cells, &axes));
    pairs
}

/// The place of a point: along the axes, and its background.
fn place(point: &Point, axes: &BTreeSet<&str>) -> String {
    let background = point.keys().map(String::as_str).filter(|key| is_background_key(key));
    split(point, &axes.iter().copied().chain(background).collect()).0
}

/// Every cell with a background, and the one that differs only in having none.
pub(crate) fn baselines(cells: &[Cell]) -> Vec<Pair> {
    let state = |cell: &Cell| cell.point.get(BACKGROUND).and_then(Value::as_str).map(str::to_owned);
    let rest = |cell: &Cell| -> Point {
        let keys = cell.point.iter().filter(|(key, _)| !is_background_key(key));
        keys.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let of_state = |word: &'static str| {
        let all = cells.iter().enumerate();
        all.filter(move |(_, cell)| state(cell).as_deref() == Some(word)).map(|(at, _)| at)
    };
    let baselines: BTreeMap<String, usize> =
        of_state(OFF).map(|at| (point_key(&rest(&cells[at])), at)).collect();
    let pair = |left: usize| {
        let right = *baselines.get(&point_key(&rest(&cells[left])))?;
        Some(Pair { left, right, factor: BACKGROUND.to_owned() })
    };
    of_state(ON).filter_map(pair).collect()
}

/// True for a key of a background.
fn is_background_key(key: &str) -> bool {
    key == BACKGROUND || key.starts_with("background.")
}

/// The cells of one place: all pairs; or, if there are many, those of each guarantee apart, and of
/// many of one guarantee each with the first.
fn lanes(cells: &[Cell], place: &[usize]) -> Vec<Pair> {
    if place.len() <= LANES_MAX {
        return all_pairs(place);
    }
    let mut apart: Vec<Vec<usize>> = Vec::new();
    for own in place {
        let guarantee = cells[*own].guarantee;
        match apart.iter_mut().find(|group| cells[group[0]].guarantee == guarantee) {
            Some(group) => group.push(*own),
            None => apart.push(vec![*own]),
        }
    }
    let of_group = |group: Vec<usize>| match group.len() <= LANES_MAX {
        true => all_pairs(&group),
        false => group[1..].iter().map(|right| lane_pair(group[0], *right)).collect(),
    };
    apart.into_iter().flat_map(of_group).collect()
}

/// Each of these cells with each after it.
fn all_pairs(place: &[usize]) -> Vec<Pair> {
    let from = |(index, left): (usize, &usize)| {
        let left = *left;
        place[index + 1..].iter().map(move |right| lane_pair(left, *right))
    };
    place.iter().enumerate().flat_map(from).collect()
}

fn lane_pair(left: usize, right: usize) -> Pair {
    Pair { left, right, factor: LANE.to_owned() }
}

/// Cells with the same key, in their order.
fn grouped(cells: &[Cell], key: impl Fn(&Point) -> String) -> BTreeMap<String, Vec<usize>> {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, cell) in cells.iter().enumerate() {
        groups.entry(key(&cell.point)).or_default().push(index);
    }
    groups
}

/// The part of a point along `axes`, and the other keys.
fn split(point: &Point, axes: &BTreeSet<&str>) -> (String, String) {
    let part = |is_in: bool| -> Point {
        let keys = point.iter().filter(|(key, _)| axes.contains(key.as_str()) == is_in);
        keys.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    (point_key(&part(true)), point_key(&part(false)))
}

/// The keys of quantities that differ between cells.
fn axes(cells: &[Cell]) -> BTreeSet<&str> {
    let mut first: BTreeMap<&str, &Value> = BTreeMap::new();
    let mut varied = BTreeSet::new();
    let mut choices = BTreeSet::new();
    for (key, value) in cells.iter().flat_map(|cell| &cell.point) {
        if !is_quantity(key, value) {
            choices.insert(key.as_str());
        } else if *first.entry(key).or_insert(value) != value {
            varied.insert(key.as_str());
        }
    }
    varied.retain(|key| !choices.contains(key));
    varied
}

/// Neighbours of a line, the smaller place on the left.
fn neighbours(cells: &[Cell], mut line: Vec<usize>, axis: &str) -> Vec<Pair> {
    let place = |cell: &usize| {
        cells[*cell]
            .point
            .get(axis)
            .and_then(crate::summary::matrix::quantity)
            .unwrap_or(f64::INFINITY)
    };
    line.retain(|cell| place(cell).is_finite());
    line.sort_by(|left, right| place(left).total_cmp(&place(right)));
    let pair = |pair: &[usize]| Pair { left: pair[0], right: pair[1], factor: axis.to_owned() };
    line.windows(2).map(pair).collect()
}

/// If quantities change together, such as connections and rate of a zip, no single one of them
/// makes a line: they are one factor, in the order of the plan.
fn along_all_axes(cells: &[Cell], axes: &BTreeSet<&str>) -> Vec<Pair> {
    let mut pairs = Vec::new();
    if axes.len() < 2 {
        return pairs;
    }
    let factor = axes.iter().copied().collect::<Vec<_>>().join(" and ");
    for line in grouped(cells, |point| split(point, axes).1).into_values() {
        let alone = |cell: &usize| {
            let own = &cells[*cell].point;
            let differs_in_one = |other: &usize| {
                axes.iter()
                    .filter(|axis| cells[*other].point.get(**axis) != own.get(**axis))
                    .count()
                    == 1
            };
            !line.iter().any(differs_in_one)
        };
        if line.iter().all(alone) {
            let pair =
                |pair: &[usize]| Pair { left: pair[0], right: pair[1], factor: factor.clone() };
            pairs.extend(line.windows(2).map(pair));
        }
    }
    pairs
}

/// More lanes than this at one place are compared within their guarantee only; more of one
/// guarantee, with its first only.
const LANES_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weigh_model::Guarantee;
    use weigh_model::ledger::Ledger;

    fn cell(point: Value) -> Cell {
        Cell {
            name: point.to_string(),
            point: serde_json::from_value(point).unwrap(),
            guarantee: Guarantee::AtLeastOnce,
            durability: None,
            target: String::new(),
            repetitions: 5,
            valid: true,
            metrics: BTreeMap::new(),
            samples: BTreeMap::new(),
            ledger: Ledger::zero(),
            warnings: Vec::new(),
            granted: BTreeMap::new(),
            steady_state: BTreeMap::new(),
            scene: BTreeMap::new(),
        }
    }

    fn found(points: impl IntoIterator<Item = Value>) -> Vec<(usize, usize, String)> {
        let cells: Vec<Cell> = points.into_iter().map(cell).collect();
        pairs(&cells).into_iter().map(|pair| (pair.left, pair.right, pair.factor)).collect()
    }

    #[test]
    fn lanes_are_compared_at_one_place_and_places_within_a_lane() {
        let connections = "load.connections".to_owned();
        let points = [(20, "mqtt"), (20, "tcp"), (100, "mqtt"), (100, "tcp"), (40, "tcp")]
            .map(|(at, lane)| json!({ "protocol": lane, "load.connections": at }));
        let mut pairs = found(points);
        pairs.sort();
        assert_eq!(
            pairs,
            [
                (0, 1, LANE.to_owned()),
                (0, 2, connections.clone()),
                (1, 4, connections.clone()),
                (2, 3, LANE.to_owned()),
                (4, 3, connections),
            ]
        );
    }

    #[test]
    fn quantities_that_change_together_are_one_factor() {
        let points = [(20, "1000/s"), (40, "2000/s"), (80, "4000/s")]
            .map(|(c, r)| json!({ "protocol": "tcp", "load.connections": c, "load.rate": r }));
        let both = "load.connections and load.rate".to_owned();
        assert_eq!(found(points), [(0, 1, both.clone()), (1, 2, both)]);
    }

    #[test]
    fn two_hundred_cells_make_hundreds_of_pairs_and_not_tens_of_thousands() {
        let lanes = ["mqtt", "http1", "tcp", "amqp"];
        let points = (1..=50).flat_map(|level| {
            lanes.map(|lane| json!({ "protocol": lane, "load.connections": level * 20 }))
        });
        assert_eq!(found(points).len(), 50 * 6 + 4 * 49);
    }

    #[test]
    fn many_lanes_are_compared_with_the_first() {
        let lanes = |number: u32| (0..number).map(|n| json!({ "protocol": n.to_string() }));
        assert_eq!(found(lanes(12)).len(), 66);
        assert_eq!(found(lanes(40)).len(), 39);
        assert_eq!(found(lanes(1)), []);
        let mut cells: Vec<Cell> = lanes(14).map(cell).collect();
        cells[0].guarantee = Guarantee::AtMostOnce;
        cells[13].guarantee = Guarantee::AtMostOnce;
        let pairs = pairs(&cells);
        assert_eq!(pairs.len(), 66 + 1, "all pairs of twelve, and of two of another guarantee");
        assert!(pairs.iter().any(|pair| (pair.left, pair.right) == (0, 13)));
    }

    /// Two lanes at two places, each with two backgrounds and without any: loaded meets its own
    /// baseline, and lanes meet under the same background only.
    #[test]
    fn a_loaded_case_meets_its_baseline_and_lanes_meet_under_the_same_background() {
        let mut points = Vec::new();
        for lane in ["tcp", "http1"] {
            for at in [10, 20] {
                let own = json!({ "protocol": lane, "load.connections": at });
                for rate in [None, Some("100/s"), Some("200/s")] {
                    let mut point = own.clone();
                    point["background"] = if rate.is_some() { "on" } else { "off" }.into();
                    if let Some(rate) = rate {
                        point["background.load.rate"] = rate.into();
                    }
                    points.push(point);
                }
            }
        }
        let pairs = found(points);
        let of = |factor: &str| -> Vec<(usize, usize)> {
            let own = pairs.iter().filter(|pair| pair.2 == factor);
            let mut own: Vec<_> = own.map(|(left, right, _)| (*left, *right)).collect();
            own.sort_unstable();
            own
        };
        let loaded = [1, 2, 4, 5, 7, 8, 10, 11].map(|at| (at, at / 3 * 3));
        assert_eq!(of(BACKGROUND), loaded);
        assert_eq!(of(LANE), (0..6).map(|at| (at, at + 6)).collect::<Vec<_>>());
        assert_eq!(of("background.load.rate"), [(1, 2), (4, 5), (7, 8), (10, 11)]);
        assert_eq!(of("load.connections").len(), 6);
    }

    #[test]
    fn a_choice_is_no_axis() {
        let points = ["deliver", "request"].map(|p| json!({ "protocol": "a", "load.pattern": p }));
        assert_eq!(found(points), [(0, 1, LANE.to_owned())]);
    }
}
